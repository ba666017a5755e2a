"""Numbers for readers: three digits that mean something, thousands set apart, times in words.

    figure(1234.5) → '1,230'    rate(0.95333) → '0.953'    duration(200) → '3 min 20 s'

Imports NumPy; whatever says something imports it.
"""

import math
from collections.abc import Sequence

import numpy as np


def figure(value: float, digits: int = 3) -> str:
    """Three significant digits, or as many as are asked for, without zeros at the end.

    >>> figure(0.95333), figure(1234.5), figure(-0.00001234), figure(0.25), figure(0.0), figure(float("nan"))
    ('0.953', '1,230', '−1.23 × 10⁻⁵', '0.25', '0', '–')
    >>> figure(1.12695, 4), figure(1.13153, 4)
    ('1.127', '1.132')
    """
    if not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    power = math.floor(math.log10(abs(value)))
    if power < -4 or power > 8:
        mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
        tens = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        return f"{signed(mantissa.rstrip('0').rstrip('.'))} × 10{tens}"
    if power >= digits - 1:
        return signed(f"{round(value, digits - 1 - power):,.0f}")
    text = f"{value:.{digits - 1 - power}f}"
    return signed(text.rstrip("0").rstrip(".") if "." in text else text)


def rate(value: float) -> str:
    """A score, or a difference of two: three digits after the point.

    >>> rate(0.95333), rate(-0.00004), rate(-1.5), rate(float("nan"))
    ('0.953', '0.000', '−1.500', '–')
    """
    return signed(f"{value:z.3f}") if math.isfinite(value) else "–"


def signed(text: str) -> str:
    """With a minus sign in place of a hyphen."""
    return text.replace("-", "−")


def count(n: float | np.integer) -> str:
    """A whole number.

    >>> count(1234567)
    '1,234,567'
    """
    return f"{n:,.0f}"


def share(value: float) -> str:
    """As a percentage.

    >>> share(0.256), share(0.004), share(1.0)
    ('26 %', '0.4 %', '100 %')
    """
    return f"{100 * value:.1f} %" if 0 < value < 0.01 else f"{100 * value:.0f} %"


def duration(seconds: float) -> str:
    """A time in words.

    >>> duration(0.34), duration(12.4), duration(200), duration(3900)
    ('0.34 s', '12 s', '3 min 20 s', '1 h 5 min')
    """
    if seconds < 10:
        return f"{seconds:.2g} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds // 60:.0f} min {seconds % 60:.0f} s"
    return f"{seconds // 3600:.0f} h {seconds % 3600 // 60:.0f} min"


def listed(names: list[str]) -> str:
    """Names in a sentence.

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + f" and {names[-1]}"


def span(values: Sequence[float]) -> str:
    """One whole number, or from the least to the most.

    >>> span([3, 3]), span([1200, 3])
    ('3', '3 to 1,200')
    """
    low, high = min(values), max(values)
    return count(low) if low == high else f"{count(low)} to {count(high)}"
