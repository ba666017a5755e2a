"""What a compact network is made of: a few kinds of layers, each one formula and its arrays.

    Affine       h ← W h + b                                              also without b
    Perceptron   h ← σ(W h + b)
    Residual     h ← σ(W h + b) + h
    Gated        h[rows] ← g · σ(W h + b) + (1 − g) · h[rows]             the open units alone; the others stay as they are
    Cascade      s = W h + b;  a_1 = σ(s_1);  a_l = σ(s_l + C_l [a_1 … a_{l−1}]);  h ← s_out + C_out [a_1 … a_L]
    Highway      g = sigmoid(V h + c);  h ← g · σ(W h + b) + (1 − g) · h
    Tree         p_j = σ(W_j h + b_j);  h ← Σ_k shares_jk · p_{reads_jk};  for each leaf j in turn

Arrays are JAX's or NumPy's; what is structure (rows, reads, the activation's name) is static. Features stand first: a layer
takes one sample [in], or many as the columns of a matrix [in, n]. Imports nothing of meristem but the activations.
"""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from meristem.nn.activation import ACTIVATIONS

Values = Array | np.ndarray


class Layer(eqx.Module):
    """A map of one sample [in] or of many [in, n]; see the module's header."""

    @property
    @abc.abstractmethod
    def units(self) -> tuple[int, ...]:
        """How many units with a nonlinearity it has: one number for each that waits for the one before."""

    @abc.abstractmethod
    def __call__(self, h: Float[Array, "in *n"]) -> Float[Array, "out *n"]:
        """The layer's output."""


class Affine(Layer):
    """W h + b, or W h.

    >>> import jax.numpy as jnp
    >>> Affine(jnp.array([[1.0, 2.0]]), jnp.array([0.5]))(jnp.ones(2)).tolist()
    [3.5]
    """

    weight: Float[Values, "out in"]
    bias: Float[Values, " out"] | None

    @property
    def units(self) -> tuple[int, ...]:
        return ()

    def __call__(self, h: Float[Array, "in *n"]) -> Float[Array, "out *n"]:
        return _affine(self.weight, self.bias, h)


class Perceptron(Layer):
    """σ(W h + b)."""

    weight: Float[Values, "out in"]
    bias: Float[Values, " out"]
    activation: str = eqx.field(static=True)

    @property
    def units(self) -> tuple[int, ...]:
        return (self.bias.shape[0],)

    def __call__(self, h: Float[Array, "in *n"]) -> Float[Array, "out *n"]:
        return ACTIVATIONS[self.activation](_affine(self.weight, self.bias, h))


class Residual(Layer):
    """σ(W h + b) + h."""

    weight: Float[Values, "width width"]
    bias: Float[Values, " width"]
    activation: str = eqx.field(static=True)

    @property
    def units(self) -> tuple[int, ...]:
        return (self.bias.shape[0],)

    def __call__(self, h: Float[Array, "in *n"]) -> Float[Array, "out *n"]:
        return ACTIVATIONS[self.activation](_affine(self.weight, self.bias, h)) + h


class Gated(Layer):
    """The open units of a tunnel layer (equation 1); all others copy.

    >>> import jax.numpy as jnp
    >>> layer = Gated(jnp.array([[2.0, 0.0, 0.0]]), jnp.zeros(1), jnp.array([0.5]), rows=(1,), activation="relu")
    >>> layer(jnp.array([1.0, 10.0, 100.0])).tolist()    # unit 1: half of relu(2), half of its 10
    [1.0, 6.0, 100.0]
    """

    weight: Float[Values, "open width"]
    bias: Float[Values, " open"]
    gate: Float[Values, " open"]
    rows: tuple[int, ...] = eqx.field(static=True)  # which units are open, ascending
    activation: str = eqx.field(static=True)

    @property
    def units(self) -> tuple[int, ...]:
        return (len(self.rows),)

    def __call__(self, h: Float[Array, "in *n"]) -> Float[Array, "out *n"]:
        gate = _column(self.gate, h)
        complex_ = gate * ACTIVATIONS[self.activation](_affine(self.weight, self.bias, h))
        if len(self.rows) == h.shape[0]:
            return complex_ + (1 - gate) * h
        # Every unit looks up its gate and its value: a copy into some rows of h would be slower than all of the layer.
        is_open = np.zeros(h.shape[0], bool)
        is_open[list(self.rows)] = True
        place = np.maximum(np.cumsum(is_open) - 1, 0)
        return jnp.where(_column(is_open, h), complex_[place] + (1 - gate)[place] * h, h)


