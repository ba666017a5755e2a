"""A model compared with its baselines: scores, and how much better it is, with the 95 % interval of the difference.

    compare(scorer, predictions, baselines, facts, seed, outcome=…, metric=…) → a Comparison of each baseline

Where the predictions of both are known, differences are taken row by row; of a file they are those that `fit` stored, or as of
independent samples. The metric is the headline's (task_metrics.py). Used by report_data.py and tables/fitting.py.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from meristem.report.baselines import NAMES
from meristem.report.scoring import Scorer
from meristem.report.task_metrics import BY_LABEL, DEFAULTS, Metric, Outcome, Predicted, values


@dataclass(frozen=True)
class Comparison:
    """A baseline on the same rows; `gain` is how much better the model scores, with its 95 % interval."""

    name: str
    score: dict[str, Any]
    gain: tuple[float, float, float]
    n_parameters: int | None  # None: it has leaves, or an earlier version did not count them
    same: tuple[str, int] | None = None  # ("predictions" or "scores", rows) if both models have the same on all rows
    settings: str = ""
    seconds: float | None = None
    metrics: dict[str, float] = field(default_factory=dict)  # all that apply, by name


def compare(
    scorer: Scorer,
    predictions: np.ndarray,
    baselines: dict[str, Predicted],
    facts: dict[str, dict[str, Any]],
    seed: int,
    *,
    outcome: Outcome | None = None,
    metric: Metric | None = None,
) -> tuple[Comparison, ...]:
    """Compare a model with baselines row by row, given their predictions and facts: score and gain, too, if they are known."""
    losses, comparisons = scorer.losses(predictions), []
    is_by_rows = metric is None or metric in DEFAULTS.values()
    for name, others in baselines.items():
        other_losses, own, same = scorer.losses(others.values), facts[name], None
        other = None if outcome is None else replace(outcome, predicted=others)
        score = own if "value" in own else score_by(metric, scorer, other, others.values, seed)
        if is_by_rows and np.array_equal(losses, other_losses):
            same = ("predictions" if np.array_equal(predictions.ravel(), others.values.ravel()) else "scores", len(losses))
        gain = _stored_gain(own)
        if gain is None and metric is not None and outcome is not None and not is_by_rows:
            gain = metric.gain(outcome, others, seed)
        metrics = own.get("test", {} if other is None else values(other))
        comparisons.append(_comparison(name, own, score, gain or scorer.gain(losses, other_losses, seed), metrics, same))
    return tuple(comparisons)


def score_by(metric: Metric | None, scorer: Scorer, outcome: Any, predictions: np.ndarray, seed: int) -> dict[str, Any]:
    """Return the score by a metric, or by the measure of the task, which is not defined where all numbers are the same."""
    if metric is None or metric in DEFAULTS.values():
        return scorer.score(scorer.losses(predictions), seed)
    return metric.score(outcome, seed)


def compare_scores(facts: dict[str, dict[str, Any]], score: dict[str, Any], *, is_held_out: bool) -> tuple[Comparison, ...]:
    """Compare a model with baselines by the gains of the fit; or if these are not known, or of other rows, by scores alone."""
    comparisons, sign = [], -1 if BY_LABEL[score["measure"]].lower_is_better else 1
    for name, other in sorted(facts.items(), key=lambda item: list(NAMES).index(item[0])):  # files have them by name
        gain = sign * (score["value"] - other["value"])
        half = float(np.hypot(score["high"] - score["low"], other["high"] - other["low"]) / 2)
        stored = _stored_gain(other) if is_held_out else None
        comparisons.append(_comparison(name, other, other, stored or (gain, gain - half, gain + half), other.get("test", {})))
    return tuple(comparisons)


def short_of_time(facts: dict[str, dict[str, Any]]) -> str:
    """Return a sentence for each baseline that had too little time."""
    sentence = " Of {} there was time for {} only; with more it may score higher."
    lacks = {_title(name, own)[0]: own["lacks"] for name, own in facts.items() if "lacks" in own}
    return "".join(sentence.format(name, used) for name, used in lacks.items())


def _stored_gain(facts: dict[str, Any]) -> tuple[float, float, float] | None:
    gain = facts.get("gain")
    return None if gain is None else (gain["value"], gain["low"], gain["high"])


def _title(name: str, facts: dict[str, Any]) -> tuple[str, str]:
    """Return the short name of a baseline and its settings."""
    title, _, settings = str(facts.get("label", NAMES[name])).partition(", ")
    return title, settings


def _comparison(
    name: str, facts: dict[str, Any], score: dict[str, Any], gain: Any, metrics: dict[str, float], same: Any = None
) -> Comparison:
    title, settings = _title(name, facts)
    return Comparison(title, score, gain, facts.get("n_parameters"), same, settings, facts.get("seconds"), metrics)
