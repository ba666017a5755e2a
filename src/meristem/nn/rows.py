"""Units that stand on some dimensions of the trunk alone: the open rows of a tunnel, packed.

    stood(rows, l, h)           [units], the values of the trunk that the units of layer l stand on
    placed(rows, l, h, new)     [width], the trunk with `new` in their places

`rows` of None: there is a unit on every dimension, in its order; both are then the identity. Each dimension has at most one
unit of a layer and each unit one dimension, so what one takes the other puts: the gradient of either is the other, a gather,
where JAX would scatter. An index that is one too large stands for none.

Imports nothing of meristem; nn.tunnel and nn.live import it.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int


class Rows(eqx.Module):
    """Which units there are."""

    layer: Int[Array, " layers"]  # of the whole body
    at: Int[Array, "layers units"]  # the dimension of each unit; width: there is no such unit
    unit: Int[Array, "layers width"]  # the unit on each dimension; units: there is none
    depth: int = eqx.field(static=True)  # of the whole body


def stood(rows: Rows | None, layer: int | Int[Array, ""], h: Float[Array, " width"]) -> Float[Array, " units"]:
    """What the units of a layer stand on.

    >>> rows = Rows(jnp.array([0]), jnp.array([[2, 0, 3]]), jnp.array([[1, 3, 0]]), depth=1)
    >>> stood(rows, 0, jnp.array([5.0, 6.0, 7.0])).tolist()
    [7.0, 5.0, 0.0]
    """
    return h if rows is None else _moved(h, rows.at[layer], rows.unit[layer])


def placed(
    rows: Rows | None, layer: int | Int[Array, ""], h: Float[Array, " width"], new: Float[Array, " units"]
) -> Float[Array, " width"]:
    """The trunk after the units of a layer.

    >>> rows = Rows(jnp.array([0]), jnp.array([[2, 0, 3]]), jnp.array([[1, 3, 0]]), depth=1)
    >>> placed(rows, 0, jnp.array([5.0, 6.0, 7.0]), jnp.array([1.0, 2.0, 9.0])).tolist()
    [2.0, 6.0, 1.0]
    """
    if rows is None:
        return new
    return jnp.where(rows.unit[layer] < new.shape[0], _moved(new, rows.unit[layer], rows.at[layer]), h)


@jax.custom_vjp
def _moved(values: Float[Array, " n"], source: Int[Array, " m"], _: Int[Array, " n"]) -> Float[Array, " m"]:
    return values.at[source].get(mode="fill", fill_value=0)


def _forward(values: Array, source: Array, target: Array) -> tuple[Array, Array]:
    return _moved(values, source, target), target


def _backward(target: Array, gradient: Array) -> tuple[Any, None, None]:
    return gradient.at[target].get(mode="fill", fill_value=0), None, None


_moved.defvjp(_forward, _backward)
