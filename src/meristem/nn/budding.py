"""Budding perceptrons (equations 4 and 5): a tree of layers that decide whether to become two.

    y_m(x) = (1 − γ_m) · y_right(y_left(x)) + γ_m · σ(W_m x + b_m)          γ_m ∈ [0, 1], at first 1: a leaf
    price  = Σ_m (1 − γ_m)

The left child shares its parent's layer, so a node's layer is that of its left-most leaf, and n leaves own n layers,
applied in order. Leaf j computes p_j = σ(W_j h_{j−1} + b_j); then every inner node m whose span ends at j, innermost
first, does h ← (1 − γ_m) h + γ_m p_first(m). So h is linear in the p's, with convex rows that depend on the γ's alone:

    h_j = Σ_{k ≤ j} A_jk p_k,        y = h_{n−1}

Each leaf keeps a bud, a dormant layer. At γ = 1 it does not change the output; as the right child that is not there yet
it gives γ its true derivative, ⟨∂E/∂y, p − σ(V p + c)⟩. tree_growth.py changes the structure; here it is only read.

With root="identity" (the paper's footnote) the tree may be nothing at all: one more γ₀ ∈ [0, 1], at first 1, stands above it,

    y(x) = γ₀ · x + (1 − γ₀) · y_root(x)        its price 1 − γ₀, the size (1 − γ₀) · s_root
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from meristem.check import check_size, unknown
from meristem.gate import Confined
from meristem.layers.activation import ACTIVATIONS, check_activation
from meristem.layers.layer import INPUT, Layer, Leaf, Perceptron, Tree
from meristem.memory import check_memory
from meristem.nn import tree_growth
from meristem.nn.axes import MAP, STORED, TRUNK, ArrayAxes, Axes, Axis, declare, gate_axis
from meristem.nn.body import Body, Dormant, read, with_price
from meristem.nn.linear import he_layer
from meristem.nn.structure import Nodes
from meristem.nn.tree import in_order, is_tree, leaf_depth, leaf_openness, leaves_of, living, mixing, node_openness, seedling

PROBES = ["bud", "zero"]
ROOTS = ["layer", "identity"]


class Bud(Dormant):
    """A dormant layer for each leaf."""

    weight: Float[Array, "capacity width width"]
    bias: Float[Array, "capacity width"]


class Budding(Body):
    """At first one perceptron layer; room for `capacity` leaves.

    Rows 0 … n−1 of `weight`, `bias` and `bud` are the live leaves in the order in which they are applied; `leafness`
    holds every node's γ in the tree's order (leaf, inner, leaf, …); `depth` is the tree itself, see tree.py.

    >>> budding = Budding(width=3, key=jax.random.key(0))
    >>> budding(jnp.ones(3)).shape, budding.capacity, int(budding.n_leaves)
    ((3,), 4, 1)
    """

    weight: Float[Array, "capacity width width"]
    bias: Float[Array, "capacity width"]
    bud: Bud
    leafness: Confined  # [2·capacity − 1]; 1: a leaf
    depth: Int[Array, " capacity"]
    identity: Confined | None  # []; γ₀, 1: a copy; None: the root is a layer
    activation: str = eqx.field(static=True)
    probe: str = eqx.field(static=True)  # what a leaf's γ sees in place of its right child: its "bud", or "zero"
    trunk: Confined | None  # [width]

    def __init__(
        self,
        width: int,
        *,
        capacity: int = 4,
        activation: str = "relu",
        probe: str = "bud",
        root: str = "layer",
        learn_width: bool = False,
        key: PRNGKeyArray,
    ):
        width, capacity = check_size("width", width), check_size("capacity", capacity)
        for option, value, choices in (("probe", probe, PROBES), ("root", root, ROOTS)):
            if value not in choices:
                raise unknown(option, value, choices)
        check_memory((2 * capacity, width, width))  # leaves and their buds
        layer_key, bud_key = jax.random.split(key)
        self.weight, self.bias = _first_row(he_layer(layer_key, (width, width)), capacity)
        self.bud = Bud(*_first_row(he_layer(bud_key, (width, width)), capacity))
        self.leafness = Confined(jnp.ones(2 * capacity - 1), closed=1.0)
        self.depth = seedling(capacity)
        self.identity = Confined(jnp.ones(()), closed=1.0) if root == "identity" else None
        self.activation, self.probe = check_activation(activation), probe
        self.trunk = Confined(jnp.ones(width)) if learn_width else None

    width = property(lambda self: self.weight.shape[-1])
    capacity = property(lambda self: self.bias.shape[-2])
    root = property(lambda self: "layer" if self.identity is None else "identity")
    learn_width = property(lambda self: self.trunk is not None)
    n_leaves = property(lambda self: living(self.depth).sum(dtype=jnp.int32))

    def priced(self, x: Float[Array, " width"]) -> tuple[Float[Array, " width"], Float[Array, ""]]:
        y, alive = self._tree(x), living(self.depth)
        price = jnp.where(in_order(alive, alive), 1 - self.leafness.value, 0).sum()
        if self.identity is not None:
            copied = self.identity.value
            y, price = copied * x + (1 - copied) * y, price + (1 - copied)
        return read(self.trunk, y), with_price(self.trunk, price)

    def _tree(self, x: Float[Array, " width"]) -> Float[Array, " width"]:
        sigma = ACTIVATIONS[self.activation]
        mix = jnp.unstack(mixing(self.leafness.value, self.depth))  # after leaf j: Σ_{k ≤ j} mix_jk p_k
        openness = jnp.unstack(1 - leaves_of(self.leafness.value))
        bud = jax.lax.stop_gradient(self.bud)
        stacks = (self.weight, self.bias, bud.weight, bud.bias)
        outputs: list[Array] = []
        hidden: list[Array] = []
        for j, (weight, bias, bud_weight, bud_bias) in enumerate(zip(*map(jnp.unstack, stacks), strict=True)):
            p = sigma(weight @ read(self.trunk, x) + bias)
            child = sigma(bud_weight @ read(self.trunk, p) + bud_bias) if self.probe == "bud" else jnp.zeros_like(p)
            # The leaf's output carries its probe; what the nodes that start here mix in later is the bare layer.
            leaf = p + openness[j] * jax.lax.stop_gradient(child - p)
            first, *others = [share * value for share, value in zip(jnp.unstack(mix[j]), [*outputs, leaf], strict=False)]
            x = sum(others, start=first)
            outputs.append(p)
            hidden.append(x)
        last = jnp.arange(self.capacity) == self.n_leaves - 1
        return jnp.where(last[:, None], jnp.stack(hidden), 0).sum(0)

    def axes(self, inputs: Any = None, weight: Any = None) -> Axes:
        # What an optimizer is given has no integers and no buds in it; the shapes are the same.
        depth = seedling(self.capacity) if self.depth is None else self.depth
        identity = None if self.identity is None or self.identity.value is None else self.identity

        def axis(openness: Callable[[], Array], is_open: Callable[[], Array], **options: Any) -> Axis:
            if identity is None:
                return Axis(openness, is_open, **options)
            gamma = identity  # a root that copies hides the tree
            return Axis(lambda: (1 - gamma.value) * openness(), lambda: is_open() & (gamma.value < 1), **options)

        arrays = declare(
            self,
            weight=ArrayAxes(("leaf", "row", TRUNK), MAP),
            bias=ArrayAxes(("leaf", "row"), STORED),
            bud=declare(self.bud, weight=ArrayAxes(("bud", "row", TRUNK)), bias=ArrayAxes(("bud", "row"))),
            leafness=ArrayAxes(("node",)),
            trunk=ArrayAxes((TRUNK,)),
        )
        leaf = axis(lambda: leaf_openness(self.leafness.value, depth), lambda: living(depth), depth=lambda: depth + 1)
        node = axis(
            lambda: node_openness(self.leafness.value, depth),
            lambda: in_order(living(depth), depth >= 0),
            depth=lambda: in_order(leaf_depth(depth), jnp.maximum(depth, 0)),
            picture=self._picture,
        )
        bud = Axis(depth=lambda: leaf_depth(depth) + 1)
        axes = {"leaf": leaf, "bud": bud, "node": node, "row": Axis(on=TRUNK), TRUNK: gate_axis(self.trunk)}
        options = {"capacity": self.capacity, "in_use": self._in_use, "n_shares": self._n_shares}
        return Axes(arrays, axes, size="node", is_fused=self.identity is None, **options)

    def _in_use(self) -> Int[Array | np.ndarray, "*members"]:
        # The host asks after every epoch: with NumPy, for JAX would compile a program for each little operation.
        xp: Any = jnp if isinstance(self.depth, jax.core.Tracer) else np
        return xp.asarray(1 + (xp.asarray(self.depth)[..., 1:] >= 0).sum(-1), np.int32)

    def _n_shares(self) -> Float[Array, ""]:
        """The numbers that mix its leaves; a single leaf has none."""
        leaves = jnp.asarray(self._in_use(), self.weight.dtype)
        return jnp.where(leaves > 1, leaves * (leaves + 1) / 2, 0)

    def _picture(self) -> Nodes:
        identity = None if self.identity is None else float(self.identity.value)
        return Nodes(np.asarray(self.depth), np.asarray(self.leafness.value), identity)

    def compact_layers(self) -> list[Layer]:
        """The leaves that the output depends on; a tree that copies its input is nothing at all.

        Leaves at the front that only the next one reads, whole, are plain layers; the rest is a tree.
        """
        leaves, layers = self._live_leaves(), list[Layer]()
        if not leaves or any(INPUT in leaf.reads for leaf in leaves):
            return [Tree(tuple(leaves), self.activation)] if leaves else []
        while leaves and leaves[0].shares.tolist() == [1] and not any(0 in leaf.reads for leaf in leaves[1:]):
            layers.append(Perceptron(leaves[0].weight, leaves[0].bias, self.activation))
            leaves = [Leaf(leaf.weight, leaf.bias, leaf.shares, tuple(k - 1 for k in leaf.reads)) for leaf in leaves[1:]]
        return [*layers, Tree(tuple(leaves), self.activation)] if leaves else layers

    def _live_leaves(self) -> list[Leaf]:
        """The leaves that the output depends on, in their order; one below γ = 1 is yet to open: its bud follows it."""
        nodes = self._picture()
        if nodes.identity == 1:
            return []
        stacks = self.weight, self.bias, self.bud.weight, self.bud.bias, jax.jit(mixing)(self.leafness.value, self.depth)
        weight, bias, bud_weight, bud_bias, mix = (np.asarray(array, np.float64) for array in stacks)
        layers: list[tuple[np.ndarray, np.ndarray]] = []
        inputs: list[dict[int, float]] = []  # what the layer after each one reads: {layer: share}
        place: list[int] = []  # of each leaf among the layers
        for j, gamma in enumerate(np.asarray(nodes.leafness, np.float64)[0 : 2 * nodes.n_leaves : 2]):
            place.append(len(layers))
            layers.append((weight[j], bias[j]))
            row = {place[k]: mix[j, k] for k in range(j + 1)}
            if gamma != 1:
                row[place[j]] *= gamma
                if self.probe == "bud":
                    inputs.append({place[j]: 1.0})
                    row[len(layers)] = mix[j, j] * (1 - gamma)
                    layers.append((bud_weight[j], bud_bias[j]))
            inputs.append({k: share for k, share in row.items() if share != 0} or {place[j]: 0.0})
        if copied := nodes.identity:  # neither None nor 0
            inputs[-1] = {INPUT: copied} | {k: (1 - copied) * share for k, share in inputs[-1].items()}
        needed = set(inputs[-1])
        for j in range(len(layers) - 1, 0, -1):
            needed |= set(inputs[j - 1]) if j in needed else set()
        # What follows a needed layer reads what the next needed one takes, or the output.
        order = sorted(needed - {INPUT})
        new = {old: i for i, old in enumerate(order)} | {INPUT: INPUT}
        feeds = [inputs[k - 1] for k in order[1:]] + [inputs[-1]]
        reads = [(np.array(list(row.values())), tuple(new[i] for i in row)) for row in feeds]
        return [Leaf(*layers[k], *read) for k, read in zip(order, reads, strict=True)]

    after_update, with_capacity = tree_growth.close_and_open, tree_growth.with_capacity

    def fault(self) -> str | None:
        rows = np.asarray(self.depth).reshape(-1, self.capacity).tolist()
        wrong = next((row for row in rows if not is_tree(row)), None)
        return super().fault() if wrong is None else f"depth {str(wrong)[:60]} is no tree."


@partial(jax.jit, static_argnums=1)
def _first_row(layer: tuple[Array, Array], capacity: int) -> list[Array]:
    """A layer's arrays as the first of `capacity` rows; the free ones hold zeros."""
    return [jnp.zeros((capacity, *part.shape), part.dtype).at[0].set(part) for part in layer]
