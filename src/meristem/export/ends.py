"""What stands around an exported network: columns become inputs before it, and its outputs become y behind it.

    Inputs             x⁺ = [x, its gaps filled; where there were gaps];  z = ((x⁺ − mean) − rest) / scale, beyond a limit less
    Raw                the outputs as they are: logits, or numbers in the units the network learned
    OneOf(classes)     one class per row: softmax(z), or softmax([0, z]) where two classes share one logit
    AnyOf()            labels, each there or not: sigmoid(z)
    Values             y = z · scale + mean, or, with a log link, y = exp(z · scale + mean)

`mean` and `rest` are the mean in two floats. With the mean in one, a feature that hardly varies about a large value (a year, a
temperature in kelvin) loses as many digits as the mean has more than the deviation; x − mean is exact where that happens,
and the rest then takes off what the float had no room for. Double precision would do the same, but few accelerators have it.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from meristem.check import unknown
from meristem.columns import Columns
from meristem.compact import CompactNetwork

LINKS = ["identity", "log"]
SINGLE = np.finfo(np.float32)


@dataclass(frozen=True)
class Raw:
    """The network's outputs, as they are."""


@dataclass(frozen=True, eq=False)
class OneOf:
    """One of these classes: integers, numbers, booleans or texts, in the order of the outputs. Two of them may share one.

    >>> OneOf(np.array(["no", "yes"], object)).classes.dtype.kind
    'U'
    """

    classes: Any  # [classes]

    def __post_init__(self) -> None:
        classes = np.asarray(self.classes)
        if classes.dtype == object:
            classes = np.array(classes.tolist())
        if classes.ndim != 1 or len(classes) == 0 or classes.dtype.kind not in "biufU":
            raise ValueError(f"classes={self.classes!r} must be a list of numbers, booleans or texts, all of one kind.")
        object.__setattr__(self, "classes", classes)


@dataclass(frozen=True)
class AnyOf:
    """Any number of labels at once; one output for each."""


@dataclass(frozen=True, eq=False)
class Values:
    """Numbers that were standardized to be learned; one per row and no second axis if `is_flat`; by their logarithm or not."""

    mean: Any  # [n_out]
    scale: Any  # [n_out]
    is_flat: bool = False
    link: str = "identity"  # or "log": the network learned log y
    dtype: Any = np.float32  # in which an ONNX file computes y


Ending = Raw | OneOf | AnyOf | Values


class Inputs(NamedTuple):
    """How columns become inputs; see the module's header and columns.py. Without a `fill` there are no gaps."""

    mean: np.ndarray  # [n_in]
    rest: np.ndarray  # [n_in]
    scale: np.ndarray  # [n_in]
    fill: np.ndarray | None = None  # [n_features]
    gaps: np.ndarray | None = None  # columns whose gaps are inputs, too
    limit: float = np.inf
    kept: np.ndarray | None = None  # the columns that are inputs; None: all
    width: int = 0  # n_features where only some are kept

    @property
    def n_features(self) -> int:
        """The columns."""
        return self.width if self.kept is not None else len(self.mean) if self.fill is None else len(self.fill)


def inputs_of(scaling: tuple[Any, Any] | Columns, n_in: int, dtype: Any) -> Inputs:
    """(mean, scale), or the columns of an estimator, for inputs of this type.

    >>> mean, rest, *_ = inputs_of((np.array([2000.1]), np.ones(1)), 1, np.float32)
    >>> abs(mean.item() - 2000.1) > 1e-5, abs(mean.item() + rest.item() - 2000.1) < 1e-11
    (True, True)
    """
    pair = (scaling.scaling.mean, scaling.scaling.scale) if isinstance(scaling, Columns) else scaling
    mean, scale = (
        _vector(f"scaling's {name}", values, n_in, dtype) for name, values in zip(("mean", "scale"), pair, strict=True)
    )
    if not (scale != 0).all():
        raise ValueError(f"scaling's scale is 0 for feature {np.flatnonzero(scale == 0)[0]}; give 1 for a constant feature.")
    high = mean.astype(dtype)
    inputs = Inputs(high, (mean - high).astype(dtype), scale.astype(dtype))
    if not isinstance(scaling, Columns):
        return inputs
    inputs = inputs._replace(kept=scaling.kept, width=scaling.width)
    return inputs._replace(fill=scaling.fill.astype(dtype), gaps=scaling.gaps, limit=scaling.limit)


def sizes(network: CompactNetwork) -> tuple[int, int]:
    """How many features go in and how many outputs come out.

    >>> from meristem.compact.layers import Affine
    >>> sizes(CompactNetwork((Affine(np.ones((3, 2)), None),)))
    (2, 3)
    """
    if not network.layers:
        raise ValueError("The network has no layers, it copies its input; there is nothing to export.")
    n_in = network.layers[0].n_in
    return n_in, jax.eval_shape(network.columns, jax.ShapeDtypeStruct((n_in,), jnp.float32)).shape[0]


def check_ending(ending: Ending, n_out: int) -> Ending:
    """The ending, if it fits a network with that many outputs."""
    if isinstance(ending, OneOf):
        n = len(ending.classes)
        if n != n_out and (n, n_out) != (2, 1):
            raise ValueError(f"ending has {n} classes, the network {n_out} outputs; give {2 if n_out == 1 else n_out} classes.")
    if isinstance(ending, Values):
        if ending.link not in LINKS:
            raise unknown("link", ending.link, LINKS)
        mean, scale = (_vector(f"ending's {name}", getattr(ending, name), n_out, ending.dtype) for name in ("mean", "scale"))
        if ending.is_flat and n_out != 1:
            raise ValueError(f"is_flat=True is for a network with one output, this one has {n_out}; give is_flat=False.")
        return replace(ending, mean=mean, scale=scale)
    return ending


def _vector(name: str, values: Any, n: int, dtype: Any) -> np.ndarray:
    vector = np.asarray(values, np.float64)
    if vector.shape != (n,) or not np.isfinite(vector).all():
        raise ValueError(f"{name} has shape {vector.shape}; it must be {n} finite number{'s' * (n != 1)}.")
    if np.dtype(dtype) == np.float64:
        return vector
    if len(beyond := vector[(vector != 0) & ~((np.abs(vector) >= SINGLE.tiny) & (np.abs(vector) <= SINGLE.max))]):
        raise ValueError(
            f"{name} holds {beyond[0]:.3g}, which single precision cannot hold; fit on features and targets nearer to 1."
        )
    return vector
