"""X as scikit-learn checks it: numbers of any frame or matrix; what is no number is an error that names the column.

    checked(estimator, X, reset=…) → float32 or float64, dense or sparse          checked_with(estimator, X, y, reset=…)

Frames may be of pandas, polars or Arrow, with nullable columns, booleans, decimals and categories that are numbers; what is
missing is NaN. Texts, dates and whatever else is no number are refused with the column and its type: `fit_table` reads those.
"""

import re
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from meristem.check import cut, short
from meristem.estimators.given import length_error

LONGEST = 300  # characters of a message
NO_NUMBER = re.compile(r"(?i)^<?M8|date|time|duration|period|interval|^list|struct|binary|bytes|^array\(")
REMEDY = "give days or seconds since a date, or use meristem.fit_table"
OPTIONS: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "ensure_all_finite": "allow-nan"}


def checked(estimator: Any, X: Any, *, reset: bool) -> Any:
    """X, dense or sparse, of float32 or float64; `reset`: its width and its names are new to the estimator."""
    X = without_na(X)
    check_types(X)
    try:
        return validate_data(estimator, X, reset=reset, **OPTIONS)
    except (ValueError, TypeError) as error:
        raise value_error(X) or named(error, "X") from None


def checked_with(estimator: Any, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:
    """X and y, as many rows of each."""
    X = without_na(X)
    check_types(X)
    try:
        return validate_data(estimator, X, y, multi_output=True, reset=reset, **OPTIONS)
    except (ValueError, TypeError) as error:
        raise value_error(X) or length_error(X, y) or named(error, "X or y") from None


def without_na(X: Any) -> Any:
    """A frame of pandas whose columns of objects hold NaN in place of pandas' own NA, which no float can be made of."""
    if not hasattr(X, "iloc") or getattr(X, "ndim", 0) != 2:
        return X
    objects = [place for place, dtype in enumerate(X.dtypes) if getattr(dtype, "kind", "") == "O"]
    if not objects:
        return X
    X = X.copy()
    for place in objects:
        X.isetitem(place, X.iloc[:, place].where(X.iloc[:, place].notna(), np.nan))
    return X


def check_types(X: Any) -> None:
    """Raise ValueError where a column of a frame, or an array, is of a type that is no number: dates, for one.

    >>> check_types(np.array([["2020-01-01"]], "datetime64[D]"))
    Traceback (most recent call last):
    ValueError: X is of type datetime64[D], which is no number; give days or seconds since a date, or use meristem.fit_table.
    """
    if hasattr(X, "columns") and (hasattr(X, "dtypes") or hasattr(X, "schema")):
        types = list(X.dtypes) if hasattr(X, "dtypes") else [column.type for column in X.schema]
        names = list(X.columns) if hasattr(X, "dtypes") else list(X.column_names)
        columns = [
            (f"X holds the type {dtype} in column {short(name)}", dtype) for name, dtype in zip(names, types, strict=False)
        ]
    else:
        columns = [(f"X is of type {X.dtype}", X.dtype)] if hasattr(X, "dtype") else []
    for words, dtype in columns:
        if NO_NUMBER.search(str(dtype)):
            raise ValueError(f"{words}, which is no number; {REMEDY}.")


def named(error: Exception, what: str) -> Exception:
    """The same error in one line, of the argument that it is about.

    >>> named(ValueError("Expected 2D array, got scalar array instead:\\narray=3.0.\\nReshape your data"), "X")
    ValueError('X: Expected 2D array, got scalar array instead. Reshape your data')
    """
    if "feature names should match" in str(error):  # a list, as scikit-learn's checks want it
        return error
    text = " ".join(re.sub(r":?\narray=.*\n(?=Reshape)", ". ", str(error), flags=re.DOTALL).split())
    is_named = any(re.search(rf"\b{re.escape(one)}\b", text) for one in [*what.split(" or "), "samples"])
    kind = TypeError if isinstance(error, TypeError) else ValueError
    return kind(cut(text if is_named else f"{what}: {text}", LONGEST))


def value_error(X: Any) -> ValueError | None:
    """What to say of the first column that holds what is no number; None where there is none.

    >>> print(value_error([[1, "red"], [2, "blue"]]))
    X holds text in column 1, such as 'red'; encode it first: OneHotEncoder or OrdinalEncoder of scikit-learn, in a pipeline.
    """
    if getattr(getattr(X, "dtype", None), "kind", "O") not in "OUS":
        return None
    try:
        table = np.asarray(X, object)
    except ValueError:  # rows of several lengths
        return None
    if table.ndim != 2:
        return None
    names = list(getattr(X, "columns", range(table.shape[1])))
    for name, column in zip(names, table.T, strict=True):
        for value in column:
            if isinstance(value, str) and not _is_number(value):
                return ValueError(
                    f"X holds text in column {short(name)}, such as {short(value)}; encode it first: "
                    "OneHotEncoder or OrdinalEncoder of scikit-learn, in a pipeline."
                )
            if hasattr(X, "columns") and value is not None and not _is_number(value):
                kind = type(value).__name__
                return ValueError(f"X holds {short(value)}, of type {kind}, in column {short(name)}, which is no number.")
    return None


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (ValueError, TypeError):
        return False
    return True
