"""Budding perceptrons (equations 4 and 5): a tree of layers that decide whether to become two.

    y_m(x) = (1 − γ_m) · y_right(y_left(x)) + γ_m · σ(W_m x + b_m)          γ_m ∈ [0, 1], at first 1: a leaf
    price  = Σ_m (1 − γ_m)

The left child shares its parent's layer, so a node's layer is that of its left-most leaf, and n leaves own n layers,
applied in order. Leaf j computes p_j = σ(W_j h_{j−1} + b_j); then every inner node m whose span ends at j, innermost
first, does h ← (1 − γ_m) h + γ_m p_first(m). So h is linear in the p's, with convex rows that depend on the γ's alone:

    h_j = Σ_{k ≤ j} A_jk p_k,        y = h_{n−1}

Each leaf keeps a bud, a dormant layer. At γ = 1 it does not change the output; as the right child that is not there yet
it gives γ its true derivative, ⟨∂E/∂y, p − σ(V p + c)⟩. Growth is in growth.py; here the structure is only read.
"""

from typing import Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from meristem.check import check_size, unknown
from meristem.gate import Confined
from meristem.nn.activation import ACTIVATIONS, check_activation
from meristem.nn.body import Body
from meristem.nn.linear import he_layer
from meristem.nn.tree import in_order, inner_of, leaf_depth, leaves_of, living, n_leaves, seedling, spans

PROBES = ["bud", "zero"]


class Bud(eqx.Module):
    """A dormant layer for each leaf: no gradient reaches it, no optimiser moves it."""

    weight: Float[Array, "capacity width width"]
    bias: Float[Array, "capacity width"]


class Budding(Body):
    """At first one perceptron layer; room for `capacity` leaves.

    Rows 0 … n−1 of `weight`, `bias` and `bud` are the live leaves in the order in which they are applied; `leafness`
    holds every node's γ in the tree's order (leaf, inner, leaf, …); `depth` is the tree itself, see tree.py.

    >>> import jax, jax.numpy as jnp
    >>> budding = Budding(width=3, key=jax.random.key(0))
    >>> budding(jnp.ones(3)).shape, budding.capacity, int(budding.n_leaves)
    ((3,), 4, 1)
    """

    weight: Float[Array, "capacity width width"]
    bias: Float[Array, "capacity width"]
    bud: Bud
    leafness: Confined  # [2·capacity − 1]; 1: a leaf
    depth: Int[Array, " capacity"]
    activation: str = eqx.field(static=True)
    probe: str = eqx.field(static=True)  # what a leaf's γ sees in place of its right child: its "bud", or "zero"

    def __init__(
        self,
        width: int,
        *,
        capacity: int = 4,
        activation: str = "relu",
        probe: str = "bud",
        key: PRNGKeyArray,
    ):
        width, capacity = check_size("width", width), check_size("capacity", capacity)
        if probe not in PROBES:
            raise unknown("probe", probe, PROBES)
        layer_key, bud_key = jax.random.split(key)
        self.weight, self.bias = _first_row(he_layer(layer_key, (width, width)), capacity)
        self.bud = Bud(*_first_row(he_layer(bud_key, (width, width)), capacity))
        self.leafness = Confined(jnp.ones(2 * capacity - 1))
        self.depth = seedling(capacity)
        self.activation = check_activation(activation)
        self.probe = probe

    @property
    def capacity(self) -> int:
        return self.depth.shape[-1]

    @property
    def n_leaves(self) -> Int[Array, ""]:
        return n_leaves(self.depth)

    def priced(self, x: Float[Array, " width"]) -> tuple[Float[Array, " width"], Float[Array, ""]]:
        sigma = ACTIVATIONS[self.activation]
        mix = jnp.unstack(mixing(self.leafness.value, self.depth))
        openness = jnp.unstack(1 - leaves_of(self.leafness.value))
        bud = jax.lax.stop_gradient(self.bud)
        stacks = (self.weight, self.bias, bud.weight, bud.bias)
        outputs: list[Array] = []
        hidden: list[Array] = []
        for j, (weight, bias, bud_weight, bud_bias) in enumerate(zip(*map(jnp.unstack, stacks), strict=True)):
            p = sigma(weight @ x + bias)
            child = sigma(bud_weight @ p + bud_bias) if self.probe == "bud" else jnp.zeros_like(p)
            # The leaf's output carries its probe; what the nodes that start here mix in later is the bare layer.
            leaf = p + openness[j] * jax.lax.stop_gradient(child - p)
            x = _combine(mix[j], [*outputs, leaf])
            outputs.append(p)
            hidden.append(x)
        last = jnp.arange(self.capacity) == n_leaves(self.depth) - 1
        y = jnp.where(last[:, None], jnp.stack(hidden), 0).sum(0)
        alive = living(self.depth)
        return y, jnp.where(in_order(alive, alive), 1 - self.leafness.value, 0).sum()

    def half_norm(self) -> Float[Array, ""]:
        return 0.5 * jnp.where(living(self.depth)[:, None, None], self.weight**2, 0).sum()

    def depths(self) -> Self:
        layer, leaf = self.depth + 1, leaf_depth(self.depth)
        node = in_order(leaf, jnp.maximum(self.depth, 0))
        return eqx.tree_at(
            lambda b: (b.weight, b.bias, b.bud.weight, b.bud.bias, b.leafness.value),
            self,
            (layer, layer, leaf + 1, leaf + 1, node),
        )


def _first_row(layer: tuple[Array, Array], capacity: int) -> list[Array]:
    """A layer's arrays as the first of `capacity` rows; the free ones hold zeros."""
    return [jnp.zeros((capacity, *part.shape), part.dtype).at[0].set(part) for part in layer]


def _combine(row: Float[Array, " capacity"], outputs: list[Float[Array, " width"]]) -> Float[Array, " width"]:
    """Σ_k row_k p_k over the p's there are."""
    scales = jnp.unstack(row)
    total = scales[0] * outputs[0]
    for scale, output in zip(scales[1:], outputs[1:], strict=False):
        total = total + scale * output
    return total


def mixing(leafness: Float[Array, " nodes"], depth: Int[Array, " capacity"]) -> Float[Array, "capacity capacity"]:
    """The matrix A: the output after leaf j is Σ_k A_jk p_k. Rows are convex; a free place j has h_j = p_j.

    >>> import jax.numpy as jnp
    >>> mixing(jnp.array([1.0, 0.25, 1.0]), jnp.array([-1, 0])).tolist()    # h_1 = γ p_0 + (1 − γ) p_1
    [[1.0, 0.0], [0.25, 0.75]]
    """
    capacity = depth.shape[0]
    index = jnp.arange(capacity, dtype=depth.dtype)
    first, last = spans(depth)
    gamma = inner_of(leafness, 0.0)
    ends = jnp.where(last[:, None] == index[None, :], gamma[:, None], 0)  # [node, j]: γ where the node's span ends at j
    starts = (first[:, None] == index[None, :]).astype(leafness.dtype)  # [node, k]: 1 where it starts
    rows = jnp.eye(capacity, dtype=leafness.dtype)
    # Of two nodes that end at the same leaf the inner one stands further right, so right to left is innermost first.
    for node in range(capacity - 1, 0, -1):
        share = ends[node][:, None]
        rows = (1 - share) * rows + share * starts[node][None, :]
    return rows
