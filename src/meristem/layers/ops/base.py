"""The few operations in which a compact layer says its formula. A layer is written once; each backend is a set of these.

    pick         h of some units
    affine       W h + b, or W h;  plus, where given, other values: W h + plus
    conv         W ∗ h + b, or W ∗ h              at every position, as many as there are; zeros beyond the edge
    mean         the mean over all positions
    activate     σ(z)
    add          a + b
    scale        c · z                            a constant per unit
    mix          g · new + (1 − g) · old          g are values themselves
    merge_rows   the same in some rows, g constants; all other rows are those of old
    split        z in parts, one after the other
    concat       parts as one
    combine      Σ_k share_k · value_k            a constant per value
    named        names that are given inside begin with this one

Before the first layer stand the operations of inputs (`InputOps`), on columns of double precision, [N, columns]:

    one_hot      1 in the place of a code, 0 elsewhere            a place per code; −1: in none
    is_missing   1 where a value is not finite, 0 elsewhere
    fill         x, and the column's constant where it is not finite
    standardize  (x − mean) / scale                               constants per column
    limit        z up to a limit, then ever less of it: c + L · tanh((z − c) / L),  c = z cut off at ±L
    single       in single precision, as networks compute

Values are a number for each unit, or for each unit and position: [units, time], [units, height, width].
`V` is what stands for the values of all samples: an array of JAX or NumPy, the name of an ONNX value, a stand-in of torch.fx.
Layers hand over constants (weights, gates, shares) as arrays, each with a name; only PyTorch uses the names, for its parameters
and buffers. An operation may write over the values that its entry says; a formula must not use them afterwards.

jax.py and numpy.py compute; onnx.py and torch.py record. Neither of the latter imports onnx or torch: they are given the
module by `export`, which imports it when it is used. All four stand here side by side, for they say the same thing.
Imports nothing of meristem; layers import it.
"""

import abc
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Generic, TypeVar

V = TypeVar("V")


class Ops(abc.ABC, Generic[V]):
    """A set of operations on values of units, for one sample or for many; see the module's header."""

    @abc.abstractmethod
    def pick(self, rows: Sequence[int], h: V) -> V:
        """The values of these units."""

    @abc.abstractmethod
    def affine(self, weight: Any, bias: Any, h: V, *, plus: V | None = None, name: str = "linear") -> V:
        """W h, weight [out, in]; with a bias [out] or None; with `plus`, values of as many units as come out."""

    @abc.abstractmethod
    def conv(self, weight: Any, bias: Any, h: V, *, name: str = "conv") -> V:
        """W ∗ h, weight [out, in, *kernel], h [in, *positions]; with a bias [out] or None."""

    @abc.abstractmethod
    def mean(self, positions: int, h: V) -> V:
        """The mean over the last `positions` dimensions of a sample."""

    @abc.abstractmethod
    def activate(self, activation: str, z: V) -> V:
        """σ(z) by the activation's name; may write over z."""

    @abc.abstractmethod
    def add(self, a: V, b: V) -> V:
        """A sum; may write over a."""

    @abc.abstractmethod
    def scale(self, factor: Any, z: V, *, name: str) -> V:
        """Each unit times its factor [units]; may write over z."""

    @abc.abstractmethod
    def mix(self, gate: V, new: V, old: V) -> V:
        """The new values by the gate's share and the old by the rest; may write over gate and new."""

    @abc.abstractmethod
    def merge_rows(self, gate: Any, rows: Sequence[int], width: int, new: V, old: V, *, positions: int = 0) -> V:
        """The old values of `width` units, those in `rows` mixed with the new ones by gate [rows]; may write over new.

        `positions`: how many dimensions follow the units.
        """

    @abc.abstractmethod
    def split(self, z: V, sizes: Sequence[int]) -> list[V]:
        """Parts of so many units."""

    @abc.abstractmethod
    def concat(self, parts: Sequence[V]) -> V:
        """The units of all parts."""

    @abc.abstractmethod
    def combine(self, shares: Any, values: Sequence[V], *, name: str) -> V:
        """A weighted sum, shares [values]; at least one."""

    def named(self, name: str) -> AbstractContextManager[None]:
        """Names that are given inside belong to this one: the same layer may stand in several places."""
        return nullcontext()


def padding(weight: Any) -> list[tuple[int, int]]:
    """The zeros before and behind, for each dimension of a kernel, with which as many positions come out as go in.

    >>> import numpy as np
    >>> padding(np.zeros((1, 1, 3, 2)))
    [(1, 1), (1, 0)]
    """
    return [(n // 2, (n - 1) // 2) for n in weight.shape[2:]]


class InputOps(abc.ABC, Generic[V]):
    """Operations on the columns of many rows, in double precision; see the module's header."""

    @abc.abstractmethod
    def pick(self, rows: Sequence[int], h: V) -> V:
        """These columns."""

    @abc.abstractmethod
    def split(self, z: V, sizes: Sequence[int]) -> list[V]:
        """Parts of so many columns."""

    @abc.abstractmethod
    def concat(self, parts: Sequence[V]) -> V:
        """The columns of all parts."""

    @abc.abstractmethod
    def one_hot(self, places: Any, width: int, codes: V) -> V:
        """[N, width] from codes [N, 1]: 1 in the place `places[code]`; negative codes count from the end of `places`."""

    @abc.abstractmethod
    def is_missing(self, x: V) -> V:
        """1 where x is NaN or infinite."""

    @abc.abstractmethod
    def fill(self, values: Any, x: V) -> V:
        """The column's value [columns] where x is NaN or infinite."""

    @abc.abstractmethod
    def standardize(self, mean: Any, scale: Any, x: V) -> V:
        """(x − mean) / scale, of constants [columns]; may write over x."""

    @abc.abstractmethod
    def limit(self, limit: float, z: V) -> V:
        """At most twice the limit; may write over z."""

    @abc.abstractmethod
    def single(self, z: V) -> V:
        """As float32."""

    def named(self, name: str) -> AbstractContextManager[None]:
        """Names that are used inside belong to this one."""
        return nullcontext()
