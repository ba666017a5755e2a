"""Lines against the epoch, counted from 1, and the marks on them. One seed is drawn in color, the others are pale."""

from collections.abc import Callable
from typing import Any

import numpy as np

from meristem.pictures.sheet import GREY, OTHER, Axes
from meristem.pictures.studies.study import Run, Study

CUT_LINE: dict[str, Any] = {"color": GREY, "linestyle": (0, (4, 3)), "linewidth": 0.9}


def line(ax: Axes, values: np.ndarray, **options: Any) -> None:
    """Values against their epoch; a single one is a dot, for a line of one point is nothing."""
    ax.plot(np.arange(1, len(values) + 1), values, marker="." if len(values) == 1 else "", **({"linewidth": 1.6} | options))


def seeds(
    ax: Axes, runs: list[Run], drawn: Run, values: Callable[[Run], np.ndarray], *, color: str, mark: str, **options: Any
) -> None:
    """The drawn seed in color, a ring at the epoch that the run's `mark` names; the others behind it in grey."""
    others(ax, runs, drawn, values, **(options | {"color": OTHER, "linewidth": 0.8}))
    shown = values(drawn)
    line(ax, shown, color=color, **options)
    epoch = drawn[mark]
    if epoch and epoch <= len(shown):
        ax.plot(epoch, shown[epoch - 1], **ring(color), zorder=4, clip_on=False)


def others(ax: Axes, runs: list[Run], drawn: Run, values: Callable[[Run], np.ndarray], **options: Any) -> None:
    """All seeds but the drawn one, behind it."""
    for run in runs:
        if run is not drawn:
            line(ax, values(run), zorder=1.5, **options)


def ring(color: str) -> dict[str, Any]:
    return {"marker": "o", "markersize": 6.5, "markerfacecolor": "white", "markeredgecolor": color, "markeredgewidth": 1.6}


def rate_cuts(ax: Axes, study: Study, run: Run) -> None:
    for cut in cuts(study, run):
        ax.axvline(cut, zorder=1.8, **CUT_LINE)


def cuts(study: Study, run: Run) -> np.ndarray:
    """Where the rate shrinks: between the last epoch of a stage and the first of the next."""
    return np.flatnonzero(np.diff(study.series(run, "stage")) > 0) + 1.5
