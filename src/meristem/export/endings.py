"""What stands around an exported network: features become its inputs, its outputs become y.

    Raw()              the outputs as they are: logits, or standardized numbers
    OneOf(classes)     one class per row: softmax(z), or softmax([0, z]) where two classes share one logit
    AnyOf()            labels, each present or not: sigmoid(z)
    Values             y = (z + mean / scale) · scale, or, with a log link, y = exp of that

Numbers are computed in single precision where that keeps y within 1e-6 of the scale, else in double. The mean is added in units
of the scale: so no constant is so small that a runtime takes it for 0.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from meristem.check import many, unknown
from meristem.compact import CompactNetwork, compact
from meristem.compact.inference import Predictor, as_numpy
from meristem.inputs import Inputs
from meristem.layers.ops.numpy import NUMPY
from meristem.layers.ops.operations import InputOps
from meristem.nn import Network
from meristem.targets import Classes, Labels, Numbers, Targets

LINKS = ["identity", "log"]
MODULES = {"onnx": ["onnx.checker", "onnx.helper", "onnx.numpy_helper"], "torch": ["torch.fx"]}  # what is used of each
SINGLE = np.finfo(np.float32)
REACH = 8.0  # standard deviations from the mean within which predictions are expected
TOLERANCE = 1e-6  # of the scale: how far rounding may move a number
PROMISED = 1e-5  # of a probability, or of the scale of numbers: the error that exports stay below
MAX_ROWS, MAX_VALUES = 1024, 2**22  # of the trial for the precision of features; values: rows × features
SPREAD, FARTHEST = 1.5, 4.0  # standard deviations of these rows
WORST_CASE = 3.0  # standard deviations of the sum of rounding errors in the worst of them
MOST_ROWS, HELD_OUT = 4000, 5  # of the rows that set the ranges of integers; a fifth of them measures what integers cost
Scaling = tuple[Any, Any] | Inputs


@dataclass(frozen=True)
class Raw:
    """The network's outputs, as they are."""


@dataclass(frozen=True, eq=False)
class OneOf:
    """One of these classes: integers, numbers, booleans or texts, in the order of the outputs. Two of them may share one."""

    classes: Any  # [classes]
    cut: float = 0.0  # the logit above which the second of two classes that share one is predicted

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
    if isinstance(targets, Numbers):
        return Values(targets.scaling.mean, targets.scaling.scale, targets.is_flat, targets.link)
    return OneOf(targets.classes, targets.cut) if isinstance(targets, Classes) else AnyOf()


def rounding_cost(bits: int, ending: Ending, exact: np.ndarray, rough: np.ndarray, held_out: int) -> str:
    """Return what so many bits cost, in words, given outputs in float and in integers; the last rows did not set the ranges."""
    exact, rough = exact[-held_out:], rough[-held_out:]  # all, where none is held out
    which, then = ("did not set", "; then all rows set them") if held_out else ("set", "")
    rows = f"{bits} bits: in {many(len(exact), 'row')} that {which} the ranges, "
    if isinstance(ending, OneOf):
        classes = Classes(np.arange(max(2, exact.shape[1])), 1 / (1 + np.exp(-ending.cut)))
        same = (classes.decode(exact) == classes.decode(rough)).mean()
        return f"{rows}{same:.1%} have the class of the network in float{then}"
    error, size = np.sqrt(((exact - rough) ** 2).mean()), exact.std()
    share = f"{error / max(size, 1e-300):.2%} of their standard deviation"
    return f"{rows}outputs differ from the network in float by {share}{then}"


def check_export(extra: str, network: CompactNetwork | Network, ending: Ending) -> tuple[Any, CompactNetwork, int, int, Ending]:
    """Return the package onnx or torch, and what `check_network` returns."""
    try:
        packages = [importlib.import_module(name) for name in (extra, *MODULES[extra])]
    except ImportError:
        raise ImportError(f"Exports need {extra}; install it with `pip install 'meristem-nn[{extra}]'`.") from None
    return packages[0], *check_network(network, ending)


def check_network(network: CompactNetwork | Network, ending: Ending) -> tuple[CompactNetwork, int, int, Ending]:
    """Return the compact network, its numbers of inputs and outputs, and the ending, if it fits."""
    small = compact(network)
    if not small.layers:
        raise ValueError("The network has no layers, it copies its input; there is nothing to export.")
    n_in = small.layers[0].n_in
    n_out = jax.eval_shape(small.columns, jax.ShapeDtypeStruct((n_in, *small.positions), jnp.float32)).shape[0]
    if not isinstance(ending, Ending):
        raise ValueError(f"ending={ending!r} is not known; give Raw(), OneOf(classes), AnyOf() or Values(mean, scale).")
    if isinstance(ending, OneOf) and (n := len(ending.classes)) != n_out and (n, n_out) != (2, 1):
        raise ValueError(f"ending has {n} classes, the network {n_out} outputs; give {2 if n_out == 1 else n_out} classes.")
    if isinstance(ending, Values):
        if ending.link not in LINKS:
            raise unknown("link", ending.link, LINKS)
        mean, scale = (_check_vector(f"ending's {name}", getattr(ending, name), n_out) for name in ("mean", "scale"))
        if ending.is_flat and n_out != 1:
            raise ValueError(f"is_flat=True is for a network with one output, this one has {n_out}; give is_flat=False.")
        ending = replace(ending, mean=mean, scale=scale, dtype=ending.dtype or _value_dtype(ending.link, mean, scale))
    return small, n_in, n_out, ending


