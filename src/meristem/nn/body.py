"""What every body promises: equal input and output width, one sample per call, and all that the rest of the library asks of it.

A body is the part of a network that finds its own size. Training, sizes, files, studies and pictures know nothing else of it,
and none of them asks which kind it is. Three methods must be written; the others have a default that holds for a stack of
fixed size and are overridden where a body knows better.

    priced(x)                  y, and the complexity that the penalty λ multiplies (Σ g, equation 2; Σ 1 − γ, equation 5)
    half_norm()                ½ ‖W‖² over the weights that live, for L2
    hard_size()                how many units or nodes there are

    depths()                   the same tree with, for every parameter, the depth of its layer: [] or one per row, for the rates
    sizes(inputs, weight)      the soft size of each layer, [layers]
    maps()                     its matrices by their soft size, for prices in parameters and multiply-adds
    takes_embedding            whether its first layer is all that reads the embedding
    trunk                      the gates of its trunk, where its width is learned (trunk.py); else None
    trunk_axes()               the same tree with, for every array, which of its axes are the trunk's
    open_units()               which units of its layers are open, where a training may leave the others out; else None
    mesh(live), packed(…)      where its arrays are on what is open, and the body that has these (live.py)
    live_parameters()          the numbers that the output depends on
    after_update(mirrors, key) growth: the body after an optimizer's step, and with it whatever an optimizer keeps for it
    capacity, in_use()         places for layers that growth may fill, and how many it has filled; 0: the size is fixed. The
                               constructor of a body that grows calls them `capacity`, too
    with_capacity(n, mirrors)  the same body with n places; a host function, for shapes change
    structure(inputs)          what is there to be seen: gates or nodes, for words and pictures; a host function
    unopened(), crowded(…)     what a person should know of the size that was found; host functions
    options()                  the arguments that make such a body again, for files
    fault()                    what is wrong with its numbers, where a file holds others than such a body can have

Imports gate and structure; every body imports it.
"""

import abc
import inspect
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from meristem.gate import is_confined
from meristem.nn.structure import Gates, Nodes


class Dormant(eqx.Module):
    """Parameters that are there but asleep: no gradient reaches them, no optimizer moves them, nothing decays them."""


class GrowthInfo(NamedTuple):
    """What an update did to the structure of a body, or of all bodies of a model."""

    opened: Int[Array, ""]
    closed: Int[Array, ""]
    waited: Int[Array, ""]  # openings that found no free place


class Axes(NamedTuple):
    """The axes of an array that are those of the trunk, counted from the last."""

    axes: tuple[int, ...]


class Live(NamedTuple):
    """What is open of a network, as indices; one that is too large by one: nothing."""

    dims: Int[Array, " dims"]  # of the trunk
    layers: Int[Array, " layers"]
    rows: Int[Array, "layers rows"]  # the units of these layers, by the dimension that each stands on
    at: Int[Array, "layers rows"]  # the same, by its place in `dims`
    unit: Int[Array, "layers dims"]  # for each of `dims` the row that stands on it


class Mesh(NamedTuple):
    """Where an array is on what is open: for each axis the indices, [n], or [layers, n] where they differ by layer."""

    axes: tuple[Int[Array, "..."], ...]


class Maps(NamedTuple):
    """The matrices of a body, soft: how many rows of each are there, what they read, and the numbers besides per row.

    parameters = Σ rows · (columns + besides)        multiply-adds = Σ rows · columns
    """

    rows: Float[Array, " maps"]
    columns: Float[Array, " maps"]
    besides: int  # biases, gates


