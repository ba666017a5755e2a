"""The operations in NumPy, in the type of their constants. A sample is a row: values are [n, units, …].

Operations write over what a formula no longer needs: that memory is in the cache. What a layer is given is not its own and
read-only (see inference.py): it is copied first.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from meristem.layers.activation import ACTIVATIONS
from meristem.layers.ops.base import InputOps, Ops, padding


class NumpyOps(Ops[np.ndarray], InputOps[np.ndarray]):
    """Computes at once; constants must be NumPy arrays of the type of the values."""

    def pick(self, rows: Sequence[int], h: np.ndarray) -> np.ndarray:
        return h[:, list(rows)]

    def affine(
        self, weight: Any, bias: Any, h: np.ndarray, *, plus: np.ndarray | None = None, name: str = "linear"
    ) -> np.ndarray:
        z = h @ weight.T
        for values in (bias, plus):
            if values is not None:
                z += values
        return z

    def conv(self, weight: np.ndarray, bias: np.ndarray | None, h: np.ndarray, *, name: str = "conv") -> np.ndarray:
        kernel = weight.shape[2:]
        wide = np.pad(h, [(0, 0), (0, 0), *padding(weight)])
        windows = np.lib.stride_tricks.sliding_window_view(wide, kernel, axis=tuple(range(2, h.ndim)))  # [n, in, *at, *kernel]
        over = [1, *range(h.ndim, h.ndim + len(kernel))]
        z = np.moveaxis(np.tensordot(windows, weight, (over, range(1, weight.ndim))), -1, 1)  # [n, out, *at]
        return z if bias is None else z + bias.reshape(-1, *[1] * len(kernel))

    def mean(self, positions: int, h: np.ndarray) -> np.ndarray:
        return h.mean(tuple(range(2, 2 + positions)))

    def activate(self, activation: str, z: np.ndarray) -> np.ndarray:
        return ACTIVATIONS[activation].numpy(own(z))

    def add(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.add(a, b, out=own(a))

    def scale(self, factor: np.ndarray, z: np.ndarray, *, name: str) -> np.ndarray:
        return np.multiply(z, factor, out=z if z.flags.writeable else None)

    def mix(self, gate: np.ndarray, new: np.ndarray, old: np.ndarray) -> np.ndarray:
        mixed = np.multiply(new, gate, out=own(new))
        rest = np.subtract(1, gate, out=own(gate))
        rest *= old
        mixed += rest
        return mixed

    def merge_rows(
        self, gate: np.ndarray, rows: Sequence[int], width: int, new: np.ndarray, old: np.ndarray, *, positions: int = 0
    ) -> np.ndarray:
        gate = gate.reshape(-1, *[1] * positions)
        if len(rows) == width:
            merged = np.multiply(new, gate, out=own(new))
            merged += (1 - gate) * old
            return merged
        places, merged = list(rows), old.copy()
        merged[:, places] += gate * (new - old[:, places])
        return merged

    def split(self, z: np.ndarray, sizes: Sequence[int]) -> list[np.ndarray]:
        return [z[:, start:stop] for start, stop in pairwise(accumulate(sizes, initial=0))]

    def concat(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        return np.concatenate(parts, axis=1)

    def combine(self, shares: np.ndarray, values: Sequence[np.ndarray], *, name: str) -> np.ndarray:
        total = shares[0] * values[0]
        for share, value in zip(shares[1:], values[1:], strict=True):
            total += share * value
        return total

    def one_hot(self, places: np.ndarray, width: int, codes: np.ndarray) -> np.ndarray:
        hot = np.zeros((len(codes), width))
        at = places[codes[:, 0].astype(np.intp)]
        rows = np.flatnonzero(at >= 0)
        hot[rows, at[rows]] = 1
        return hot

    def is_missing(self, x: np.ndarray) -> np.ndarray:
        return (~np.isfinite(x)).astype(np.float64)

    def fill(self, values: np.ndarray, x: np.ndarray) -> np.ndarray:
        return np.where(np.isfinite(x), x, values)

    def standardize(self, mean: np.ndarray, scale: np.ndarray, x: np.ndarray) -> np.ndarray:
        z = np.subtract(x, mean, out=own(x))
        z /= scale
        return z

    def limit(self, limit: float, z: np.ndarray) -> np.ndarray:
        beyond = np.abs(z) > limit  # few: the rest is as it is
        if beyond.any():
            z = own(z)
            far = z[beyond]
            cut = np.clip(far, -limit, limit)
            z[beyond] = cut + limit * np.tanh((far - cut) / limit)
        return z

    def single(self, z: np.ndarray) -> np.ndarray:
        return z.astype(np.float32)


def own(values: np.ndarray) -> np.ndarray:
    """An array to write over: these values themselves, or a copy of what is read-only."""
    return values if values.flags.writeable else values.copy()


NUMPY = NumpyOps()
