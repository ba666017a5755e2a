"""A full binary tree as one integer array.

The leaves stand in a row, 0 … n−1, and between leaf j−1 and leaf j stands exactly one inner node: the one whose left
subtree ends at j−1 and whose right subtree begins at j. So a tree with at most `capacity` leaves is

    depth[j]    the depth of the inner node between leaf j−1 and leaf j;  −1 where there is none (j = 0, j ≥ n)

and everything else follows by comparing neighbours: a subtree is bounded by the nearest inner nodes that are less deep.
In the tree's own order (leaf, inner, leaf, …, leaf) leaf j is node 2j and inner node j is node 2j − 1: `capacity` leaves
make 2·capacity − 1 nodes. Pure functions of `depth` and of the nodes' γ (`leafness`).
"""

from collections.abc import Sequence

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int


def seedling(capacity: int) -> Int[Array, " capacity"]:
    """A single leaf."""
    return jnp.full(capacity, -1, jnp.int32)


def is_tree(depth: Sequence[int]) -> bool:
    """Whether these numbers are a tree, as the module's header says; a host function."""
    n = next((j for j, own in enumerate(depth) if j and own < 0), len(depth))
    if not len(depth) or any(own != -1 for own in (depth[0], *depth[n:])):
        return False
    # From left to right: `above` are the inner nodes whose right part is not closed yet, each less deep than the next.
    above = [-1]
    for own in [*depth[1:n], -1]:
        while above[-1] > own:
            if above.pop() != max(above[-1], own) + 1:  # a subtree hangs on the deeper of its two neighbors
                return False
        if own >= 0 and above[-1] == own:  # two of one depth with none between them that is less deep
            return False
        above.append(own)
    return True


def living(depth: Int[Array, " capacity"]) -> Bool[Array, " capacity"]:
    """Whether leaf j exists. Inner node j exists just when leaf j does, but for j = 0."""
    return (depth >= 0).at[0].set(True)


def n_leaves(depth: Int[Array, " capacity"]) -> Int[Array, ""]:
    return living(depth).sum(dtype=jnp.int32)


def spans(depth: Int[Array, " capacity"]) -> tuple[Int[Array, " capacity"], Int[Array, " capacity"]]:
    """The first and the last leaf below each inner node. Where there is no inner node: (capacity, −1), an empty span.

    >>> first, last = spans(jnp.array([-1, 1, 0, -1]))    # ((0 1) 2) and a free place
    >>> first.tolist(), last.tolist()
    ([4, 0, 0, 4], [-1, 1, 2, -1])
    """
    size = depth.shape[0]
    index = jnp.arange(size, dtype=jnp.int32)
    bounds = depth[None, :] < depth[:, None]  # [node, other]
    before, after = index[None, :] < index[:, None], index[None, :] > index[:, None]
    first = jnp.where(bounds & before, index[None, :], 0).max(1)
    last = jnp.where(bounds & after, index[None, :], size).min(1) - 1
    return jnp.where(depth >= 0, first, size), jnp.where(depth >= 0, last, -1)


def leaf_depth(depth: Int[Array, " capacity"]) -> Int[Array, " capacity"]:
    """The depth of each leaf: one below the deeper of its two neighbours."""
    right = jnp.concatenate([depth[1:], jnp.full(1, -1, depth.dtype)])
    return jnp.maximum(depth, right) + 1


def in_order(leaf: Array, inner: Array) -> Array:
    """[capacity] leaves and [capacity] inner nodes (the first is no node) → [2·capacity − 1] in the tree's order."""
    return jnp.stack([inner, leaf], 1).reshape(-1)[1:]


def leaves_of(node: Array) -> Array:
    """[2·capacity − 1] nodes → [capacity] leaves."""
    return node[0::2]


def inner_of(node: Array) -> Array:
    """[2·capacity − 1] nodes → [capacity] inner nodes, with 0 in the place that is no node."""
    return jnp.concatenate([jnp.zeros(1, node.dtype), node[1::2]])


def node_openness(leafness: Float[Array, " nodes"], depth: Int[Array, " capacity"]) -> Float[Array, " nodes"]:
    """How open each node is, in the tree's order: Π (1 − γ_a) over its ancestors a. The sum is equation 8, unrolled."""
    index = jnp.arange(depth.shape[0], dtype=depth.dtype)
    first, last = spans(depth)
    factor = (1 - inner_of(leafness))[:, None]  # [ancestor, node]
    above_leaf = (first[:, None] <= index[None, :]) & (index[None, :] <= last[:, None])
    above_inner = above_leaf & (first[:, None] < index[None, :]) & (index[:, None] != index[None, :])
    leaves, inner = (jnp.where(above, factor, 1).prod(0) for above in (above_leaf, above_inner))
    return in_order(jnp.where(living(depth), leaves, 0), jnp.where(depth >= 0, inner, 0))


def leaf_openness(leafness: Float[Array, " nodes"], depth: Int[Array, " capacity"]) -> Float[Array, " capacity"]:
    """How open each leaf's layer is: as far as every node is open in whose right part it stands."""
    index = jnp.arange(depth.shape[0], dtype=depth.dtype)
    last = spans(depth)[1]
    on_the_right = (index[:, None] <= index[None, :]) & (index[None, :] <= last[:, None])  # [node, leaf]
    gamma = inner_of(leafness)[:, None]
    return jnp.where(living(depth), jnp.where(on_the_right, 1 - gamma, 1).prod(0), 0)


def mixing(leafness: Float[Array, " nodes"], depth: Int[Array, " capacity"]) -> Float[Array, "capacity capacity"]:
    """The matrix A: the output after leaf j is Σ_k A_jk p_k. Rows are convex; a free place j has h_j = p_j.

    >>> mixing(jnp.array([1.0, 0.25, 1.0]), jnp.array([-1, 0])).tolist()    # h_1 = γ p_0 + (1 − γ) p_1
    [[1.0, 0.0], [0.25, 0.75]]
    """
    capacity = depth.shape[0]
    index = jnp.arange(capacity, dtype=depth.dtype)
    first, last = spans(depth)
    gamma = inner_of(leafness)
    ends = jnp.where(last[:, None] == index[None, :], gamma[:, None], 0)  # [node, j]: γ where the node's span ends at j
    starts = (first[:, None] == index[None, :]).astype(leafness.dtype)  # [node, k]: 1 where it starts
    rows = jnp.eye(capacity, dtype=leafness.dtype)
    # Of two nodes that end at the same leaf the inner one stands further right, so right to left is innermost first.
    for node in range(capacity - 1, 0, -1):
        share = ends[node][:, None]
        rows = (1 - share) * rows + share * starts[node][None, :]
    return rows
