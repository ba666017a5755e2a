"""The arrays of a tree by path, such as "body.gate.value"; restored into a template, and validated.

The structure never comes from a file: `fill` takes it from a template (arrays or `jax.ShapeDtypeStruct`s) and checks shapes
and types against it. Random keys are stored as their data. `check_network`, `check_state` and `check_model` check values, as
NumPy arrays, when `load` has read a file and before `save` keeps one: parameters are finite, gates are in [0, 1], bodies are
consistent (`Body.fault`). What real training leaves behind passes:

    best so far             +∞ before the first good epoch
    Adam's second moment    +∞ where the square of a gradient overflowed; the weight then no longer changes
    any other optimizer     anything but NaN

The state of a run that diverged is that before the epoch without a finite loss, so it is finite, too. Of an Equinox model only
gates and bodies are checked: its other arrays may hold infinities for good reason.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from meristem.gate import is_confined
from meristem.nn.body import is_body
from meristem.nn.network import Network
from meristem.train.hyperparameters import Recipe
from meristem.train.optimizer import AdamState
from meristem.train.train_state import TrainState

T = TypeVar("T")
Arrays = dict[str, np.ndarray]
MOST = 2**30  # of a count: one more is still an int32

# Trees and arrays by path ---------------------------------------------------------------------------------------------------


def named_leaves(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> list[tuple[str, Any]]:
    """Return the leaves of a tree, each with its path as arrays are named by."""
    paths, _ = jax.tree_util.tree_flatten_with_path(tree, is_leaf=is_leaf)
    return [(path_name(path), leaf) for path, leaf in paths]


def path_name(path: Any) -> str:
    """Return a path of `jax.tree_util` as text, joined by dots."""
    return jax.tree_util.keystr(path, simple=True, separator=".")


def by_path(tree: PyTree) -> Arrays:
    """Return copies of a tree's arrays on the host, by path.

    >>> from meristem.nn import Linear
    >>> list(by_path({"first": Linear(2, 3, key=jax.random.key(0))}))
    ['first.weight', 'first.bias']
    """
    arrays: Arrays = {}
    for name, leaf in named_leaves(tree):
        if name in arrays:
            raise ValueError(f"two arrays have the path {name!r}; rename the dictionary's key that has a dot in it.")
        arrays[name] = np.array(jax.random.key_data(leaf) if _is_key(leaf) else leaf)
    return arrays


def check(template: PyTree, arrays: Mapping[str, np.ndarray]) -> None:
    """Raise ValueError unless `arrays` are those of the template: no more, no fewer, with its shapes and kinds of numbers."""
    leaves = {name: jax.eval_shape(jax.random.key_data, x) if _is_key(x) else x for name, x in named_leaves(template)}
    for what, names in (("lacks", set(leaves) - set(arrays)), ("has unknown", set(arrays) - set(leaves))):
        if names:
            raise ValueError(f"it {what} arrays: {', '.join(map(repr, sorted(names)[:3]))}{' …' * (len(names) > 3)}.")
    for name, leaf in leaves.items():
        shape, dtype = arrays[name].shape, arrays[name].dtype
        if shape != leaf.shape:
            raise ValueError(f"array {name!r} has shape {shape} where the structure has {leaf.shape}.")
        if not _are_compatible(dtype, leaf.dtype):
            raise ValueError(f"array {name!r} holds {dtype} where the structure has {leaf.dtype}.")


def _are_compatible(dtype: np.dtype, other: np.dtype) -> bool:
    """Whether both are floats, integers of 32 or 64 bits of one sign, or the same."""
    if jnp.issubdtype(dtype, jnp.floating):
        return bool(jnp.issubdtype(other, jnp.floating))
    is_integer = dtype.kind == other.kind and dtype.kind in "iu"
    return dtype == other or (is_integer and min(dtype.itemsize, other.itemsize) >= 4)


def fill(template: T, arrays: Mapping[str, np.ndarray]) -> T:
    """Return the template with the arrays in it, on the host, after `check`; random keys are their data."""
    check(template, arrays)
    return jax.tree.unflatten(jax.tree.structure(template), [arrays[name] for name, _ in named_leaves(template)])


def on_device(template: T, filled: T) -> T:
    """Return the result of `fill` as JAX arrays; floats keep their precision, aligned memory is not copied."""
    both = zip(named_leaves(template), jax.tree.leaves(filled), strict=True)
    leaves = [_on_device(name, leaf, array) for (name, leaf), array in both]
    return jax.tree.unflatten(jax.tree.structure(template), leaves)


def _on_device(name: str, leaf: Any, array: np.ndarray) -> jax.Array | np.ndarray:
    if isinstance(leaf, np.ndarray):  # a user's model may have NumPy arrays
        return array
    if jax.dtypes.canonicalize_dtype(array.dtype) != array.dtype:
        advice = "call jax.config.update('jax_enable_x64', True) first"
        raise ValueError(f"array {name!r} holds {array.dtype}, which JAX would shorten; {advice}.")
    value = jax.device_put(array)
    return jax.random.wrap_key_data(value, impl=jax.random.key_impl(jnp.zeros((), leaf.dtype))) if _is_key(leaf) else value


def with_prefix(prefix: str, arrays: Mapping[str, np.ndarray]) -> Arrays:
    """Return the arrays with names that start with "prefix.", as a part of a larger document."""
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def without_prefix(prefix: str, arrays: Mapping[str, np.ndarray]) -> Arrays:
    """Return the arrays whose names start with "prefix.", without it.

    >>> list(without_prefix("best", {"best.head.bias": np.zeros(1), "mean": np.zeros(2)}))
    ['head.bias']
    """
    start = f"{prefix}."
    return {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}


def _is_key(leaf: Any) -> bool:
    return hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


# Values ---------------------------------------------------------------------------------------------------------------------


def check_network(network: Network, prefix: str = "") -> None:
    """Raise ValueError of one line unless the network can be computed.

    >>> network = jax.tree.map(np.asarray, Network.create("tunnel", 2, 1, width=3, depth=2, key=jax.random.key(0)))
    >>> check_network(eqx.tree_at(lambda n: n.body.gate.value, network, np.full((2, 3), 1.5)))
    Traceback (most recent call last):
    ValueError: 'body.gate.value' holds 1.5; it must be in [0, 1].
    """
    check_model(network, prefix)
    for part in ("embed", "head"):
        _check_finite(getattr(network, part), f"{prefix}{part}.")


def check_model(model: PyTree, prefix: str = "") -> None:
    """Raise ValueError of one line unless the gates and bodies of a model can be computed with."""
    for name, node in named_leaves(model, is_confined):
        if is_confined(node):
            _check_range(f"{prefix}{name}.value", node.value, 0, 1, "in [0, 1]")
    for name, body in named_leaves(model, is_body):
        fault = body.fault() if is_body(body) else None
        if fault is not None:
            place = prefix + name
            raise ValueError(f"its body {place!r} cannot be: {fault}" if place else f"it cannot be: {fault}")


def check_state(state: TrainState, recipe: Recipe) -> None:
    """Raise ValueError of one line unless training can continue from the state."""
    check_network(state.network, "network.")
    if state.average is not None:
        check_network(state.average.network, "average.network.")
        _check_range("average.epochs", state.average.epochs, 0, MOST, "a number of epochs")
    for path, node in named_leaves(state.opt_state, _is_adam):
        name = f"opt_state.{path}"
        if _is_adam(node):
            for place, age in named_leaves(node.age):
                _check_range(f"{name}.age.{place}", age, 0, MOST, "an age")
            _check_finite(node.mu, f"{name}.mu.")
            for place, nu in named_leaves(node.nu):
                _check_range(f"{name}.nu.{place}", nu, 0, np.inf, "a mean of squares")
        elif eqx.is_inexact_array(node):
            _check_range(name, node, -np.inf, np.inf, "a number")
    for name, best in (("plateau.best", state.plateau.best), ("best.0", state.best[0]), ("best.1", state.best[1])):
        if not (np.asarray(best) > -np.inf).all():
            raise ValueError(f"{name!r} holds {_first_outside(best)}; it must be a number, or +∞ before the first good epoch.")
    _check_range("plateau.since", state.plateau.since, 0, MOST, "a number of epochs")
    _check_range("plateau.stage", state.plateau.stage, 0, len(recipe.scales), f"a stage of the {len(recipe.scales)}")
    _check_range("epoch", state.epoch, 0, MOST, "a number of epochs")
    _check_types(state)


def _check_types(state: TrainState) -> None:
    """Raise ValueError unless floats have one precision: a compiled epoch returns the types that it got."""
    moments = [node for node in jax.tree.leaves(state.opt_state, is_leaf=_is_adam) if _is_adam(node)]
    average = None if state.average is None else state.average.network
    floats = [leaf.dtype for leaf in jax.tree.leaves((state.network, average, moments)) if eqx.is_inexact_array(leaf)]
    measures = [np.asarray(value).dtype for value in (state.plateau.best, *state.best)]
    if len(set(floats)) > 1 or len(set(measures)) > 1 or measures[0].itemsize < 4:
        types = ", ".join(sorted({str(dtype) for dtype in floats + measures}))
        raise ValueError(f"its numbers are of several types: {types}; what is trained is of one.")


def _is_adam(node: Any) -> bool:
    return isinstance(node, AdamState)


def _check_finite(tree: PyTree, prefix: str) -> None:
    for name, array in named_leaves(tree):
        if not is_finite(array):
            raise ValueError(f"{prefix + name!r} holds {_first_outside(array)}; it must be finite.")


def _check_range(name: str, array: Any, least: float, most: float, expected: str) -> None:
    values = np.asarray(array)
    if values.size and not (values.min() >= least and values.max() <= most):
        raise ValueError(f"{name!r} holds {_first_outside(values, least, most)}; it must be {expected}.")


def is_finite(array: Any) -> bool:
    """Return whether all numbers of an array are finite, from its minimum and maximum: without a mask of the same length.

    >>> is_finite(np.ones(3)), is_finite(np.array([1.0, np.nan])), is_finite(np.zeros(0))
    (True, False, True)
    """
    values = np.asarray(array)
    if not values.size or not jnp.issubdtype(values.dtype, jnp.inexact):
        return True
    return bool(np.isfinite(values.min()) and np.isfinite(values.max()))


def _first_outside(array: Any, least: float = -np.inf, most: float = np.inf) -> str:
    values = np.asarray(array).astype(float).reshape(-1)
    outside = ~((values >= least) & (values <= most)) | (np.isinf(values) & (np.isinf(least) | np.isinf(most)))
    return f"{values[outside][0]:g}" if outside.any() else "others"
