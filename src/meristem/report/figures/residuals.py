"""Numbers that were predicted against those that came true: a dot a row, and the line where both are the same.

    draw(true, said, "price") → Element; of very many rows some are drawn

Sections import it.
"""

import numpy as np

from meristem.check import many
from meristem.report.chart import Scale, across, around, axes, below, dot, line
from meristem.report.numbers import figure
from meristem.show.elements import Element, cut, picture

MOST_DOTS, HEIGHT = 400, 300


def draw(true: np.ndarray, said: np.ndarray, name: str) -> Element:
    """Both [rows].

    >>> draw(np.array([1.0, 2.0]), np.array([1.1, 1.9]), "price").tag
    'svg'
    """
    limits = around([*np.quantile(np.concatenate([true, said]), [0, 1]).tolist()])
    x, y = Scale(*limits, *across()), Scale(*limits, *below(24, HEIGHT))
    rows = (
        np.arange(len(true)) if len(true) <= MOST_DOTS else np.random.default_rng(0).choice(len(true), MOST_DOTS, replace=False)
    )
    parts = axes(x, y, f"predicted {cut(name, 30)}", f"true {cut(name, 30)}")
    parts += [dot(x(float(said[row])), y(float(true[row])), "s1", 2.6, "faint") for row in rows]
    parts.append(line(x, y, limits, limits, "s2"))
    off = true - said
    words = (
        f"{many(len(true), 'row')}; half of them are off by less than {figure(float(np.median(np.abs(off))))}, "
        f"nine of ten by less than {figure(float(np.quantile(np.abs(off), 0.9)))}. The line is where both are the same."
    )
    return picture("residuals", "Predicted and true numbers", words, 24 + HEIGHT + 42, parts)
