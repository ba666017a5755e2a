"""The few operations in which a compact layer says its formula. A layer is written once; each backend is a set of these.

Values are a number for each unit, or for each unit and position: [units, time], [units, height, width]. `V` is what stands for
the values of all samples: an array of JAX or NumPy, the name of an ONNX value, a stand-in of torch.fx. Layers hand over
constants (weights, gates, shares) as arrays, each with a name; only PyTorch uses the names, for its parameters and buffers. An
operation may write over the values that its entry says; a formula must not use them afterwards.

jax.py and numpy.py compute; onnx.py and torch.py record, and are given the module of that name by `export`.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import product
from typing import Any, Protocol, TypeVar, runtime_checkable

V = TypeVar("V")


@runtime_checkable
class Ops(Protocol[V]):
    """A set of operations on values of units, for one sample or for many; see the module's header."""

    def pick(self, rows: Sequence[int], h: V) -> V:
        """The values of these units."""

    def split(self, z: V, sizes: Sequence[int]) -> list[V]:
        """Parts of so many units, one after the other."""

    def concat(self, parts: Sequence[V]) -> V:
        """The units of all parts."""

    def named(self, name: str) -> AbstractContextManager[None]:
        """Names that are given inside begin with this one: the same layer may stand in several places."""
        return nullcontext()

    def affine(self, weight: Any, bias: Any, h: V, *, plus: V | None = None, name: str = "linear") -> V:
        """W h, weight [out, in]; with a bias [out] or None; with `plus`, values of as many units as come out."""

    def conv(self, weight: Any, bias: Any, h: V, *, name: str = "conv") -> V:
        """W ∗ h, weight [out, in, *kernel], h [in, *positions], zeros beyond the edge; with a bias [out] or None."""

    def depthwise(self, weight: Any, bias: Any, h: V, *, name: str = "depthwise") -> V:
        """Each unit convolved with a kernel of its own, weight [units, *kernel], zeros beyond the edge; with a bias or None.

        Its constants may be of another type than the values.
        """

    def pool(self, window: Sequence[int], h: V) -> V:
        """Means over windows of so many positions, side by side; what is left at the end is cut off."""

    def channels_first(self, positions: int, has_channels: bool, h: V) -> V:
        """[*positions, channels] as [channels, *positions]; a sample without channels gets a single one."""

    def mean(self, positions: int, h: V) -> V:
        """The mean over the last `positions` dimensions of a sample."""

    def activate(self, activation: str, z: V) -> V:
        """σ(z) by the activation's name; may write over z."""

    def add(self, a: Any, b: Any) -> Any:
        """A + b; may write over a."""
        return a + b

    def scale(self, factor: Any, z: V, *, name: str) -> V:
        """Each unit times its factor [units]; may write over z."""

    def mix(self, gate: Any, new: Any, old: Any) -> Any:
        """G · new + (1 − g) · old, the gate being values themselves; may write over gate and new."""
        return gate * new + (1 - gate) * old

    def merge_rows(self, gate: Any, rows: Sequence[int], width: int, new: V, old: V, *, positions: int = 0) -> V:
        """The old values, those in `rows` mixed by gate [rows] with new ones, [.., rows, *positions]; may write over new."""

    def combine(self, shares: Any, values: Sequence[V], *, name: str) -> V:
        """Σ_k share_k · value_k, shares [values]; at least one."""


@runtime_checkable
class InputOps(Ops[V], Protocol[V]):
    """Those, and others on the columns [N, columns] of many rows, in double precision: what stands before the first layer."""

    def one_hot(self, places: Any, width: int, codes: V) -> V:
        """[N, width] from codes [N, 1]: 1 in the place `places[code]`, −1: in none; negative codes count from the end."""

    def is_missing(self, x: V) -> V:
        """1 where x is NaN or infinite, 0 elsewhere."""

    def fill(self, values: Any, x: V) -> V:
        """The column's value [columns] where x is NaN or infinite."""

    def standardize(self, mean: Any, scale: Any, x: V) -> V:
        """(x − mean) / scale, of constants [columns]; may write over x."""

    def limit(self, limit: float, z: V) -> V:
        """C + L · tanh((z − c) / L), c = z cut off at ±L: at most twice the limit; may write over z."""

    def single(self, z: V) -> V:
        """In single precision, as networks compute."""


def padding(kernel: Sequence[int]) -> list[tuple[int, int]]:
    """The zeros before and behind, for each dimension of a kernel, with which as many positions come out as go in."""
    return [(n // 2, (n - 1) // 2) for n in kernel]


def shifted_sum(weight: Any, wide: Any, first: int) -> Any:
    """Σ over taps: weights [units, *kernel] times the values that each tap reads, padded, with positions from `first` on."""
    kernel = weight.shape[1:]
    sizes = [total - n + 1 for total, n in zip(wide.shape[first:], kernel, strict=False)]

    def term(tap: tuple[int, ...]) -> Any:
        part = wide[(slice(None),) * first + tuple(slice(k, k + n) for k, n in zip(tap, sizes, strict=True))]
        return weight[(..., *tap)].reshape(-1, *[1] * (part.ndim - first)) * part

    first_tap, *others = product(*map(range, kernel))
    return sum(map(term, others), start=term(first_tap))


def window_means(window: Sequence[int], values: Any, first: int) -> Any:
    """The means of an array over windows side by side; its positions begin at `first`."""
    last, counts = first + len(window), [n // size for n, size in zip(values.shape[first:], window, strict=False)]
    covered = (slice(None),) * first + tuple(slice(0, n * size) for n, size in zip(counts, window, strict=True))
    pairs = [length for pair in zip(counts, window, strict=True) for length in pair]
    split = values[covered].reshape(*values.shape[:first], *pairs, *values.shape[last:])
    return split.mean(tuple(range(first + 1, last + len(window), 2)))
