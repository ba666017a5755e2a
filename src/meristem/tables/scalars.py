"""Read a text as a finite number, or as days since 1970-01-01; NaN where it is none. Whitespace around it is ignored."""

import re
from datetime import UTC, datetime, timedelta

import numpy as np

DECIMAL_COMMA = re.compile(r"-?(\d{1,3}(\.\d{3})+|\d+),\d+")
ISO_DAY = re.compile(r"\d{4}-\d\d-\d\d")
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
    """Return a number that may have a decimal comma, and points between thousands.

    >>> [comma_number_of(text) for text in ("2,3", "-1.234,5", "2.3", "1,2,3")]
    [2.3, -1234.5, 2.3, nan]
    """
    return number_of(text.replace(".", "").replace(",", ".") if DECIMAL_COMMA.fullmatch(text.strip()) else text)


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


def days_of_counts(counts: np.ndarray, unit: str) -> np.ndarray:
    """Return int64 counts of a unit (D, h, m, s, ms, us, ns) as float64 days; no count overflows.

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


def is_canonical(text: str, *kinds: type) -> bool:
    """Return whether Python writes a finite number of one of these types so.

    >>> [is_canonical(text, int, float) for text in ("7", "07", "7.0", "7.00", "1e+20", "inf", "seven")]
    [True, False, True, False, True, False, False]
    """
    for kind in kinds:
        try:
            if str(kind(text)) == text:
                return bool(np.isfinite(float(text)))
        except (ValueError, OverflowError):
            continue
    return False
