"""A network on what is open of it: its arrays without closed dimensions, units and layers, and back.

`Live` has indices for some axes. index == size is padding: it is read as 0, a closed gate, and written nowhere. So many
structures share the few shapes that it may have. The small network computes the same, its sums in another order. Units that
stand on dimensions of the trunk must know on which ones, once some of either are left out (`Rows`); where rows are None, there
is a unit on every dimension, in its order. Each dimension has at most one unit of a layer and each unit one dimension, so that
the gradient of `stood` is `placed`, a gather, where JAX would scatter.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from meristem.gate import Confined
from meristem.nn.axes import ROWS, TRUNK, ArrayAxes, Axes, Axis, gate_axis, indices_of, is_entry, tree_map


class Rows(eqx.Module):
    """Which units there are; the middle two are None where units stand on nothing."""

    layer: Int[Array | np.ndarray, "*members layers"]  # of the whole body
    at: Int[Array | np.ndarray, "*members layers units"] | None  # the dimension of each unit; width: there is no such unit
    unit: Int[Array | np.ndarray, "*members layers width"] | None  # the unit on each dimension; units: there is none
    depth: int = eqx.field(static=True)  # of the whole body


class Live(NamedTuple):
    """What is open of a network, by axis; index == size is padding."""

    indices: Mapping[str, Int[Array | np.ndarray, "..."]]  # [n], or [per, n] where they differ by another axis
    rows: Mapping[str, Rows]  # of axes whose modules must know where their places stand


def taken(tree: Any, network: Any, live: Live, *, mirrors: bool = False) -> Any:
    """What is open of a tree that is shaped like the network: itself, or what mirrors its parameters, with None for others."""
    declared = network.axes()

    def small(entry: ArrayAxes, leaf: Any) -> Any:
        if entry.role == ROWS:
            rows = live.rows.get(entry.names[0])
            return jax.tree.map(lambda _: None, rows) if mirrors else rows  # where units stand is no parameter
        return None if leaf is None else leaf.at[indices_of(declared, entry, leaf, live.indices)].get(mode="fill", fill_value=0)

    return jax.tree.map(small, declared.arrays, tree, is_leaf=is_entry)


def put(tree: Any, small: Any, network: Any, live: Live) -> Any:
    """The tree with the small one in its place."""
    declared = network.axes()

    def scattered(entry: ArrayAxes, leaf: Any, new: Any) -> Any:
        return None if leaf is None else leaf.at[indices_of(declared, entry, leaf, live.indices)].set(new, mode="drop")

    return tree_map(scattered, declared, tree, small)


def gated_layers(arrays: Any, gate: Confined, trunk: Confined | None, rows: Rows | None, *, on: str | None = TRUNK) -> Axes:
    """Return the axes of layers of units with gates [layer, unit]; `on`: the axis that the units stand on, None: nothing."""
    unit = gate_axis(gate, per="layer", on=on, at=None if rows is None else rows.at)
    layer = Axis(depth=lambda: jnp.arange(gate.value.shape[-2]))
    if rows is not None:
        places = jnp.asarray(rows.layer)
        layer = Axis(depth=lambda: places, part_of=(places, rows.depth))
    return Axes(arrays, {"layer": layer, "unit": unit, TRUNK: gate_axis(trunk)}, size="unit")


def stood(rows: Rows | None, layer: Any, h: Float[Array, "width ..."]) -> Float[Array, "units ..."]:
    """What the units of a layer stand on, [units, …]."""
    if rows is None or rows.at is None or rows.unit is None:
        return h
    return _moved(h, rows.at[layer], rows.unit[layer])


def placed(rows: Rows | None, layer: Any, h: Float[Array, "width ..."], new: Float[Array, "units ..."]) -> Array:
    """The trunk after the units of a layer, [width, …].

    >>> rows = Rows(jnp.array([0]), jnp.array([[2, 0, 3]]), jnp.array([[1, 3, 0]]), depth=1)
    >>> h = jnp.array([5.0, 6.0, 7.0])
    >>> stood(rows, 0, h).tolist(), placed(rows, 0, h, jnp.array([1.0, 2.0, 9.0])).tolist()
    ([7.0, 5.0, 0.0], [2.0, 6.0, 1.0])
    """
    if rows is None or rows.at is None or rows.unit is None:
        return new
    is_there = (rows.unit[layer] < new.shape[0]).reshape(-1, *[1] * (h.ndim - 1))
    return jnp.where(is_there, _moved(new, rows.unit[layer], rows.at[layer]), h)


@jax.custom_vjp
def _moved(values: Float[Array, "n ..."], source: Int[Array, " m"], _: Int[Array, " n"]) -> Float[Array, "m ..."]:
    return values.at[source].get(mode="fill", fill_value=0)


_moved.defvjp(
    lambda values, source, target: (_moved(values, source, target), target),
    lambda target, gradient: (gradient.at[target].get(mode="fill", fill_value=0), None, None),
)
