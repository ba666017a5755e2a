"""The columns of a network in integers: how numbers become integers, and what the float network reads in rows of them."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from meristem.layers.ops.c import Column

STEPS = 2**14  # of an integer column, at least half of it in its range
MISSING, UNSEEN = -1, -2  # codes of categories


@dataclass(frozen=True)
class InputScale:
    """A column's numbers as integers: of floats rounded((x − middle) · factor); of integers x = number · 2^fraction, spread."""

    most: int
    fill: int
    middle: float = 0.0
    factor: float = 0.0
    fraction: int | None = None  # None: x is float
    low: int = 0
    width: int = 1

    @classmethod
    def of(cls, column: Column, low: float, high: float, x: np.ndarray, most: int, is_float: bool) -> Self:
        """Return the scale for a range of what the network reads, and the column's numbers in the rows."""
        fill = column.scaled(column.if_missing)
        if column.fill is not None:  # else a missing number is read as the nearest in the range
            low, high = min(low, fill), max(high, fill)
        high = max(high, low + 1e-6)
        if is_float:
            middle, factor = column.mean + column.scale * (low + high) / 2, 2 * most / ((high - low) * column.scale)
            scale = cls(most, 0, float(np.float32(middle)), float(np.float32(factor)))
        else:
            start, end = column.mean + column.scale * low, column.mean + column.scale * high
            is_whole = bool((np.mod(x[np.isfinite(x)], 1) == 0).all()) and 1 <= end - start < 4 * STEPS
            fine = 0 if is_whole else int(np.floor(np.log2(STEPS / (end - start))))
            fine = min(fine, int(np.floor(np.log2(2.0**30 / max(abs(start), abs(end), 1e-300)))))
            width = max(1, int(np.ceil(end * 2.0**fine)) - (first := int(np.floor(start * 2.0**fine))))
            scale = cls(most, 0, factor=np.rint(2 * most * 2**15 / width), fraction=fine, low=first, width=width)
        return replace(scale, fill=int(scale(np.array([column.if_missing]))[0]))

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Return the integers of numbers, as the C file computes them."""
        is_finite = np.isfinite(x)
        if self.fraction is not None:
            scaled = np.rint(np.where(is_finite, x, 0) * 2.0**self.fraction)
            above = np.clip(scaled - self.low, 0, self.width).astype(np.int64)
            return np.where(is_finite, ((above * int(self.factor) + 2**14) >> 15) - self.most, self.fill)
        with np.errstate(over="ignore"):
            v = (np.where(is_finite, x, 0).astype(np.float32) - np.float32(self.middle)) * np.float32(self.factor)
        q = np.trunc(np.clip(v, -self.most, self.most) + np.where(v < 0, np.float32(-0.5), np.float32(0.5)))
        return np.where(is_finite, np.clip(q, -self.most, self.most), self.fill).astype(np.int64)

    @property
    def interval(self) -> tuple[float, float]:
        """The numbers that −most and most stand for."""
        if self.fraction is not None:
            return self.low / 2.0**self.fraction, (self.low + self.width) / 2.0**self.fraction
        return self.middle - self.most / self.factor, self.middle + self.most / self.factor

    def ends(self, column: Column) -> tuple[float, float]:
        """Return what −most and most stand for, as the network reads it."""
        low, high = ((end - column.mean) / column.scale for end in self.interval)
        return low, high


def is_number(column: Column) -> bool:
    return column.codes is None and not column.is_gap


def values(column: Column, x: np.ndarray) -> np.ndarray:
    """Return what the float network reads in these rows, [rows]."""
    v = x[:, column.place]
    is_finite = np.isfinite(v)
    if column.is_gap:
        return np.where(is_finite, column.scaled(0), column.scaled(1))
    if column.codes is not None:
        is_code = is_finite & (v >= 0) & (v < column.n_codes) & (v == np.floor(v))
        code = np.where(is_code, v, np.where(is_finite & (v != MISSING), UNSEEN, MISSING))
        return np.where(np.isin(code, column.codes), column.scaled(1), column.scaled(0))
    z = (np.where(is_finite, v, column.if_missing) - column.mean) / column.scale
    if not np.isfinite(column.limit):
        return z
    cut = np.clip(z, -column.limit, column.limit)
    return cut + column.limit * np.tanh((z - cut) / column.limit)
