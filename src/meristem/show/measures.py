"""Measures of a network, such as its error: name, label, direction, format."""

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Measure:
    """A measure; with the name "error" its values are in the fields error, dev_error and test_error."""

    name: str
    label: str
    lower_is_better: bool = True
    percent: bool = False  # a share, from 0 to 1
    digits: int = 3  # decimals of a percentage; significant digits of any other number
    least_span: float = 0.001  # of an axis, so that noise does not look large

    def show(self, value: float | None) -> str:
        """Return a value as text; None is a dash."""
        if value is None:
            return "–"
        return f"{100 * value:.{self.digits}f} %" if self.percent else f"{value:.{self.digits}g}"

    def cost(self, value: float | None) -> float:
        """Return the value with the sign that makes less better; ∞ for None."""
        if value is None or not math.isfinite(value):
            return math.inf
        return value if self.lower_is_better else -value

    def best(self, values: np.ndarray, prefer: int = 0) -> int | None:
        """Return the index of the best of values [n], `prefer` if it ties; None if no value is finite."""
        costs = [self.cost(value) for value in values.tolist()]
        order = sorted(range(len(costs)), key=lambda index: (costs[index], index != prefer))
        return order[0] if order and costs[order[0]] < math.inf else None


def error_measure(label: str, *, is_share: bool) -> Measure:
    """Return the measure of an objective's error: a percentage for a share of wrong decisions, otherwise a number."""
    return Measure("error", label, percent=is_share, digits=2 if is_share else 3, least_span=0.001 if is_share else 0.01)


ERROR = error_measure("error", is_share=True)
WRONG_LABELS = error_measure("wrong labels per instance", is_share=False)
MACRO_F1 = Measure("macro_f1", "macro-F1", lower_is_better=False, percent=True, digits=1, least_span=0.05)
LOSS = Measure("loss", "loss", digits=4)
