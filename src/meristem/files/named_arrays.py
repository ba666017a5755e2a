"""The arrays of a tree by path, such as "body.gate.value"; restored into a template, and validated.

The structure never comes from a file: `fill` takes it from a template (arrays or `jax.ShapeDtypeStruct`s) and checks shapes
and types against it. Random keys are stored as their data. `check_model` and `check_state` check values when
a file is loaded and before one is kept: parameters are finite, gates are in [0, 1], bodies are consistent (`Body.fault`). What
training leaves behind passes: the best measure is +∞ before the first good epoch, Adam's second moment where the square of a
gradient overflowed; the state of another optimizer is anything but NaN. Of an Equinox model only gates and bodies are checked.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from meristem.check import cut
from meristem.gate import is_confined
from meristem.nn.body import is_body
from meristem.nn.network import Network
from meristem.train.hyperparameters import Recipe
from meristem.train.optimizer import AdamState
from meristem.train.train_state import TrainState

T = TypeVar("T")
Arrays = dict[str, np.ndarray]
MOST = 2**30  # of a count: one more is still an int32
LARGEST = float(np.finfo(np.float64).max)
FINITE = -LARGEST, LARGEST, "finite"  # ranges of numbers, in words
EPOCHS = 0, MOST, "a number of epochs"


def named_leaves(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> list[tuple[str, Any]]:
    """Return the leaves of a tree, each with its path as arrays are named by."""
    paths, _ = jax.tree_util.tree_flatten_with_path(tree, is_leaf=is_leaf)
    return [(path_name(path), leaf) for path, leaf in paths]


def path_name(path: Any) -> str:
    return jax.tree_util.keystr(path, simple=True, separator=".")


def by_path(tree: PyTree) -> Arrays:
    """Return copies of a tree's arrays on the host, by path."""
    arrays: Arrays = {}
    for name, leaf in named_leaves(tree):
        if name in arrays:
            raise ValueError(f"two arrays have the path {name!r}; rename the dictionary's key that has a dot in it.")
        arrays[name] = np.array(jax.random.key_data(leaf) if _is_key(leaf) else leaf)
    return arrays


def fill(template: T, arrays: Mapping[str, np.ndarray], problem: str = "") -> T:
    """Return the template with the arrays in it, on the host but for random keys.

    ValueError, which starts with `problem`, unless they have the template's names, shapes and kinds of numbers.
    """
    leaves = dict(named_leaves(template))
    for what, names in (("lacks", set(leaves) - set(arrays)), ("has unknown", set(arrays) - set(leaves))):
        if names:
            raise ValueError(f"{problem}it {what} arrays: {', '.join(map(repr, sorted(names)[:3]))}{' …' * (len(names) > 3)}.")
    filled = []
    for name, leaf in leaves.items():
        array: Any = arrays[name]
        expected = jax.eval_shape(jax.random.key_data, leaf) if _is_key(leaf) else leaf
        if array.shape != expected.shape:
            raise ValueError(f"{problem}array {name!r} has shape {array.shape} where the structure has {expected.shape}.")
        # Both are floats, integers of 32 or 64 bits of one sign, or the same.
        are_floats = all(jnp.issubdtype(dtype, jnp.floating) for dtype in (array.dtype, expected.dtype))
        are_integers = array.dtype.kind == expected.dtype.kind in "iu" and min(array.itemsize, expected.dtype.itemsize) >= 4
        if not (are_floats or are_integers or array.dtype == expected.dtype):
            raise ValueError(f"{problem}array {name!r} holds {array.dtype} where the structure has {expected.dtype}.")
        if _is_key(leaf):
            array = jax.random.wrap_key_data(_put(name, array), impl=jax.random.key_impl(jnp.zeros((), leaf.dtype)))
        filled.append(array)
    return jax.tree.unflatten(jax.tree.structure(template), filled)


def _is_key(leaf: Any) -> bool:
    return hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def on_device(tree: T, like: PyTree = None) -> T:
    """Return the tree with JAX arrays of the same precision for NumPy's, except where `like` has one of NumPy's, too."""
    leaves = named_leaves(tree)
    stays = [isinstance(leaf, np.ndarray) for leaf in jax.tree.leaves(like)] or [False] * len(leaves)
    put = [leaf if stay else _put(name, leaf) for (name, leaf), stay in zip(leaves, stays, strict=True)]
    return jax.tree.unflatten(jax.tree.structure(tree), put)


