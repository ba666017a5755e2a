"""A compact network: layers applied in turn, one sample per call. Batches by `vmap`, as with any network."""

from collections.abc import Callable
from functools import reduce
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from meristem.layers.layer import Layer
from meristem.layers.ops.jax import JAX


class CompactNetwork(eqx.Module):
    """One sample [n_in, …] → [n_out, …]; `layers` is all there is to it, for those who print, save or export it. None: a copy.

    >>> from meristem.compact import compact
    >>> from meristem.nn import Network
    >>> network = compact(Network.create("tunnel", n_in=2, n_out=1, depth=10, key=jax.random.key(0)))
    >>> [type(layer).__name__ for layer in network.layers], network.n_parameters
    (['Affine'], 3)
    >>> jax.vmap(network)(jnp.ones((5, 2))).shape
    (5, 1)
    """

    layers: tuple[Layer, ...]
    positions: tuple[int, ...] = eqx.field(static=True, default=())  # of a sample, behind its features

    def __call__(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        if x.ndim != 1 + len(self.positions):
            raise ValueError(f"A network takes one sample, got shape {x.shape}; use jax.vmap(network)(x).")
        arrays, rest = eqx.partition(self, eqx.is_array_like)
        return by_columns(lambda arrays, x: eqx.combine(arrays, rest).columns(x))(arrays, x)

    def columns(self, x: Float[Array, "in ..."]) -> Float[Array, "out ..."]:
        """The layers in turn: of one sample [in, …], or of many, the samples last [in, …, n]."""
        return reduce(lambda h, layer: layer(JAX, h), self.layers, x)

    def priced(self, x: Float[Array, "in ..."]) -> tuple[Float[Array, "out ..."], Float[Array, ""]]:
        """The output and a price of 0, so that it may stand where a body stood."""
        y = self(x)
        return y, jnp.zeros((), y.dtype)

    @property
    def n_parameters(self) -> int:
        """All numbers that it stores: weights, biases, gates and shares."""
        return n_floats(self)

    @property
    def units(self) -> tuple[int, ...]:
        """How many units with a nonlinearity there are, layer by layer."""
        return tuple(n for layer in self.layers for n in layer.units)


def n_floats(tree: Any) -> int:
    """The floating point numbers in all arrays of a tree; integers, such as a tree's structure, do not count."""
    return sum(leaf.size for leaf in jax.tree.leaves(tree) if eqx.is_inexact_array(leaf))


def by_columns(function: Callable[[PyTree, Any], Array]) -> Callable[[PyTree, Any], Array]:
    """function(parameters, x), which takes x [in, …] or [in, …, n], as one that `vmap` over x calls once, with all of them.

    By itself `vmap` puts the samples first, where picking single units of a layer costs more than multiplying all of them:
    a half-open tunnel network would take as long as the full one instead of three quarters of it.
    """

    @jax.custom_batching.custom_vmap
    def batched(parameters: PyTree, x: Array) -> Array:
        return function(parameters, x)

    @batched.def_vmap
    def _(n: int, is_batched: list, parameters: PyTree, x: Array) -> tuple[Array, bool]:
        if not any(jax.tree.leaves(is_batched[0])):
            return jnp.moveaxis(function(parameters, jnp.moveaxis(x, 0, -1)), -1, 0), True
        axes = jax.tree.map(lambda batched: 0 if batched else None, is_batched)  # many networks
        return jax.vmap(function, in_axes=tuple(axes), axis_size=n)(parameters, x), True

    # The rule above knows no derivatives: whoever wants them gets those of the function itself.
    differentiable = jax.custom_jvp(batched)
    differentiable.defjvp(lambda primals, tangents: jax.jvp(function, primals, tangents))
    return differentiable
