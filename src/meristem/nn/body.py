"""A body: the part of a network (part.py) that finds its own size. Equal input and output width, one sample per call.

Training, sizes, files, studies and pictures know nothing of it but the members of `Body`, and none of them asks which kind it
is. Its formula, `priced`, must be written; the rest has a default. From its `axes` follow prices, L2, sizes, rates, settling,
budgets, steps that follow the size, room for growth, pictures and what compaction keeps (axes.py). The constructor of a body
that grows calls its places `capacity`.
"""

import abc
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from meristem.gate import is_confined
from meristem.nn.axes import MAP, STORED, ArrayAxes, Axes, Axis
from meristem.nn.part import Part


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
        first, *others = infos or [cls(*[jnp.zeros((), jnp.int32)] * 3)]
        return jax.tree.map(lambda *counts: sum(counts[1:], start=counts[0]), first, *others)


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

        def joined(values: list[Array]) -> Array:
            return jnp.concatenate([value.reshape(-1) for value in values]) if values else jnp.ones(1)

        openness = Axis(
            lambda: joined([jnp.abs(gate.value - gate.closed) for gate in gates]),
            lambda: joined([gate.is_open for gate in gates]) != 0,
        )
        return Axes(jax.tree.map(entries, self, is_leaf=is_confined), {"gate": openness}, size="gate")

    def after_update(self, mirrors: Sequence[Any], key: PRNGKeyArray) -> tuple[Self, list[Any], GrowthInfo]:
        """The body after an optimizer's step, its mirrors (what an optimizer keeps, shaped as the body) and what happened."""
        return self, list(mirrors), GrowthInfo.total()

    def with_capacity(self, capacity: int, mirrors: Sequence[Any]) -> tuple[Self, list[Any]]:
        """The same body and its mirrors with so many places for layers; a host function, for shapes change."""
        return self, list(mirrors)


def is_body(node: Any) -> bool:
    return isinstance(node, Body)


def bodies_of(model: Any) -> list[Body]:
    """Every body in a model, in the order of its fields."""
    return [node for node in jax.tree.leaves(model, is_leaf=is_body) if is_body(node)]
