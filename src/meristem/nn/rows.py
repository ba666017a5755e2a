"""Units that stand on some dimensions of the trunk alone: the open rows of a tunnel, packed.

    stood(rows, l, h)           [units, …], the values of the trunk that the units of layer l stand on
    placed(rows, l, h, new)     [width, …], the trunk with `new` in their places
    gated_layers(…)             the axes of a stack of layers with a gate for each unit, all of it or packed

`rows` of None: there is a unit on every dimension, in its order; both are then the identity. Each dimension has at most one
unit of a layer and each unit one dimension, so what one takes the other puts: the gradient of either is the other, a gather,
where JAX would scatter. index == size is padding.

Imports axes and gate; nn.tunnel and nn.live import it.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from meristem.gate import Confined
from meristem.nn.axes import TRUNK, Axes, Axis, gate_axis


class Rows(eqx.Module):
    """Which units there are; the middle two are None where units stand on nothing."""

    layer: Int[Array | np.ndarray, "*members layers"]  # of the whole body
    at: Int[Array | np.ndarray, "*members layers units"] | None  # the dimension of each unit; width: there is no such unit
    unit: Int[Array | np.ndarray, "*members layers width"] | None  # the unit on each dimension; units: there is none
    depth: int = eqx.field(static=True)  # of the whole body


def gated_layers(arrays: Any, gate: Confined, trunk: Confined | None, rows: Rows | None, *, on: str | None = TRUNK) -> Axes:
    """Return the axes of layers of units with gates [layer, unit]; `on`: the axis that the units stand on, None: nothing."""
    layer = Axis(
        depth=lambda: jnp.arange(gate.value.shape[-2]) if rows is None else jnp.asarray(rows.layer),
        part_of=None if rows is None else (jnp.asarray(rows.layer), rows.depth),
    )
    unit = gate_axis(gate, per="layer", on=on, at=None if rows is None else rows.at)
    return Axes(arrays, {"layer": layer, "unit": unit, TRUNK: gate_axis(trunk)}, size="unit")


def stood(rows: Rows | None, layer: int | Int[Array, ""], h: Float[Array, "width ..."]) -> Float[Array, "units ..."]:
    """What the units of a layer stand on.

    >>> rows = Rows(jnp.array([0]), jnp.array([[2, 0, 3]]), jnp.array([[1, 3, 0]]), depth=1)
    >>> stood(rows, 0, jnp.array([5.0, 6.0, 7.0])).tolist()
    [7.0, 5.0, 0.0]
    """
    if rows is None or rows.at is None or rows.unit is None:
        return h
    return _moved(h, rows.at[layer], rows.unit[layer])


def placed(
    rows: Rows | None, layer: int | Int[Array, ""], h: Float[Array, "width ..."], new: Float[Array, "units ..."]
) -> Float[Array, "width ..."]:
    """The trunk after the units of a layer.

    >>> rows = Rows(jnp.array([0]), jnp.array([[2, 0, 3]]), jnp.array([[1, 3, 0]]), depth=1)
    >>> placed(rows, 0, jnp.array([5.0, 6.0, 7.0]), jnp.array([1.0, 2.0, 9.0])).tolist()
    [2.0, 6.0, 1.0]
    """
    if rows is None or rows.at is None or rows.unit is None:
        return new
    is_there = (rows.unit[layer] < new.shape[0]).reshape(-1, *[1] * (h.ndim - 1))
    return jnp.where(is_there, _moved(new, rows.unit[layer], rows.at[layer]), h)


@jax.custom_vjp
def _moved(values: Float[Array, "n ..."], source: Int[Array, " m"], _: Int[Array, " n"]) -> Float[Array, "m ..."]:
    return values.at[source].get(mode="fill", fill_value=0)


def _forward(values: Array, source: Array, target: Array) -> tuple[Array, Array]:
    return _moved(values, source, target), target


def _backward(target: Array, gradient: Array) -> tuple[Any, None, None]:
    return gradient.at[target].get(mode="fill", fill_value=0), None, None


_moved.defvjp(_forward, _backward)
