"""Differences between training and test rows that chance does not explain. Imported by data_faults.py.

    drift_lines(train, test, categories) → at most one line

Each column's values (Kolmogorov and Smirnov's distance; of categories the largest difference of a share) and gaps are compared,
at a level of 0.001 for all columns together, and from a distance of 0.1 on; if none differs, a forest tells the rows of both
apart by all columns, and the area under its curve is compared with a half.
"""

from collections.abc import Collection, Mapping

import numpy as np

from meristem.check import short
from meristem.tables.quick_trees import area_under_curve, filled_ranks, forest_predictions

Columns = Mapping[str, np.ndarray]
LEVEL, LEAST_DISTANCE = 0.001, 0.1
LEAST_AREA, AREA_Z = 0.65, 6.0  # scores of one fold hang together: their area varies more than that of independent ones
LEAST_ROWS, MOST_JOINT_ROWS = 20, 2400  # on each side; of a forest, together
MOST_NAMED = 5


def drift_lines(train: Columns, test: Columns, categories: Collection[str] = (), *, by_time: bool = False) -> list[str]:
    """Return a line that names the columns, or all together, if the test rows differ from the training rows.

    In a split `by_time` that is no mistake: the line says what follows from it.

    >>> x = np.arange(300.0)
    >>> drift_lines({"year": x[:200]}, {"year": x[200:]})[0].partition(";")[0]
    "the test rows drift from the training rows in column 'year' (median 99.5, then 249.5, distance 1.00)"
    """
    rows = [len(next(iter(columns.values()), ())) for columns in (train, test)]
    if min(rows) < LEAST_ROWS:
        return []
    limit = np.log(4 * len(train) / LEVEL)  # of both comparisons of each column
    distances: dict[str, tuple[float, str]] = {}
    for name in train:
        first, second = train[name], test[name]
        gaps = np.isnan(first), np.isnan(second)
        pairs = [_share_distance(*gaps)]
        first, second = first[~gaps[0]], second[~gaps[1]]
        words = [f"{gaps[0].mean():.0%}, then {gaps[1].mean():.0%} missing".replace("%", " %")]
        if len(first) and len(second):
            if name in categories:
                values = np.unique(np.concatenate([first, second]))
                pairs.append(max(_share_distance(first == value, second == value, len(values)) for value in values[:50]))
                words.append("other shares of its categories")
            else:
                pairs.append(_ks_distance(first, second))
                words.append(f"median {np.median(first):.4g}, then {np.median(second):.4g}")
        for (distance, strength), text in zip(pairs, words, strict=True):
            if strength > limit and distance >= max(LEAST_DISTANCE, distances.get(name, (0.0, ""))[0]):
                distances[name] = distance, text
    what = "if the model is meant for rows like the test rows, train it on such rows; if not, draw the test rows at random"
    if by_time:
        what = "a model of earlier rows extrapolates there, and still later rows may be worse; remove columns that only grow"
    if distances:
        order = sorted(distances, key=lambda name: -distances[name][0])
        columns = [f"{short(name)} ({distances[name][1]}, distance {distances[name][0]:.2f})" for name in order[:MOST_NAMED]]
        more = f" and {len(order) - MOST_NAMED} more" if len(order) > MOST_NAMED else ""
        where = f"column{'s' * (len(order) > 1)} {', '.join(columns)}{more}"
        return [f"the test rows drift from the training rows in {where}; {what}"]
    area, z = _joint_area(train, test)
    if area >= LEAST_AREA and z > AREA_Z:
        return [f"the test rows drift from the training rows: all columns together tell them apart (AUC {area:.2f}); {what}"]
    return []


def _ks_distance(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """Return the largest distance of two distributions, and minus the logarithm of its level, less log 2."""
    values, n, m = np.concatenate([first, second]), len(first), len(second)
    shares = [np.searchsorted(np.sort(part), values, side="right") / len(part) for part in (first, second)]
    distance = float(np.abs(shares[0] - shares[1]).max())
    return distance, 2 * distance**2 * n * m / (n + m)


def _share_distance(first: np.ndarray, second: np.ndarray, n_shares: int = 1) -> tuple[float, float]:
    n, m = len(first), len(second)
    distance, share = float(abs(first.mean() - second.mean())), (first.sum() + second.sum() + 1) / (n + m + 2)
    return distance, distance**2 / (2 * share * (1 - share) * (1 / n + 1 / m)) - np.log(n_shares)


def _joint_area(train: Columns, test: Columns) -> tuple[float, float]:
    """Return how well a forest tells training and test rows apart, out of sample: the area, and its distance from chance."""
    rng = np.random.default_rng(0)
    rows = [rng.permutation(len(next(iter(columns.values()))))[: MOST_JOINT_ROWS // 2] for columns in (train, test)]
    n, m = map(len, rows)
    inputs = [filled_ranks(np.concatenate([train[name][rows[0]], test[name][rows[1]]])) for name in train]
    is_test = np.arange(n + m) >= n
    area = area_under_curve(forest_predictions(inputs, is_test[:, None].astype(float))[:, 0], is_test)
    return area, (area - 0.5) / np.sqrt((n + m + 1) / (12 * n * m))
