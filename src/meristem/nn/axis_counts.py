"""What a declaration of axes amounts to: how many numbers there are, as far as they are open.

soft counts    Σ over arrays Π over axes Σ openness, × positions: exact where gates are 0 or 1, differentiable between
half_norm      ½ Σ W² over the places of maps that are open
layer_sizes    Σ openness of the axes that are the size, layer by layer; hard_size: how many of their places are open
"""

from collections.abc import Callable
from functools import reduce
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from meristem.nn.axes import MAP, STORED, ArrayAxes, Axes, Axis, along, with_axes

STORED_BYTES = 3.0  # of the two numbers that a unit has besides its weights: in C a sum of four bytes and a factor of two


def reach(declared: Axes, name: str, *, hard: bool = False) -> Any:
    """How open the places of an axis are, those they stand on included: [places] or [per, places]; None: all are open.

    `hard`: whether they are open; a product of flags is that both are set.
    """
    axis = declared.axis(name)
    own = axis.is_open if hard else axis.openness
    below = None if axis.on is None else reach(declared, axis.on, hard=hard)
    if below is None or own is None:
        return below if own is None else own()
    return own() * placed_on(axis, below)


def placed_on(axis: Axis, values: Any) -> Any:
    """Values of the places that an axis stands on, as its own: a place that is none has 0."""
    if axis.at is None:
        return values if axis.per is None else values[..., None, :]
    return jnp.asarray(values).at[axis.at].get(mode="fill", fill_value=0)


def count(declared: Axes, entry: ArrayAxes, shape: tuple[int, ...]) -> Float[Array, ""] | float:
    """How many numbers of an array there are, each by how open its places are."""
    front = next((axis.per for name in entry.names if (axis := declared.axis(name)).per in entry.names), None)
    total: Any = 1.0
    for name, n in zip(entry.names, shape[len(shape) - len(entry.names) :], strict=True):
        openness = reach(declared, name)
        if name == front:
            total = total * (jnp.ones(n) if openness is None else openness)
        else:
            total = total * (float(n) if openness is None else openness.sum(-1))
    return total.sum() if front is not None else total


def soft_parameters(module: Any, declared: Axes | None = None) -> Float[Array, ""]:
    """The numbers of all arrays that a module stores, as far as they are open."""
    return _total(module, lambda entry: float(entry.role in (MAP, STORED)), declared)


def soft_bytes(module: Any, declared: Axes | None = None) -> Float[Array, ""]:
    """About the bytes of all arrays in eight bits: one for a weight, six for a unit with a bias and a gate."""
    return _total(module, lambda entry: {MAP: 1.0, STORED: STORED_BYTES}.get(entry.role, 0.0), declared)


def soft_multiply_adds(module: Any, declared: Axes | None = None) -> Float[Array, ""]:
    """The products of all maps of a module for one sample, as far as they are open."""
    return _total(module, lambda entry: float(entry.positions) if entry.role == MAP else 0.0, declared)


def _total(module: Any, factor: Callable[[ArrayAxes], float], declared: Axes | None) -> Float[Array, ""]:
    declared = module.axes() if declared is None else declared
    pairs = [(entry, leaf) for entry, leaf in with_axes(module, declared) if factor(entry)]
    return jnp.asarray(sum((factor(entry) * count(declared, entry, leaf.shape) for entry, leaf in pairs), start=jnp.zeros(())))


def half_norm(module: Any, declared: Axes) -> Float[Array, ""]:
    """½ ‖W‖² over what is open of its maps: under Adam, L2 alone would shrink the rest at the full rate."""
    total: Any = 0.0
    for entry, leaf in with_axes(module, declared):
        if entry.role == MAP:
            mask = open_mask(declared, entry, leaf.ndim)
            total = total + (leaf**2 if mask is None else jnp.where(mask, leaf**2, 0)).sum()
    return jnp.asarray(0.5 * total)


def open_mask(declared: Axes, entry: ArrayAxes, ndim: int) -> Bool[Array, "..."] | None:
    """Which numbers of an array are at open places, broadcast to its dimensions; None: all."""
    mask = None
    for place, name in enumerate(entry.names):
        if (is_open := reach(declared, name, hard=True)) is not None:
            own = along(declared, entry, place, is_open, ndim)
            mask = own if mask is None else mask & own
    return mask


def used(module: Any, declared: Axes, name: str) -> Float[Array, " places"]:
    """1 for the places of an axis at which a map has a number other than 0; the others fill a shape, and cost nothing."""
    flags = []
    for entry, leaf in with_axes(module, declared):
        if entry.role == MAP and name in entry.names:
            place = entry.names.index(name)
            flags.append((leaf != 0).any(tuple(k for k in range(leaf.ndim) if k != place)).astype(leaf.dtype))
    return reduce(jnp.maximum, flags)


def size_openness(declared: Axes, name: str) -> Float[Array | np.ndarray, "..."]:
    """How open the places of an axis that is a size are, [places] or [per, places]; those on closed ones are not there.

    Of arrays on the host it is one, too: JAX would compile each operation.
    """
    axis = declared.axis(name)
    assert axis.openness is not None, "the axis that is the size has gates"
    values = axis.openness()
    below = None if axis.on is None else reach(declared, axis.on, hard=True)
    xp: Any = np if isinstance(values, np.ndarray) else jnp
    return values if below is None else xp.where(placed_on(axis, below), values, 0)


def layer_sizes(declared: Axes) -> Float[Array, " layers"]:
    """The soft size of each layer, or of the whole where it has no layers."""
    each = []
    for name in declared.sizes:
        sizes, front = size_openness(declared, name).sum(-1), declared.axis(name).per
        if front is not None and (part_of := declared.axis(front).part_of) is not None:
            places, n = part_of
            sizes = jnp.zeros(n, sizes.dtype).at[places].add(sizes, mode="drop")
        each.append(jnp.atleast_1d(sizes))
    return each[0] if len(each) == 1 else jnp.concatenate(each)


def hard_size(declared: Axes) -> Int[Array, ""]:
    """How many places of the axes that are its size are open."""
    is_open = [reach(declared, name, hard=True) for name in declared.sizes]
    return reduce(jnp.add, [flags.sum(dtype=jnp.int32) for flags in is_open if flags is not None])
