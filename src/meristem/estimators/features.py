"""X as scikit-learn checks it; where it holds text, the error names the column and what to do about it."""

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from meristem.estimators.given import length_error

OPTIONS: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "ensure_all_finite": "allow-nan"}


def checked(estimator: Any, X: Any, *, reset: bool) -> Any:
    """X, dense or sparse, of float32 or float64; `reset`: its width and its names are new to the estimator."""
    try:
        return validate_data(estimator, X, reset=reset, **OPTIONS)
    except ValueError as error:
        raise text_error(X) or error from None


def checked_with(estimator: Any, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:
    """X and y, as many rows of each."""
    try:
        return validate_data(estimator, X, y, multi_output=True, reset=reset, **OPTIONS)
    except ValueError as error:
        raise text_error(X) or length_error(X, y) or error from None


def text_error(X: Any) -> ValueError | None:
    """What to say of the first column that holds text; None where there is none.

    >>> print(text_error([[1, "red"], [2, "blue"]]))
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
                    f"X holds text in column {name!r}, such as {value!r}; encode it first: "
                    "OneHotEncoder or OrdinalEncoder of scikit-learn, in a pipeline."
                )
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
