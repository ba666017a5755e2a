"""The paper's equations, written plainly and slowly: the oracle of the tests.

    (1) tunnel unit        y = g · σ(wᵀx + b) + (1 − g) · x
    (2) tunnel objective   J = Σ_x E(x) + λ Σ g
    (3) highway gate       as (1) with g(x) = sigmoid(vᵀx + c)
    (4) budding node       y_m(x) = (1 − γ_m) · y_right(y_left(x)) + γ_m · σ(W_m x + b_m)
    (5) budding objective  J = Σ_x E(x) + λ Σ_m (1 − γ_m)
    (6) tunnel size        s_l = Σ_k g_lk,   s = Σ_l s_l
    (7) highway size       as (6), g_lk(x) averaged over the inputs
    (8) budding size       s_m = 1 + (1 − γ_m)(s_left + s_right),   s = s_root;   a leaf: 1
    (–) trunk              t on what enters and on every nonlinearity, never on a copy:  h ← t · x;  σ ← t · σ
    (–) convolution        (W ∗ h)[o](p) = Σ_i Σ_tap W[o, i, tap] h[i](p + tap − center), 0 beyond the edge; depthwise: i = o
    (–) conv tunnel        h[c] ← g_c σ((W ∗ h + b)[c]) + (1 − g_c) h[c], on a trunk
    (–) conv branch        h ← h + V ∗ (g ⊙ σ(W ∗ (t · h) + b));   inverted: h ← h + V (g ⊙ σ(D ∗ σ(U (t · h) + b) + c))
    (–) identity root      y(x) = γ₀ · x + (1 − γ₀) · y_root(x),   J + λ (1 − γ₀),   s = (1 − γ₀) s_root   (a footnote)

The promise: every function here is one equation, for one sample and one network, recursive where the paper is, with real
nodes, and no trick that makes it fast. What is fast (nn, complexity) is tested against it, values and gradients.
"""

from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from meristem.layers.activation import ACTIVATIONS
from meristem.nn.budding import Budding


class Layer(NamedTuple):
    """σ(W x + b), without its σ."""

    weight: Any  # [width, width]
    bias: Any  # [width]


@dataclass
class Node:
    """A node of a budding tree. Left tying: `left.layer` is this node's own `layer`, the same object."""

    layer: Layer
    bud: Layer | None  # of a leaf: the right child that is not there yet; an inner node has none
    gamma: Any  # []; 1: a leaf
    left: "Node | None"
    right: "Node | None"
    depth: int  # of the root: 0

    @property
    def is_leaf(self) -> bool:
        return self.right is None


def perceptron(layer: Layer, x: Float[Array, " width"], activation: str) -> Float[Array, " width"]:
    """σ(W x + b)."""
    return ACTIVATIONS[activation](layer.weight @ x + layer.bias)


def tunnel_unit(
    weight: Float[Array, " width"], bias: Any, gate: Any, x: Float[Array, " width"], k: int, activation: str
) -> Float[Array, ""]:
    """Equation 1: unit k transforms the whole input, or copies entry k of it."""
    return gate * ACTIVATIONS[activation](weight @ x + bias) + (1 - gate) * x[k]


def tunnel(layers: list[Layer], gates: list[Array], x: Float[Array, " width"], activation: str) -> Float[Array, " width"]:
    """Equation 1, unit by unit, layer by layer."""
    for (weight, bias), gate in zip(layers, gates, strict=True):
        x = jnp.stack([tunnel_unit(weight[k], bias[k], gate[k], x, k, activation) for k in range(len(x))])
    return x


def on_trunk(
    layers: list[Layer], gates: list[Array], trunk: Float[Array, " width"], x: Float[Array, " width"], activation: str
) -> Float[Array, " width"]:
    """Equation 1 with a gate for each dimension of the trunk; gates of 1 make it a stack of perceptrons."""
    h = trunk * x
    for (weight, bias), gate in zip(layers, gates, strict=True):
        new = [trunk[k] * ACTIVATIONS[activation](weight[k] @ h + bias[k]) for k in range(len(h))]
        h = jnp.stack([gate[k] * new[k] + (1 - gate[k]) * h[k] for k in range(len(h))])
    return h


