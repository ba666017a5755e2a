"""What every body promises: equal input and output width, one sample per call, and its price.

A body is the part of a network that finds its own size. The training loop knows nothing else of it:

    __call__(x)     y
    priced(x)       y and the complexity that the penalty λ multiplies (Σ g, equation 2; Σ 1 − γ, equation 5)
    half_norm()     ½ ‖W‖² over the weights that live, for L2
    depths()        the same tree with, for every parameter, the depth of its layer: [] or one per row, for the rates
"""

import abc
from typing import Self, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


class Body(eqx.Module):
    """A map [width] → [width] with a price; see the module's header."""

    @abc.abstractmethod
    def priced(self, x: Float[Array, " width"]) -> tuple[Float[Array, " width"], Float[Array, ""]]:
        """Y and the price of the complexity used for it."""

    @abc.abstractmethod
    def half_norm(self) -> Float[Array, ""]:
        """½ ‖W‖² over the weights that take part."""

    @abc.abstractmethod
    def depths(self) -> Self:
        """The depth of each parameter's layer, shaped as a prefix of the parameter's own shape."""

    def __call__(self, x: Float[Array, " width"]) -> Float[Array, " width"]:
        return self.priced(x)[0]


B = TypeVar("B", bound=Body)


def by_layer(body: B) -> B:
    """`depths` of a body whose parameters are all stacked by layer: layer l has depth l."""
    return jax.tree.map(lambda leaf: jnp.arange(leaf.shape[0]), body)
