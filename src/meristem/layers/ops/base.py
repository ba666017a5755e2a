"""The few operations in which a compact layer says its formula. A layer is written once; each backend is a set of these.

Values are a number for each unit, or for each unit and position: [units, time], [units, height, width]. `V` is what stands for
the values of all samples: an array of JAX or NumPy, the name of an ONNX value, a stand-in of torch.fx. Layers hand over
constants (weights, gates, shares) as arrays, each with a name; only PyTorch uses the names, for its parameters and buffers. An
operation may write over the values that its entry says; a formula must not use them afterwards.

jax.py and numpy.py compute; onnx.py and torch.py record. Neither of the latter imports onnx or torch: they are given the
module by `export`, which imports it when it is used. Imports nothing of meristem; layers import it.
"""

import abc
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Generic, TypeVar

V = TypeVar("V")


class Selection(abc.ABC, Generic[V]):
    """Which units or columns: what `Ops` and `InputOps` have in common."""

    @abc.abstractmethod
    def pick(self, rows: Sequence[int], h: V) -> V:
        """The values of these units."""

    @abc.abstractmethod
    def split(self, z: V, sizes: Sequence[int]) -> list[V]:
        """Parts of so many units, one after the other."""

    @abc.abstractmethod
    def concat(self, parts: Sequence[V]) -> V:
        """The units of all parts."""

    def named(self, name: str) -> AbstractContextManager[None]:
        """Names that are given inside begin with this one: the same layer may stand in several places."""
        return nullcontext()


class Ops(Selection[V]):
    """A set of operations on values of units, for one sample or for many; see the module's header."""

    @abc.abstractmethod
    def affine(self, weight: Any, bias: Any, h: V, *, plus: V | None = None, name: str = "linear") -> V:
        """W h, weight [out, in]; with a bias [out] or None; with `plus`, values of as many units as come out."""

    @abc.abstractmethod
    def conv(self, weight: Any, bias: Any, h: V, *, name: str = "conv") -> V:
        """W ∗ h, weight [out, in, *kernel], h [in, *positions], zeros beyond the edge; with a bias [out] or None."""

    @abc.abstractmethod
    def mean(self, positions: int, h: V) -> V:
        """The mean over the last `positions` dimensions of a sample."""

    @abc.abstractmethod
    def activate(self, activation: str, z: V) -> V:
        """σ(z) by the activation's name; may write over z."""

    @abc.abstractmethod
    def add(self, a: V, b: V) -> V:
        """A + b; may write over a."""

    @abc.abstractmethod
    def scale(self, factor: Any, z: V, *, name: str) -> V:
        """Each unit times its factor [units]; may write over z."""

    @abc.abstractmethod
    def mix(self, gate: V, new: V, old: V) -> V:
        """G · new + (1 − g) · old, the gate being values themselves; may write over gate and new."""

    @abc.abstractmethod
    def merge_rows(self, gate: Any, rows: Sequence[int], width: int, new: V, old: V, *, positions: int = 0) -> V:
        """The old values of `width` units, those in `rows` mixed with the new ones by constants, gate [rows].

        `positions`: how many dimensions follow the units. May write over new.
        """

    @abc.abstractmethod
    def combine(self, shares: Any, values: Sequence[V], *, name: str) -> V:
        """Σ_k share_k · value_k, shares [values]; at least one."""


class InputOps(Selection[V]):
    """Operations on the columns [N, columns] of many rows, in double precision: what stands before the first layer."""

    @abc.abstractmethod
    def one_hot(self, places: Any, width: int, codes: V) -> V:
        """[N, width] from codes [N, 1]: 1 in the place `places[code]`, −1: in none; negative codes count from the end."""

    @abc.abstractmethod
    def is_missing(self, x: V) -> V:
        """1 where x is NaN or infinite, 0 elsewhere."""

    @abc.abstractmethod
    def fill(self, values: Any, x: V) -> V:
        """The column's value [columns] where x is NaN or infinite."""

    @abc.abstractmethod
    def standardize(self, mean: Any, scale: Any, x: V) -> V:
        """(x − mean) / scale, of constants [columns]; may write over x."""

    @abc.abstractmethod
    def limit(self, limit: float, z: V) -> V:
        """C + L · tanh((z − c) / L), c = z cut off at ±L: at most twice the limit; may write over z."""

    @abc.abstractmethod
    def single(self, z: V) -> V:
        """In single precision, as networks compute."""


def padding(weight: Any) -> list[tuple[int, int]]:
    """The zeros before and behind, for each dimension of a kernel, with which as many positions come out as go in.

    >>> import numpy as np
    >>> padding(np.zeros((1, 1, 3, 2)))
    [(1, 1), (1, 0)]
    """
    return [(n // 2, (n - 1) // 2) for n in weight.shape[2:]]
