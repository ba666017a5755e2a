"""The parts of a network: its embedding, its body, its head, maps between stages; and bodies, which find their own size.

A class registers itself for files, by its name in small letters. The last class of a name counts, but for those of meristem.
An embedding also has `input_shape`, the shape of a sample; a head has `n_out`. Features come first, then positions.

The rest of meristem knows nothing of a body but the members of `Body`. Its formula, `priced`, must be written; from its `axes`
follow prices, L2, sizes, rates, settling, budgets, steps that follow the size, room for growth, pictures and what compaction
keeps (axes.py). The constructor of a body that grows calls its places `capacity`.

The trunk are the values h [width] that run through a body. How many of them there are may be learned, by gates t:

    what a layer reads, and what comes out, is t ⊙ h                t ∈ [0, 1]^width, a gate for each dimension (channel)

With h̃ = t ⊙ h it is the same as t on what enters and on every nonlinearity, and never on a copy:

    h̃_0 = t ⊙ x        h̃_l = g · (t ⊙ σ(W_l h̃_{l−1} + b_l)) + (1 − g) · h̃_{l−1}        y = h̃_L

so that a copied value meets its gate once, however deep the network is. Where t_i = 0, row i of the embedding, row and column i
of every layer and column i of the head take no part, and compaction leaves them out. Its price is Σ t. At first all dimensions
are open: with all closed nothing reaches the gates but through the biases, a saddle.
"""

import abc
import inspect
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from meristem.gate import Confined, is_confined
from meristem.layers.layer import Layer
from meristem.nn.axes import MAP, STORED, ArrayAxes, Axes, Axis

OURS, PART = "meristem.", "part"
REGISTRY: dict[str, type["Part"]] = {}  # the classes that files can name


def part_name(kind: type) -> str:
    return kind.__name__.lower()


def is_ours(kind: type) -> bool:
    return kind.__module__.startswith(OURS)


class Part(eqx.Module):
    """A map of one sample: [in], [in, time] or [in, height, width]."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        name = part_name(cls)
        if not name.startswith("_") and (is_ours(cls) or not is_ours(REGISTRY.get(name, object))):
            REGISTRY[name] = cls

    @abc.abstractmethod
    def __call__(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        """The output of one sample."""

    def axes(self) -> Axes:
        """The axes of its arrays (axes.py), from which all that is counted, priced, closed and left out follows."""
        raise NotImplementedError(f"{type(self).__name__} declares no axes; write its axes(), as meristem.nn.Linear does.")

    def compact_layers(self) -> list[Layer]:
        """The layers that compute the same, of NumPy arrays; none at all: it copies its input. A host function."""
        name = type(self).__name__
        raise ValueError(f"compact() does not know the body {name}: write its compact_layers(), of meristem.compact.layers.")

    def options(self) -> dict[str, Any]:
        """The arguments of the constructor but for the key, as JSON has them; by default the attributes of these names."""
        names = [name for name in inspect.signature(type(self)).parameters if name != "key"]
        missing = [name for name in names if not hasattr(self, name)]
        if missing:
            raise ValueError(
                f"A {type(self).__name__} cannot be saved: its constructor takes {missing[0]!r}, of which it keeps nothing. "
                f"Make it a field or a property, or write options()."
            )
        return {name: getattr(self, name) for name in names}

    def fault(self) -> str | None:
        """What is wrong with its numbers, of one part or of a population; by default all must be finite. A host function."""
        for path, leaf in jax.tree_util.tree_flatten_with_path(self)[0]:
            values = np.asarray(leaf)
            is_float = values.size and jnp.issubdtype(values.dtype, jnp.inexact)
            if is_float and not (np.isfinite(values.min()) and np.isfinite(values.max())):  # a NaN is both
                return f"{jax.tree_util.keystr(path, simple=True, separator='.')} holds numbers that are not finite."
        return None


class Dormant(eqx.Module):
    """Parameters that are there but asleep: no gradient reaches them, no optimizer moves them, nothing decays them."""


class GrowthInfo(NamedTuple):
    """What an update did to the structure of a body, or of all bodies of a model."""

    opened: Int[Array, ""]
    closed: Int[Array, ""]
    waited: Int[Array, ""]  # openings that found no free place

    @classmethod
    def total(cls, infos: Sequence["GrowthInfo"] = ()) -> "GrowthInfo":
        """The sums over several bodies; of none, zeros."""
        return jax.tree.map(lambda *counts: sum(counts), cls(*[jnp.zeros((), jnp.int32)] * 3), *infos)


class Body(Part):
    """A map [width, …] → [width, …] with a price."""

    @abc.abstractmethod
    def priced(self, x: Float[Array, "..."]) -> tuple[Float[Array, "..."], Float[Array, ""]]:
        """The output, and the complexity that the penalty λ multiplies (Σ g, equation 2; Σ 1 − γ, equation 5)."""

    def __call__(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        return self.priced(x)[0]

    def axes(self, inputs: Any = None, weight: Any = None) -> Axes:
        """The axes of its arrays; with inputs [n, width, …], each by its weight, where openness depends on them.

        By default all its arrays are there, whatever its gates are, and its size is how many gates are open.
        """
        gates = [leaf for leaf in jax.tree.leaves(self, is_leaf=is_confined) if is_confined(leaf)]

        def entries(node: Any) -> Any:
            role = STORED if is_confined(node) else MAP
            return jax.tree.map(lambda leaf: ArrayAxes(tuple(f"axis {k}" for k in range(leaf.ndim)), role), node)

        openness = Axis(
            lambda: jnp.concatenate([jnp.abs(gate.value - gate.closed).reshape(-1) for gate in gates] or [jnp.ones(1)]),
            lambda: jnp.concatenate([gate.is_open.reshape(-1) for gate in gates] or [jnp.ones(1, bool)]),
        )
        return Axes(jax.tree.map(entries, self, is_leaf=is_confined), {"gate": openness}, size="gate")

    def after_update(self, mirrors: Sequence[Any], key: PRNGKeyArray) -> tuple[Self, list[Any], GrowthInfo]:
        """The body after an optimizer's step, its mirrors (what an optimizer keeps, shaped as the body) and what happened."""
        return self, list(mirrors), GrowthInfo.total()

    def with_capacity(self, capacity: int, mirrors: Sequence[Any]) -> tuple[Self, list[Any]]:
        """The same body and its mirrors with so many places for layers; a host function, for shapes change."""
        return self, list(mirrors)


def read(trunk: Confined | None, h: Float[Array, "width ..."]) -> Float[Array, "width ..."]:
    """What a layer reads of the trunk; without gates all of it."""
    return h if trunk is None else trunk.value.reshape(-1, *[1] * (h.ndim - 1)) * h


def with_price(trunk: Confined | None, price: Float[Array, ""]) -> Float[Array, ""]:
    """The price of a body, and that of its trunk where its width is learned: the soft number of dimensions."""
    return price if trunk is None else price + trunk.value.sum()


def is_body(node: Any) -> bool:
    return isinstance(node, Body)


def bodies_of(model: Any) -> list[Body]:
    """Every body in a model, in the order of its fields."""
    return [node for node in jax.tree.leaves(model, is_leaf=is_body) if is_body(node)]


def described(part: Part) -> dict[str, Any]:
    """Return what files say of a part: its class and its options."""
    name = part_name(type(part))
    if REGISTRY.get(name) is not type(part) and is_ours(REGISTRY.get(name, object)):
        raise ValueError(f"{name!r} is a part of meristem's own; give your {type(part).__name__} another name to save it.")
    return {PART: name, **part.options()}
