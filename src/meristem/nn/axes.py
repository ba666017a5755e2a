"""Axes: the named dimensions of a module's arrays, and how open their places are. Every size follows from this declaration.

    Axis(openness, is_open, per, on, …)     the places of a dimension: units of a layer, dimensions of the trunk, leaves
    ArrayAxes(names, role, positions)       of one array: its dimensions, what it is, at how many positions a map is applied
    Axes(arrays, axes, size)                of a module, what `module.axes()` returns: its own tree with an ArrayAxes for
                                            every array, its axes by name, and the axis whose places are its size

    Tunnel      weight [layer, unit, trunk]   bias, gate [layer, unit]       a unit's gate differs by layer, and it stands on a
                                                                             dimension of the trunk: it is there where that is
    Tree        weight [leaf, row, trunk]     bias [leaf, row]               a leaf is as open as the nodes above it
    Embedding   weight [trunk, input]         Head weight [output, trunk]    parts of a network share axes by name

Derived here, for any declaration:

    soft counts    Σ over arrays Π over axes Σ openness, × positions         parameters and multiply-adds; exact where gates
                                                                             are 0 or 1, differentiable between
    half_norm      ½ Σ W² over the places of maps that are open
    layer_sizes    Σ openness of the axis that is the size, layer by layer;  hard_size: how many of its places are open
    depths         for every array the depth of its layer, for the rates
    take           a tree on some places of an axis;  read_scaled: with an axis's openness in what reads it

An axis without gates is open everywhere; so is one that no module declares. Names count from an array's last dimension, so that
a population, with its members in front, has the same declaration. Imports gate; every module and all that counts import it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from meristem.gate import Confined

MAP, STORED, TRAINED = "map", "stored", "trained"  # multiplied with inputs; stored besides; there while it trains, not shipped
TRUNK = "trunk"
T = TypeVar("T")


class ArrayAxes(NamedTuple):
    """The names of an array's last dimensions, what it is, and at how many positions a map is applied to a sample."""

    names: tuple[str, ...] = ()
    role: str = TRAINED
    positions: int = 1


@dataclass(frozen=True)
class Axis:
    """The places of a dimension; functions, for most of them are asked of few axes."""

    openness: Callable[[], Float[Array, "..."]] | None = None  # [places], or [per, places]; None: all are open
    is_open: Callable[[], Bool[Array, "..."]] | None = None
    per: str | None = None  # the axis by whose places the openness differs: units by layer
    on: str | None = None  # the axis on whose places its own stand
    at: Int[Array, "..."] | None = None  # which place of it each stands on; None: its own
    depth: Callable[[], Int[Array, " places"]] | None = None  # of the layer at each place, for the rates
    closable: bool = False  # whether its places have gates that a training may close
    part_of: tuple[Int[Array, " places"], int] | None = None  # of a packed axis: its places in the full one, and their number


@dataclass(frozen=True)
class Axes:
    """What a module declares; see the module's header."""

    arrays: Any  # the module's tree with an ArrayAxes for every array
    axes: Mapping[str, Axis]
    size: str | None = None

    def axis(self, name: str) -> Axis:
        return self.axes.get(name, Axis())

    def standing_on(self, name: str) -> set[str]:
        """The axis itself, and those whose places stand on its places."""
        return {name, *(other for other, axis in self.axes.items() if axis.on == name)}


def gate_axis(gate: Confined | None, **options: Any) -> Axis:
    """An axis whose places have the gates of a parameter; None: all are open."""
    if gate is None:
        return Axis(**options)
    return Axis(lambda: gate.value if not gate.closed else 1 - gate.value, lambda: gate.is_open, closable=True, **options)


def declare(module: T, **fields: Any) -> T:
    """The module's tree with these entries for the arrays of its fields; other arrays have no named dimension.

    An entry is one for all arrays of a field, or a tree of them.
    """

    def entries(entry: Any, field: Any) -> Any:
        if is_array_axes(entry):
            return jax.tree.map(lambda _: entry, field)
        return jax.tree.map(lambda own, leaf: None if leaf is None else own, entry, field, is_leaf=is_array_axes)

    nothing = jax.tree.map(lambda _: ArrayAxes(), module)
    names = [name for name in fields if getattr(module, name) is not None]
    return eqx.tree_at(
        lambda m: [getattr(m, name) for name in names],
        nothing,
        [entries(fields[name], getattr(module, name)) for name in names],
        is_leaf=lambda node: node is None or is_array_axes(node),
    )


