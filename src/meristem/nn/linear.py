"""An affine map y = W x + b, and how weights start.

    linear maps (embed, head)    W uniform on ±√(6 / (fan_in + fan_out)), b = 0            (Glorot)
    rectifier layers (bodies)    W and b uniform on ±√(6 / fan_in)                           (He; b like W)

Biases other than 0 spread the kinks of the rectifiers over the data instead of letting all of them meet at the origin:
the difficult spiral is learned in half the epochs (results/LOG.md).
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from meristem.check import check_size
from meristem.memory import check_room


def glorot(key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, "*shape"]:
    """Uniform on ±√(6 / (fan_in + fan_out)); the last two axes are [out, in]."""
    check_room(shape)
    limit = math.sqrt(6 / (shape[-1] + shape[-2]))
    return jax.random.uniform(key, shape, jnp.result_type(float), -limit, limit)


def he_layer(key: PRNGKeyArray, shape: tuple[int, ...]) -> tuple[Float[Array, "*shape"], Float[Array, "..."]]:
    """Weight [..., out, in] and bias [..., out] of a layer with a nonlinearity."""
    check_room(shape)
    limit = math.sqrt(6 / shape[-1])
    # One draw for both: a random generator takes longer to compile than a layer.
    draw = jax.random.uniform(key, (*shape[:-1], shape[-1] + 1), jnp.result_type(float), -limit, limit)
    return draw[..., :-1], draw[..., -1]


class Linear(eqx.Module):
    """y = W x (+ b), for one sample.

    >>> import jax
    >>> Linear(2, 3, key=jax.random.key(0))(jax.numpy.ones(2)).shape
    (3,)
    """

    weight: Float[Array, "out in"]
    bias: Float[Array, " out"] | None

    def __init__(self, n_in: int, n_out: int, *, use_bias: bool = True, key: PRNGKeyArray):
        shape = (check_size("n_out", n_out), check_size("n_in", n_in))
        self.weight = glorot(key, shape)
        self.bias = jnp.zeros(shape[0]) if use_bias else None

    def __call__(self, x: Float[Array, " in"]) -> Float[Array, " out"]:
        y = self.weight @ x
        return y if self.bias is None else y + self.bias