def _check_vector(name: str, values: Any, n: int) -> np.ndarray:
    """Return n finite numbers as an array of doubles; raise ValueError for anything else."""
    array = np.asarray(values, np.float64)
    if array.shape != (n,) or not np.isfinite(array).all():
        raise ValueError(f"{name} has shape {array.shape}; it must be {n} finite number{'s' * (n != 1)}.")
    return array


def _value_dtype(link: str, mean: np.ndarray, scale: np.ndarray) -> type[np.floating]:
    """Return the type that holds numbers around the mean to a millionth of the scale."""
    largest = np.abs(mean) + REACH * np.abs(scale)
    is_precise = SINGLE.eps / 2 * largest <= TOLERANCE * np.abs(scale)
    is_in_range = (largest < SINGLE.max / REACH) & (np.abs(scale) > SINGLE.tiny / SINGLE.eps)
    return np.float32 if link == "identity" and (is_precise & is_in_range).all() else np.float64


@dataclass(frozen=True, eq=False)
class FeatureScaling:
    """(x − mean) / scale, or the preprocessor of an estimator."""

    mean: np.ndarray  # [n_features]
    scale: np.ndarray  # [n_features]
    trace: Callable[[InputOps[Any], Any], Any]  # the network's inputs, float32 [N, n_in], from features in double precision

    @classmethod
    def of(cls, scaling: Scaling, n_in: int) -> Self:
        """Return the scaling of an estimator's inputs, or of a mean and a scale for each of a network's inputs."""
        if not isinstance(scaling, Inputs):
            values = zip(("mean", "scale"), scaling, strict=True)
            mean, scale = (_check_vector(f"scaling's {name}", vector, n_in) for name, vector in values)
            if len(zeros := np.flatnonzero(scale == 0)):
                raise ValueError(f"scaling's scale is 0 for feature {zeros[0]}; give 1 for a constant feature.")
            return cls(mean, scale, lambda ops, x: ops.single(ops.standardize(mean, scale, x)))
        if scaling.n_inputs != n_in:
            raise ValueError(f"scaling gives {scaling.n_inputs} inputs, the network takes {n_in}; they must be equal.")
        preprocessor, (mean, scale) = scaling.preprocessor, np.zeros((2, scaling.n_features))
        used = slice(None) if preprocessor.selected is None else preprocessor.selected
        mean[used], scale[used] = preprocessor.fill, preprocessor.scaling.scale[: len(preprocessor.fill)]
        return cls(mean, scale, preprocessor.trace)

    def needs_double(self, network: CompactNetwork, ending: Ending, n_out: int) -> bool:
        """Return whether rounding the features to float32 would change an answer by more than exports promise.

        A feature that varies little around a large value, such as seconds since 1970, loses in rounding what the network reads;
        a year usually does not.
        """
        return not self.rounding_error(network, ending, n_out) <= PROMISED / 2

    def rounding_error(self, network: CompactNetwork, ending: Ending, n_out: int, features: Any = slice(None)) -> float:
        """Return by how much rounding these features to float32 changes an answer, in rows drawn around the mean."""
        n_features = len(self.mean)
        rows = max(8, min(MAX_ROWS, MAX_VALUES // max(1, n_features)))
        noise = np.random.default_rng(0).standard_normal((rows, n_features))
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            x = self.mean + np.clip(SPREAD * noise, -FARTHEST, FARTHEST) * self.scale
            rounded = x.copy()
            rounded[:, features] = x[:, features].astype(np.float32)
            if not np.isfinite(rounded).all():
                return np.inf
            predictor = Predictor(as_numpy(network))
            outputs = [predictor.outputs(self.trace(NUMPY, features)) for features in (x, rounded)]
            if isinstance(ending, OneOf | AnyOf):
                targets = Classes(np.arange(max(2, n_out))) if isinstance(ending, OneOf) else Labels(n_out)
                outputs = [targets.probabilities(z) for z in outputs]
            error = np.abs(outputs[0] - outputs[1]).max(initial=0)
        # Errors of many features cancel in rows drawn at random; in others they may not.
        return float(error * max(1.0, np.sqrt(n_features) / WORST_CASE))