def convolution(weight: Array, h: Array) -> Array:
    """W ∗ h, position by position, tap by tap; weight [out, in, rows, columns], h [in, height, width]."""
    (_, height, width), (rows, columns) = h.shape, weight.shape[2:]
    out = [[jnp.zeros(weight.shape[0], h.dtype) for _ in range(width)] for _ in range(height)]
    for y, x, row, column in product(range(height), range(width), range(rows), range(columns)):
        from_y, from_x = y + row - rows // 2, x + column - columns // 2
        if 0 <= from_y < height and 0 <= from_x < width:
            out[y][x] = out[y][x] + weight[:, :, row, column] @ h[:, from_y, from_x]
    return jnp.moveaxis(jnp.array(out), -1, 0)


def depthwise(weight: Array, h: Array) -> Array:
    """D ∗ h, channel by channel; weight [channels, rows, columns]."""
    return jnp.stack([convolution(kernel[None, None], channel[None])[0] for kernel, channel in zip(weight, h, strict=True)])


def conv_tunnel(weight: Array, bias: Array, gate: Array, trunk: Array, x: Array) -> Array:
    """Rectifier layers [layers, …] on a trunk, channel by channel."""
    h = trunk[:, None, None] * x
    for w, b, g in zip(weight, bias, gate, strict=True):
        z = convolution(w, h)
        new = [trunk[c] * jnp.maximum(z[c] + b[c], 0) for c in range(len(h))]
        h = jnp.stack([g[c] * new[c] + (1 - g[c]) * h[c] for c in range(len(h))])
    return h


def conv_branch(inner: Array, bias: Array, gate: Array, outer: Array, trunk: Array, x: Array) -> Array:
    """Rectifier blocks [blocks, …] on a trunk."""
    h, t = x, trunk[:, None, None]
    for w, b, g, v in zip(inner, bias, gate, outer, strict=True):
        hidden = jnp.maximum(convolution(w, t * h) + b[:, None, None], 0)
        h = h + convolution(v, g[:, None, None] * hidden)
    return t * h


def conv_inverted(
    inner: Array, bias: Array, kernel: Array, shift: Array, gate: Array, outer: Array, trunk: Array, x: Array
) -> Array:
    """Rectifier blocks [blocks, …] of depthwise convolutions on a trunk."""
    h, t = x, trunk[:, None, None]
    for u, b, d, c, g, v in zip(inner, bias, kernel, shift, gate, outer, strict=True):
        hidden = jnp.maximum(jnp.tensordot(u, t * h, 1) + b[:, None, None], 0)
        hidden = jnp.maximum(depthwise(d, hidden) + c[:, None, None], 0)
        h = h + jnp.tensordot(v, g[:, None, None] * hidden, 1)
    return t * h


def tunnel_objective(errors: list[Array], gates: list[Array], penalty: float) -> Float[Array, ""]:
    """Equation 2; errors: E(x) of every sample."""
    return sum(errors, start=jnp.zeros(())) + penalty * tunnel_size(gates)


def tunnel_size(gates: list[Array]) -> Float[Array, ""]:
    """Equation 6."""
    return sum((g for layer in gates for g in layer), start=jnp.zeros(()))


def highway_gates(
    layers: list[Layer], gate_layers: list[Layer], x: Float[Array, " width"], activation: str
) -> list[Float[Array, " width"]]:
    """Equation 3: g(x) of every layer."""
    if not layers:
        return []
    gate = perceptron(gate_layers[0], x, "sigmoid")
    return [gate, *highway_gates(layers[1:], gate_layers[1:], tunnel(layers[:1], [gate], x, activation), activation)]


def highway(
    layers: list[Layer], gate_layers: list[Layer], x: Float[Array, " width"], activation: str
) -> Float[Array, " width"]:
    """Equation 1 with the gates of equation 3."""
    return tunnel(layers, highway_gates(layers, gate_layers, x, activation), x, activation)


def highway_size(
    layers: list[Layer], gate_layers: list[Layer], inputs: list[Float[Array, " width"]], activation: str
) -> Float[Array, ""]:
    """Equation 7; inputs: those of the validation set."""
    sizes = [tunnel_size(highway_gates(layers, gate_layers, x, activation)) for x in inputs]
    return sum(sizes, start=jnp.zeros(())) / len(sizes)


