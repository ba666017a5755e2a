"""The layers of convolutional networks, in the operations of ops/operations.py; h is [channels, *positions].

    Pixels                h ← (x − mean) / scale of each channel            x [*positions, channels] or [*positions]
    Pool                  h ← means over windows side by side
    GatedConvolution      h[rows] ← g · σ(W ∗ h + b) + (1 − g) · h[rows]    the open channels alone
    ConvolutionBlock      h ← h + V ∗ σ(W ∗ h + b)                          V has the gates in it
    InvertedBlock         h ← h + V σ(D ∗ σ(U h + b) + c)                   D has a kernel for each unit

All but the first keep the order of dimensions.
"""

from collections.abc import Sequence

import equinox as eqx
import numpy as np
from jaxtyping import Float

from meristem.layers.compact_network import CompactNetwork
from meristem.layers.layer import Bag, Constants, Layer, V
from meristem.layers.ops.operations import Ops


class Pixels(Layer):
    """Pixels as a network reads them.

    >>> from meristem.layers.ops.numpy import NUMPY
    >>> Pixels((0.5,), (0.25,), input_shape=(1, 2))(NUMPY, np.array([[[0.5, 1.0]]])).tolist()
    [[[[0.0, 2.0]]]]
    """

    mean: tuple[float, ...] = eqx.field(static=True)  # of each channel
    scale: tuple[float, ...] = eqx.field(static=True)
    input_shape: tuple[int, ...] = eqx.field(static=True)  # height, width, and channels if it has some

    n_in = property(lambda self: self.input_shape[0])

    def __call__(self, ops: Ops[V], h: V) -> V:
        h = ops.channels_first(2, len(self.input_shape) == 3, h)
        factor = 1 / np.array(self.scale)
        return ops.depthwise(factor[:, None, None], -np.array(self.mean) * factor, h, name="pixels")


def raw_pixels(network: CompactNetwork, unit: float) -> CompactNetwork:
    """Return the network of pixels in units of 1 / `unit` as one of pixels as they are."""
    first, *rest = network.layers
    assert isinstance(first, Pixels)
    mean, scale = (tuple(unit * value for value in values) for values in (first.mean, first.scale))
    return CompactNetwork((Pixels(mean, scale, first.input_shape), *rest), network.positions)


def bag_of(networks: Sequence[CompactNetwork]) -> CompactNetwork:
    """Return the network whose outputs are the mean of theirs; of images, whose pixels all scale alike, it scales them once."""
    first = networks[0]
    if len(networks) == 1:
        return first
    shared = int(isinstance(first.layers[0], Pixels))
    bag = Bag(tuple(network.layers[shared:] for network in networks))
    return CompactNetwork((*first.layers[:shared], bag), first.positions)


class Pool(Layer):
    n: int = eqx.field(static=True)  # channels
    window: tuple[int, ...] = eqx.field(static=True)

    n_in = property(lambda self: self.n)

    def __call__(self, ops: Ops[V], h: V) -> V:
        return ops.pool(self.window, h)


class GatedConvolution(Layer):
    weight: Float[Constants, "units in *kernel"]
    bias: Float[Constants, " units"]
    gate: Float[Constants, " units"]
    rows: tuple[int, ...] = eqx.field(static=True)  # which channels are open, ascending
    activation: str = eqx.field(static=True)

    units = property(lambda self: (len(self.rows),))

    def __call__(self, ops: Ops[V], h: V) -> V:
        new = ops.activate(self.activation, ops.conv(self.weight, self.bias, h))
        return ops.merge_rows(self.gate, self.rows, self.weight.shape[1], new, h, positions=self.weight.ndim - 2)


class ConvolutionBlock(Layer):
    inner: Float[Constants, "units width *kernel"]
    bias: Float[Constants, " units"]
    outer: Float[Constants, "width units *kernel"]
    activation: str = eqx.field(static=True)

    units = property(lambda self: (len(self.bias),))

    def __call__(self, ops: Ops[V], h: V) -> V:
        hidden = ops.activate(self.activation, ops.conv(self.inner, self.bias, h))
        return ops.add(ops.conv(self.outer, None, hidden, name="outer"), h)


class InvertedBlock(Layer):
    inner: Float[Constants, "units width *ones"]
    bias: Float[Constants, " units"]
    kernel: Float[Constants, "units *kernel"]
    shift: Float[Constants, " units"]
    outer: Float[Constants, "width units *ones"]
    activation: str = eqx.field(static=True)

    units = property(lambda self: (len(self.bias),) * 2)

    def __call__(self, ops: Ops[V], h: V) -> V:
        hidden = ops.activate(self.activation, ops.conv(self.inner, self.bias, h))
        hidden = ops.activate(self.activation, ops.depthwise(self.kernel, self.shift, hidden))
        return ops.add(ops.conv(self.outer, None, hidden, name="outer"), h)
