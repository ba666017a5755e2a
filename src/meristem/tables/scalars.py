"""What a single text or count of time is worth: a finite number, a whole number, or days since 1970-01-01.

    number_of(" 39 ") → 39.0      comma_number_of("1.234,5") → 1234.5      whole_of("9007199254740993") → an exact int
    days_of("2020-01-02") → 18263.0      days_of_counts(counts, "ms") → float64 days, whatever the counts

Whitespace around a number or a date does not matter. NaN is the answer where there is no such value; nothing overflows. Imports
NumPy alone; columns and those who build them import it.
"""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation

import numpy as np

DECIMAL_COMMA = re.compile(r"-?(\d{1,3}(\.\d{3})+|\d+),\d+")
DATE = re.compile(r"\d{4}-\d\d-\d\d")
EPOCH, DAY = datetime(1970, 1, 1), timedelta(days=1)
PER_DAY = {"D": 1, "h": 24, "m": 1440, "s": 86400, "ms": 86400 * 10**3, "us": 86400 * 10**6, "ns": 86400 * 10**9}
EXACT = 2**53  # up to which every whole number is a float64


def number_of(text: str) -> float:
    """Return a finite number, or NaN.

    >>> [number_of(text) for text in (" 1e3", "1_000", "inf", "")]
    [1000.0, nan, nan, nan]
    """
    try:
        value = float(text)
    except ValueError:
        return np.nan
    return value if "_" not in text and abs(value) < np.inf else np.nan


def comma_number_of(text: str) -> float:
    """Return the same where a comma may stand for the point, and points between thousands.

    >>> [comma_number_of(text) for text in ("2,3", "-1.234,5", "2.3", "1,2,3")]
    [2.3, -1234.5, 2.3, nan]
    """
    return number_of(text.replace(".", "").replace(",", ".") if DECIMAL_COMMA.fullmatch(text.strip()) else text)


def whole_of(text: str) -> int | None:
    """Return the whole number that a text is, to its last digit, or None.

    >>> [whole_of(text) for text in ("9007199254740993", "3.0", "3.5", "three")]
    [9007199254740993, 3, None, None]
    """
    if np.isnan(number_of(text)):
        return None
    try:
        exact = Decimal(text.strip())
    except InvalidOperation:
        return None
    return int(exact) if exact == exact.to_integral_value() else None


def days_of(text: str) -> float:
    """Return days since 1970-01-01 of an ISO date or date-time, or NaN.

    >>> [days_of(text) for text in ("1970-01-02", "1970-01-01 06:00:00", "1970-01-01T01:00+01:00", "1970", "1970-13-01")]
    [1.0, 0.25, 0.0, nan, nan]
    """
    text = text.strip()
    if not DATE.match(text):
        return np.nan
    try:
        when = datetime.fromisoformat(text)
        when = when if when.tzinfo is None else when.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return np.nan
    return (when - EPOCH) / DAY


def days_of_counts(counts: np.ndarray, unit: str) -> np.ndarray:
    """Return int64 counts of a unit (D, h, m, s, ms, us, ns) as float64 days: no count overflows.

    >>> days_of_counts(np.array([-43_200_000, 2**62]), "ms").tolist()
    [-0.5, 53375995583.65032]
    """
    per_day, counts = PER_DAY[unit], counts.astype(np.int64)
    days = counts / per_day  # rounded once, as long as counts are exact
    is_large = np.abs(counts.astype(np.float64)) > EXACT
    if is_large.any():
        large = counts[is_large]
        days[is_large] = large // per_day + (large % per_day) / per_day
    return days


def is_written_plainly(text: str) -> bool:
    """Return whether this is how Python writes a finite number: 7, 7.0, 1e+20; not 07, 7.00 or 1e20.

    >>> [is_written_plainly(text) for text in ("7", "07", "7.0", "7.00", "inf", "seven")]
    [True, False, True, False, False, False]
    """
    for kind in (int, float):
        try:
            if str(kind(text)) == text:
                return bool(np.isfinite(float(text)))
        except (ValueError, OverflowError):
            continue
    return False