def budding(node: Node, x: Float[Array, " width"], activation: str, probe: str = "bud") -> Float[Array, " width"]:
    """Equation 4. A leaf's right child is its bud (probe "bud") or counts as 0 (probe "zero"); at γ = 1 neither shows in y,
    but the derivative by γ is the one of equation 4 with that child.
    """
    own = perceptron(node.layer, x, activation)
    if node.left is None or node.right is None:
        assert node.bud is not None
        child = perceptron(node.bud, own, activation) if probe == "bud" else jnp.zeros_like(own)
    else:
        child = budding(node.right, budding(node.left, x, activation, probe), activation, probe)
    return (1 - node.gamma) * child + node.gamma * own


def budding_objective(errors: list[Array], root: Node, penalty: float) -> Float[Array, ""]:
    """Equation 5; errors: E(x) of every sample. All nodes pay, leaves too."""
    return sum(errors, start=jnp.zeros(())) + penalty * sum((1 - node.gamma for node in nodes(root)), start=jnp.zeros(()))


def budding_size(node: Node) -> Float[Array, ""]:
    """Equation 8."""
    if node.left is None or node.right is None:
        return jnp.ones(())
    return 1 + (1 - node.gamma) * (budding_size(node.left) + budding_size(node.right))


def rooted(root: Node, identity: Any, x: Float[Array, " width"], activation: str, probe: str = "bud") -> Float[Array, " width"]:
    """The tree below a root that may copy its input; `identity` is γ₀."""
    return identity * x + (1 - identity) * budding(root, x, activation, probe)


def rooted_objective(errors: list[Array], root: Node, identity: Any, penalty: float) -> Float[Array, ""]:
    """Equation 5 with one more node."""
    return budding_objective(errors, root, penalty) + penalty * (1 - identity)


def rooted_size(root: Node, identity: Any) -> Float[Array, ""]:
    """Equation 8 below a root that may copy its input."""
    return (1 - identity) * budding_size(root)


def budding_hard_size(node: Node) -> int:
    """The number of nodes."""
    return len(nodes(node))


def nodes(node: Node) -> list[Node]:
    """The node and all below it in the tree's order: left subtree, the node, right subtree."""
    if node.left is None or node.right is None:
        return [node]
    return [*nodes(node.left), node, *nodes(node.right)]


def leaves(node: Node) -> list[Node]:
    """The leaves from left to right: the layers in the order in which they are applied."""
    return [n for n in nodes(node) if n.is_leaf]


def sprouted(leaf: Node, left_bud: Layer, right_bud: Layer) -> Node:
    """The same node with children: the left one has its layer, the right one what was its bud; γ is kept."""
    assert leaf.bud is not None
    left = Node(leaf.layer, left_bud, jnp.ones(()), None, None, leaf.depth + 1)
    right = Node(leaf.bud, right_bud, jnp.ones(()), None, None, leaf.depth + 1)
    return Node(leaf.layer, None, leaf.gamma, left, right, leaf.depth)


def to_layers(weight: Float[Array, "depth width width"], bias: Float[Array, "depth width"]) -> list[Layer]:
    """The layers of a stack."""
    return [Layer(weight[i], bias[i]) for i in range(len(bias))]


def to_tree(body: Budding) -> Node:
    """The tree of a `Budding`; differentiable by the body's arrays (its `depth` must be concrete).

    >>> import jax
    >>> body = Budding(width=3, key=jax.random.key(0))
    >>> to_tree(body).is_leaf
    True
    """
    structure = np.asarray(body.depth)
    n = 1 + int((structure[1:] >= 0).sum())
    layers, buds = to_layers(body.weight, body.bias), to_layers(body.bud.weight, body.bud.bias)
    gamma = body.leafness.value

    def build(first: int, last: int, depth: int) -> Node:
        if first == last:
            return Node(layers[first], buds[first], gamma[2 * first], None, None, depth)
        inner = min(range(first + 1, last + 1), key=lambda j: structure[j])
        assert structure[inner] == depth
        left, right = build(first, inner - 1, depth + 1), build(inner, last, depth + 1)
        return Node(layers[first], None, gamma[2 * inner - 1], left, right, depth)

    return build(0, n - 1, 0)
