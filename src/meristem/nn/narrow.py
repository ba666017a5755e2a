"""A network on some of the dimensions of its trunk: what is closed is left out.

    take(tree, axes, dims)              the same tree with these dimensions alone
    without_trunk(network)              the same function by a network of fixed width

`axes` is what a body says of its arrays (`Body.trunk_axes`), or the like. Host functions: shapes change.
"""

from typing import Any, TypeVar

import equinox as eqx
import jax
import numpy as np

from meristem.nn.body import Axes

T = TypeVar("T")


def is_axes(node: Any) -> bool:
    return isinstance(node, Axes)


def take(tree: T, axes: Any, dims: np.ndarray) -> T:
    """The tree with these dimensions of the trunk alone, of NumPy's arrays; axes are counted from the last.

    >>> take({"bias": np.arange(3)}, {"bias": Axes((-1,))}, np.array([0, 2]))["bias"].tolist()
    [0, 2]
    """

    def one(mine: Axes, leaf: Any) -> Any:
        values = np.asarray(leaf)
        for axis in mine.axes:
            values = values.take(dims, axis)
        return values

    return jax.tree.map(one, axes, tree, is_leaf=is_axes)


def without_trunk(network: Any) -> tuple[Any, np.ndarray]:
    """The same function by a network of fixed width: the open dimensions alone, their gates in what reads them; and which.

    The trunk's gates stand on what is read (trunk.py), so they go into the columns of every matrix and of the head. Where all
    are closed one is kept, with columns of 0.
    """
    body = network.body
    gates = np.asarray(body.trunk.value, np.float64)
    dims = np.flatnonzero(gates) if gates.any() else np.zeros(1, int)
    axes = body.trunk_axes()

    def scaled(mine: Axes, leaf: Any) -> Any:
        return leaf * gates[dims] if mine.axes == (-2, -1) else leaf

    small = jax.tree.map(scaled, axes, take(body, axes, dims), is_leaf=is_axes)
    embed, head = np.asarray(network.embed.weight), np.asarray(network.head.weight, np.float64)
    trimmed = eqx.tree_at(
        lambda n: (n.embed.weight, n.head.weight, n.body), network, (embed[dims], head[:, dims] * gates[dims], small)
    )
    return eqx.tree_at(lambda n: n.body.trunk, trimmed, None), dims