def _put(name: str, leaf: Any) -> Any:
    if not isinstance(leaf, np.ndarray):
        return leaf
    if jax.dtypes.canonicalize_dtype(leaf.dtype) != leaf.dtype:
        advice = "call jax.config.update('jax_enable_x64', True) first"
        raise ValueError(f"array {name!r} holds {leaf.dtype}, which JAX would shorten; {advice}.")
    return jax.device_put(leaf)


def separated(arrays: Mapping[str, np.ndarray], parts: Iterable[str]) -> dict[str, Arrays]:
    """Return arrays named "part.name" by part; ValueError if there are others."""
    separate: dict[str, Arrays] = {part: {} for part in parts}
    for name, array in arrays.items():
        part, _, inner = name.partition(".")
        if part not in separate:
            raise ValueError(f"it has an unknown array: {cut(name, 60)!r}.")
        separate[part][inner] = array
    return separate


def check_model(model: PyTree, prefix: str = "") -> None:
    """Raise ValueError of one line unless the gates and bodies of a model, and the ends of a Network, can be computed with."""
    for name, node in named_leaves(model, is_confined):
        if is_confined(node):
            _check_range(f"{prefix}{name}.value", node.value, 0, 1, "in [0, 1]")
    for name, body in named_leaves(model, is_body):
        if is_body(body) and (fault := body.fault()) is not None:
            raise ValueError(f"its body {prefix + name!r} cannot be: {fault}" if prefix + name else f"it cannot be: {fault}")
    for part in ("embed", "head") if type(model) is Network else ():
        _check_range(f"{prefix}{part}", getattr(model, part), *FINITE)


def check_state(state: TrainState, recipe: Recipe) -> None:
    """Raise ValueError of one line unless training can continue from the state."""
    check_model(state.network, "network.")
    n_stages, best = len(recipe.scales), (-LARGEST, np.inf, "a number, or +∞ before the first good epoch")
    ranges: list[tuple[str, PyTree, float, float, str]] = [
        ("plateau.best", state.plateau.best, *best),
        ("best", state.best, *best),
        ("plateau.since", state.plateau.since, *EPOCHS),
        ("plateau.stage", state.plateau.stage, 0, n_stages, f"a stage of the {n_stages}"),
        ("epoch", state.epoch, *EPOCHS),
    ]
    if state.average is not None:
        check_model(state.average.network, "average.network.")
        ranges.append(("average.epochs", state.average.epochs, *EPOCHS))
    moments = []
    for path, node in named_leaves(state.opt_state, lambda node: isinstance(node, AdamState)):
        name = f"opt_state.{path}"
        if isinstance(node, AdamState):
            moments.append(node)
            ranges += [(f"{name}.age", node.age, 0, MOST, "an age"), (f"{name}.mu", node.mu, *FINITE)]
            ranges += [(f"{name}.nu", node.nu, 0, np.inf, "a mean of squares")]
        elif eqx.is_inexact_array(node):
            ranges += [(name, node, -np.inf, np.inf, "a number")]
    for row in ranges:
        _check_range(*row)
    # A compiled epoch returns the types that it got, so floats must have one precision.
    floats = [leaf.dtype for leaf in jax.tree.leaves((state.network, state.average, moments)) if eqx.is_inexact_array(leaf)]
    measures = [np.asarray(value).dtype for value in (state.plateau.best, *state.best)]
    if len(set(floats)) > 1 or len(set(measures)) > 1 or measures[0].itemsize < 4:
        types = ", ".join(sorted({str(dtype) for dtype in floats + measures}))
        raise ValueError(f"its numbers are of several types: {types}; what is trained is of one.")


def _check_range(name: str, tree: PyTree, least: float, most: float, expected: str) -> None:
    for path, array in named_leaves(tree):
        values = np.asarray(array)
        if not is_between(values, least, most):
            numbers = values.astype(float).reshape(-1)
            first = numbers[~((numbers >= least) & (numbers <= most))][0]
            raise ValueError(f"{f'{name}.{path}' if path else name!r} holds {first:g}; it must be {expected}.")


def is_between(values: np.ndarray, least: float = -LARGEST, most: float = LARGEST) -> bool:
    """Return whether no number is NaN or outside of a range, by default that of finite numbers; without a mask in memory."""
    return not values.size or (float(values.min()) >= least and float(values.max()) <= most)
