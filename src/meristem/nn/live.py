"""A network on what is open of it: its arrays without closed dimensions, units and layers, and back.

    taken(tree, network, live) → small           what `live` names of a network, or of what an optimizer keeps for one
    put(tree, small, network, live) → tree       the tree with what has become of it

`live` has indices for some axes, from which the place of every array follows: a list for each of its axes, by name.
index == size is padding: it is read as 0, a closed gate, and written nowhere. So the shapes of `live` need not be exact, and
many structures share few of them. The small network computes the same, its sums in another order.

Imports nn.axes, nn.rows and nn.network; train.live_size imports it.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from meristem.nn.axes import ArrayAxes, Axes, Standing, is_entry
from meristem.nn.network import Network
from meristem.nn.rows import Rows


class Live(NamedTuple):
    """What is open of a network, by axis; index == size is padding."""

    indices: Mapping[
        str, Int[Array | np.ndarray, "..."]
    ]  # places of an axis, [n], or [per, n] where they differ by another axis
    rows: Mapping[str, Rows]  # of axes whose modules must know where their places stand


def taken(tree: Network, network: Network, live: Live, *, mirrors: bool = False) -> Network:
    """What is open of a tree that is shaped like the network: itself, or what mirrors its parameters, with None for others."""
    declared = network.axes()

    def small(entry: Any, leaf: Any) -> Any:
        if isinstance(entry, Standing):
            rows = live.rows.get(entry.axis)
            return jax.tree.map(lambda _: None, rows) if mirrors else rows  # where units stand is no parameter
        return None if leaf is None else leaf.at[_places(declared, entry, live, leaf)].get(mode="fill", fill_value=0)

    return jax.tree.map(small, declared.arrays, tree, is_leaf=is_entry)


def put(tree: Network, small: Network, network: Network, live: Live) -> Network:
    """The tree with the small one in its place."""
    declared = network.axes()

    def scattered(entry: Any, leaf: Any, new: Any) -> Any:
        if isinstance(entry, Standing) or leaf is None:
            return leaf
        return leaf.at[_places(declared, entry, live, leaf)].set(new, mode="drop")

    return jax.tree.map(scattered, declared.arrays, tree, small, is_leaf=is_entry)


def _places(declared: Axes, entry: ArrayAxes, live: Live, leaf: Array) -> tuple[Any, ...]:
    """Indices that span what is open of an array; one with fewer dimensions, such as an age per layer, has the first."""
    n, spanned = leaf.ndim, []
    for place, name in enumerate(entry.names[:n]):
        index = live.indices.get(name)
        index = jnp.arange(leaf.shape[place]) if index is None else index
        shape = [1] * n
        shape[place] = index.shape[-1]
        if index.ndim == 2:
            shape[entry.names.index(str(declared.axis(name).per))] = index.shape[0]
        spanned.append(index.reshape(shape))
    return tuple(spanned) if spanned else (...,)
