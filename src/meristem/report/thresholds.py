"""Thresholds of two classes: rules that choose one, and what each threshold costs; curves of all thresholds.

    best-f1          the highest F1 of the positive class
    cost=FP:FN       the least sum of costs: FP for each false positive, FN for each false negative
    recall=0.9       the highest threshold with at least this recall

The positive class is predicted where its probability is above the threshold. `threshold_section` shows the table and the curves
in a report; estimators/search.py chooses on out-of-fold probabilities.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from meristem.check import short
from meristem.pictures.figure_style import SERIES, Axes
from meristem.pictures.image_files import page_svg
from meristem.report.formatting import count, decimal, percent, significant
from meristem.report.report_data import ReportData, Section, Table
from meristem.report.scoring import Scorer
from meristem.show.elements import Markup, shorten

BEST_F1, COST, RECALL = "best-f1", "cost=", "recall="
RULES = "'best-f1', 'cost=FP:FN' such as 'cost=1:20', or 'recall=0.9'"
BLUE, RED, NEUTRAL = SERIES[0], SERIES[1], SERIES[-1]
Axis = tuple[str, np.ndarray]  # its label and its values
LEVELS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)  # thresholds of a table


@dataclass(frozen=True, eq=False)
class Thresholds:
    """True and false positives at all thresholds that matter [n + 1], from none predicted positive to all."""

    probabilities: np.ndarray  # [n], those that occur, descending
    true_positives: np.ndarray  # [n + 1]
    false_positives: np.ndarray  # [n + 1]

    @classmethod
    def of(cls, is_positive: np.ndarray, probability: np.ndarray) -> "Thresholds":
        """Return the thresholds between two different probabilities [rows], and beyond both ends.

        >>> Thresholds.of(np.array([True, False, True]), np.array([0.8, 0.2, 0.4])).recall.tolist()
        [0.0, 0.5, 1.0, 1.0]
        """
        values, groups = np.unique(-probability, return_inverse=True)  # descending probabilities
        positives, all_rows = np.bincount(groups, is_positive, len(values)), np.bincount(groups, minlength=len(values))
        true = np.concatenate([[0], np.cumsum(positives)])
        return cls(-values, true, np.concatenate([[0], np.cumsum(all_rows)]) - true)

    @property
    def false_negatives(self) -> np.ndarray:
        return np.asarray(self.true_positives[-1] - self.true_positives)

    @property
    def recall(self) -> np.ndarray:
        return np.asarray(self.true_positives / max(1, self.true_positives[-1]))

    @property
    def precision(self) -> np.ndarray:
        """The precision, 1 where nothing is predicted positive."""
        n = self.true_positives + self.false_positives
        return np.where(n > 0, self.true_positives / np.maximum(1, n), 1.0)

    @property
    def false_positive_rate(self) -> np.ndarray:
        return np.asarray(self.false_positives / max(1, self.false_positives[-1]))

    @property
    def f1(self) -> np.ndarray:
        return 2 * self.true_positives / np.maximum(1, 2 * self.true_positives + self.false_positives + self.false_negatives)

    def cost(self, rule: Any) -> np.ndarray:
        """Return the sum of costs at each threshold; a rule without costs counts errors."""
        fp, fn = costs_of(rule)
        return fp * self.false_positives + fn * self.false_negatives

    @property
    def thresholds(self) -> np.ndarray:
        """A threshold in the middle between the probabilities at either side, [n + 1]."""
        bounds = np.concatenate([[1.0], self.probabilities, [0.0]])
        return np.asarray((bounds[1:] + bounds[:-1]) / 2)

    def at(self, threshold: float) -> int:
        """Return the index at which rows with a probability above this threshold are predicted positive."""
        return int((self.probabilities > threshold).sum())


def costs_of(rule: Any) -> tuple[float, float]:
    """Return the costs of a false positive and a false negative in a rule; 1 and 1 where it has none."""
    if not isinstance(rule, str) or not rule.startswith(COST):
        return 1.0, 1.0
    fp, fn = map(float, rule.removeprefix(COST).split(":"))
    return fp, fn


def check_rule(name: str, rule: Any) -> None:
    """Raise ValueError unless a text is a rule."""
    try:
        if rule == BEST_F1:
            return
        if rule.startswith(COST):
            is_valid = all(0 < cost < np.inf for cost in costs_of(rule))
        else:
            is_valid = rule.startswith(RECALL) and 0 < float(rule.removeprefix(RECALL)) <= 1
    except (ValueError, AttributeError):
        is_valid = False
    if not is_valid:
        raise ValueError(f"{name}={short(rule)} must be {RULES}.")


def choose_threshold(rule: str, is_positive: np.ndarray, probability: np.ndarray) -> float:
    """Return the threshold that a rule chooses on these rows; raise ValueError where there is only one class.

    >>> choose_threshold("recall=0.5", np.array([True, False, True]), np.array([0.8, 0.2, 0.4]))
    0.6000000000000001
    """
    if is_positive.all() or not is_positive.any():
        raise ValueError(f"threshold={rule!r} needs held-out rows of both classes; give more rows, or a number.")
    tried = Thresholds.of(is_positive, probability)
    if rule.startswith(RECALL):
        place = int(np.argmax(tried.recall >= float(rule.removeprefix(RECALL)) - 1e-12))
    else:
        place = int(np.argmin(tried.cost(rule))) if rule.startswith(COST) else int(np.argmax(tried.f1))
    return float(np.clip(tried.thresholds[place], 1e-9, 1 - 1e-9))


def threshold_section(data: ReportData, scorer: Scorer, predictions: np.ndarray) -> Section | None:
    """Return the curves and a table of thresholds; None unless there are rows of both of two classes."""
    outcome = data.outcome
    if outcome is None or not outcome.is_binary or outcome.is_positive.all() or not outcome.is_positive.any():
        return None
    curve = Thresholds.of(outcome.is_positive, outcome.probabilities[:, outcome.positive])
    threshold, rule, name = data.model.threshold_, data.model.threshold, f"“{shorten(str(data.model.positive_class_), 40)}”"
    source = "the default" if rule is None else "as given"
    source = f"chosen by `{rule}` on out-of-fold predictions" if isinstance(rule, str) else source
    n, total = int(outcome.is_positive.sum()), len(outcome.y)
    text = [
        f"The positive class is {name}: {count(n)} of {count(total)} rows, {percent(n / total)}. It is predicted where its "
        f"probability is above the threshold, {significant(threshold)}, {source}; the dots are at this threshold. A higher "
        "threshold gives a higher precision and a lower recall. The table is of these rows; a threshold that is chosen by it "
        "would look better here than on other rows."
    ]
    has_costs = isinstance(rule, str) and rule.startswith(COST)
    fp, fn = map(significant, costs_of(rule))
    last = f"cost ({fp} for a false positive, {fn} for a false negative)" if has_costs else "errors"
    header = ["threshold", "predicted positive", "recall", "precision", "F1", "false positives", "false negatives", last]
    rows = []
    for level in sorted({*LEVELS, threshold}):
        k = curve.at(level)
        n_predicted = curve.true_positives[k] + curve.false_positives[k]
        shares = [percent(curve.recall[k]), percent(curve.precision[k]) if n_predicted else "–", decimal(curve.f1[k])]
        numbers = [count(curve.false_positives[k]), count(curve.false_negatives[k]), significant(float(curve.cost(rule)[k]), 6)]
        rows.append([f"{significant(level)}{' (chosen)' * (level == threshold)}", count(n_predicted), *shares, *numbers])
    table = Table("Thresholds", header, rows)
    place = curve.at(threshold)
    at = f"At the threshold {significant(threshold)}"
    recall, rate = ("recall", curve.recall), ("false positive rate", curve.false_positive_rate)
    precision = "precision", curve.precision
    words = [f"{name} {percent(values[place])}" for name, values in (recall, rate, precision)]
    roc = _curve_chart("ROC curve", rate, recall, place, [0, 1], f"{at}: {words[0]}, {words[1]}.")
    title, chance = "Precision–recall curve", [n / total, n / total]
    precision_recall = _curve_chart(title, recall, precision, place, chance, f"{at}: {words[0]}, {words[2]}.")
    return Section("threshold", "Threshold", text, [roc, precision_recall], [table])


def _curve_chart(title: str, x_axis: Axis, y_axis: Axis, place: int, chance: Sequence[float], description: str) -> Markup:
    """Return a curve with a dot at the threshold, and the dashed line of chance."""
    (x_label, x), (y_label, y), name = x_axis, y_axis, title.lower().removesuffix(" curve").replace("–", "-")
    is_drawn = slice(int(name != "roc"), None)  # where nothing is predicted positive there is no precision

    def draw(ax: Axes) -> None:
        ax.plot([0, 1], chance, color=NEUTRAL, linestyle="--", linewidth=1.5)
        ax.plot(x[is_drawn], y[is_drawn], color=BLUE)
        if place >= is_drawn.start:
            ax.plot(x[place : place + 1], y[place : place + 1], "o", color=RED, markersize=8)
        ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), xlabel=x_label, ylabel=y_label)
        ax.grid(axis="y")

    return page_svg(name, title, f"{title}: {y_label} by {x_label}. {description} The dashed line is chance.", draw)
