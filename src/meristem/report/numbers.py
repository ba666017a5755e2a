"""Numbers for readers: three digits that mean something, thousands set apart, times in words.

    figure(1234.5) → '1,230'    rate(0.95333) → '0.953'    many(12345, "row") → '12,345 rows'    duration(200) → '3 min 20 s'

Imports NumPy; whatever says something imports it.
"""

import math

import numpy as np


def figure(value: float) -> str:
    """Three significant digits, without zeros at the end.

    >>> figure(0.95333), figure(1234.5), figure(-0.00001234), figure(0.25), figure(0.0), figure(float("nan"))
    ('0.953', '1,230', '−1.23 × 10⁻⁵', '0.25', '0', '–')
    """
    if not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    power = math.floor(math.log10(abs(value)))
    if power < -4 or power > 8:
        mantissa, _, exponent = f"{value:.2e}".partition("e")
        tens = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        return f"{signed(mantissa.rstrip('0').rstrip('.'))} × 10{tens}"
    if power >= 2:
        return signed(f"{round(value, 2 - power):,.0f}")
    text = f"{value:.{2 - power}f}"
    return signed(text.rstrip("0").rstrip(".") if "." in text else text)


def rate(value: float) -> str:
    """A score, or a difference of two: three digits after the point.

    >>> rate(0.95333), rate(-0.00004), rate(-1.5), rate(float("nan"))
    ('0.953', '0', '−1.500', '–')
    """
    text = f"{value:.3f}"
    return "–" if not math.isfinite(value) else signed(text) if float(text) else "0"


def signed(text: str) -> str:
    """With a minus sign in place of a hyphen."""
    return text.replace("-", "−")


def count(n: float | np.integer) -> str:
    """A whole number.

    >>> count(1234567)
    '1,234,567'
    """
    return f"{n:,.0f}"


def many(n: int, thing: str, things: str | None = None) -> str:
    """So many of a thing.

    >>> many(1, "row"), many(2000, "row"), many(2, "class", "classes")
    ('1 row', '2,000 rows', '2 classes')
    """
    return f"{n:,} {thing if n == 1 else things or thing + 's'}"


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
