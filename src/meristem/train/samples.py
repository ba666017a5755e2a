"""What is learned from: samples and targets, checked before anything is compiled.

    binary      y [n] of 0 and 1                    multilabel  y [n, outputs] of 0 and 1
    multiclass  y [n] of 0 … outputs − 1            squared     y [n, outputs] of numbers
Whatever does not fit is a ValueError of one line that names the array, what it holds, and what to do.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num

from meristem.nn.network import Network


class Data(NamedTuple):
    """Training and development samples, as NumPy or JAX arrays; a development set of None is the training set.

    A sample counts by its weight, relative to the others'; one of weight 0 is as good as not there, so arrays may be filled up
    to a length that many data sets share. Weights of None are all alike.

    >>> import numpy as np
    >>> Data(np.zeros((4, 2)), np.array([0, 1, 1, 0])).x.shape
    (4, 2)
    """

    x: Num[Array | np.ndarray, "n in"]
    y: Num[Array | np.ndarray, "n ..."]
    dev_x: Num[Array | np.ndarray, "m in"] | None = None
    dev_y: Num[Array | np.ndarray, "m ..."] | None = None
    weight: Num[Array | np.ndarray, " n"] | None = None
    dev_weight: Num[Array | np.ndarray, " m"] | None = None


def prepared(data: Data, network: Network, objective: str, *, on_host: bool = False) -> Data:
    """The samples on the device, or ready for it, checked against the network and the objective. Bytes stay bytes."""
    n_out, n_in = network.head.weight.shape[-2], network.embed.weight.shape[-1]
    if objective == "binary" and n_out != 1:
        raise ValueError(f"objective='binary' needs a network with n_out=1; this one has {n_out}. For classes: 'multiclass'.")
    pairs = [("x", data.x, "y", data.y)]
    if data.dev_x is not None or data.dev_y is not None:
        if data.dev_x is None or data.dev_y is None:
            raise ValueError("dev_x and dev_y must be given together.")
        pairs.append(("dev_x", data.dev_x, "dev_y", data.dev_y))
    ready: list[Any] = []
    for x_name, x, y_name, y in pairs:
        samples, targets = _numbers(x_name, x), _numbers(y_name, y)
        _check_samples(x_name, samples, n_in)
        if targets.shape[:1] != samples.shape[:1]:
            rows = targets.shape[0] if targets.ndim else 0
            raise ValueError(f"{y_name} has {rows} rows but {x_name} has {samples.shape[0]}; they must be equal.")
        _check_targets(y_name, targets, objective, n_out)
        ready += [_narrow(samples), _narrow(targets, as_class=objective == "multiclass")]
    whole = Data(*ready)
    whole = whole._replace(
        weight=_weights("weight", data.weight, len(whole.x)),
        dev_weight=None if whole.dev_x is None else _weights("dev_weight", data.dev_weight, len(whole.dev_x)),
    )
    return whole if on_host else jax.tree.map(jnp.asarray, whole)


def _weights(name: str, values: Any, rows: int) -> np.ndarray | None:
    if values is None:
        return None
    weight = _numbers(name, values)
    if weight.shape != (rows,):
        raise ValueError(f"{name} has shape {weight.shape}; it must be [samples], here ({rows},).")
    if (weight < 0).any() or not (weight > 0).any():
        raise ValueError(f"{name} must hold no negative numbers, and at least one above 0.")
    return _narrow(weight)


def _numbers(name: str, values: Any) -> np.ndarray:
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} has dtype {array.dtype}; it must hold numbers. Encode text and categories first.")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"{name} holds NaN or infinite values; remove or impute them first.")
    return array


def _check_samples(name: str, x: np.ndarray, n_in: int) -> None:
    if x.ndim != 2 or 0 in x.shape:
        raise ValueError(f"{name} has shape {x.shape}; it must be [samples, features] with at least one sample.")
    if x.shape[1] != n_in:
        raise ValueError(f"{name} has {x.shape[1]} features, but the network takes {n_in}; create it with n_in={x.shape[1]}.")


def _check_targets(name: str, y: np.ndarray, objective: str, n_out: int) -> None:
    if objective in ("binary", "multiclass"):
        if y.ndim != 1:
            raise ValueError(f"{name} has shape {y.shape}; objective={objective!r} needs [samples]. Try {name}.reshape(-1).")
    elif y.ndim != 2 or y.shape[1] != n_out:
        raise ValueError(f"{name} has shape {y.shape}; objective={objective!r} needs [samples, {n_out}], a column per output.")
    if objective in ("binary", "multilabel") and not np.isin(y, (0, 1)).all():
        raise ValueError(f"{name} holds {_stranger(y, np.isin(y, (0, 1)))}; objective={objective!r} needs 0 and 1 alone.")
    if objective == "multiclass":
        fine = (y == np.floor(y)) & (y >= 0) & (y < n_out)
        if not fine.all():
            raise ValueError(
                f"{name} holds {_stranger(y, fine)}; with n_out={n_out} classes must be whole numbers from 0 to {n_out - 1}."
            )


def _stranger(values: np.ndarray, fine: np.ndarray) -> str:
    return str(values[~fine].flat[0])


def _narrow(array: np.ndarray, *, as_class: bool = False) -> np.ndarray:
    """One float type, so that the same shape is the same program; bytes and classes as integers."""
    if as_class:
        return array.astype(np.int32, copy=False)
    return array if array.dtype == np.uint8 else array.astype(jnp.result_type(float), copy=False)


def to_float(x: Num[Array, "..."]) -> Float[Array, "..."]:
    """Inputs for the network; bytes stay bytes until here and are then scaled to [0, 1]."""
    dtype = jnp.result_type(float)
    return x.astype(dtype) / 255 if x.dtype == jnp.uint8 else x.astype(dtype)
