"""y and sample_weight as a person gives them: what is wrong is said in one line that names the argument, the row and the value.

    weights_of(sample_weight, rows) → float64 [rows], the largest between 1 and 2: only proportions count
    check_labels(y), check_numbers(y)       what no class, or no number, can be
    to_score(model, X, y, sample_weight)    what `score` may compare

Weights of any size are as if scaled by hand, by a power of two; one of less than 1e-30 of the largest, which single precision
would lose, is 0. NaN and infinities of y in `fit` are named by scikit-learn. features, base, classifiers, regressors and cv
import it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from meristem.check import short
from meristem.targets.scaling import unit_of

LEAST = 1e-30  # of the largest weight
FINITE = "every weight must be a finite number of at least 0"


def weights_of(given: Any, rows: int) -> np.ndarray:
    """How much each row counts; None: all alike.

    >>> weights_of(None, 2).tolist(), weights_of([2**900, 3 * 2**900, 0], 3).tolist()
    ([1.0, 1.0], [0.5, 1.5, 0.0])
    >>> weights_of([1, -1], 2)
    Traceback (most recent call last):
    ValueError: sample_weight holds -1.0 in row 1; every weight must be a finite number of at least 0.
    """
    if given is None:
        return np.ones(rows)
    weight = _floats("sample_weight", given, f"give a number for each of the {rows} rows")
    if weight.ndim == 0:
        weight = np.full(rows, weight)
    if weight.shape != (rows,):
        raise ValueError(f"sample_weight has shape {weight.shape}; it must have one number for each row, here ({rows},).")
    _check("sample_weight", weight, np.isfinite(weight) & (weight >= 0), FINITE)
    if not (weight > 0).any():
        raise ValueError("sample_weight is 0 for every row. Sample weights must contain at least one non-zero number.")
    weight = weight / unit_of(weight.max(keepdims=True))
    return np.where(weight < LEAST, 0, weight)


def check_labels(y: Any, classes: np.ndarray | None = None) -> None:
    """Raise ValueError unless all labels are of one type, and of that of the classes, if these are known.

    >>> check_labels([1, "a"])
    Traceback (most recent call last):
    ValueError: y holds labels of several types: 1 in row 0, 'a' in row 1; make all of them text, or all of them numbers.
    """
    y = _shaped(y)
    if y is None or y.ndim != 1 or not len(y):
        return
    _check_written(y)
    missing = np.array([_is_missing(value) for value in y]) if y.dtype.kind == "O" else np.zeros(len(y), bool)
    _check("y", y, ~missing, "remove the rows without a label, or give them one of their own")
    first = classes[0] if classes is not None and len(classes) else y[0]
    is_text = (
        np.array([isinstance(value, str) for value in y]) if y.dtype.kind == "O" else np.full(len(y), y.dtype.kind in "US")
    )
    other = np.flatnonzero(is_text != isinstance(first, str))
    if len(other) and classes is None:
        raise ValueError(
            f"y holds labels of several types: {short(y[0])} in row 0, {short(y[other[0]])} in row {other[0]}; "
            "make all of them text, or all of them numbers."
        )
    if not len(other) and classes is not None and classes.dtype.kind in "biu" and y.dtype.kind == "f":
        other = np.flatnonzero(np.isfinite(y) & (y != np.floor(y)))
    if len(other):
        raise ValueError(f"y holds {short(_plain(y[other[0]]))}, but the classes are such as {short(_plain(first))}.")


def _check_written(y: np.ndarray) -> None:
    """Raise ValueError where a label has no form in a file: bytes, dates, or a text that UTF-8 cannot hold."""
    if y.dtype.kind in "mM":
        raise ValueError(f"y holds {short(str(y[0]))}, of type {y.dtype}; make texts or numbers of the labels.")
    for place, value in enumerate(y) if y.dtype.kind in "SUO" else ():
        if isinstance(value, bytes):
            raise ValueError(f"y holds the bytes {short(bytes(value))} in row {place}; decode the labels: label.decode().")
        if isinstance(value, str) and "\0" in value:
            raise ValueError(f"y holds {short(str(value))} in row {place}, a label with a NUL character, which no file holds.")
        if isinstance(value, str) and not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise ValueError(f"y holds {short(str(value))} in row {place}, a text that UTF-8 cannot hold.") from None


def check_numbers(y: Any) -> None:
    """Raise ValueError where y holds what is no number.

    >>> check_numbers([1.5, "red"])
    Traceback (most recent call last):
    ValueError: y holds 'red' in row 1, which is no number; encode it, or use a classifier.
    """
    if (shaped := _shaped(y)) is not None and shaped.dtype.kind in "OUSM":
        _floats("y", shaped, "encode it, or use a classifier")


def to_score(model: Any, X: Any, y: Any, sample_weight: Any, check: Callable[[Any], None]) -> tuple[Any, np.ndarray | None]:
    """Targets and weights that fit the rows of X, or a ValueError that names what does not."""
    if y is None:
        raise ValueError(f"y=None: {type(model).__name__}.score(X, y) compares what is predicted with y.")
    check(y)
    if (wrong := length_error(X, y)) is not None:
        raise wrong
    values = np.asarray(y.toarray() if hasattr(y, "toarray") else y)
    if values.dtype.kind == "f":
        _check("y", values, np.isfinite(values), "remove such rows")
    return y, None if sample_weight is None else weights_of(sample_weight, len(values))


def length_error(X: Any, y: Any) -> ValueError | None:
    """What to say where X and y do not have as many rows; None where they do, or nobody can tell.

    >>> print(length_error([[1], [2]], [1, 2, 3]))
    y has 3 rows but X has 2; they must be equal.
    """
    rows = [part.shape[0] if getattr(part, "shape", ()) else len(part) if hasattr(part, "__len__") else None for part in (X, y)]
    if None in rows or rows[0] == rows[1]:
        return None
    return ValueError(f"y has {rows[1]:,} rows but X has {rows[0]:,}; they must be equal.")


def _shaped(y: Any) -> np.ndarray | None:
    """Y as an array in which everything is what it was: 1 beside "a" stays a number."""
    if hasattr(y, "toarray") or y is None:
        return None
    try:
        array = np.asarray(y) if hasattr(y, "dtype") else np.asarray(y, object)
    except ValueError:  # rows of several lengths
        return None
    if array.ndim == 0:
        raise ValueError(f"y={short(y)} must hold a value for each row.")
    if array.dtype.kind == "c":
        raise ValueError(f"y holds {short(_plain(array.ravel()[0]))}. Complex data not supported; give their parts.")
    return array


def _floats(name: str, given: Any, wanted: str) -> np.ndarray:
    array = np.asarray(given)
    if array.dtype.kind in "fiub":
        return array.astype(float)
    values = array.astype(object)
    for place, value in enumerate(values.ravel()):
        try:
            float(value)
        except (TypeError, ValueError):
            at = f" in row {place if values.ndim == 1 else place // values[0].size}" if values.ndim else ""
            raise ValueError(f"{name} holds {short(_plain(value))}{at}, which is no number; {wanted}.") from None
    return values.astype(float)


def _check(name: str, values: np.ndarray, fits: np.ndarray, wanted: str) -> None:
    if not fits.all():
        place = np.argwhere(~fits)[0]
        raise ValueError(f"{name} holds {short(_plain(values[tuple(place)]))} in row {place[0]}; {wanted}.")


def _is_missing(value: Any) -> bool:
    """Whether it is None, NaN, or what else is not itself."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas does not say of NA
        return True
    except ValueError:  # an array
        return False


def _plain(value: Any) -> Any:
    """As Python writes it, not NumPy."""
    return value.item() if isinstance(value, np.generic) else value
