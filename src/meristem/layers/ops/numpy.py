"""The operations in NumPy, in the type of their constants. A sample is a row: values are [n, units, …].

Operations write over what a formula no longer needs: that memory is in the cache. What a layer is given is not its own and
read-only (see inference.py): it is copied first.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy import ndarray

from meristem.layers.activation import ACTIVATIONS
from meristem.layers.ops.operations import InputOps, padding, shifted_sum, window_means


class NumpyOps(InputOps[ndarray]):
    """Computes at once; constants must be NumPy arrays of the type of the values."""

    def pick(self, rows: Sequence[int], h: ndarray) -> ndarray:
        return h[:, list(rows)]

    def affine(self, weight: Any, bias: Any, h: ndarray, *, plus: ndarray | None = None, name: str = "linear") -> ndarray:
        z = h @ weight.T
        for values in (bias, plus):
            if values is not None:
                z += values
        return z

    def conv(self, weight: ndarray, bias: ndarray | None, h: ndarray, *, name: str = "conv") -> ndarray:
        kernel = weight.shape[2:]
        wide = np.pad(h, [(0, 0), (0, 0), *padding(kernel)])
        views = np.lib.stride_tricks.sliding_window_view(wide, kernel, axis=tuple(range(2, h.ndim)))  # [n, in, *at, *kernel]
        over = [1, *range(h.ndim, h.ndim + len(kernel))]
        z = np.moveaxis(np.tensordot(views, weight, (over, range(1, weight.ndim))), -1, 1)  # [n, out, *at]
        return z if bias is None else z + bias.reshape(-1, *[1] * len(kernel))

    def depthwise(self, weight: ndarray, bias: ndarray | None, h: ndarray, *, name: str = "depthwise") -> ndarray:
        z = shifted_sum(weight.astype(h.dtype), np.pad(h, [(0, 0), (0, 0), *padding(weight.shape[1:])]), 2)
        return z if bias is None else z + bias.astype(h.dtype).reshape(-1, *[1] * (h.ndim - 2))

    def pool(self, window: Sequence[int], h: ndarray) -> ndarray:
        means: ndarray = window_means(window, h, 2)
        return means

    def channels_first(self, positions: int, has_channels: bool, h: ndarray) -> ndarray:
        return np.moveaxis(h, -1, 1) if has_channels else h[:, None]

    def mean(self, positions: int, h: ndarray) -> ndarray:
        return h.mean(tuple(range(2, 2 + positions)))

    def activate(self, activation: str, z: ndarray) -> ndarray:
        return ACTIVATIONS[activation].numpy(own(z))

    def add(self, a: ndarray, b: ndarray) -> ndarray:
        return np.add(a, b, out=own(a))

    def scale(self, factor: ndarray, z: ndarray, *, name: str) -> ndarray:
        return np.multiply(z, factor, out=z if z.flags.writeable else None)

    def mix(self, gate: ndarray, new: ndarray, old: ndarray) -> ndarray:
        mixed = np.multiply(new, gate, out=own(new))
        rest = np.subtract(1, gate, out=own(gate))
        rest *= old
        mixed += rest
        return mixed

    def merge_rows(
        self, gate: Any, rows: Sequence[int], width: int, new: ndarray, old: ndarray, *, positions: int = 0
    ) -> ndarray:
        gate = gate.reshape(-1, *[1] * positions)
        if len(rows) == width:
            merged = np.multiply(new, gate, out=own(new))
            merged += (1 - gate) * old
            return merged
        places, merged = list(rows), old.copy()
        merged[:, places] += gate * (new - old[:, places])
        return merged

    def split(self, z: ndarray, sizes: Sequence[int]) -> list[ndarray]:
        return [z[:, start:stop] for start, stop in pairwise(accumulate(sizes, initial=0))]

    def concat(self, parts: Sequence[ndarray]) -> ndarray:
        return np.concatenate(parts, axis=1)

    def combine(self, shares: ndarray, values: Sequence[ndarray], *, name: str) -> ndarray:
        total = shares[0] * values[0]
        for share, value in zip(shares[1:], values[1:], strict=True):
            total += share * value
        return total

    def one_hot(self, places: ndarray, width: int, codes: ndarray) -> ndarray:
        hot = np.zeros((len(codes), width))
        at = places[codes[:, 0].astype(np.intp)]
        rows = np.flatnonzero(at >= 0)
        hot[rows, at[rows]] = 1
        return hot

    def is_missing(self, x: ndarray) -> ndarray:
        return (~np.isfinite(x)).astype(np.float64)

    def fill(self, values: ndarray, x: ndarray) -> ndarray:
        return np.where(np.isfinite(x), x, values)

    def standardize(self, mean: ndarray, scale: ndarray, x: ndarray) -> ndarray:
        z = np.subtract(x, mean, out=own(x))
        z /= scale
        return z

    def limit(self, limit: float, z: ndarray) -> ndarray:
        beyond = np.abs(z) > limit  # few: the rest is as it is
        if beyond.any():
            z = own(z)
            far = z[beyond]
            cut = np.clip(far, -limit, limit)
            z[beyond] = cut + limit * np.tanh((far - cut) / limit)
        return z

    def single(self, z: ndarray) -> ndarray:
        return z.astype(np.float32)


def own(values: ndarray) -> ndarray:
    """An array to write over: these values themselves, or a copy of what is read-only."""
    return values if values.flags.writeable else values.copy()


NUMPY = NumpyOps()
