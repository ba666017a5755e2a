"""A tree of arrays by path, such as "body.gate.value", and back into a tree of the same structure.

The structure never comes from a file: `fill` takes it from a template (arrays or `jax.ShapeDtypeStruct`s) and checks every
array against it. Random keys are stored as their data; who implements them is the template's business.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

T = TypeVar("T")
Arrays = dict[str, np.ndarray]


def by_path(tree: PyTree) -> Arrays:
    """Copies of a tree's arrays on the host.

    >>> import jax
    >>> from meristem.nn import Linear
    >>> list(by_path({"first": Linear(2, 3, key=jax.random.key(0))}))
    ['first.weight', 'first.bias']
    """
    found: Arrays = {}
    for name, leaf in _leaves(tree):
        if name in found:
            raise ValueError(f"two arrays have the path {name!r}; rename the dictionary's key that has a dot in it.")
        found[name] = np.array(jax.random.key_data(leaf) if _is_key(leaf) else leaf)
    return found


def check(template: PyTree, arrays: Mapping[str, np.ndarray]) -> None:
    """Raise ValueError unless every array of the template is there, with its shape and kind of numbers, and no other."""
    wanted = {name: jax.eval_shape(jax.random.key_data, leaf) if _is_key(leaf) else leaf for name, leaf in _leaves(template)}
    for what, off in (("lacks", set(wanted) - set(arrays)), ("has unknown", set(arrays) - set(wanted))):
        if off:
            raise ValueError(f"it {what} arrays: {', '.join(map(repr, sorted(off)[:3]))}{' …' * (len(off) > 3)}.")
    for name, leaf in wanted.items():
        shape, dtype = arrays[name].shape, arrays[name].dtype
        if shape != leaf.shape:
            raise ValueError(f"array {name!r} has shape {shape} where the structure has {leaf.shape}.")
        if not _are_alike(dtype, leaf.dtype):
            raise ValueError(f"array {name!r} holds {dtype} where the structure has {leaf.dtype}.")


def _are_alike(one: np.dtype, other: np.dtype) -> bool:
    """Floats of any precision, integers of one kind, whether JAX has those of 64 bits or not; else the same."""
    if jnp.issubdtype(one, jnp.floating):
        return bool(jnp.issubdtype(other, jnp.floating))
    return one == other or (one.kind == other.kind and one.kind in "iu" and min(one.itemsize, other.itemsize) >= 4)


def fill(template: T, arrays: Mapping[str, np.ndarray]) -> T:
    """The template with the arrays in it, on the host, once `check` has passed them; random keys are their data."""
    check(template, arrays)
    return jax.tree.unflatten(jax.tree.structure(template), [arrays[name] for name, _ in _leaves(template)])


def on_device(template: T, filled: T) -> T:
    """What `fill` gave as JAX has it. Floats keep their own precision; memory that is aligned is taken over, not copied."""
    both = zip(_leaves(template), jax.tree.leaves(filled), strict=True)
    leaves = [_placed(name, leaf, array) for (name, leaf), array in both]
    return jax.tree.unflatten(jax.tree.structure(template), leaves)


def with_prefix(prefix: str, arrays: Mapping[str, np.ndarray]) -> Arrays:
    """The arrays as part of a larger document.

    >>> import numpy as np
    >>> list(with_prefix("best", {"head.bias": np.zeros(1)}))
    ['best.head.bias']
    """
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def without_prefix(prefix: str, arrays: Mapping[str, np.ndarray]) -> Arrays:
    """The part of a larger document with this prefix: `without_prefix(prefix, with_prefix(prefix, arrays))` are the arrays.

    >>> import numpy as np
    >>> list(without_prefix("best", {"best.head.bias": np.zeros(1), "mean": np.zeros(2)}))
    ['head.bias']
    """
    start = f"{prefix}."
    return {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}


def _leaves(tree: PyTree) -> list[tuple[str, Any]]:
    paths, _ = jax.tree_util.tree_flatten_with_path(tree)
    return [(path_name(path), leaf) for path, leaf in paths]


def path_name(path: Any) -> str:
    """A path of `jax.tree_util` as arrays are named by."""
    return jax.tree_util.keystr(path, simple=True, separator=".")


def _is_key(leaf: Any) -> bool:
    return hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _placed(name: str, leaf: Any, array: np.ndarray) -> jax.Array | np.ndarray:
    if isinstance(leaf, np.ndarray):  # a model of one's own may keep some with the host
        return array
    if jax.dtypes.canonicalize_dtype(array.dtype) != array.dtype:
        advice = "call jax.config.update('jax_enable_x64', True) first"
        raise ValueError(f"array {name!r} holds {array.dtype}, which JAX would shorten; {advice}.")
    value = jax.device_put(array)
    return jax.random.wrap_key_data(value, impl=jax.random.key_impl(jnp.zeros((), leaf.dtype))) if _is_key(leaf) else value
