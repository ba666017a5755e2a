"""Samples and targets: checked before anything is compiled, and uploaded once.

Data that do not fit the device, and `Scattered` samples, stay on the host, or in the file of a memory map. An array that does
not fit the network is a ValueError that names it, its value, and what to do; the objective checks the targets.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num

from meristem.memory import memory
from meristem.nn.network import Network
from meristem.sparse import Scattered
from meristem.train.objectives import Objective

SHARE_OF_MEMORY = 0.5  # data that need more of the device's memory stay with the host


class Data(NamedTuple):
    """Training and development samples, NumPy, JAX or `Scattered` arrays; without a development set, the training set is used.

    Weights are relative; without them all samples count alike. A sample of weight 0 is padding, so that data sets of many
    lengths can share a compiled program.

    >>> import numpy as np
    >>> Data(np.zeros((4, 2)), np.array([0, 1, 1, 0])).x.shape
    (4, 2)
    """

    x: Num[Array | np.ndarray, "n in ..."]
    y: Num[Array | np.ndarray, "n ..."]
    dev_x: Num[Array | np.ndarray, "m in ..."] | None = None
    dev_y: Num[Array | np.ndarray, "m ..."] | None = None
    weight: Num[Array | np.ndarray, " n"] | None = None
    dev_weight: Num[Array | np.ndarray, " m"] | None = None


class Prepared(NamedTuple):
    """Checked data: on the device, or, if `rows_at_once` is a number, on the host, to be sent in blocks of so many rows."""

    data: Data
    rows_at_once: int | None


def prepare(data: Any, network: Network, objective: Objective, *, rows_at_once: int | None = None) -> Prepared:
    """Return the samples, checked against the network and the objective, on the device if they fit; bytes stay bytes."""
    if isinstance(data, Prepared):
        return data
    host = check_data(data, network, objective)
    samples: list[Any] = [host.x, host.dev_x]
    computed = [x.rows_at_once for x in samples if isinstance(x, Scattered)]
    rows = rows_at_once or (min(computed) if computed else rows_that_fit(host))
    if computed or (rows is not None and rows < len(host.x)):
        return Prepared(host, rows)
    return Prepared(jax.device_put(host), None)  # compiles nothing, unlike jnp.asarray


def rows_that_fit(data: Data, limit: int | None = None) -> int | None:
    """Return how many rows may be on the device at a time, None for all; `limit` is its memory, on a CPU the machine's."""
    limit = memory() if limit is None else limit
    total = sum(a.nbytes for a in data if a is not None)
    if limit is None or total <= SHARE_OF_MEMORY * limit:
        return None
    row = total / (len(data.x) + (0 if data.dev_x is None else len(data.dev_x)))
    return max(1, int(SHARE_OF_MEMORY / 4 * limit / row))  # two blocks, and memory to shuffle them


def check_data(data: Any, network: Network, objective: Objective) -> Data:
    """Return the samples as NumPy arrays of few types; ValueError where they do not fit."""
    if not isinstance(data, Data):
        if not isinstance(data, tuple | list) or not 2 <= len(data) <= len(Data._fields):
            raise ValueError(f"data is a {type(data).__name__}; give Data(x, y), Data(x, y, dev_x, dev_y) or a tuple of these.")
        data = Data(*data)
    if (data.dev_x is None) != (data.dev_y is None):
        raise ValueError("dev_x and dev_y must be given together.")
    arrays = _check_set("", data.x, data.y, data.weight, network, objective)
    if data.dev_x is not None:
        arrays |= _check_set("dev_", data.dev_x, data.dev_y, data.dev_weight, network, objective)
    return Data(**arrays)


def _check_set(prefix: str, x: Any, y: Any, weight: Any, network: Network, objective: Objective) -> dict[str, Any]:
    """Return the samples, targets and weights of the training or development set by name."""
    x_name, y_name, weight_name = (f"{prefix}{name}" for name in ("x", "y", "weight"))
    samples, targets = x if isinstance(x, Scattered) else _numbers(x_name, x), _numbers(y_name, y)
    n_in, *positions = network.input_shape
    n, *sample = samples.shape or (0,)
    if len(sample) != 1 + len(positions) or 0 in samples.shape or sample[1:] != positions:
        axes = ", ".join(["samples", str(n_in) if positions else "features", *map(str, positions)])
        raise ValueError(f"{x_name} has shape {samples.shape}; it must be [{axes}] with at least one sample.")
    if sample[0] != n_in:
        own = f"input_shape={tuple(sample)}" if positions else f"n_in={sample[0]}"
        raise ValueError(f"{x_name} has {sample[0]} features, but the network takes {n_in}; create it with {own}.")
    if targets.shape[:1] != (n,):
        rows = targets.shape[0] if targets.ndim else 0
        raise ValueError(f"{y_name} has {rows} rows but {x_name} has {n}; they must be equal.")
    objective.check(y_name, targets, network.n_out)
    arrays: dict[str, Any] = {x_name: samples if isinstance(samples, Scattered) else _narrow(samples)}
    arrays[y_name] = targets.astype(np.int32, copy=False) if objective.targets_are_classes else _narrow(targets)
    if weight is not None:
        weights = _numbers(weight_name, weight)
        if weights.shape != (n,):
            raise ValueError(f"{weight_name} has shape {weights.shape}; it must be [samples], here ({n},).")
        if (weights < 0).any() or not (weights > 0).any():
            raise ValueError(f"{weight_name} must hold no negative numbers, and at least one above 0.")
        arrays[weight_name] = _narrow(weights)
    return arrays


def _numbers(name: str, values: Any) -> np.ndarray:
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} has dtype {array.dtype}; it must hold numbers. Encode text and categories first.")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"{name} holds NaN or infinite values; remove or impute them first.")
    return array


def _narrow(array: np.ndarray) -> np.ndarray:
    """Return the array in one float type, so that equal shapes share a program; bytes stay bytes."""
    return array if array.dtype == np.uint8 else array.astype(jnp.result_type(float), copy=False)


def product(a: Any, b: Any) -> Any:
    """Return the product of weights, either of which may be None."""
    return a if b is None else b if a is None else a * b


def to_float(x: Num[Array, "..."]) -> Float[Array, "..."]:
    """Return inputs as floats, bytes scaled to [0, 1]; only here, so that bytes are uploaded as bytes."""
    dtype = jnp.result_type(float)
    return x.astype(dtype) / 255 if x.dtype == jnp.uint8 else x.astype(dtype)
