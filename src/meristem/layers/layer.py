"""What a compact network is made of: a few kinds of layers, each one formula and its arrays.

    Pick         h ← h[rows]                                              the inputs that are read
    Affine       h ← W h + b                                              also without b
    Convolution  h ← W ∗ h + b                                            at every position; also without b
    Mean         h ← mean over positions of h
    Perceptron   h ← σ(W h + b)
    Residual     h ← σ(W h + b) + h
    Gated        h[rows] ← g · σ(W h + b) + (1 − g) · h[rows]             the open units alone; the others stay as they are
    Cascade      s = W h + b;  a_1 = σ(s_1);  a_l = σ(s_l + C_l [a_1 … a_{l−1}]);  h ← s_out + C_out [a_1 … a_L]
    Highway      g = sigmoid(V h + c);  h ← g · σ(W h + b) + (1 − g) · h
    Tree         p_j = σ(W_j h + b_j);  h ← Σ_k shares_jk · p_{reads_jk};  for each leaf j in turn
    Bag          h ← mean_m member_m(h)                                   each member the layers of a network

A layer says its formula once, in the operations of ops/operations.py: `layer(ops, h)` computes it in JAX or NumPy, or records
it for ONNX or PyTorch, whichever `ops` does. Arrays are JAX's or NumPy's; structure (rows, reads, the activation's name) is
static. A layer of your own is another subclass of `Layer`, and runs everywhere.
"""

import abc
from itertools import zip_longest
from typing import Any, TypeVar

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from meristem.layers.ops.operations import Ops

Constants = Array | np.ndarray
V = TypeVar("V")

INPUT = -1  # among the reads of a leaf: the tree's own input


class Layer(eqx.Module):
    """A map of the values of `n_in` units, by default the columns of its first array [out, in], to those of others.

    `units` are how many units with a nonlinearity it has: one number for each stage that waits for the one before.
    """

    n_in = property(lambda self: jax.tree.leaves(self)[0].shape[1])
    units = property(lambda self: ())

    @abc.abstractmethod
    def __call__(self, ops: Ops[V], h: V) -> V:
        """The layer's output, in these operations."""


class Pick(Layer):
    rows: tuple[int, ...] = eqx.field(static=True)  # ascending
    of: int = eqx.field(static=True)

    n_in = property(lambda self: self.of)

    def __call__(self, ops: Ops[V], h: V) -> V:
        return ops.pick(self.rows, h)


class Affine(Layer):
    """W h + b, or W h.

    >>> from meristem.layers.ops.numpy import NUMPY
    >>> Affine(np.array([[1.0, 2.0]]), np.array([0.5]))(NUMPY, np.ones((1, 2))).tolist()
    [[3.5]]
    """

    weight: Float[Constants, "out in"]
    bias: Float[Constants, " out"] | None

    def __call__(self, ops: Ops[V], h: V) -> V:
        return ops.affine(self.weight, self.bias, h)


class Convolution(Layer):
    """W ∗ h + b, or W ∗ h, for h [in, time] or [in, height, width]: as many positions come out as go in, zeros beyond the edge.

    >>> from meristem.layers.ops.numpy import NUMPY
    >>> Convolution(np.ones((1, 1, 3)), None)(NUMPY, np.array([[[1.0, 2.0, 3.0]]])).tolist()
    [[[3.0, 6.0, 5.0]]]
    """

    weight: Float[Constants, "out in *kernel"]
    bias: Float[Constants, " out"] | None

    def __call__(self, ops: Ops[V], h: V) -> V:
        return ops.conv(self.weight, self.bias, h)


class Mean(Layer):
    n: int = eqx.field(static=True)
    positions: tuple[int, ...] = eqx.field(static=True)

    n_in = property(lambda self: self.n)

    def __call__(self, ops: Ops[V], h: V) -> V:
        return ops.mean(len(self.positions), h)


class Units(eqx.Module):
    """Units with a nonlinearity, σ(W h + b), by the name of an `activation`."""

    weight: Float[Constants, "units in"]
    bias: Float[Constants, " units"]

    units = property(lambda self: (self.bias.shape[0],))

    def __call__(self: Any, ops: Ops[V], h: V) -> V:
        return ops.activate(self.activation, ops.affine(self.weight, self.bias, h))


class Perceptron(Units, Layer):
    activation: str = eqx.field(static=True)


class Residual(Units, Layer):
    activation: str = eqx.field(static=True)

    def __call__(self, ops: Ops[V], h: V) -> V:
        return ops.add(super().__call__(ops, h), h)


class Gated(Units, Layer):
    """The open units of a tunnel layer (equation 1); all others copy.

    >>> from meristem.layers.ops.numpy import NUMPY
    >>> layer = Gated(np.array([[2.0, 0.0, 0.0]]), np.zeros(1), np.array([0.5]), rows=(1,), activation="relu")
    >>> layer(NUMPY, np.array([[1.0, 10.0, 100.0]])).tolist()    # unit 1: half of relu(2), half of its 10
    [[1.0, 6.0, 100.0]]
    """

    gate: Float[Constants, " units"]
    rows: tuple[int, ...] = eqx.field(static=True)  # which units are open, ascending
    activation: str = eqx.field(static=True)

    def __call__(self, ops: Ops[V], h: V) -> V:
        return ops.merge_rows(self.gate, self.rows, self.weight.shape[1], super().__call__(ops, h), h)


