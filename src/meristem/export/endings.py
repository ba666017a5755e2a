"""What follows an exported network: its outputs become y.

    Raw                the outputs as they are: logits, or standardized numbers
    OneOf(classes)     one class per row: softmax(z), or softmax([0, z]) where two classes share one logit
    AnyOf()            labels, each present or not: sigmoid(z)
    Values             y = (z + mean / scale) · scale, or, with a log link, y = exp of that

Numbers are computed in single precision where that keeps y within 1e-6 of the scale, else in double. The mean is added in units
of the scale: so no constant is so small that a runtime takes it for 0.
"""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meristem.check import unknown
from meristem.compact import CompactNetwork, compact
from meristem.nn import Network
from meristem.targets import Classes, Labels, Numbers, Targets

LINKS = ["identity", "log"]
SINGLE = np.finfo(np.float32)
REACH = 8.0  # standard deviations from the mean within which predictions are expected
TOLERANCE = 1e-6  # of the scale: how far rounding may move a number


@dataclass(frozen=True)
class Raw:
    """The network's outputs, as they are."""


@dataclass(frozen=True, eq=False)
class OneOf:
    """One of these classes: integers, numbers, booleans or texts, in the order of the outputs. Two of them may share one."""

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
    """Numbers that were standardized for training."""

    mean: Any  # [n_out]
    scale: Any  # [n_out]
    is_flat: bool = False  # y is [N], not [N, 1]
    link: str = "identity"  # or "log": the network learned log y
    dtype: Any = None  # in which y is computed; None: float32 where that is precise enough, else float64


Ending = Raw | OneOf | AnyOf | Values


def ending_of(targets: Targets) -> Ending:
    """Return what turns the outputs of an estimator's network into y."""
    match targets:
        case Classes():
            return OneOf(targets.classes)
        case Labels():
            return AnyOf()
        case Numbers():
            return Values(targets.scaling.mean, targets.scaling.scale, targets.is_flat, targets.link)
    advice = "export the network alone: to_onnx(path, estimator.compact())"
    raise ValueError(f"Targets of kind {type(targets).__name__} cannot be exported; {advice}.")


def _check_ending(ending: Ending, n_out: int) -> Ending:
    """Return the ending, with the dtype of its values, if it fits a network with that many outputs."""
    if not isinstance(ending, Ending):
        raise ValueError(f"ending={ending!r} is not known; give Raw(), OneOf(classes), AnyOf() or Values(mean, scale).")
    if isinstance(ending, OneOf):
        n = len(ending.classes)
        if n != n_out and (n, n_out) != (2, 1):
            raise ValueError(f"ending has {n} classes, the network {n_out} outputs; give {2 if n_out == 1 else n_out} classes.")
    if isinstance(ending, Values):
        if ending.link not in LINKS:
            raise unknown("link", ending.link, LINKS)
        mean, scale = (check_vector(f"ending's {name}", getattr(ending, name), n_out) for name in ("mean", "scale"))
        if ending.is_flat and n_out != 1:
            raise ValueError(f"is_flat=True is for a network with one output, this one has {n_out}; give is_flat=False.")
        return replace(ending, mean=mean, scale=scale, dtype=ending.dtype or _value_dtype(ending.link, mean, scale))
    return ending


def check_vector(name: str, values: Any, n: int) -> np.ndarray:
    """Return n finite numbers as an array of doubles; raise ValueError for anything else."""
    array = np.asarray(values, np.float64)
    if array.shape != (n,) or not np.isfinite(array).all():
        raise ValueError(f"{name} has shape {array.shape}; it must be {n} finite number{'s' * (n != 1)}.")
    return array


def _value_dtype(link: str, mean: np.ndarray, scale: np.ndarray) -> type[np.floating]:
    """Return the type that holds numbers around the mean to a millionth of the scale.

    >>> one = np.ones(1)
    >>> [_value_dtype("identity", mean * one, scale * one).__name__ for mean, scale in ((150, 70), (1e9, 1), (1e-60, 1e-61))]
    ['float32', 'float64', 'float64']
    """
    if link != "identity":
        return np.float64
    largest = np.abs(mean) + REACH * np.abs(scale)
    is_precise = SINGLE.eps / 2 * largest <= TOLERANCE * np.abs(scale)
    is_in_range = (largest < SINGLE.max / REACH) & (np.abs(scale) > SINGLE.tiny / SINGLE.eps)
    return np.float32 if (is_precise & is_in_range).all() else np.float64


def check_export(network: CompactNetwork | Network, ending: Ending) -> tuple[CompactNetwork, int, int, Ending]:
    """Return the compact network, its numbers of inputs and outputs, and the ending, if that fits it."""
    small = compact(network)
    if not small.layers:
        raise ValueError("The network has no layers, it copies its input; there is nothing to export.")
    n_in = small.layers[0].n_in
    sample = jax.ShapeDtypeStruct((n_in, *small.positions), jnp.float32)
    n_out = jax.eval_shape(small.columns, sample).shape[0]
    return small, n_in, n_out, _check_ending(ending, n_out)
