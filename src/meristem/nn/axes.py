"""Axes: the named dimensions of a module's arrays, and how open their places are. Every size follows from this declaration.

    Tunnel      weight [layer, unit, trunk]   bias, gate [layer, unit]       a unit's gate differs by layer, and it stands on a
                                                                             dimension of the trunk: it is there where that is
    Tree        weight [leaf, row, trunk]     bias [leaf, row]               a leaf is as open as the nodes above it
    Convolution weight [layer, unit, trunk, tap], read at so many positions
    Linear      weight [out, in]                                             of a network's embedding [trunk, input]

All else is derived: counts, prices, sizes and L2 (axis_counts.py), several parts as one (stages.py), pictures (structure.py),
steps on what is open (rows.py), what compaction keeps (compaction.py). An axis without gates is open everywhere; so is one that
no module declares. Names count from an array's last dimension, so that a population, with its members in front, has the same
declaration. The axis that another differs by (`per`) differs by none.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from meristem.gate import Confined

# The role of an array: multiplied with inputs; stored besides; there while it trains, not shipped; where packed units stand.
MAP, STORED, TRAINED, ROWS = "map", "stored", "trained", "rows"
TRUNK, INPUT, OUTPUT = "trunk", "input", "output"  # axes that networks share by name
T = TypeVar("T")


class ArrayAxes(NamedTuple):
    """The names of an array's last dimensions, what it is, and at how many positions a map is applied to a sample."""

    names: tuple[str, ...] = ()
    role: str = TRAINED
    positions: int = 1
    reads: str | None = None  # the axis whose values a map multiplies; None: its last

    @property
    def read(self) -> str | None:
        return self.reads or (self.names[-1] if len(self.names) > 1 else None)


UNITS = ArrayAxes(("layer", "unit"), STORED)


def Standing(axis: str) -> ArrayAxes:
    """The entry of a field that is None, but while a module computes with some places of an axis alone: then their `Rows`."""
    return ArrayAxes((axis,), ROWS)


@dataclass(frozen=True)
class Axis:
    """The places of a dimension; functions, for most of them are asked of few axes."""

    openness: Callable[[], Float[Array, "..."]] | None = None  # [places], or [per, places]; None: all are open
    is_open: Callable[[], Bool[Array | np.ndarray, "..."]] | None = None
    per: str | None = None  # the axis by whose places the openness differs: units by layer
    on: str | None = None  # the axis on whose places its own stand
    at: Int[Array, "..."] | None = None  # which place of it each stands on; None: its own
    depth: Callable[[], Int[Array, " places"]] | None = None  # of the layer at each place, for the rates
    closable: bool = False  # whether its places have gates that a training may close
    part_of: tuple[Int[Array, " places"], int] | None = None  # of a packed axis: its places in the full one, and their number
    picture: Callable[[], Any] | None = None  # what a person sees of it (structure.py); None: how open its places are


@dataclass(frozen=True)
class Axes:
    """What a module declares; see the module's header."""

    arrays: Any  # the module's tree with an ArrayAxes for every array
    axes: Mapping[str, Axis]
    size: str | tuple[str, ...] = ()  # the axis whose places are its size, or several
    trunks: tuple[str, ...] = (TRUNK,)  # the axes of the values that enter, run through and leave it
    capacity: int = 0  # the places for layers that growth may fill; 0: nothing grows
    in_use: Callable[[], Any] | None = None  # how many of them are filled, [*members]
    is_fused: bool = False  # whether compaction multiplies the linear map before it into its first layer
    n_shares: Callable[[], Any] | None = None  # the numbers that its compact form stores besides those of its arrays

    def axis(self, name: str) -> Axis:
        return self.axes.get(name, Axis())

    @property
    def sizes(self) -> tuple[str, ...]:
        return (self.size,) if isinstance(self.size, str) else self.size


def gate_axis(gate: Confined | None, **options: Any) -> Axis:
    """An axis whose places have the gates of a parameter; None: all are open."""
    if gate is None:
        return Axis(**options)
    return Axis(lambda: 1 - gate.value if gate.closed else gate.value, lambda: gate.is_open, closable=True, **options)


