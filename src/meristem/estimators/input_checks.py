"""Check X, y and sample_weight; an error is one line that names the argument, the row or column, and the value.

    check_data(estimator, X, reset=…) → float32 or float64, dense or sparse     check_data(estimator, X, y, reset=…) → X, y
    weights_of(sample_weight, rows) → float64 [rows]                            check_labels(y), check_numbers(y)

Frames may be of pandas, polars or Arrow, with nullable columns, booleans, decimals and numeric categories; missing values are
NaN. Texts, dates and other types are refused; `fit_table` reads those. NaN and infinities in y are reported by scikit-learn.
"""

import re
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from meristem.check import cut, short
from meristem.targets.scaling import unit_of

LONGEST = 300  # characters of a message
LEAST_WEIGHT = 1e-30  # relative to the largest, which single precision would lose
NOT_NUMERIC = re.compile(r"(?i)^<?M8|date|time|duration|period|interval|^list|struct|binary|bytes|^array\(")
MISSING = {"None", "nan", "NaN", "NaT", "<NA>"}  # as they print: pandas.NA has no truth value
SURROGATE = re.compile("[\ud800-\udfff]")  # UTF-8 cannot encode them
OPTIONS: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "ensure_all_finite": "allow-nan"}


def check_data(estimator: Any, X: Any, *y: Any, reset: bool) -> Any:
    """Return X, dense or sparse, of float32 or float64, or X and y; `reset` stores its width and names in the estimator."""
    if hasattr(X, "iloc") and getattr(X, "ndim", 0) == 2 and any(getattr(dtype, "kind", "") == "O" for dtype in X.dtypes):
        X = X.where(X.notna(), np.nan)  # pandas.NA in columns of objects cannot become a float
    check_types(X)
    try:
        return validate_data(estimator, X, *y, reset=reset, **OPTIONS | ({"multi_output": True} if y else {}))
    except (ValueError, TypeError) as error:
        raise value_error(X) or length_error(X, *y) or naming_argument(error, "X or y" if y else "X") from None


def check_types(X: Any) -> None:
    """Raise ValueError where the type of a column, or of an array, is not numeric, such as dates."""
    columns: list[tuple[str, Any]] = [("", X.dtype)] if hasattr(X, "dtype") else []
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        columns = [(f" in column {short(name)}", dtype) for name, dtype in zip(X.columns, X.dtypes, strict=False)]
    elif hasattr(X, "columns") and hasattr(X, "schema"):  # Arrow
        columns = [(f" in column {short(column.name)}", column.type) for column in X.schema]
    for where, dtype in columns:
        if NOT_NUMERIC.search(str(dtype)):
            advice = "give days or seconds since a date, or use meristem.fit_table"
            raise ValueError(f"X has type {dtype}{where}, which is not numeric; {advice}.")


def naming_argument(error: Exception, argument: str) -> Exception:
    """Return the error in one line that names the argument."""
    if "feature names should match" in str(error):  # a list of names, which scikit-learn's own checks expect
        return error
    text = " ".join(re.sub(r":?\narray=.*\n(?=Reshape)", ". ", str(error), flags=re.DOTALL).split())
    is_named = any(re.search(rf"\b{re.escape(name)}\b", text) for name in [*argument.split(" or "), "samples"])
    kind = TypeError if isinstance(error, TypeError) else ValueError
    return kind(cut(text if is_named else f"{argument}: {text}", LONGEST))


def value_error(X: Any) -> ValueError | None:
    """Return an error for the first value that is not a number, or None."""
    if getattr(getattr(X, "dtype", None), "kind", "O") not in "OUS":
        return None
    try:
        table = np.asarray(X, object)
    except ValueError:  # rows of several lengths
        return None
    for place, column in enumerate(table.T if table.ndim == 2 else ()):
        name = short(X.columns[place] if hasattr(X, "columns") else place)
        for value in column:
            if isinstance(value, str) and not _is_number(value):
                advice = "OneHotEncoder or OrdinalEncoder of scikit-learn, in a pipeline"
                return ValueError(f"X holds text in column {name}, such as {short(value)}; encode it first: {advice}.")
            if hasattr(X, "columns") and value is not None and not _is_number(value):
                kind = type(value).__name__
                return ValueError(f"X holds {short(value)}, of type {kind}, in column {name}, which is not a number.")
    return None


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (ValueError, TypeError):
        return False
    return True


def length_error(X: Any, y: Any = None) -> ValueError | None:
    """Return an error where X and y differ in their number of rows, as far as both have one; else None."""
    rows = [part.shape[0] if getattr(part, "shape", ()) else len(part) if hasattr(part, "__len__") else None for part in (X, y)]
    if None in rows or rows[0] == rows[1]:
        return None
    return ValueError(f"y has {rows[1]:,} rows but X has {rows[0]:,}; they must be equal.")


