"""A body of one's own, with what must be written and nothing else: no module of the library knows it."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from meristem.gate import Confined
from meristem.nn import Network
from meristem.nn.body import Body
from meristem.nn.linear import Linear


class Shifts(Body):
    """A shift of every unit by its gate."""

    shift: Float[Array, " width"]
    gate: Confined

    def __init__(self, width: int, *, key: PRNGKeyArray):
        self.shift = jax.random.normal(key, (width,))
        self.gate = Confined(jnp.linspace(0, 1, width))

    def priced(self, x: Float[Array, " width"]) -> tuple[Float[Array, " width"], Float[Array, ""]]:
        return x + self.gate.value * self.shift, self.gate.value.sum()


def own_network() -> Network:
    keys = jax.random.split(jax.random.key(0), 3)
    return Network(Linear(2, 4, use_bias=False, key=keys[0]), Shifts(4, key=keys[1]), Linear(4, 1, key=keys[2]))
