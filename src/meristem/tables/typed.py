"""A column from an array of a type: booleans, whole numbers, floats, dates or spans of time, with a mask of missing rows.

    typed_column("age", np.array([31, 0, 47]), missing=np.array([False, True, False])) → Column

Whole numbers are held as they are, besides float64, which merges those beyond 2**53. Spans become numbers of days. Imports
column and scalars; frames and batches import it.
"""

import numpy as np

from meristem.inputs.field import MISSING
from meristem.tables.column import Column
from meristem.tables.scalars import PER_DAY, days_of_counts

WANTED = "give numbers, texts, dates or booleans"


def typed_column(name: str, values: np.ndarray, missing: np.ndarray | None = None) -> Column:
    """Return the column of an array; raise ValueError where its type is none of these.

    >>> typed_column("size", np.array([1.5, np.nan])).n_missing, typed_column("is_red", np.array([True, False])).texts
    (1, ('False', 'True'))
    """
    kind, rows = values.dtype.kind, len(values)
    if kind == "b":
        codes = values.astype(np.int16)
        if missing is not None:
            codes[missing] = MISSING
        return Column(name, rows, codes, ("False", "True"), own=values)
    if kind in "mM":
        days = _days(name, values)
        if missing is not None:
            days[missing] = np.nan
        return Column(name, rows, None, days=days) if kind == "M" else Column(name, rows, None, numbers=days)
    if kind not in "iuf":
        raise ValueError(f"Column {name!r} has the type {values.dtype}; {WANTED}.")
    with np.errstate(over="ignore"):
        numbers = values.astype(np.float64)
    numbers[np.isinf(numbers)] = np.nan
    if missing is not None:
        numbers[missing] = np.nan
    return Column(name, rows, None, numbers=numbers, own=None if kind == "f" else values)


def _days(name: str, values: np.ndarray) -> np.ndarray:
    """Float64 days, NaN for NaT, of datetime64 or timedelta64 in any unit."""
    is_nat = np.isnat(values)
    unit, step = np.datetime_data(values.dtype)
    counts = np.where(is_nat, 0, values.astype(np.int64))
    if unit == "generic" and is_nat.all():
        days = np.zeros(len(values))
    elif unit in PER_DAY:
        days = days_of_counts(counts, unit) * step
    elif unit == "W":
        days = counts * (7.0 * step)
    elif unit in ("Y", "M") and values.dtype.kind == "M" and (np.abs(counts.astype(float) * step) < 1e9).all():
        days = values.astype("datetime64[D]").astype(np.int64).astype(np.float64)
    elif unit in ("ps", "fs", "as"):
        days = counts * (step / {"ps": 86400e12, "fs": 86400e15, "as": 86400e18}[unit])
    else:
        raise ValueError(f"Column {name!r} has the type {values.dtype}; give dates in days or seconds.")
    days[is_nat] = np.nan
    return days
