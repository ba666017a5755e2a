"""What inputs do for predictions: how much the score drops without them, and how predictions change with them.

    permutation importance   the drop in the score when a column is shuffled among rows, mean of five shuffles, with the 95 %
                             interval of the mean over the rows; indicators of a category are shuffled together
    partial dependence       the mean prediction for some rows as if all of them had the same value of a column

Rows and repeats depend on the seed and the size of the table, never on a clock.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from meristem.inputs import Inputs
from meristem.inputs.schema import CATEGORY, DATE, GAP, OTHERS
from meristem.report.scoring import CLASS, LABELS, NUMBER, TINY, Z95, Scorer, as_dense, network_outputs
from meristem.show.elements import shorten

MOST_ROWS, LEAST_ROWS, REPEATS = 1000, 100, 5
MOST_WORK, WORK_PER_SECOND = 1_000_000_000, 10_000_000  # rows × features × columns × repeats; of those per second of a limit
MOST_COLUMNS, GRID, GRID_ROWS, MOST_CATEGORIES = 5, 20, 200, 8  # of partial dependence
ENDS = [0.05, 0.95]  # quantiles between which a number is varied
RowLosses = Callable[[np.ndarray, np.ndarray], np.ndarray]  # (X[rows], rows) → [rows]


class Importance(NamedTuple):
    """The mean drop of the score of each column and half of its 95 % interval."""

    mean: np.ndarray
    half: np.ndarray
    rows: int
    repeats: int

    @property
    def matters(self) -> np.ndarray:
        """Whether the interval of each column is above or below 0."""
        return np.asarray(np.abs(self.mean) > self.half)


class Dependence(NamedTuple):
    """Mean predictions along the values of a column; `target` is what changes most with it, "" the only number."""

    column: str
    kind: str  # number, date or category
    values: list[Any]  # numbers, days since 1970, or texts
    means: np.ndarray
    target: str


def permutation_importance(
    losses: RowLosses, X: Any, reference_losses: np.ndarray, groups: Sequence[np.ndarray], *, limit: float | None, seed: int = 0
) -> Importance | None:
    """Return importances of groups of inputs from `losses(X[rows], rows)`; None if there are too many inputs.

    `limit` is the time limit of the fit in seconds: with a short one fewer rows are used, as many on every machine.
    """
    work = MOST_WORK if limit is None else min(MOST_WORK, int(WORK_PER_SECOND * limit))
    most = work // (X.shape[1] * len(groups) * REPEATS)
    if most < LEAST_ROWS / 10:
        return None
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.permutation(X.shape[0])[: int(np.clip(most, LEAST_ROWS, MOST_ROWS))])
    x = as_dense(X[rows])  # a copy
    before, unit = losses(x, rows), max(float(reference_losses[rows].mean()), TINY)
    drops = np.zeros((len(groups), len(rows)))
    for number, group in enumerate(groups):
        original = x[:, group].copy()
        for _ in range(REPEATS):
            x[:, group] = original[rng.permutation(len(rows))]
            drops[number] += (losses(x, rows) - before) / (unit * REPEATS)
        x[:, group] = original
    half = Z95 * drops.std(1, ddof=1) / np.sqrt(len(rows)) if len(rows) > 1 else np.full(len(groups), np.inf)
    return Importance(drops.mean(1), half, len(rows), REPEATS)


def partial_dependence(
    model: Any, scorer: Scorer, X: Any, inputs: Inputs, columns: Sequence[int], seed: int
) -> list[Dependence]:
    """Return how predictions change with each of some columns, given by their indices."""
    rows = np.sort(np.random.default_rng(seed).permutation(X.shape[0])[:GRID_ROWS])
    x, dependences = as_dense(X[rows]), []
    for column in columns:
        kind, values, features = _grid(inputs, column, x)
        if len(values) < 2:
            continue
        changed = np.repeat(x[None], len(values), 0)  # [values, rows, features]
        changed[:, :, inputs.groups[column]] = features[:, None]
        predicted, names = _predictions(model, scorer, changed.reshape(-1, x.shape[1]))
        means = predicted.reshape(len(values), len(rows), -1).mean(1)
        most = int(np.argmax(np.ptp(means, 0) / (predicted.std(0) + TINY if scorer.task == NUMBER else 1.0)))
        dependences.append(Dependence(inputs.column_names[column], kind, values, means[:, most], names[most]))
    return dependences


def _grid(inputs: Inputs, column: int, x: np.ndarray) -> tuple[str, list[Any], np.ndarray]:
    """Return the kind of a column, the values that it is varied by, and its features for each of them [values, features]."""
    field, own = None if inputs.schema is None else inputs.schema.fields[column], x[:, inputs.groups[column]]
    if field is not None and field.kind == CATEGORY:
        texts = [*field.categories, *[OTHERS] * bool(field.rare), *[GAP] * field.has_missing]
        features, counts = np.eye(len(texts)), own.sum(0)
        if field.silent is not None:
            texts, features = [*texts, field.silent], np.concatenate([features, np.zeros((1, len(texts)))])
            counts = np.append(counts, (own.sum(1) == 0).sum())
        frequent = np.sort(np.argsort(-counts, kind="stable")[:MOST_CATEGORIES])
        return CATEGORY, [texts[place] for place in frequent], features[frequent]
    finite = own[np.isfinite(own)]
    values = np.unique(finite)
    if len(values) > GRID:
        low, high = np.quantile(finite, ENDS).tolist()
        values = np.unique(np.linspace(low, high, GRID))
    return DATE if field is not None and field.kind == DATE else "number", values.tolist(), values[:, None]


def _predictions(model: Any, scorer: Scorer, x: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Return probabilities of classes (of two the second) or labels, or numbers, [n, columns], and the columns' names."""
    targets, outputs = model._targets_, network_outputs(model, x)
    if scorer.task in (CLASS, LABELS):
        first = 1 if scorer.task == CLASS and len(scorer.labels) == 2 else 0
        return np.asarray(targets.probabilities(outputs)).reshape(len(x), -1)[:, first:], [
            f"P({shorten(label, 16)})" for label in scorer.labels[first:]
        ]
    numbers = np.asarray(targets.decode(outputs)).reshape(len(x), -1)
    several = [f"quantile {level:g}" for level in scorer.levels] * scorer.y.shape[1]
    several = several or [f"target {number}" for number in range(1, 1 + numbers.shape[1])]
    return numbers, several if numbers.shape[1] > 1 else [""]
