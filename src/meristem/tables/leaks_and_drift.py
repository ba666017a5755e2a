"""Faults that quick predictions find: columns that give the target away, by their values or gaps, and drift of the test rows.

    leaking_columns(columns, y, labels) → lines;  telling_gaps(columns, y, labels) → lines
    drift_lines(train, test, categories) → at most one line

Columns are name → float64 [rows], NaN where missing, codes of categories; `y` is the target, an index of `labels`, or a number
if there are none. Predictions are made from ranks, out of sample, by trees, and judged by the share of a constant's error that
they remove. A column leaks if it alone removes nearly all of it, and all other columns together leave at least twice as much.

For drift each column's values (Kolmogorov and Smirnov's distance; of categories the largest difference of a share) and gaps are
compared, at a level of 0.001 for all columns together, and from a distance of 0.1 on; if none differs, a forest tells the rows
of both apart by all columns, and the area under its curve is compared with a half. Imported by data_faults.py.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from meristem.check import short
from meristem.report.formatting import tenths_of_percent
from meristem.tables.table_columns import DAY, EPOCH

Columns = Mapping[str, np.ndarray]
FOLDS, LEAVES, LEAF_ROWS, TREES = 3, 64, 2, 30
MOST_INPUTS = 100  # that a node of a forest tries
NEIGHBORS = 4  # rows that a local mean is of
LEAST_SHARE = 0.85  # of the error of a constant, which a leak removes
LEAST_CLASS_SHARE = 0.995  # of the error of one class of several
LEAST_LOCAL_SHARE = 0.6  # which the means of neighbors remove, or no tree is trained
LEAST_FACTOR, LEAK_Z = 2, 2.0  # the others leave so many times the error, by so many standard errors
TRIMMED = 0.01  # of the rows at both ends, for a linear relation
LEAST_CLASS_ROWS, MOST_CLASSES = 10, 30  # a class with fewer rows is not judged alone; those beyond the most frequent are one
MOST_LEVELS = 10  # different values of a column that may follow from the target
MOST_LEAKS = 3  # if more columns do so, each is compared with the others, too
LEAST_DIFFERENCE, GAP_Z, LEAST_GAP_ROWS = 0.8, 3.0, 5  # of the shares of gaps on both sides of a target; standard errors
REMEDY = "if it is not known when a prediction is needed, remove it"
LEVEL, LEAST_DISTANCE = 0.001, 0.1
LEAST_AREA, AREA_Z = 0.65, 6.0  # scores of one fold hang together: their area varies more than that of independent ones
LEAST_DRIFT_ROWS, MOST_JOINT_ROWS = 20, 2400  # on each side; of a forest, together
MOST_NAMED = 5


def ranks(values: np.ndarray) -> np.ndarray:
    """Return the rank of each value, from −0.5 to 0.5; that of equal ones is their mean."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return ((np.cumsum(counts) - (counts - 1) / 2)[place] - 0.5) / len(values) - 0.5


def filled_ranks(values: np.ndarray) -> np.ndarray:
    """Return ranks, as float32 trees need them; missing values below all others."""
    return np.where(np.isnan(values), -1.0, ranks(values))