class Body(eqx.Module):
    """A map [width] → [width] with a price; see the module's header."""

    is_layered: ClassVar[bool] = True  # sizes() counts units, layer by layer; if not, nodes of the whole
    copies_pay: ClassVar[bool] = False  # on an accelerator, see train/over_batch.py

    # What must be written ---------------------------------------------------------------------------------------------------

    @abc.abstractmethod
    def priced(self, x: Float[Array, " width"]) -> tuple[Float[Array, " width"], Float[Array, ""]]:
        """Y and the price of the complexity used for it."""

    @abc.abstractmethod
    def half_norm(self) -> Float[Array, ""]:
        """½ ‖W‖² over the weights that take part."""

    @abc.abstractmethod
    def hard_size(self) -> Int[Array, ""]:
        """The units that are not exact copies of their input, or the nodes of a tree."""

    def __call__(self, x: Float[Array, " width"]) -> Float[Array, " width"]:
        return self.priced(x)[0]

    # Sizes ------------------------------------------------------------------------------------------------------------------

    def sizes(
        self, inputs: Float[Array, "n width"], weight: Float[Array | np.ndarray, " n"] | None = None
    ) -> Float[Array, " layers"]:
        """The soft size of each layer, over the inputs that reach the body, each by its weight; by default the mean price."""
        return weighted_mean(jax.vmap(lambda x: self.priced(x)[1][None])(inputs), weight)

    def maps(self) -> Maps:
        """Its matrices; by default all its floats, as if they were one row."""
        total = sum(leaf.size for leaf in jax.tree.leaves(self) if eqx.is_inexact_array(leaf))
        return Maps(jnp.ones(1), jnp.full(1, float(total)), 0)

    @property
    def takes_embedding(self) -> bool:
        """Whether compaction multiplies the embedding into its first layer, whose own matrix is then not shipped."""
        return False

    def trunk_axes(self) -> Self:
        """Which axes of each array are those of the trunk, counted from the last; by default nobody knows."""
        raise ValueError(f"A {type(self).__name__} cannot be made narrower: write its trunk_axes().")

    def open_units(self) -> Bool[np.ndarray, "*members layers width"] | None:
        """Which units are open, of one body or of each in a population; None where none can be left out. A host function."""
        return None

    def mesh(self, live: Live) -> Self:
        """Where each array is on what is open; by default on the open dimensions of the trunk."""

        def one(mine: Axes, leaf: Any) -> Mesh:
            is_trunk = [axis - leaf.ndim in mine.axes for axis in range(leaf.ndim)]
            return Mesh(tuple(live.dims if yes else jnp.arange(n) for yes, n in zip(is_trunk, leaf.shape, strict=True)))

        return jax.tree.map(one, self.trunk_axes(), self, is_leaf=lambda node: isinstance(node, Axes))

    def packed(self, arrays: Self, live: Live | None, *, mirrors: bool = False) -> Self:
        """The body that computes with these arrays, mine on what is open; or what mirrors it. None: as mesh has it."""
        return arrays

    def live_parameters(self) -> Int[Array, ""]:
        """The numbers that the output depends on; the rest could be cut away."""
        return jnp.asarray(sum(leaf.size for leaf in jax.tree.leaves(self)), jnp.int32)

    # Training ---------------------------------------------------------------------------------------------------------------

    def depths(self) -> Self:
        """The depth of each parameter's layer, shaped as a prefix of the parameter's own shape."""
        return jax.tree.map(lambda leaf: jnp.zeros((), jnp.int32), self)

    def after_update(self, mirrors: Sequence[Any], key: PRNGKeyArray) -> tuple[Self, list[Any], GrowthInfo]:
        """The body after an update, its mirrors (what an optimizer keeps, shaped as the body) and what happened."""
        return self, list(mirrors), GrowthInfo(*[jnp.zeros((), jnp.int32)] * 3)

    @property
    def capacity(self) -> int:
        """The places there are; 0 where the size is fixed."""
        return 0

    def in_use(self) -> Int[Array | np.ndarray, "*members"]:
        """The places that are filled, of one body or of each in a population."""
        return jnp.zeros((), jnp.int32)

    def with_capacity(self, capacity: int, mirrors: Sequence[Any]) -> tuple[Self, list[Any]]:
        """The same body and its mirrors with so many places."""
        return self, list(mirrors)

    # What a person is told --------------------------------------------------------------------------------------------------

    def structure(self, inputs: Float[Array, "n width"] | None = None) -> Gates | Nodes:
        """What there is to be seen, averaged over inputs where it depends on them.

        By default every confined parameter is a row of gates; without any, all units count as open.
        """
        found = [leaf.value for leaf in jax.tree.leaves(self, is_leaf=is_confined) if is_confined(leaf)]
        rows = [np.asarray(value, float).reshape(-1, value.shape[-1] if value.ndim else 1) for value in found]
        if not rows:
            return Gates(np.ones((1, int(self.hard_size()))), "fixed")
        values = np.zeros((sum(map(len, rows)), max(row.shape[1] for row in rows)))
        start = 0
        for row in rows:
            values[start : start + len(row), : row.shape[1]] = row
            start += len(row)
        return Gates(values, "parameters")

    def unopened(self) -> str | None:
        """A clause that says so where nothing, or hardly anything, has opened."""
        return None

    def crowded(self, *, most: int, waited: bool) -> str | None:
        """A sentence that says so where it would be larger if it could; `waited`: an opening did, at `most` places."""
        return None

    # Files ------------------------------------------------------------------------------------------------------------------

    def options(self) -> dict[str, Any]:
        """The arguments of the constructor but for the key, as JSON has them; by default the attributes of these names."""
        names = [name for name in inspect.signature(type(self)).parameters if name != "key"]
        lacking = [name for name in names if not hasattr(self, name)]
        if lacking:
            raise ValueError(
                f"A {type(self).__name__} cannot be saved: its constructor takes {lacking[0]!r}, of which it keeps nothing. "
                f"Make it a field or a property, or write options()."
            )
        return {name: getattr(self, name) for name in names}

    def fault(self) -> str | None:
        """What is wrong with its numbers, of one body or of a population; by default all must be finite. A host function."""
        for path, leaf in jax.tree_util.tree_flatten_with_path(self)[0]:
            found = np.asarray(leaf)
            is_float = found.size and jnp.issubdtype(found.dtype, jnp.inexact)
            if is_float and not (np.isfinite(found.min()) and np.isfinite(found.max())):  # a NaN is both
                return f"{jax.tree_util.keystr(path, simple=True, separator='.')} holds numbers that are not finite."
        return None


