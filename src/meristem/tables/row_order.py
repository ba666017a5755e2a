"""Warn where rows have an order that a random split ignores: later rows may be harder to predict than random ones.

    order_warning(table, schema, rows, targets, is_class=False) → "… random rows with R² 0.85, the latest fifth with 0.25 …"

Orders are those of date columns that are inputs, and that of the rows if neighbors have more similar targets than chance allows
(and the table is not sorted by its target). Quick models, ridge regression and a few trees, learn from some thousand rows and
predict a fifth of them: random ones, and the latest. A warning is due where these are predicted clearly worse. Used by
tables/split.py.
"""

from collections.abc import Iterator
from shlex import quote

import numpy as np

from meristem.check import short
from meristem.inputs.preprocessor import Preprocessor, TooLargeError
from meristem.inputs.schema import DATE, NUMBER, Schema
from meristem.tables.encoding import features
from meristem.tables.split_rule import is_latest
from meristem.tables.table_columns import Table

LEAST_ROWS, MOST_ROWS, MOST_NUMBERS = 200, 4000, 100_000  # rows that quick models use; rows × inputs
MOST_CLASSES, MOST_DATES = 50, 3
SHARE, TRIALS = 0.2, 5  # of the rows that are predicted; how often random ones are drawn
TREES = {"n_estimators": 10, "min_samples_leaf": 5, "random_state": 0}
FEW_INPUTS = 30  # with more, a fifth is tried at each node of a tree
TAIL = 0.01  # of the targets at either end, which are moved to the others: single rows would decide about R²
LEAST_CORRELATION, DEVIATIONS = 0.1, 5.0  # of neighboring targets, and standard deviations above that of shuffled rows
LEAST_LOSS, CLEAR = {"R²": 0.1, "accuracy": 0.05}, 5.0  # of the score; standard deviations of the scores of random rows
LEAST_RATIO = 1.2  # of the errors: R² is lower already where later rows vary less
TINY = 1e-300
ADVICE = "if the model is to predict later rows, give --time-column {}, or time_column={!r}"
UNNAMED = "if rows are in order of time, add a column of it for --time-column; if they form groups, one for --group-column"


def order_warning(table: Table, schema: Schema, rows: np.ndarray, targets: np.ndarray, *, is_class: bool) -> str | None:
    """Return a warning with both scores, or None; `targets` are those of all rows of the table."""
    y = np.unique(targets[rows], return_inverse=True)[1] if is_class else np.asarray(targets[rows], float)
    if len(rows) < LEAST_ROWS or (is_class and y.max() >= MOST_CLASSES):
        return None
    orders, measure = list(_orders(table, schema, rows, y, is_class=is_class)), "accuracy" if is_class else "R²"
    if not orders:
        return None
    most = max(2 * LEAST_ROWS, min(MOST_ROWS, MOST_NUMBERS // len(schema.features)))
    some = np.sort(np.random.default_rng(0).permutation(len(rows))[:most])
    numbers = np.clip(y, *np.quantile(y, [TAIL, 1 - TAIL]))[some]
    outputs = np.eye(int(y.max()) + 1)[y[some]] if is_class else numbers / (np.abs(numbers).max() or 1.0)
    inputs, n_test = features(schema, table, rows[some]), round(SHARE * len(some))
    try:
        z = Preprocessor.of(inputs)(inputs)
    except TooLargeError:  # which a fit reports
        return None
    drawn = (np.random.default_rng(trial).permutation(len(some)) < n_test for trial in range(TRIALS))
    random = np.array([_scores(z, outputs, is_test) for is_test in drawn])
    for what, advice, order in orders:
        has_time = ~np.isnan(order[some])
        times = order[some][has_time]
        if len(times) < LEAST_ROWS or np.ptp(times) == 0:
            continue
        score, comparable = _scores(z[has_time], outputs[has_time], is_latest(times, round(SHARE * len(times))))
        mean, usual = random.mean(0)
        loss, is_larger = usual - comparable, 1 - comparable > LEAST_RATIO * (1 - usual)
        if mean - score > LEAST_LOSS[measure] and is_larger and loss > CLEAR * random[:, 1].std(ddof=1):
            scores = f"random rows with {measure} {mean:.2f}, the latest fifth with {score:.2f}"
            return f"{what}; quick models predict {scores}: a random split may promise too much; {advice}"
    return None


def _orders(
    table: Table, schema: Schema, rows: np.ndarray, y: np.ndarray, *, is_class: bool
) -> Iterator[tuple[str, str, np.ndarray]]:
    """Yield possible orders of the rows: what they are, what to do, and a number for each row."""
    for name in [column.name for column in schema.fields if column.kind == DATE][:MOST_DATES]:
        yield f"column {short(name)} holds dates", ADVICE.format(quote(name), name), table[name].as_days()[rows]
    steps, correlation = np.diff(y), neighbor_correlation(y, is_class=is_class)
    is_sorted = np.count_nonzero(steps) < 2 * len(np.unique(y)) if is_class else (steps >= 0).all() or (steps <= 0).all()
    if is_sorted or correlation < max(LEAST_CORRELATION, DEVIATIONS / np.sqrt(len(y))):
        return
    numbers = [column.name for column in schema.fields if column.kind == NUMBER]
    ordered = next((name for name in numbers if (np.diff(table[name].as_numbers()[rows]) >= 0).all()), None)
    what = f"neighboring rows have similar targets (correlation {correlation:.2f})"
    what += "" if ordered is None else f", and rows are in order of column {short(ordered)}"
    advice = UNNAMED if ordered is None else ADVICE.format(quote(ordered), ordered)
    yield what, advice, np.arange(len(rows), dtype=float)


def neighbor_correlation(y: np.ndarray, *, is_class: bool) -> float:
    """Return how similar targets of neighboring rows are, from 0, as random ones, to 1.

    >>> neighbor_correlation(np.repeat([0, 1, 0, 1], 50), is_class=True) > 0.9
    True
    """
    if is_class:
        shares = np.bincount(y) / len(y)
        by_chance = float(shares @ shares)
        return (float((y[1:] == y[:-1]).mean()) - by_chance) / (1 - by_chance)
    rank = np.argsort(np.argsort(y)) - (len(y) - 1) / 2  # so that outliers do not matter
    return float((rank[1:] * rank[:-1]).mean() / (rank**2).mean())


def _scores(z: np.ndarray, outputs: np.ndarray, is_test: np.ndarray) -> tuple[float, float]:
    """Return R², and one that is comparable between test rows: relative to the variance of all rows; or twice the accuracy.

    They are those of the better of two quick models.
    """
    from sklearn.ensemble import ExtraTreesRegressor
    from sklearn.linear_model import Ridge

    scores, expected = [], outputs[is_test]
    for model in (Ridge(), ExtraTreesRegressor(**TREES, max_features=1.0 if z.shape[1] <= FEW_INPUTS else 0.2)):
        predicted = model.fit(z[~is_test], outputs[~is_test]).predict(z[is_test])
        if outputs.ndim == 2:
            accuracy = float((predicted.argmax(1) == expected.argmax(1)).mean())
            scores.append((accuracy, accuracy))
        else:
            error = float(((predicted - expected) ** 2).mean())
            scores.append((1 - error / max(float(expected.var()), TINY), 1 - error / max(float(outputs.var()), TINY)))
    return max(scores, key=lambda pair: pair[1])
