"""Read a text as a finite number, or as days since 1970-01-01; NaN where it is none. Whitespace around it is ignored."""

import re
from datetime import UTC, datetime, timedelta

import numpy as np

DECIMAL_COMMA = re.compile(r"-?(\d{1,3}(\.\d{3})+|\d+),\d+")
ISO_DAY = re.compile(r"\d{4}-\d\d-\d\d")
EPOCH, DAY = datetime(1970, 1, 1), timedelta(days=1)
EXACT = 2**53  # up to which every whole number is a float64


def number_of(text: str, *, commas: bool = False) -> float:
    """Return a finite number, or NaN; with `commas` it may have a decimal comma, and points between thousands.

    >>> [number_of(text) for text in (" 1e3", "1_000", "inf", "")]
    [1000.0, nan, nan, nan]
    >>> [number_of(text, commas=True) for text in ("2,3", "-1.234,5", "2.3", "1,2,3")]
    [2.3, -1234.5, 2.3, nan]
    """
    if commas and DECIMAL_COMMA.fullmatch(text.strip()):
        text = text.replace(".", "").replace(",", ".")
    try:
        value = float(text)
    except ValueError:
        return np.nan
    return value if "_" not in text and abs(value) < np.inf else np.nan


def days_of(text: str) -> float:
    """Return days since 1970-01-01 (UTC, if it names an offset) of an ISO date or date-time, or NaN.

    >>> [days_of(text) for text in ("1970-01-02", "1970-01-01 06:00:00", "1970-01-01T01:00+01:00", "1970", "1970-13-01")]
    [1.0, 0.25, 0.0, nan, nan]
    """
    text = text.strip()
    if not ISO_DAY.match(text):
        return np.nan
    try:
        when = datetime.fromisoformat(text)
        when = when if when.tzinfo is None else when.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return np.nan
    return (when - EPOCH) / DAY


def is_canonical(text: str, kind: type) -> bool:
    """Return whether Python writes a finite number of this type so.

    >>> [is_canonical(text, float) for text in ("7.0", "7", "7.00", "1e+20", "inf", "seven")]
    [True, False, False, True, False, False]
    """
    try:
        return str(kind(text)) == text and abs(float(text)) < np.inf
    except (ValueError, OverflowError):
        return False
