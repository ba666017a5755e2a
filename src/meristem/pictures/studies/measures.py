"""What is measured on the training, validation and test parts, and how a picture shows it."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from meristem.pictures.sheet import Axes, from_zero
from meristem.pictures.studies.study import Run


@dataclass(frozen=True)
class Measure:
    """By its name, "error", the arrays error and dev_error of history.npz and a run's dev_error and test_error are found."""

    name: str
    label: str
    lower: bool  # is better
    percent: bool
    least: float  # what an axis reaches at least: noise must not look large

    def best(self, values: np.ndarray, prefer: int = 0) -> int | None:
        """Where a curve is best, at `prefer` if it is as good there; None where it has no finite value."""
        finite = np.isfinite(values)
        if not finite.any():
            return None
        best = values[finite].min() if self.lower else values[finite].max()
        places = np.flatnonzero(values == best).tolist()
        return prefer if prefer in places else places[0]

    def show(self, value: float) -> str:
        return f"{100 * value:.2f} %" if self.percent else f"{value:.3g}"

    def settle(self, ax: Axes, least: float = 0) -> None:
        """The axis, once everything is painted."""
        from_zero(ax, max(least, self.least))
        self.label_ticks(ax.yaxis)

    def label_ticks(self, axis: Any) -> None:
        """`axis`: matplotlib's, along which the measure lies."""
        if self.percent:
            axis.set_major_formatter(lambda value, _: f"{100 * value:.4g}%")


ERROR = Measure("error", "error", lower=True, percent=True, least=0.001)
WRONG_LABELS = Measure("error", "wrong labels\nper instance", lower=True, percent=False, least=0.01)
MACRO_F1 = Measure("macro_f1", "macro-F1", lower=False, percent=True, least=0.05)


def value_of(run: Run, field: str) -> float | None:
    """None where the run has none, as one that diverged at once."""
    value = run[field]
    return None if value is None or not math.isfinite(value) else float(value)
