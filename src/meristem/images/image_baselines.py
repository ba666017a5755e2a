"""What people try first on the same pixels: the most frequent class, logistic regression and an MLP (report/baselines.py)."""

from collections.abc import Callable
from typing import Any

import numpy as np

from meristem.report.baselines import MOST_NUMBERS, baselines
from meristem.report.scoring import CLASS, in_words
from meristem.report.task_metrics import Outcome, Predicted, headline, values

BASELINE_SECONDS, BASELINE_SHARE = 90.0, 0.125  # at most, and of a time limit
WITHOUT = ("boosting",)  # whose trees split by single pixels


def score_baselines(
    plan: Any, true: np.ndarray, seconds: float | None, say: Callable[[str], None]
) -> tuple[dict[str, dict[str, Any]], dict[str, Predicted]]:
    """Return the facts of the baselines, and what they predict for the pictures to test on."""
    seed, targets = int(plan.estimator.random_state), plan.search.table.targets
    most = max(100, MOST_NUMBERS // plan.pixels[0].size)
    rows = np.arange(len(plan.labels))
    if len(rows) > most:
        rows = np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))
    limit = BASELINE_SECONDS if seconds is None else min(BASELINE_SECONDS, BASELINE_SHARE * seconds)
    x, y = _flat(plan.pixels[rows]), np.searchsorted(targets.classes, plan.labels[rows])
    scores, predicted = dict[str, dict[str, Any]](), dict[str, Predicted]()
    own_metric: Any = None
    for own in baselines(CLASS, x, y, seconds=limit, seed=seed, n_classes=len(targets.classes), without=WITHOUT):
        outcome = Outcome(CLASS, true, Predicted.by(own, _flat(plan.test_pixels)), len(targets.classes), targets.positive)
        own_metric = own_metric or headline(outcome, plan.estimator.scoring)
        predicted[own.name] = outcome.predicted
        scores[own.name] = own_metric.score(outcome, seed) | own.facts | {"test": values(outcome)}
        say(f"{own.label}: {in_words(scores[own.name])}, {own.seconds:.1f} s")
    return scores, predicted


def _flat(pixels: np.ndarray) -> np.ndarray:
    return pixels.reshape(len(pixels), -1).astype(np.float32)