def declare(module: T, **fields: Any) -> T:
    """The module's tree with these entries for the arrays of its fields, one for all arrays of a field or a tree of them.

    Other arrays have no named dimension.
    """

    def entries(path: Any, field: Any) -> Any:
        entry = fields.get(path[0].name, ArrayAxes())
        if is_entry(entry):
            return entry if entry.role == ROWS else jax.tree.map(lambda _: entry, field)
        return jax.tree.map(lambda own, leaf: None if leaf is None else own, entry, field, is_leaf=is_entry)

    return jax.tree.map_with_path(entries, module, is_leaf=lambda node: node is not module)


def is_entry(node: Any) -> bool:
    return isinstance(node, ArrayAxes)


def with_axes(module: Any, declared: Axes) -> list[tuple[ArrayAxes, Any]]:
    """Every array of a module with its entry."""
    pairs: list[tuple[ArrayAxes, Any]] = []
    tree_map(lambda *pair: pairs.append(pair), declared, module)
    return pairs


def tree_map(function: Callable[..., Any], declared: Axes, *trees: Any) -> Any:
    """function(entry, leaf of each tree) for every array of a module; whatever has the role ROWS stays as it is."""

    def mapped(entry: ArrayAxes, *leaves: Any) -> Any:
        return leaves[0] if entry.role == ROWS else function(entry, *leaves)

    return jax.tree.map(mapped, declared.arrays, *trees, is_leaf=is_entry)


def n_places(module: Any, declared: Axes, name: str) -> int:
    """How many places an axis has, as the arrays say."""
    entry, leaf = next((entry, leaf) for entry, leaf in with_axes(module, declared) if name in entry.names and leaf is not None)
    return int(leaf.shape[leaf.ndim - len(entry.names) + entry.names.index(name)])


def members_of(module: Any, declared: Axes) -> tuple[int, ...]:
    """The leading axes of a population; () for one module."""
    pairs = with_axes(module, declared)
    return next((leaf.shape[: leaf.ndim - len(entry.names)] for entry, leaf in pairs if entry.names and leaf is not None), ())


def has_positions(declared: Axes) -> bool:
    """Whether a map of it is applied at many positions of a sample, as convolutions are."""
    return any(entry.positions > 1 for entry in jax.tree.leaves(declared.arrays, is_leaf=is_entry))


def depths(module: T, declared: Axes) -> T:
    """For every array the depth of its layer: [] or one for each place of its first named dimension."""

    def depth(entry: ArrayAxes, leaf: Any) -> Any:
        if leaf is None:
            return None
        own = declared.axis(entry.names[0]).depth if entry.names else None
        return jnp.zeros((), jnp.int32) if own is None else own()

    return tree_map(depth, declared, module)


def along(declared: Axes, entry: ArrayAxes, place: int, values: Any, ndim: int) -> Any:
    """Values [places] or [per, places] of the axis at a place of an entry, shaped to broadcast with an array of that entry."""
    front, shape = ndim - len(entry.names), [1] * ndim
    shape[front + place] = values.shape[-1]
    if values.ndim == 2:
        shape[front + entry.names.index(str(declared.axis(entry.names[place]).per))] = values.shape[0]
    return values.reshape(shape)


def indices_of(declared: Axes, entry: ArrayAxes, leaf: Any, places: Mapping[str, Any]) -> tuple[Any, ...]:
    """The index of an array that selects these places of some axes, [n] or [per, n], and all places of the others.

    Places that stand on selected ones are selected with them. An array with fewer dimensions than its entry, such as an age per
    layer, has the first of them.
    """
    entry = entry._replace(names=entry.names[: leaf.ndim])
    sizes = leaf.shape[leaf.ndim - len(entry.names) :]
    places = {name: places[axis.on] for name, axis in declared.axes.items() if axis.on and axis.on in places} | dict(places)
    each = [places.get(name, np.arange(n, dtype=np.int32)) for name, n in zip(entry.names, sizes, strict=True)]
    return (..., *(along(declared, entry, place, index, len(sizes)) for place, index in enumerate(each)))


def take(tree: T, declared: Axes, places: Mapping[str, np.ndarray]) -> T:
    """The tree on these places of some axes, of NumPy's arrays. A host function."""
    return tree_map(lambda entry, leaf: np.asarray(leaf)[indices_of(declared, entry, leaf, places)], declared, tree)
