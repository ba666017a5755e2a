"""Numbers, times and lists as text, and pages from templates; only this module imports jinja2."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from meristem.show.elements import clean

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def significant(value: float, digits: int = 3) -> str:
    """Return a number with three (or `digits`) significant digits, without trailing zeros.

    >>> significant(0.95333), significant(1234.5), significant(-0.00001234), significant(0.25), significant(float("nan"))
    ('0.953', '1,230', '−1.23 × 10⁻⁵', '0.25', '–')
    """
    if not math.isfinite(value):
        return "–"
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    is_plain = not value or 1e-4 <= abs(value) < 1e9
    text = f"{float(f'{mantissa}e{exponent}'):z,.15g}" if is_plain else f"{float(mantissa):g}"
    return text.replace("-", "−") + ("" if is_plain else f" × 10{str(int(exponent)).translate(SUPERSCRIPTS)}")


def decimal(value: float) -> str:
    """Return a score, or a difference of two, with three decimals.

    >>> decimal(0.95333), decimal(-0.00004), decimal(-1.5), decimal(float("nan"))
    ('0.953', '0.000', '−1.500', '–')
    """
    return f"{value:z.3f}".replace("-", "−") if math.isfinite(value) else "–"


def score_text(value: float, measure: str) -> str:
    """Return a value of a measure: three decimals, or of an error in the unit of the target four significant digits.

    >>> score_text(0.95333, "accuracy"), score_text(12345.6, "mean absolute error")
    ('0.953', '12,350')
    """
    return significant(value, 4) if measure.endswith("error") and measure != "calibration error" else decimal(value)


def interval_text(low: float, high: float, measure: str = "") -> str:
    return f"{score_text(low, measure)} to {score_text(high, measure)}"


def limits_text(low: float, high: float, measure: str = "") -> str:
    """Return an interval of a table; "–" where all samples of the rows have the same value, which says nothing of others.

    >>> limits_text(0.41, 0.62), limits_text(0.5, 0.5)
    ('0.410 to 0.620', '–')
    """
    return interval_text(low, high, measure) if low < high else "–"


def count(n: float | np.integer) -> str:
    return f"{n:,.0f}"


def percent(value: float) -> str:
    """Return a share as a percentage.

    >>> percent(0.256), percent(0.004), percent(1.0)
    ('26 %', '0.4 %', '100 %')
    """
    return f"{100 * value:.1f} %" if 0 < value < 0.01 else f"{100 * value:.0f} %"


def tenths_of_percent(share: float) -> str:
    """Return a share as in "99.6 %", where 100 % would say too much."""
    return f"{100 * share:.1f} %"


def duration(seconds: float) -> str:
    """Return a time in words.

    >>> duration(0.34), duration(12.4), duration(200), duration(3900)
    ('0.34 s', '12 s', '3 min 20 s', '1 h 5 min')
    """
    if seconds < 60:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds // 60:.0f} min {seconds % 60:.0f} s"
    return f"{seconds // 3600:.0f} h {seconds % 3600 // 60:.0f} min"


def join_names(names: list[str]) -> str:
    """Return "a, b and c"."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def value_range(values: Sequence[float]) -> str:
    """Return the common value, or the least and the greatest: "3 to 1,200"."""
    return " to ".join(dict.fromkeys((count(min(values)), count(max(values)))))


def render_template(name: str, **values: Any) -> str:
    """Return the text of a template in this folder; in HTML every value is escaped and cleaned, except `Markup`."""
    try:
        import jinja2
    except ImportError as error:
        raise ImportError("jinja2 is not installed; run: pip install 'meristem-nn[sklearn]'") from error
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("meristem.report", ""),
        autoescape=lambda name: name is not None and ".html" in name,
        finalize=lambda value: clean(value) if type(value) is str else value,  # Markup is escaped already
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return str(environment.get_template(name).render(**values))
