"""A network on what is open of it: its arrays without closed dimensions, units and layers, and back.

    taken(tree, network, live) → small           what `live` names of a network, or of what an optimizer keeps for one
    put(tree, small, network, live) → tree       the tree with what has become of it

`live` is made of indices, and so is the place of every array: one list for each of its axes, by name. index == size is padding:
it is read as 0, a closed gate, and written nowhere. So the shapes of `live` need not be exact, and many structures share few of
them. The small network computes the same, its sums in another order.

Imports nn.axes, nn.body and nn.network; train.live imports it.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from meristem.nn.axes import TRUNK, ArrayAxes, is_array_axes
from meristem.nn.body import Live
from meristem.nn.network import Network


def taken(tree: Network, network: Network, live: Live, *, mirrors: bool = False) -> Network:
    """What is open of a tree that is shaped like the network: itself, or what mirrors its parameters, with None for others."""
    small = jax.tree.map(_read, _meshes(network, live), tree, is_leaf=is_mesh)
    return eqx.tree_at(lambda n: n.body, small, network.body.packed(small.body, live, mirrors=mirrors))


def put(tree: Network, small: Network, network: Network, live: Live) -> Network:
    """The tree with the small one in its place."""
    unpacked = eqx.tree_at(lambda n: n.body, small, network.body.packed(small.body, None))
    return jax.tree.map(_written, _meshes(network, live), tree, unpacked, is_leaf=is_mesh)


class Mesh(NamedTuple):
    """Where an array is on what is open: for each axis the indices, [n], or [layers, n] where they differ by layer."""

    axes: tuple[Int[Array, "..."], ...]


def is_mesh(node: Any) -> bool:
    return isinstance(node, Mesh)


def _meshes(network: Network, live: Live) -> Any:
    """The place of every array of a network."""
    declared = network.axes()
    indices = dict.fromkeys(declared.standing_on(TRUNK), live.dims)
    for name, axis in declared.axes.items():
        if axis.closable and axis.per is not None:
            indices |= {name: live.rows, axis.per: live.layers}

    def mesh(entry: ArrayAxes, leaf: Array) -> Mesh:
        names = (*[""] * (leaf.ndim - len(entry.names)), *entry.names)
        return Mesh(
            tuple(indices[name] if name in indices else jnp.arange(n) for name, n in zip(names, leaf.shape, strict=True))
        )

    return jax.tree.map(mesh, declared.arrays, network, is_leaf=is_array_axes)


def _read(mesh: Mesh, values: Array | None) -> Any:
    return None if values is None else values.at[_open(mesh, values.ndim)].get(mode="fill", fill_value=0)


def _written(mesh: Mesh, values: Array | None, new: Array | None) -> Any:
    return None if values is None else values.at[_open(mesh, values.ndim)].set(new, mode="drop")


def _open(mesh: Mesh, ndim: int) -> tuple[Array, ...]:
    """The lists of an array's axes as indices that span it; of one with fewer axes, such as an age per layer, the first."""
    spanned = []
    for axis, index in enumerate(mesh.axes[:ndim]):
        shape = [1] * ndim
        shape[axis] = index.shape[-1]
        if index.ndim == 2:
            shape[0] = index.shape[0]
        spanned.append(index.reshape(shape))
    return tuple(spanned)