def local_means(values: np.ndarray, goals: np.ndarray) -> np.ndarray:
    """Return the mean goals [rows, goals] of each row's neighbors by value, itself and all equal ones included.

    In its own rows this is nearly always closer than a tree is out of sample, and takes a fiftieth of the time of one.

    >>> local_means(np.array([3.0, 1.0, 2.0, 9.0, 9.0, 8.0]), np.arange(6.0)[:, None]).ravel().tolist()
    [2.0, 2.0, 2.0, 3.5, 3.5, 2.0]
    """
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    bins = ((np.cumsum(counts) - counts) // NEIGHBORS)[place]
    sums = np.stack([np.bincount(bins, goal) for goal in goals.T], 1)
    return np.asarray((sums / np.maximum(np.bincount(bins), 1)[:, None])[bins])


def predictions(inputs: np.ndarray, goals: np.ndarray, model: Any = None) -> np.ndarray:
    """Return out-of-sample predictions of a tree, or another model, [rows, goals]."""
    from sklearn.tree import DecisionTreeRegressor

    if model is None:
        model = DecisionTreeRegressor(max_leaf_nodes=LEAVES, min_samples_leaf=LEAF_ROWS, random_state=0)
    fold, predicted = np.random.default_rng(0).permutation(len(goals)) % FOLDS, np.empty_like(goals)
    for number in range(FOLDS):
        model.fit(inputs[fold != number], goals[fold != number].squeeze(1) if goals.shape[1] == 1 else goals[fold != number])
        predicted[fold == number] = model.predict(inputs[fold == number]).reshape(-1, goals.shape[1])
    return predicted


def new_forest(n_inputs: int) -> Any:
    from sklearn.ensemble import ExtraTreesRegressor

    share = min(1.0, MOST_INPUTS / n_inputs)
    return ExtraTreesRegressor(TREES, min_samples_leaf=LEAF_ROWS, max_features=share, random_state=0)


def forest_predictions(inputs: list[np.ndarray], goals: np.ndarray) -> np.ndarray:
    """Return out-of-sample predictions of a forest, [rows, goals]."""
    if not inputs:
        return np.repeat(goals.mean(0, keepdims=True), len(goals), 0)
    return predictions(np.column_stack(inputs), goals, new_forest(len(inputs)))


def area_under_curve(scores: np.ndarray, is_positive: np.ndarray) -> float:
    """Return the probability that a positive row has a higher score than another."""
    places = ranks(scores)
    return 0.5 + float(places[is_positive].mean() - places[~is_positive].mean())


def leaking_columns(columns: Columns, y: np.ndarray, labels: Sequence[str] | None = None) -> list[str]:
    """Return a line for each column whose values give the target away, or follow from it.

    >>> x = np.random.default_rng(0).normal(size=(400, 2))
    >>> leaking_columns({"size": x[:, 0], "cost": 3 * x[:, 1]}, x[:, 1])[0].partition(":")[0]
    "column 'cost' alone gives the target away"
    >>> leaking_columns({"size": x[:, 0], "cost": 3 * x[:, 1]}, x.sum(1))
    []
    """
    goals, names = goals_of(y, labels)
    inputs = {name: filled_ranks(values) for name, values in columns.items()}
    shares, units = {}, error_units(goals, labels)
    for name, values in inputs.items():
        shares[name] = removed_shares(goals, local_means(values, goals), labels)
        if shares[name].max() < LEAST_LOCAL_SHARE:
            continue
        shares[name] = removed_shares(goals, predictions(values[:, None], goals), labels)
        if labels is None:
            shares[name][1] = max(shares[name][1], _linear_share(columns[name], y))
    suspects = sorted((name for name in inputs if shares[name].max() >= LEAST_SHARE), key=lambda name: -shares[name].max())
    lines = []
    if suspects:
        others = [values for name, values in inputs.items() if name not in suspects[:MOST_LEAKS]]
        rest = removed_shares(goals, forest_predictions(others, goals), labels)
        for name in suspects:
            is_leak = leaves_more(rest, shares[name], units)
            if labels is not None and len(labels) > 2:  # a sign of one class of several may be what defines it
                is_leak[1:] &= shares[name][1:] >= LEAST_CLASS_SHARE
            is_leak[0] |= _is_same(inputs[name], y, labels)
            if is_leak.any():
                goal = int(np.argmax(is_leak))
                removed = tenths_of_percent(shares[name][goal])
                what = f"alone gives {names[goal]} away: it removes {removed} of a constant prediction's error"
                named = [short(other) for other in suspects[:MOST_LEAKS]]
                compared = "all other columns" if named == [short(name)] else f"all columns but {', '.join(named)}"
                lines.append(f"column {short(name)} {what}, {compared} {tenths_of_percent(max(0, rest[goal]))}; {REMEDY}")
    place = filled_ranks(y.astype(float))
    for name in [name for name in inputs if name not in suspects]:
        levels, codes = np.unique(inputs[name], return_inverse=True)
        if not 2 <= len(levels) <= MOST_LEVELS:
            continue
        effects = np.eye(len(levels))[codes]
        if removed_shares(effects, local_means(place, effects), levels)[0] < LEAST_LOCAL_SHARE:
            continue
        share = removed_shares(effects, predictions(place[:, None], effects), levels)[:1]
        if share[0] >= LEAST_SHARE:
            others = [inputs[other] for other in inputs if other != name]
            rest = removed_shares(effects, forest_predictions(others, effects), levels)[:1]
            if leaves_more(rest, share, error_units(effects, levels)[:1]).all():
                from_others = tenths_of_percent(max(0, rest[0]))
                what = f"follows from the target ({tenths_of_percent(share[0])} of it; from all other columns {from_others})"
                lines.append(f"column {short(name)} {what}, and so gives it away in part; {REMEDY}")
    return lines


def telling_gaps(columns: Columns, y: np.ndarray, labels: Sequence[str] | None = None) -> list[str]:
    """Return a line for columns that are missing where the target has a class, or is above a level, and hardly elsewhere.

    >>> y = np.arange(200.0)
    >>> telling_gaps({"closed": np.where(y < 150, np.nan, 1)}, y)[0].partition(":")[0]
    "column 'closed' is missing in 0.0 % of the rows with a target above 149.2 and in 100.0 % of the others"
    """
    if labels is None:
        levels = np.unique(np.quantile(y, np.arange(1, 40) / 40))[:-1] if len(y) else y
        sides = {f"a target above {level:.4g}": y > level for level in levels}
    else:
        sides = {f"class {short(str(label))}": y == code for code, label in enumerate(labels)}
    sides = {words: side for words, side in sides.items() if min(side.sum(), (~side).sum()) >= LEAST_GAP_ROWS}
    lines: list[str] = []
    groups: dict[bytes, tuple[np.ndarray, list[str]]] = {}
    for name, values in columns.items():
        if (gaps := np.isnan(values)).any():
            groups.setdefault(gaps.tobytes(), (gaps, []))[1].append(short(name))
    for gaps, names in groups.values():
        differences = {words: _difference(gaps, side) for words, side in sides.items()}
        words = max(differences, key=lambda words: differences[words], default="")
        if words and differences[words] >= LEAST_DIFFERENCE:
            first, second = (tenths_of_percent(gaps[side].mean()) for side in (sides[words], ~sides[words]))
            what = f"{first} of the rows with {words} and in {second} of the others"
            which = f"column {names[0]}" + (f" (as {', '.join(names[1:5])})" if len(names) > 1 else "")
            lines.append(f"{which} is missing in {what}: its gaps give the target away; {REMEDY}")
    return lines


def _difference(gaps: np.ndarray, side: np.ndarray) -> float:
    """Return how much the shares of gaps on both sides differ; 0 where that may be chance."""
    counts, rows = np.array([gaps[side].sum(), gaps[~side].sum()]), np.array([side.sum(), (~side).sum()])
    smooth = (counts + 1) / (rows + 2)
    error = np.sqrt((smooth * (1 - smooth) / rows).sum())
    return float(abs(np.diff(counts / rows)[0])) if abs(np.diff(smooth)[0]) > GAP_Z * error else 0.0


def goals_of(y: np.ndarray, labels: Sequence[str] | None) -> tuple[np.ndarray, list[str]]:
    """Return what is predicted, [rows, goals], and a name for each share: ranks and numbers; all classes, and each."""
    if labels is None:
        return np.column_stack([ranks(y), (y - y.mean()) / max(float(y.std()), 1e-300)]), ["the target"] * 2
    counts = np.bincount(y.astype(int), minlength=len(labels))
    order = np.argsort(-counts, kind="stable")[:MOST_CLASSES]
    return (y[:, None] == order).astype(float), ["the target", *(f"class {short(str(labels[code]))}" for code in order)]


def error_units(goals: np.ndarray, labels: Any) -> np.ndarray:
    """Return how many rows a constant prediction of each share has wrong; of numbers all rows."""
    n, counts = len(goals), goals.sum(0)
    return np.full(2, n) if labels is None else np.maximum([n - counts.max(), *np.minimum(counts, n - counts)], 1)


def removed_shares(goals: np.ndarray, predicted: np.ndarray, labels: Any) -> np.ndarray:
    """Return the share of a constant's error that is removed: squares of numbers; wrong rows of all classes, then of each."""
    if labels is None:
        return 1 - ((goals - predicted) ** 2).mean(0) / np.maximum(goals.var(0), 1e-12)
    wrong = (goals[np.arange(len(goals)), predicted.argmax(1)] == 0).sum()
    wrong_each = ((predicted > 0.5) != (goals > 0.5)).sum(0)
    is_judged = np.array([True, *(goals.sum(0) >= LEAST_CLASS_ROWS)])
    return np.where(is_judged, 1 - np.array([wrong, *wrong_each]) / error_units(goals, labels), 0)


def _linear_share(values: np.ndarray, y: np.ndarray) -> float:
    """Return the squared correlation of two columns of numbers, without the rows at the ends of either."""
    is_inner = ~np.isnan(values)
    for column in (values, y):
        is_inner &= (column >= np.nanquantile(column, TRIMMED)) & (column <= np.nanquantile(column, 1 - TRIMMED))
    first, second = values[is_inner], y[is_inner]
    if is_inner.sum() < LEAST_CLASS_ROWS or not first.std() * second.std() > 0:
        return 0.0
    return float(np.corrcoef(first, second)[0, 1] ** 2) * is_inner.mean()


def leaves_more(rest: np.ndarray, share: np.ndarray, units: np.ndarray) -> np.ndarray:
    """Return where a column removes nearly all error, and the others leave several times as much, beyond chance."""
    errors = np.sqrt((1 - np.minimum(rest, 1) + LEAST_FACTOR**2 * (1 - share)) / units)
    return (share >= LEAST_SHARE) & (1 - rest >= LEAST_FACTOR * (1 - share) + LEAK_Z * errors)


def _is_same(values: np.ndarray, y: np.ndarray, labels: Any) -> bool:
    """Return whether a column is the target, written in another way."""
    if labels is None:
        return bool(abs(np.corrcoef(values, ranks(y))[0, 1]) > 1 - 1e-9)
    pairs = np.unique(np.column_stack([values, y]), axis=0)
    return len(pairs) == len(np.unique(y)) == len(np.unique(values))


def drift_lines(
    train: Columns, test: Columns, categories: Collection[str] = (), dates: Collection[str] = (), *, by_time: bool = False
) -> list[str]:
    """Return a line that names the columns, or all together, if the test rows differ from the training rows.

    In a split `by_time` that is no mistake: the line says what follows from it.

    >>> x = np.arange(300.0)
    >>> drift_lines({"year": x[:200]}, {"year": x[200:]})[0].partition(";")[0]
    "the test rows drift from the training rows in column 'year' (median 99.5, then 249.5, distance 1.00)"
    """
    rows = [len(next(iter(columns.values()), ())) for columns in (train, test)]
    if min(rows) < LEAST_DRIFT_ROWS:
        return []
    limit = np.log(4 * len(train) / LEVEL)  # of both comparisons of each column
    distances: dict[str, tuple[float, str]] = {}
    for name in train:
        first, second = train[name], test[name]
        gaps = np.isnan(first), np.isnan(second)
        pairs = [_share_distance(*gaps)]
        first, second = first[~gaps[0]], second[~gaps[1]]
        words = [f"{100 * gaps[0].mean():.0f} %, then {100 * gaps[1].mean():.0f} % missing"]
        if len(first) and len(second):
            if name in categories:
                values = np.unique(np.concatenate([first, second]))
                pairs.append(max(_share_distance(first == value, second == value, len(values)) for value in values[:50]))
                words.append("other shares of its categories")
            else:
                pairs.append(_ks_distance(first, second))
                medians = (float(np.median(part)) for part in (first, second))
                texts = [str((EPOCH + number * DAY).date()) if name in dates else f"{number:.4g}" for number in medians]
                words.append(f"median {texts[0]}, then {texts[1]}")
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