class Cascade(Layer):
    """A tunnel network whose units read its input and one another, and never the copies between: h is not kept at all.

    A copied unit is a fixed combination of the input and of the activations before it, so it can be multiplied into the
    weights of whoever reads it; so can all gates. Rows of `weight` and `bias`: the stages one after the other, then the output.

    >>> import jax.numpy as jnp
    >>> layer = Cascade(jnp.array([[2.0], [1.0]]), jnp.zeros(2), (jnp.array([[10.0]]),), activation="relu")
    >>> layer(jnp.ones(1)).tolist()    # x + 10 relu(2 x)
    [21.0]
    """

    weight: Float[Values, "rows in"]
    bias: Float[Values, " rows"]
    couplings: tuple[Float[Values, "_ _"], ...]  # [stage, all before]: of the second stage, the third, …, the output
    activation: str = eqx.field(static=True)

    @property
    def units(self) -> tuple[int, ...]:
        return (self.couplings[0].shape[1], *(coupling.shape[0] for coupling in self.couplings[:-1]))

    def __call__(self, h: Float[Array, "in *n"]) -> Float[Array, "out *n"]:
        first, *others = jnp.split(_affine(self.weight, self.bias, h), np.cumsum(self.units))
        sigma = ACTIVATIONS[self.activation]
        active = sigma(first)
        for coupling, own in zip(self.couplings[:-1], others[:-1], strict=True):
            active = jnp.concatenate([active, sigma(own + coupling @ active)])
        return others[-1] + self.couplings[-1] @ active


class Highway(Layer):
    """A layer with a gate network (equation 3)."""

    weight: Float[Values, "width width"]
    bias: Float[Values, " width"]
    gate_weight: Float[Values, "width width"]
    gate_bias: Float[Values, " width"]
    activation: str = eqx.field(static=True)

    @property
    def units(self) -> tuple[int, ...]:
        return (self.bias.shape[0],)

    def __call__(self, h: Float[Array, "in *n"]) -> Float[Array, "out *n"]:
        gate = jax.nn.sigmoid(_affine(self.gate_weight, self.gate_bias, h))
        return gate * ACTIVATIONS[self.activation](_affine(self.weight, self.bias, h)) + (1 - gate) * h


class Leaf(eqx.Module):
    """A leaf of a tree: its layer, and which leaves' outputs, up to its own, make up the next leaf's input."""

    weight: Float[Values, "width in"]
    bias: Float[Values, " width"]
    shares: Float[Values, " reads"]
    reads: tuple[int, ...] = eqx.field(static=True)  # leaves of the tree, ascending


class Tree(Layer):
    """A budding tree (equation 4) as the sequence of its live leaves.

    >>> import jax.numpy as jnp
    >>> one = Leaf(jnp.array([[1.0]]), jnp.zeros(1), jnp.ones(1), reads=(0,))
    >>> two = Leaf(jnp.array([[10.0]]), jnp.zeros(1), jnp.array([0.25, 0.75]), reads=(0, 1))
    >>> Tree((one, two), activation="relu")(jnp.ones(1)).tolist()
    [7.75]
    """

    leaves: tuple[Leaf, ...]
    activation: str = eqx.field(static=True)

    @property
    def units(self) -> tuple[int, ...]:
        return tuple(leaf.bias.shape[0] for leaf in self.leaves)

    def __call__(self, h: Float[Array, "in *n"]) -> Float[Array, "out *n"]:
        outputs: list[Array] = []
        for leaf in self.leaves:
            outputs.append(ACTIVATIONS[self.activation](_affine(leaf.weight, leaf.bias, h)))
            first, *others = [share * outputs[k] for share, k in zip(jnp.unstack(leaf.shares), leaf.reads, strict=True)]
            h = sum(others, start=first)
        return h


def _affine(weight: Values, bias: Values | None, h: Array) -> Array:
    y = jnp.matmul(weight, h)
    return y if bias is None else y + _column(bias, h)


def _column(values: Values, h: Array) -> Array:
    """[out] beside one sample, [out, 1] beside many."""
    return jnp.asarray(values).reshape(-1, *[1] * (h.ndim - 1))