def weights_of(sample_weight: Any, rows: int) -> np.ndarray:
    """Return the weight of each row, the largest between 1 and 2: only proportions count. None: all are 1."""
    if sample_weight is None:
        return np.ones(rows)
    weight = _as_floats("sample_weight", sample_weight, f"give a number for each of the {rows} rows")
    if weight.ndim == 0:
        weight = np.full(rows, weight)
    if weight.shape != (rows,):
        raise ValueError(f"sample_weight has shape {weight.shape}; it must have one number for each row, here ({rows},).")
    is_valid = np.isfinite(weight) & (weight >= 0)
    _check_rows("sample_weight", weight, is_valid, "every weight must be a finite number of at least 0")
    if not (weight > 0).any():
        raise ValueError("sample_weight is 0 for every row. Sample weights must contain at least one non-zero number.")
    weight = weight / unit_of(weight.max(keepdims=True))
    return np.where(weight < LEAST_WEIGHT, 0, weight)


def check_labels(y: Any, classes: np.ndarray | None = None) -> None:
    """Raise ValueError unless a file can hold all labels and they have one type, that of the classes, if these are given."""
    y = _as_array(y)
    if y is None or y.ndim != 1 or not len(y):
        return
    if y.dtype.kind in "mM":
        raise ValueError(f"y holds {short(str(y[0]))}, of type {y.dtype}; convert the labels to texts or numbers.")
    for row, value in enumerate(y) if y.dtype.kind in "SUO" else ():
        if isinstance(value, bytes):
            raise ValueError(f"y holds the bytes {short(bytes(value))} in row {row}; decode the labels: label.decode().")
        if isinstance(value, str) and ("\0" in value or SURROGATE.search(value)):
            raise ValueError(f"y holds {short(str(value))} in row {row}, a text with NUL, or that UTF-8 cannot encode.")
        if not isinstance(value, str) and str(value) in MISSING:
            advice = "remove the rows without a label, or give them a label of their own"
            raise ValueError(f"y holds {_as_text(value)} in row {row}; {advice}.")
    first, kind = classes[0] if classes is not None and len(classes) else y[0], y.dtype.kind
    is_text = np.array([isinstance(value, str) for value in y]) if kind == "O" else np.full(len(y), kind in "US")
    other = np.flatnonzero(is_text != isinstance(first, str))
    if len(other) and classes is None:
        raise ValueError(
            f"y holds labels of several types: {short(y[0])} in row 0, {short(y[other[0]])} in row {other[0]}; "
            "make all of them text, or all of them numbers."
        )
    if not len(other) and classes is not None and classes.dtype.kind in "biu" and kind == "f":
        other = np.flatnonzero(np.isfinite(y) & (y != np.floor(y)))
    if len(other):
        raise ValueError(f"y holds {_as_text(y[other[0]])}, but the classes are such as {_as_text(first)}.")


def check_numbers(y: Any) -> None:
    """Raise ValueError where y holds something that is not a number."""
    if (array := _as_array(y)) is not None and array.dtype.kind in "OUSM":
        _as_floats("y", array, "encode it, or use a classifier")


def check_scoring_data(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Any, np.ndarray | None]:
    """Return y and weights for `score`; raise ValueError where they do not fit X."""
    if y is None:
        raise ValueError(f"y=None: {type(model).__name__}.score(X, y) compares predictions with y.")
    if (error := length_error(X, y)) is not None:
        raise error
    values = np.asarray(y.toarray() if hasattr(y, "toarray") else y)
    if values.dtype.kind == "f":
        _check_rows("y", values, np.isfinite(values), "remove such rows")
    return y, None if sample_weight is None else weights_of(sample_weight, len(values))


def _as_array(y: Any) -> np.ndarray | None:
    """Return y as an array that keeps the type of each value; None if it is sparse, missing or ragged."""
    if hasattr(y, "toarray") or y is None:
        return None
    try:
        array = np.asarray(y) if hasattr(y, "dtype") else np.asarray(y, object)
    except ValueError:  # rows of several lengths
        return None
    if array.ndim == 0:
        raise ValueError(f"y={short(y)} must hold a value for each row.")
    if array.dtype.kind == "c":
        raise ValueError(f"y holds {_as_text(array.ravel()[0])}. Complex data not supported; give their parts.")
    return array


def _as_floats(name: str, values: Any, advice: str) -> np.ndarray:
    array = np.asarray(values)
    if array.dtype.kind in "fiub":
        return array.astype(float)
    objects = array.astype(object)
    for place, value in enumerate(objects.ravel()):
        if not _is_number(value):
            at = f" in row {place if objects.ndim == 1 else place // objects[0].size}" if objects.ndim else ""
            raise ValueError(f"{name} holds {_as_text(value)}{at}, which is not a number; {advice}.")
    return objects.astype(float)


def _check_rows(name: str, values: np.ndarray, is_valid: np.ndarray, advice: str) -> None:
    if not is_valid.all():
        place = np.argwhere(~is_valid)[0]
        raise ValueError(f"{name} holds {_as_text(values[tuple(place)])} in row {place[0]}; {advice}.")


def _as_text(value: Any) -> str:
    """Return a value as Python writes it, not NumPy."""
    return short(value.item() if isinstance(value, np.generic) else value)
