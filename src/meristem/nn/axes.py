"""Axes: the named dimensions of a module's arrays, and how open their places are. Every size follows from this declaration.

    Axis(openness, is_open, per, on, …)          the places of a dimension: units of a layer, dimensions of the trunk, leaves
    ArrayAxes(names, role, positions, reads)     of one array: its dimensions, what it is, where a map is applied, what it reads
    Axes(arrays, axes, size, trunks, …)          of a module, what `module.axes()` returns: its own tree with an ArrayAxes for
                                                 every array, its axes by name, and what is said of the module as a whole

    Tunnel      weight [layer, unit, trunk]   bias, gate [layer, unit]       a unit's gate differs by layer, and it stands on a
                                                                             dimension of the trunk: it is there where that is
    Tree        weight [leaf, row, trunk]     bias [leaf, row]               a leaf is as open as the nodes above it
    Convolution weight [layer, unit, trunk, tap], read at so many positions
    Linear      weight [out, in]                                             of a network's embedding [trunk, input]

Derived here, for any declaration:

    soft counts    Σ over arrays Π over axes Σ openness, × positions         parameters and multiply-adds; exact where gates
                                                                             are 0 or 1, differentiable between
    half_norm      ½ Σ W² over the places of maps that are open
    layer_sizes    Σ openness of the axes that are the size, layer by layer; hard_size: how many of their places are open
    depths         for every array the depth of its layer, for the rates
    take           a tree on some places of an axis;  read_scaled: with an axis's openness in what reads it
    chained        several parts as one: what leaves one enters the next, so that these two axes are one

An axis without gates is open everywhere; so is one that no module declares. Names count from an array's last dimension, so that
a population, with its members in front, has the same declaration. The axis that another differs by (`per`) differs by none.
Imports gate; every module and all that counts import it.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

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
    reads: str | None = None  # the axis whose values a map multiplies; None: its last

    @property
    def read(self) -> str | None:
        """The axis that a map reads."""
        return self.reads or (self.names[-1] if len(self.names) > 1 else None)


class Standing(NamedTuple):
    """The entry of a field that is None but while a module computes with some of its places alone (live.py).

    Then it holds the `Rows` of these: on which dimensions of the trunk the units of an axis stand, and in which layers.
    """

    axis: str


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
        """The axes whose places are its size."""
        return (self.size,) if isinstance(self.size, str) else self.size

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
    children, structure = jax.tree.flatten(module, is_leaf=lambda node: node is not module)
    own: Any = dataclasses.fields(module)  # type: ignore[arg-type]
    names = [field.name for field in own if not field.metadata.get("static", False)]
    entries = [_entries(fields.get(name, ArrayAxes()), child) for name, child in zip(names, children, strict=True)]
    return jax.tree.unflatten(structure, entries)


def _entries(entry: Any, field: Any) -> Any:
    """An entry for every array of a field."""
    if isinstance(entry, Standing):
        return entry
    if is_entry(entry):
        return jax.tree.map(lambda _: entry, field)
    return jax.tree.map(lambda own, leaf: None if leaf is None else own, entry, field, is_leaf=is_entry)


UNITS = ArrayAxes(("layer", "unit"), STORED)


def layered(
    arrays: Any,
    depth: int,
    trunk: Confined | None,
    openness: Callable[[], Array],
    picture: Callable[[], Any],
    *,
    is_fused: bool = False,
) -> Axes:
    """Of a stack of layers whose units, all there, stand on the dimensions of the trunk."""
    unit = Axis(openness, lambda: jnp.ones_like(openness(), bool), per="layer", on=TRUNK, picture=picture)
    axes = {"layer": Axis(depth=lambda: jnp.arange(depth)), "unit": unit, TRUNK: gate_axis(trunk)}
    return Axes(arrays, axes, size="unit", is_fused=is_fused)


def is_entry(node: Any) -> bool:
    return isinstance(node, ArrayAxes | Standing)


def with_axes(module: Any, declared: Axes) -> list[tuple[ArrayAxes, Any]]:
    """Every array of a module with its entry."""
    structure: Any
    entries, structure = jax.tree.flatten(declared.arrays, is_leaf=is_entry)
    pairs = zip(entries, structure.flatten_up_to(module), strict=True)
    return [(entry, leaf) for entry, leaf in pairs if isinstance(entry, ArrayAxes)]


def tree_map(function: Callable[..., Any], declared: Axes, *trees: Any) -> Any:
    """function(entry, leaf of each tree) for every array of a module; whatever stands at a `Standing` stays as it is."""

    def mapped(entry: Any, *leaves: Any) -> Any:
        return leaves[0] if isinstance(entry, Standing) else function(entry, *leaves)

    return jax.tree.map(mapped, declared.arrays, *trees, is_leaf=is_entry)


def n_places(module: Any, declared: Axes, name: str) -> int:
    """How many places an axis has, as the arrays say."""
    entry, leaf = next((entry, leaf) for entry, leaf in with_axes(module, declared) if name in entry.names and leaf is not None)
    return int(leaf.shape[leaf.ndim - len(entry.names) + entry.names.index(name)])


def members_of(module: Any, declared: Axes) -> tuple[int, ...]:
    """The leading axes of a population; () for one module."""
    entry, leaf = next((entry, leaf) for entry, leaf in with_axes(module, declared) if entry.names and leaf is not None)
    return tuple(leaf.shape[: leaf.ndim - len(entry.names)])


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


def used(module: Any, declared: Axes, name: str) -> Float[Array, " places"]:
    """1 for the places of an axis at which a map has a number other than 0; the others fill a shape, and cost nothing."""
    flags = []
    for entry, leaf in with_axes(module, declared):
        if entry.role == MAP and name in entry.names:
            place = entry.names.index(name)
            flags.append((leaf != 0).any(tuple(k for k in range(leaf.ndim) if k != place)).astype(leaf.dtype))
    return flags[0] if len(flags) == 1 else jnp.stack(flags).max(0)


def size_openness(declared: Axes, name: str) -> Float[Array, "..."]:
    """How open the places of an axis that is a size are, [places] or [per, places]; those on closed ones are not there."""
    axis = declared.axis(name)
    assert axis.openness is not None, "the axis that is the size has gates"
    values = axis.openness()
    below = None if axis.on is None else open_places(declared, axis.on)
    return values if below is None else jnp.where(placed_on(axis, below), values, 0)


def layer_sizes(declared: Axes) -> Float[Array, " layers"]:
    """The soft size of each layer, or of the whole where it has no layers."""
    each = [_sizes_of(declared, name) for name in declared.sizes]
    return each[0] if len(each) == 1 else jnp.concatenate(each)


def _sizes_of(declared: Axes, name: str) -> Float[Array, " layers"]:
    axis, values = declared.axis(name), size_openness(declared, name)
    if axis.per is None:
        return values.sum()[None]
    sizes, front = values.sum(-1), declared.axis(axis.per)
    if front.part_of is None:
        return sizes
    places, n = front.part_of
    return jnp.zeros(n, sizes.dtype).at[places].add(sizes, mode="drop")


def hard_size(declared: Axes) -> Int[Array, ""]:
    """How many places of the axes that are its size are open."""
    counts = []
    for name in declared.sizes:
        is_open = open_places(declared, name)
        assert is_open is not None
        counts.append(is_open.sum(dtype=jnp.int32))
    return counts[0] if len(counts) == 1 else jnp.stack(counts).sum(dtype=jnp.int32)


# Trees ----------------------------------------------------------------------------------------------------------------------


def depths(module: T, declared: Axes) -> T:
    """For every array the depth of its layer: [] or one for each place of its first named dimension."""

    def depth(entry: ArrayAxes, leaf: Any) -> Any:
        if leaf is None:
            return None
        own = declared.axis(entry.names[0]).depth if entry.names else None
        return jnp.zeros((), jnp.int32) if own is None else own()

    return tree_map(depth, declared, module)


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

    return tree_map(taken, declared, tree)


def read_scaled(tree: T, declared: Axes, name: str, openness: np.ndarray) -> T:
    """The tree with how open an axis is in the maps that read it."""

    def scaled(entry: ArrayAxes, leaf: Any) -> Any:
        if entry.read != name:
            return leaf
        behind = len(entry.names) - 1 - entry.names.index(name)
        return leaf * openness.reshape(-1, *[1] * behind)

    return tree_map(scaled, declared, tree)


# Parts of a network ---------------------------------------------------------------------------------------------------------


def chained(parts: Iterable[Axes], arrays: Callable[[list[Any]], Any]) -> Axes:
    """Return the declaration of parts of which each reads what the one before it says; `arrays` makes one tree of theirs.

    What leaves a part and what enters the next is one axis, with the gates of whichever has some. All other names of the parts
    after the first get a number behind them, and the depths of their layers go on where those of the part before ended.
    """
    all_parts: list[Axes] = []
    axes: dict[str, Axis] = {}
    trunks: tuple[str, ...] = ()
    depth = 0
    for number, part in enumerate(parts, start=1):
        names = {name: f"{name} {number}" for name in {*part.axes, *_names(part)}} if number > 1 else {}
        if trunks:
            names[part.trunks[0]] = trunks[-1]
        part = renamed(part, names)
        n_layers = _n_layers(part)
        for name, axis in part.axes.items():
            if name not in axes or axes[name].openness is None:
                axes[name] = _deeper(axis, depth)
        trunks, depth = (*trunks, *part.trunks[1 if trunks else 0 :]), depth + n_layers
        all_parts.append(part)
    growing = [part for part in all_parts if part.capacity]
    return Axes(
        arrays([part.arrays for part in all_parts]),
        axes,
        size=tuple(name for part in all_parts for name in part.sizes),
        trunks=tuple(dict.fromkeys(trunks)),
        capacity=max((part.capacity for part in growing), default=0),
        in_use=_most([part.in_use for part in growing if part.in_use is not None]),
        is_fused=all_parts[0].is_fused,
        n_shares=_sum([part.n_shares for part in all_parts if part.n_shares is not None]),
    )


def renamed(declared: Axes, names: Mapping[str, str]) -> Axes:
    """The same declaration with other names: two stages of a network have a trunk each."""
    if not names:
        return declared

    def new(name: Any) -> Any:
        return names.get(name, name)

    def entry(old: Any) -> Any:
        if isinstance(old, Standing):
            return Standing(new(old.axis))
        return old._replace(names=tuple(map(new, old.names)), reads=new(old.reads))

    axes = {new(name): replace(axis, per=new(axis.per), on=new(axis.on)) for name, axis in declared.axes.items()}
    return replace(
        declared,
        arrays=jax.tree.map(entry, declared.arrays, is_leaf=is_entry),
        axes=axes,
        size=tuple(map(new, declared.sizes)),
        trunks=tuple(map(new, declared.trunks)),
    )


def _names(declared: Axes) -> set[str]:
    entries = jax.tree.leaves(declared.arrays, is_leaf=is_entry)
    return {name for entry in entries if isinstance(entry, ArrayAxes) for name in entry.names} | set(declared.trunks)


def _n_layers(declared: Axes) -> int:
    """How deep the layers of a part go: the most that one of its axes has."""
    sizes = [0]
    for axis in declared.axes.values():
        if axis.depth is not None:
            sizes.append(axis.part_of[1] if axis.part_of is not None else jax.eval_shape(axis.depth).shape[0])
    return max(sizes)


def _deeper(axis: Axis, by: int) -> Axis:
    own = axis.depth
    return axis if own is None or not by else replace(axis, depth=lambda: own() + by)


def _most(counts: list[Callable[[], Any]]) -> Callable[[], Any] | None:
    if len(counts) < 2:
        return counts[0] if counts else None
    return lambda: jnp.stack([jnp.asarray(count()) for count in counts]).max(0)


def _sum(counts: list[Callable[[], Any]]) -> Callable[[], Any] | None:
    return (lambda: sum(count() for count in counts)) if counts else None