UNITS = ArrayAxes(("layer", "unit"), STORED)


def layered(arrays: Any, depth: int, trunk: Confined | None, openness: Callable[[], Array]) -> Axes:
    """Of a stack of layers whose units, all there, stand on the dimensions of the trunk."""
    unit = Axis(openness, lambda: jnp.ones_like(openness(), bool), per="layer", on=TRUNK)
    return Axes(arrays, {"layer": Axis(depth=lambda: jnp.arange(depth)), "unit": unit, TRUNK: gate_axis(trunk)}, size="unit")


def is_array_axes(node: Any) -> bool:
    return isinstance(node, ArrayAxes)


def with_axes(module: Any, declared: Axes) -> list[tuple[ArrayAxes, Any]]:
    """Every array of a module with its entry."""
    entries = jax.tree.leaves(declared.arrays, is_leaf=is_array_axes)
    return list(zip(entries, jax.tree.leaves(module), strict=True))


# Counts ---------------------------------------------------------------------------------------------------------------------


def reach(declared: Axes, name: str) -> Float[Array, "..."] | None:
    """How open the places of an axis are, those they stand on included: [places] or [per, places]; None: all are open."""
    return _with_below(declared, name, lambda axis: axis.openness)


def open_places(declared: Axes, name: str) -> Bool[Array, "..."] | None:
    """Which places of an axis are open, those they stand on included; None: all."""
    return _with_below(declared, name, lambda axis: axis.is_open)


def _with_below(declared: Axes, name: str, ask: Callable[[Axis], Callable[[], Array] | None]) -> Any:
    """An axis's own values times those of the places they stand on; a product of flags is that both are set."""
    axis = declared.axis(name)
    function = ask(axis)
    own = None if function is None else function()
    below = None if axis.on is None else _with_below(declared, axis.on, ask)
    if below is None or own is None:
        return own if below is None else below
    return own * placed_on(axis, below)


def placed_on(axis: Axis, values: Array) -> Array:
    """Values of the places that an axis stands on, as its own: a place that is none has 0."""
    if axis.at is None:
        return values if axis.per is None else values[..., None, :]
    return values.at[axis.at].get(mode="fill", fill_value=0)


def count(declared: Axes, entry: ArrayAxes, shape: tuple[int, ...]) -> Float[Array, ""] | float:
    """How many numbers of an array there are, each by how open its places are."""
    front = next((axis.per for name in entry.names if (axis := declared.axis(name)).per in entry.names), None)
    total: Any = 1.0
    for name, n in zip(entry.names, shape[len(shape) - len(entry.names) :], strict=True):
        openness = reach(declared, name)
        if openness is None:
            total = total * (jnp.ones(n) if name == front else float(n))
        elif name == front or declared.axis(name).per is None:
            total = total * (openness if name == front else openness.sum())
        else:
            total = total * openness.sum(-1)
    return total.sum() if front is not None else total


def soft_parameters(module: Any, declared: Axes) -> Float[Array, ""]:
    """The numbers that are stored, as far as they are open."""
    return _total(module, declared, lambda entry: float(entry.role in (MAP, STORED)))


def soft_multiply_adds(module: Any, declared: Axes) -> Float[Array, ""]:
    """The products of its maps for one sample, as far as they are open."""
    return _total(module, declared, lambda entry: float(entry.positions) if entry.role == MAP else 0.0)


def _total(module: Any, declared: Axes, factor: Callable[[ArrayAxes], float]) -> Float[Array, ""]:
    counts = [
        factor(entry) * count(declared, entry, leaf.shape) for entry, leaf in with_axes(module, declared) if factor(entry)
    ]
    return jnp.asarray(sum(counts, start=jnp.zeros(())))


def half_norm(module: Any, declared: Axes) -> Float[Array, ""]:
    """½ ‖W‖² over what is open of its maps: under Adam, L2 alone would shrink the rest at the full rate."""
    squares = []
    for entry, leaf in with_axes(module, declared):
        if entry.role == MAP:
            mask = open_mask(declared, entry, leaf.ndim)
            squares.append((leaf**2).sum() if mask is None else jnp.where(mask, leaf**2, 0).sum())
    return 0.5 * sum(squares[1:], start=squares[0]) if squares else jnp.zeros(())


