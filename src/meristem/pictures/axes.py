"""How an axis is scaled and labeled once everything is painted: from zero, per cent, whole numbers, logarithmic.

Whatever is drawn, one run or many, an axis has at least three labels: with fewer, nothing on it can be read.
Imports `show/measures.py`; every picture may import it.
"""

from typing import Any

from meristem.pictures.sheet import GREY, Axes
from meristem.show.measures import Measure

LABELS = 3  # on an axis, at least


def from_zero(ax: Axes, least: float = 0.5, zero: float = 0) -> None:
    """The axis begins a little below `zero`, so that a line there is seen, and spans `least`: noise must not look large."""
    span = max(least, ax.get_ylim()[1] - zero)
    ax.set_ylim(zero - 0.025 * span, zero + 1.02 * span)


def whole_from_zero(ax: Axes) -> None:
    """From zero, with whole numbers."""
    from_zero(ax, least=LABELS - 0.8)
    ax.yaxis.get_major_locator().set_params(integer=True)


def measure_axis(measure: Measure, ax: Axes, least: float = 0) -> None:
    """A measure upwards; noise does not look large."""
    from_zero(ax, max(least, measure.least_span))
    measure_ticks(measure, ax.yaxis)


def measure_ticks(measure: Measure, axis: Any) -> None:
    """`axis`: matplotlib's, along which a measure lies."""
    if measure.percent:
        axis.set_major_formatter(lambda value, _: f"{100 * value:.4g}%")


def nodes_axis(ax: Axes, least: float = 0.5) -> None:
    """A tree's size: from 1, a single layer, or from 0 where something is less, as a root that copies its input is."""
    from_zero(ax, least, zero=1 if ax.dataLim.ymin > 0.999 else 0)


def log_ticks(top: float, at_least: int = LABELS) -> list[float]:
    """From 1 on: powers of ten, or where these are few, 1, 2, 5, 10, … or every whole number.

    >>> log_ticks(3000.0), log_ticks(60.0), log_ticks(4.5)
    ([1.0, 10.0, 100.0, 1000.0], [1.0, 2.0, 5.0, 10.0, 20.0, 50.0], [1.0, 2.0, 3.0, 4.0])
    """
    ticks: list[float] = []
    for steps in ((1,), (1, 2, 5), range(1, 10)):
        if len(ticks) < at_least:
            ticks = [float(step * 10**power) for power in range(10) for step in steps if step * 10**power < top]
    return ticks


def units_axis(ax: Axes) -> None:
    """Linear up to 1, then logarithmic: a tunnel may end with a hundredth of a highway's units, or with none."""
    from matplotlib.ticker import FixedLocator, SymmetricalLogLocator

    ax.set_yscale("symlog", linthresh=1, linscale=0.5)
    top = 1.6 * max(2, ax.get_ylim()[1])
    ax.set_ylim(-0.05, top)
    ax.yaxis.set_major_locator(FixedLocator([0.0, *log_ticks(top, LABELS - 1)]))
    ax.yaxis.set_minor_locator(SymmetricalLogLocator(base=10, linthresh=1, subs=range(2, 10)))
    ax.yaxis.set_major_formatter("{x:g}")


def epochs_axis(ax: Axes, never: float | None) -> None:
    """Logarithmic from 1 on, with a level of its own, at `never`, for runs that never get there; None: all do."""
    from matplotlib.ticker import FixedLocator, NullLocator

    top = max(LABELS + 0.5, 1.6 * ax.get_ylim()[1])
    ticks = log_ticks(top if never is None else min(top, 0.6 * never))
    labels = [f"{tick:.0f}" for tick in ticks]
    if never is not None:
        ax.axhline(never, color=GREY, linewidth=0.8, linestyle=":", zorder=1)
        top, ticks, labels = 1.4 * never, [*ticks, never], [*labels, "never"]
    ax.set_yscale("log")
    ax.set_ylim(0.75, top)
    ax.yaxis.set_major_locator(FixedLocator(ticks))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_yticklabels(labels)