class Cascade(Layer):
    """A tunnel network whose units read its input and one another, and never the copies between: h is not kept at all.

    A copied unit is a fixed combination of the input and of the activations before it, so it can be multiplied into the
    weights of whoever reads it; so can all gates. Rows of `weight` and `bias`: the stages one after the other, then the output.

    >>> from meristem.layers.ops.numpy import NUMPY
    >>> layer = Cascade(np.array([[2.0], [1.0]]), np.zeros(2), (np.array([[10.0]]),), activation="relu")
    >>> layer(NUMPY, np.ones((1, 1))).tolist()    # x + 10 relu(2 x)
    [[21.0]]
    """

    weight: Float[Constants, "rows in"]
    bias: Float[Constants, " rows"]
    couplings: tuple[Float[Constants, "_ _"], ...]  # [stage, all before]: of the second stage, the third, …, the output
    activation: str = eqx.field(static=True)

    units = property(lambda self: (self.couplings[0].shape[1], *(coupling.shape[0] for coupling in self.couplings[:-1])))

    def __call__(self, ops: Ops[V], h: V) -> V:
        *inner, last = self.couplings
        first, *stages, out = ops.split(ops.affine(self.weight, self.bias, h), [*self.units, last.shape[0]])
        active = ops.activate(self.activation, first)
        for k, (coupling, own) in enumerate(zip(inner, stages, strict=True), start=1):
            z = ops.affine(coupling, None, active, plus=own, name=f"coupling_{k}")
            active = ops.concat([active, ops.activate(self.activation, z)])
        return ops.affine(last, None, active, plus=out, name=f"coupling_{len(self.couplings)}")


class Highway(Units, Layer):
    """A layer with a gate network (equation 3)."""

    gate_weight: Float[Constants, "width width"]
    gate_bias: Float[Constants, " width"]
    activation: str = eqx.field(static=True)

    def __call__(self, ops: Ops[V], h: V) -> V:
        gate = ops.activate("sigmoid", ops.affine(self.gate_weight, self.gate_bias, h, name="gate"))
        return ops.mix(gate, super().__call__(ops, h), h)


class Leaf(eqx.Module):
    """A leaf of a tree: its layer, and which leaves' outputs, up to its own, make up the next leaf's input."""

    weight: Float[Constants, "width in"]
    bias: Float[Constants, " width"]
    shares: Float[Constants, " reads"]
    reads: tuple[int, ...] = eqx.field(static=True)  # leaves of the tree, ascending; INPUT: what the tree itself was given


class Tree(Layer):
    """A budding tree (equation 4) as the sequence of its live leaves.

    >>> from meristem.layers.ops.numpy import NUMPY
    >>> one = Leaf(np.array([[1.0]]), np.zeros(1), np.ones(1), reads=(0,))
    >>> two = Leaf(np.array([[10.0]]), np.zeros(1), np.array([0.25, 0.75]), reads=(0, 1))
    >>> Tree((one, two), activation="relu")(NUMPY, np.ones((1, 1))).tolist()
    [[7.75]]
    """

    leaves: tuple[Leaf, ...]
    activation: str = eqx.field(static=True)

    units = property(lambda self: tuple(leaf.bias.shape[0] for leaf in self.leaves))
    reads_input = property(lambda self: any(INPUT in leaf.reads for leaf in self.leaves))  # besides the first leaf

    def __call__(self, ops: Ops[V], h: V) -> V:
        values = {INPUT: h}
        for j, leaf in enumerate(self.leaves):
            values[j] = ops.activate(self.activation, ops.affine(leaf.weight, leaf.bias, h, name=f"leaf_{j}"))
            h = ops.combine(leaf.shares, [values[k] for k in leaf.reads], name=f"shares_{j}")
        return h


class Bag(Layer):
    """The mean of what several networks say.

    >>> from meristem.layers.ops.numpy import NUMPY
    >>> bag = Bag(((Affine(np.array([[1.0]]), None),), (Affine(np.array([[3.0]]), None),)))
    >>> bag(NUMPY, np.ones((1, 1))).tolist()
    [[2.0]]
    """

    members: tuple[tuple[Layer, ...], ...]

    n_in = property(lambda self: self.members[0][0].n_in)

    @property
    def units(self) -> tuple[int, ...]:
        """Those of the members side by side."""
        each = [tuple(n for layer in layers for n in layer.units) for layers in self.members]
        return tuple(sum(stage) for stage in zip_longest(*each, fillvalue=0))

    def __call__(self, ops: Ops[V], h: V) -> V:
        outputs = [h] * len(self.members)
        for m, layers in enumerate(self.members):
            for k, layer in enumerate(layers):
                with ops.named(f"member_{m}_{k}"):
                    outputs[m] = layer(ops, outputs[m])
        return ops.combine(np.full(len(outputs), 1 / len(outputs)), outputs, name="shares")