def open_mask(declared: Axes, entry: ArrayAxes, ndim: int) -> Bool[Array, "..."] | None:
    """Which numbers of an array are at open places, broadcast to its dimensions; None: all."""
    mask = None
    for place, name in enumerate(entry.names, start=ndim - len(entry.names)):
        own = open_places(declared, name)
        if own is None:
            continue
        shape = [1] * ndim
        shape[place] = own.shape[-1]
        if own.ndim == 2:
            shape[ndim - len(entry.names) + entry.names.index(str(declared.axis(name).per))] = own.shape[0]
        mask = own.reshape(shape) if mask is None else mask & own.reshape(shape)
    return mask


def size_openness(declared: Axes) -> Float[Array, "..."]:
    """How open the places are that are the size, [places] or [per, places]; those on closed ones are not there."""
    axis = declared.axis(str(declared.size))
    assert axis.openness is not None, "the axis that is the size has gates"
    values = axis.openness()
    below = None if axis.on is None else open_places(declared, axis.on)
    return values if below is None else jnp.where(placed_on(axis, below), values, 0)


def layer_sizes(declared: Axes) -> Float[Array, " layers"]:
    """The soft size of each layer, or of the whole where it has no layers."""
    axis, values = declared.axis(str(declared.size)), size_openness(declared)
    if axis.per is None:
        return values.sum()[None]
    sizes, front = values.sum(-1), declared.axis(axis.per)
    if front.part_of is None:
        return sizes
    places, n = front.part_of
    return jnp.zeros(n, sizes.dtype).at[places].add(sizes, mode="drop")


def hard_size(declared: Axes) -> Int[Array, ""]:
    """How many places of the axis that is its size are open."""
    is_open = open_places(declared, str(declared.size))
    assert is_open is not None
    return is_open.sum(dtype=jnp.int32)


# Trees ----------------------------------------------------------------------------------------------------------------------


def depths(module: T, declared: Axes) -> T:
    """For every array the depth of its layer: [] or one for each place of its first named dimension."""

    def depth(entry: ArrayAxes, leaf: Any) -> Any:
        if leaf is None:
            return None
        own = declared.axis(entry.names[0]).depth if entry.names else None
        return jnp.zeros((), jnp.int32) if own is None else own()

    return jax.tree.map(depth, declared.arrays, module, is_leaf=is_array_axes)


def take(tree: T, declared: Axes, name: str, places: np.ndarray) -> T:
    """The tree on these places of an axis, and of those that stand on it; of NumPy's arrays. A host function.

    >>> declared = Axes({"bias": ArrayAxes(("trunk",))}, {})
    >>> take({"bias": np.arange(3)}, declared, "trunk", np.array([0, 2]))["bias"].tolist()
    [0, 2]
    """
    names = declared.standing_on(name)

    def taken(entry: ArrayAxes, leaf: Any) -> Any:
        values = np.asarray(leaf)
        for place, own in enumerate(reversed(entry.names), start=1):
            values = values.take(places, -place) if own in names else values
        return values

    return jax.tree.map(taken, declared.arrays, tree, is_leaf=is_array_axes)


def read_scaled(tree: T, declared: Axes, name: str, openness: np.ndarray) -> T:
    """The tree with how open an axis is in the maps that read it, along their last dimension."""

    def scaled(entry: ArrayAxes, leaf: Any) -> Any:
        return leaf * openness if len(entry.names) > 1 and entry.names[-1] == name else leaf

    return jax.tree.map(scaled, declared.arrays, tree, is_leaf=is_array_axes)


def renamed(declared: Axes, names: Mapping[str, str]) -> Axes:
    """The same declaration with other names: two stages of a network have a trunk each."""

    def new(name: str | None) -> Any:
        return None if name is None else names.get(name, name)

    arrays = jax.tree.map(
        lambda entry: entry._replace(names=tuple(map(new, entry.names))), declared.arrays, is_leaf=is_array_axes
    )
    axes = {new(name): replace(axis, per=new(axis.per), on=new(axis.on)) for name, axis in declared.axes.items()}
    return Axes(arrays, axes, new(declared.size))
