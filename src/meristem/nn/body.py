"""What every body promises: equal input and output width, one sample per call, and the axes of its arrays.

A body is the part of a network that finds its own size. Training, sizes, files, studies and pictures know nothing else of it,
and none of them asks which kind it is. Its formula must be written; the rest has a default.

    priced(x)                  y, and the complexity that the penalty λ multiplies (Σ g, equation 2; Σ 1 − γ, equation 5)
    axes(inputs, weight)       the axes of its arrays and how open their places are (axes.py), from which prices, L2, sizes,
                               rates, settling, budgets, steps that follow the size and what compaction keeps all follow
    compact_layers()           what it is once it is trained: layers of layers/layer.py, with nothing in them that is closed
    packed(…)                  the body that computes with some of its places alone, where its formula must know which

    after_update(mirrors, key) growth: the body after an optimizer's step, and with it whatever an optimizer keeps for it
    capacity, in_use()         places for layers that growth may fill, and how many it has filled; 0: the size is fixed. The
                               constructor of a body that grows calls them `capacity`, too
    with_capacity(n, mirrors)  the same body with n places; a host function, for shapes change
    structure(inputs)          what is there to be seen: gates or nodes, for words and pictures; a host function
    options()                  the arguments that make such a body again, for files
    fault()                    what is wrong with its numbers, where a file holds others than such a body can have

Imports axes, gate and structure; every body imports it.
"""

import abc
import inspect
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from meristem.gate import is_confined
from meristem.layers.layer import Layer
from meristem.nn.axes import MAP, STORED, ArrayAxes, Axes, Axis, size_openness
from meristem.nn.structure import Gates, Nodes


class Dormant(eqx.Module):
    """Parameters that are there but asleep: no gradient reaches them, no optimizer moves them, nothing decays them."""


class GrowthInfo(NamedTuple):
    """What an update did to the structure of a body, or of all bodies of a model."""

    opened: Int[Array, ""]
    closed: Int[Array, ""]
    waited: Int[Array, ""]  # openings that found no free place


class Live(NamedTuple):
    """What is open of a network, as indices; index == size is padding."""

    dims: Int[Array, " dims"]  # of the trunk
    layers: Int[Array, " layers"]
    rows: Int[Array, "layers rows"]  # the units of these layers, by the dimension that each stands on
    at: Int[Array, "layers rows"]  # the same, by its place in `dims`
    unit: Int[Array, "layers dims"]  # for each of `dims` the row that stands on it


class Body(eqx.Module):
    """A map [width] → [width] with a price; see the module's header."""

    is_layered: ClassVar[bool] = True  # sizes() counts units, layer by layer; if not, nodes of the whole
    copies_pay: ClassVar[bool] = False  # on an accelerator, see train/over_batch.py

    # What must be written ---------------------------------------------------------------------------------------------------

    @abc.abstractmethod
    def priced(self, x: Float[Array, " width"]) -> tuple[Float[Array, " width"], Float[Array, ""]]:
        """Y and the price of the complexity used for it."""

    def __call__(self, x: Float[Array, " width"]) -> Float[Array, " width"]:
        return self.priced(x)[0]

    # Sizes ------------------------------------------------------------------------------------------------------------------

    takes_embedding: ClassVar[Any] = False  # whether compaction multiplies the embedding into its first layer

    def axes(self, inputs: Any = None, weight: Any = None) -> Axes:
        """The axes of its arrays; with inputs [n, width], each by its weight, where openness depends on them.

        By default all its arrays are there, whatever its gates are, and its size is how many gates are open.
        """
        gates = [leaf for leaf in jax.tree.leaves(self, is_leaf=is_confined) if is_confined(leaf)]

        def entries(node: Any) -> Any:
            role = STORED if is_confined(node) else MAP
            return jax.tree.map(lambda leaf: ArrayAxes(tuple(f"axis {k}" for k in range(leaf.ndim)), role), node)

        def joined(values: list[Array]) -> Array:
            return jnp.concatenate([value.reshape(-1) for value in values]) if values else jnp.ones(1)

        openness = Axis(
            lambda: joined([jnp.abs(gate.value - gate.closed) for gate in gates]),
            lambda: joined([gate.is_open for gate in gates]) != 0,
        )
        return Axes(jax.tree.map(entries, self, is_leaf=is_confined), {"gate": openness}, size="gate")

    def compact_layers(self) -> list[Layer]:
        """The layers that compute the same, of NumPy arrays; none at all: it copies its input. A host function."""
        name = type(self).__name__
        raise ValueError(f"compact() does not know the body {name}: write its compact_layers(), of meristem.compact.layers.")

    def packed(self, arrays: Self, live: Live | None, *, mirrors: bool = False) -> Self:
        """The body that computes with these arrays, its own on what is open, or what mirrors it; None: on all of it."""
        return arrays

    # Training ---------------------------------------------------------------------------------------------------------------

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
        """What there is to be seen, averaged over inputs where it depends on them; by default the gates of its size."""
        values = np.asarray(size_openness(self.axes(inputs)), float)
        has_gates = any(map(is_confined, jax.tree.leaves(self, is_leaf=is_confined)))
        return Gates(values.reshape(-1, values.shape[-1]), "parameters" if has_gates else "fixed")

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


def weighted_mean(values: Float[Array, "n ..."], weight: Float[Array | np.ndarray, " n"] | None) -> Float[Array, "..."]:
    """The mean over the first axis, each by its weight."""
    return values.mean(0) if weight is None else jnp.tensordot(weight, values, 1) / weight.sum()


def bodies_of(model: Any) -> list[Body]:
    """Every body in a model, in the order of its fields."""
    return [node for node in jax.tree.leaves(model, is_leaf=is_body) if is_body(node)]
