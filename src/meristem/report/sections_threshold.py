"""The section about the threshold of two classes: ROC and precision–recall curves, and what each threshold costs.

Imported by report/sections.py. The positive class is predicted where its probability is above the threshold.
"""

import numpy as np

from meristem.pictures.figure_style import SERIES, Axes
from meristem.pictures.image_files import page_svg
from meristem.report.formatting import count, decimal, percent, significant
from meristem.report.report_data import ReportData, Section, Table
from meristem.report.scoring import Scorer
from meristem.report.thresholds import COST, LEVELS, Thresholds, costs_of
from meristem.show.elements import Markup, shorten

BLUE, RED, NEUTRAL = SERIES[0], SERIES[1], SERIES[-1]


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
    recall, false_rate = percent(curve.recall[place]), percent(curve.false_positive_rate[place])
    roc = _curve_chart(
        *("roc", "ROC curve", "false positive rate", "recall", f"{at}: recall {recall}, false positive rate {false_rate}."),
        *(curve.false_positive_rate, curve.recall, place),
        chance=([0, 1], [0, 1]),
    )
    precision = percent(curve.precision[place])
    precision_recall = _curve_chart(
        *(
            "precision-recall",
            "Precision–recall curve",
            "recall",
            "precision",
            f"{at}: recall {recall}, precision {precision}.",
        ),
        *(curve.recall[1:], curve.precision[1:], place - 1),
        chance=([0, 1], [n / total, n / total]),
    )
    return Section("threshold", "Threshold", text, [roc, precision_recall], [table])


def _curve_chart(
    name: str,
    title: str,
    x_label: str,
    y_label: str,
    description: str,
    x: np.ndarray,
    y: np.ndarray,
    place: int,
    *,
    chance: tuple[list[float], list[float]],
) -> Markup:
    """Return a curve with a dot at the threshold, and the dashed line of chance."""

    def draw(ax: Axes) -> None:
        ax.plot(*chance, color=NEUTRAL, linestyle="--", linewidth=1.5)
        ax.plot(x, y, color=BLUE)
        if place >= 0:
            ax.plot(x[place : place + 1], y[place : place + 1], "o", color=RED, markersize=8)
        ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), xlabel=x_label, ylabel=y_label)
        ax.grid(axis="y")

    return page_svg(name, title, f"{title}: {y_label} by {x_label}. {description} The dashed line is chance.", draw)