B = TypeVar("B", bound=Body)


def is_body(node: Any) -> bool:
    return isinstance(node, Body)


def is_mesh(node: Any) -> bool:
    return isinstance(node, Mesh)


def by_layer(body: B, layers: Int[Array, " layers"] | None = None) -> B:
    """`depths` of a body whose parameters are all stacked by layer: layer l has depth l; the trunk's gates, 0.

    `layers` are which there are, if not all.
    """

    def depth(leaf: Any) -> Array:
        if leaf.ndim < 2:
            return jnp.zeros((), jnp.int32)
        return jnp.arange(leaf.shape[0]) if layers is None else layers

    return jax.tree.map(depth, body)


def layered_axes(body: B) -> B:
    """`trunk_axes` of a body whose arrays are [layers, width], [layers, width, width], and the trunk's gates [width]."""
    return jax.tree.map(lambda leaf: Axes((-2, -1) if leaf.ndim == 3 else (-1,)), body)


def weighted_mean(values: Float[Array, "n k"], weight: Float[Array | np.ndarray, " n"] | None) -> Float[Array, " k"]:
    """The mean of rows, each by its weight."""
    return values.mean(0) if weight is None else (weight[:, None] * values).sum(0) / weight.sum()


def bodies_of(model: Any) -> list[Body]:
    """Every body in a model, in the order of its fields."""
    return [node for node in jax.tree.leaves(model, is_leaf=is_body) if is_body(node)]
