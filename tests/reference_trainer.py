"""The training of a budding perceptron, written plainly and slowly: one sample, one step, real nodes, numpy.

    gradient    of J = E(x) + penalty · Σ_m (1 − γ_m) + l2 · ½ ‖W‖², by recursion through equation 4; a root that may copy
                its input (γ₀) is one more node, and what is behind it while γ₀ = 1 feels no l2
    Adam        m ← β1 m + (1 − β1) g,   v ← β2 v + (1 − β2) g²,   p ← p − rate · decay^depth · m̂ / (√v̂ + ε);
                each parameter has its moments, its age and its depth with it
    project     γ ← clip(γ, 0, 1)
    close       an inner node with γ = 1 becomes a leaf; its right child's layer becomes its bud
    open        a leaf with γ < 1 gets children if there is room, left-most first; if not, γ ← 1

The promise: what train/ and nn/tree_growth.py do to arrays of fixed capacity, this does to nodes that come and go. It draws
fresh buds from the same keys, so the two can be followed side by side, step by step.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from meristem.nn.budding import Budding
from meristem.nn.linear import he_layer
from meristem.nn.network import Network, linear_ends
from reference import Layer, Node, leaves, nodes, to_tree

# σ and its derivative
SIGMAS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "relu": (lambda a: np.maximum(a, 0), lambda a: (a > 0) * 1.0),
    "tanh": (np.tanh, lambda a: 1 - np.tanh(a) ** 2),
}


@dataclass
class Parameter:
    """A trained array and all that Adam knows of it."""

    value: np.ndarray
    depth: int = 0  # of its layer or node: its rate is decay^depth
    grad: Any = 0.0
    m: Any = 0.0
    v: Any = 0.0
    age: int = 0


@dataclass
class Growth:
    """What one step did."""

    opened: int = 0
    closed: int = 0
    waited: int = 0


@dataclass
class ReferenceTrainer:
    """An online trainer of `embed → tree → head` for one logit and targets 0 or 1.

    The tree is made of `reference.Node`s whose layers and γ's are `Parameter`s; a bud, which is never trained, holds arrays.
    """

    embed: Parameter
    root: Node
    head: Layer
    activation: str
    probe: str
    capacity: int
    rate: float
    penalty: float
    l2: float = 1e-5
    decay: float = 0.75
    identity: Parameter | None = None  # γ₀
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    total: Growth = field(default_factory=Growth)

    @classmethod
    def of(cls, network: Network, *, rate: float, penalty: float, l2: float = 1e-5, decay: float = 0.75) -> "ReferenceTrainer":
        """The trainer of a fresh network (all moments zero), of the same capacity."""
        body = network.body
        assert isinstance(body, Budding)
        embed, head = linear_ends(network)
        assert head.bias is not None
        return cls(
            embed=Parameter(_numpy(embed.weight)),
            root=_with_parameters(to_tree(body), None, 0),
            head=Layer(Parameter(_numpy(head.weight)), Parameter(_numpy(head.bias))),
            activation=body.activation,
            probe=body.probe,
            capacity=body.capacity,
            rate=rate,
            penalty=penalty,
            l2=l2,
            decay=decay,
            identity=None if body.identity is None else Parameter(_numpy(body.identity.value)),
        )

    def step(self, x: np.ndarray, y: float, key: PRNGKeyArray) -> Growth:
        """One sample: gradient, Adam, projection, growth. `key` draws the fresh buds."""
        self.gradient(_numpy(x), float(y))
        for parameter in self.parameters():
            self._adam(parameter)
        for gamma in [node.gamma for node in nodes(self.root)] + self._identity():
            gamma.value = np.clip(gamma.value, 0, 1)
        return self.grow(key)

    def parameters(self) -> list[Parameter]:
        """All that is trained; a layer that several nodes share appears once."""
        layers = [part for leaf in leaves(self.root) for part in leaf.layer]
        return [self.embed, *self.head, *layers, *[node.gamma for node in nodes(self.root)], *self._identity()]

    def _identity(self) -> list[Parameter]:
        return [] if self.identity is None else [self.identity]

    # ---- gradient

    def gradient(self, x: np.ndarray, y: float) -> float:
        """Leaves ∂J/∂p in every parameter's `grad`; returns E(x)."""
        for parameter in self.parameters():
            parameter.grad = np.zeros_like(parameter.value)
        h = self.embed.value @ x
        tree = self.forward(self.root, h)
        copied = 0.0 if self.identity is None else self.identity.value
        output = copied * h + (1 - copied) * tree
        logit = float((self.head.weight.value @ output + self.head.bias.value)[0])

        d_logit = np.array([1 / (1 + np.exp(-logit)) - y])  # E = log(1 + e^o) − y·o
        self.head.weight.grad += d_logit[:, None] * output[None, :]
        self.head.bias.grad += d_logit
        d_output = self.head.weight.value.T @ d_logit
        d_h = copied * d_output + self.backward(self.root, h, (1 - copied) * d_output)
        self.embed.grad += d_h[:, None] * x[None, :]

        for node in nodes(self.root):
            node.gamma.grad -= self.penalty
        for identity in self._identity():
            identity.grad += d_output @ (h - tree) - self.penalty
        behind = [leaf.layer.weight for leaf in leaves(self.root)] if copied < 1 else []
        for weight in [self.embed, self.head.weight, *behind]:
            weight.grad += self.l2 * weight.value
        return float(np.logaddexp(0, logit) - y * logit)

    def forward(self, node: Node, x: np.ndarray) -> np.ndarray:
        """Equation 4."""
        gamma = node.gamma.value
        return (1 - gamma) * self._child(node, x) + gamma * self._perceptron(node.layer, x)

    def _child(self, node: Node, x: np.ndarray) -> np.ndarray:
        """y_right(y_left(x)); of a leaf, what its bud would give."""
        if node.left is not None and node.right is not None:
            return self.forward(node.right, self.forward(node.left, x))
        own = self._perceptron(node.layer, x)
        if self.probe == "zero":
            return np.zeros_like(own)
        assert node.bud is not None
        return SIGMAS[self.activation][0](node.bud.weight @ own + node.bud.bias)

    def backward(self, node: Node, x: np.ndarray, d_y: np.ndarray) -> np.ndarray:
        """∂E/∂x from ∂E/∂y of equation 4; adds to the `grad` of all below. A leaf has γ = 1: no way leads through its bud."""
        gamma = node.gamma.value
        node.gamma.grad += d_y @ (self._perceptron(node.layer, x) - self._child(node, x))
        d_a = gamma * d_y * SIGMAS[self.activation][1](node.layer.weight.value @ x + node.layer.bias.value)
        node.layer.weight.grad += d_a[:, None] * x[None, :]
        node.layer.bias.grad += d_a
        d_x = node.layer.weight.value.T @ d_a
        if node.left is None or node.right is None:
            assert gamma == 1
            return d_x
        d_middle = self.backward(node.right, self.forward(node.left, x), (1 - gamma) * d_y)
        return d_x + self.backward(node.left, x, d_middle)

    def _perceptron(self, layer: Layer, x: np.ndarray) -> np.ndarray:
        return SIGMAS[self.activation][0](layer.weight.value @ x + layer.bias.value)

    def _adam(self, p: Parameter) -> None:
        b1, b2 = self.betas
        p.age += 1
        p.m = b1 * p.m + (1 - b1) * p.grad
        p.v = b2 * p.v + (1 - b2) * p.grad**2
        m_hat, v_hat = p.m / (1 - b1**p.age), p.v / (1 - b2**p.age)
        p.value = p.value - self.rate * self.decay**p.depth * m_hat / (np.sqrt(v_hat) + self.eps)

    # ---- growth

    def grow(self, key: PRNGKeyArray) -> Growth:
        """Close, then open, then hold back what found no place."""
        growth = Growth()
        self._close(self.root, growth)
        opened = self._open(growth)
        # A fresh bud is drawn with its body's number, here 0, and its own place among the leaves, after all openings.
        body_key = jax.random.fold_in(key, 0)
        for place, leaf in enumerate(leaves(self.root)):
            if any(leaf is child for node in opened for child in (node.left, node.right)):
                leaf.bud = Layer(*map(_numpy, he_layer(jax.random.fold_in(body_key, place), leaf.layer.weight.value.shape)))
        self.total.opened += growth.opened
        self.total.closed += growth.closed
        self.total.waited += growth.waited
        return growth

    def _close(self, node: Node, growth: Growth) -> None:
        """From the root down, so that of two nested nodes that close the outer one does."""
        if node.left is None or node.right is None:
            return
        if node.gamma.value == 1:
            node.bud = Layer(node.right.layer.weight.value, node.right.layer.bias.value)
            node.left = node.right = None
            growth.closed += 1
        else:
            self._close(node.left, growth)
            self._close(node.right, growth)

    def _open(self, growth: Growth) -> list[Node]:
        room = self.capacity - len(leaves(self.root))
        opened: list[Node] = []
        for leaf in leaves(self.root):
            if leaf.gamma.value == 1:
                continue
            if len(opened) == room:
                leaf.gamma.value = np.ones(())  # its moments stay: it asks again
                growth.waited += 1
                continue
            assert leaf.bud is not None
            depth = leaf.depth + 1
            newborn = Layer(Parameter(leaf.bud.weight, depth), Parameter(leaf.bud.bias, depth))
            leaf.left = Node(leaf.layer, None, Parameter(np.ones(()), depth), None, None, depth)
            leaf.right = Node(newborn, None, Parameter(np.ones(()), depth), None, None, depth)
            leaf.bud = None
            opened.append(leaf)
        growth.opened += len(opened)
        return opened

    # ---- the tree as the arrays of tree.py

    def structure(self) -> list[int]:
        """The depth array of tree.py: −1, the depths of the inner nodes in order, −1 for each free place."""
        inner = [node.depth for node in nodes(self.root) if not node.is_leaf]
        return [-1, *inner, *[-1] * (self.capacity - 1 - len(inner))]


def _numpy(array: Array | np.ndarray) -> np.ndarray:
    return np.asarray(array, np.float64)


def _with_parameters(node: Node, layer: Layer | None, created: int) -> Node:
    """The tree with Parameters; `layer` is the parent's where it is shared, `created` the depth at which this one came."""
    if layer is None:
        layer = Layer(Parameter(_numpy(node.layer.weight), created), Parameter(_numpy(node.layer.bias), created))
    bud = None if node.bud is None else Layer(_numpy(node.bud.weight), _numpy(node.bud.bias))
    left = None if node.left is None else _with_parameters(node.left, layer, node.depth + 1)
    right = None if node.right is None else _with_parameters(node.right, None, node.depth + 1)
    return Node(layer, bud, Parameter(_numpy(node.gamma), node.depth), left, right, node.depth)
