"""An affine map y = W x + b, at one position or at many, and how weights start.

    linear maps (embed, head)    W uniform on ±√(6 / (fan_in + fan_out)), b = 0            (Glorot)
    rectifier layers (bodies)    W and b uniform on ±√(6 / fan_in)                           (He; b like W)
    kernels                      uniform on ±√(3 gain / fan_in)

Biases other than 0 spread the kinks of the rectifiers over the data instead of letting all of them meet at the origin:
the difficult spiral is learned in half the epochs (results/LOG.md).
"""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from meristem.check import check_size
from meristem.layers.layer import Affine, Convolution, Layer, Mean
from meristem.memory import check_memory
from meristem.nn.axes import MAP, STORED, ArrayAxes, Axes, declare
from meristem.nn.body import Part

SHARED_SIZES = (2**10, 2**14)  # of draws


def uniform(key: PRNGKeyArray, shape: Sequence[int], limit: float) -> Float[Array, "*shape"]:
    """Uniform on ±limit."""
    return jnp.asarray(_drawn(key, shape, limit))


def glorot(key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, "*shape"]:
    """Uniform on ±√(6 / (fan_in + fan_out)); the last two axes are [out, in]."""
    return uniform(key, shape, math.sqrt(6 / (shape[-1] + shape[-2])))


def he_layer(
    key: PRNGKeyArray, shape: tuple[int, ...], *, is_drawn_once: bool = True
) -> tuple[Float[Array, "*shape"], Float[Array, "..."]]:
    """Weight [..., out, in] and bias [..., out] of a layer with a nonlinearity; one draw for both."""
    draw = _drawn(key, (*shape[:-1], shape[-1] + 1), math.sqrt(6 / shape[-1]), is_drawn_once=is_drawn_once)
    return jnp.asarray(draw[..., :-1]), jnp.asarray(draw[..., -1])


def random_kernel(key: PRNGKeyArray, shape: Sequence[int], fan_in: int, gain: float) -> Float[Array, "..."]:
    """Uniform weights with variance gain / fan_in: 2 keeps the scale of values before a rectifier, 1 of others."""
    return uniform(key, shape, math.sqrt(3 * gain / fan_in))


def _drawn(key: PRNGKeyArray, shape: Sequence[int], limit: float, *, is_drawn_once: bool = True) -> Any:
    """Numbers uniform on ±limit; on the host, unless the key is traced.

    A generator takes longer to compile than a layer: what is drawn once is the beginning of a draw of one of few sizes.
    """
    check_memory(shape)
    n = math.prod(shape)
    size = min((size for size in SHARED_SIZES if is_drawn_once and n <= size), default=n)
    draw = jax.random.uniform(key, (size,), jnp.result_type(float), -limit, limit)
    return (draw if isinstance(draw, jax.core.Tracer) else np.asarray(draw))[:n].reshape(shape)


class Linear(Part):
    """y = W x (+ b), for one sample; with `positions`, such as (time,), at each of them: [in, time] → [out, time].

    >>> Linear(2, 3, key=jax.random.key(0))(jnp.ones(2)).shape
    (3,)
    """

    weight: Float[Array, "out in"]
    bias: Float[Array, " out"] | None
    positions: tuple[int, ...] = eqx.field(static=True)

    is_pooled: ClassVar[bool] = False  # whether it reads the mean over all positions

    def __init__(self, n_in: int, n_out: int, *, use_bias: bool = True, positions: Sequence[int] = (), key: PRNGKeyArray):
        shape = (check_size("n_out", n_out), check_size("n_in", n_in))
        self.weight = glorot(key, shape)
        self.bias = jnp.zeros(shape[0]) if use_bias else None
        self.positions = tuple(check_size("positions", n) for n in positions)

    def __call__(self, x: Float[Array, "in ..."]) -> Float[Array, "out ..."]:
        x = x.mean(tuple(range(1, x.ndim))) if self.is_pooled else x
        y = self.weight @ x if x.ndim <= 2 else jnp.tensordot(self.weight, x, 1)
        return y if self.bias is None else y + self.bias.reshape(-1, *[1] * (y.ndim - 1))

    def axes(self) -> Axes:
        weight = ArrayAxes(("out", "in"), MAP, 1 if self.is_pooled else math.prod(self.positions))
        return Axes(declare(self, weight=weight, bias=ArrayAxes(("out",), STORED)), {}, trunks=("in", "out"))

    def compact_layers(self) -> list[Layer]:
        """The map in double precision."""
        weight, bias = np.asarray(self.weight, np.float64), None if self.bias is None else np.asarray(self.bias, np.float64)
        if self.is_pooled:
            return [Mean(weight.shape[1], self.positions), Affine(weight, bias)]
        if not self.positions:
            return [Affine(weight, bias)]
        return [Convolution(weight.reshape(*weight.shape, *[1] * len(self.positions)), bias)]

    def options(self) -> dict[str, Any]:
        use_bias, positions = self.bias is not None, list(self.positions)
        return {"n_in": self.input_shape[0], "n_out": self.n_out, "use_bias": use_bias, "positions": positions}

    input_shape = property(lambda self: (self.weight.shape[-1], *self.positions))
    n_out = property(lambda self: self.weight.shape[-2])


class PooledLinear(Linear):
    """y = W x̄ (+ b) of the mean x̄ over all positions: [in, time] → [out], a head after convolutions.

    >>> PooledLinear(2, 3, positions=(5,), key=jax.random.key(0))(jnp.ones((2, 5))).shape
    (3,)
    """

    is_pooled: ClassVar[bool] = True
