"""What stands around convolutional bodies: the stem of an image, and the maps between stages.

    ImageStem      h = W ∗ ((x − mean) / scale)      x [height, width, channels] or [height, width], as users have images
    Downsample     h ← P · (means of h over windows of 2 × 2)

mean and scale, one for each channel, are constants of the network: bytes come in as numbers from 0 to 1. Of an odd number of
rows the last is left out by means over windows; a single row stays. Both maps are linear.
"""

import math
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num, PRNGKeyArray

from meristem.check import check_number, check_size, short
from meristem.layers.image_layers import Pixels, Pool
from meristem.layers.layer import Convolution, Layer
from meristem.layers.ops.jax import JAX
from meristem.nn.axes import MAP, ArrayAxes, Axes, declare
from meristem.nn.body import Part
from meristem.nn.linear import random_kernel

PIXEL_MEAN, PIXEL_SCALE = 0.5, 0.25


class ImageStem(Part):
    """An image [height, width, channels] or [height, width] as values [n, height, width].

    >>> import jax
    >>> ImageStem((5, 4, 3), 2, key=jax.random.key(0))(jnp.ones((5, 4, 3))).shape
    (2, 5, 4)
    """

    weight: Float[Array, "width channels rows columns"]
    input_shape: tuple[int, ...] = eqx.field(static=True)
    pixel_mean: tuple[float, ...] = eqx.field(static=True)
    pixel_scale: tuple[float, ...] = eqx.field(static=True)

    def __init__(
        self,
        input_shape: Sequence[int],
        width: int,
        *,
        kernel: int = 3,
        pixel_mean: Any = PIXEL_MEAN,
        pixel_scale: Any = PIXEL_SCALE,
        key: PRNGKeyArray,
    ):
        self.input_shape = image_shape(input_shape)
        channels, kernel = (*self.input_shape, 1)[2], check_size("kernel", kernel)
        self.pixel_mean = _each_channel("pixel_mean", pixel_mean, channels, "from −1e9 to 1e9", lambda v: abs(v) <= 1e9)
        self.pixel_scale = _each_channel("pixel_scale", pixel_scale, channels, "from 1e-9 to 1e9", lambda v: 1e-9 <= v <= 1e9)
        shape = (check_size("width", width), channels, kernel, kernel)
        self.weight = random_kernel(key, shape, channels * kernel**2, gain=1)

    width = property(lambda self: self.weight.shape[-4])
    kernel = property(lambda self: self.weight.shape[-1])

    def __call__(self, x: Num[Array, "height width ..."]) -> Float[Array, "n height width"]:
        if not jnp.issubdtype(x.dtype, jnp.inexact):
            raise ValueError(f"An image has type {x.dtype}; a network takes floats, of bytes x / 255.")
        return JAX.conv_in_loop(self.weight, None, self._pixels()(JAX, x))

    def _pixels(self) -> Pixels:
        return Pixels(self.pixel_mean, self.pixel_scale, self.input_shape)

    def axes(self) -> Axes:
        weight = ArrayAxes(("out", "in", "tap", "tap"), MAP, math.prod(self.input_shape[:2]), "in")
        return Axes(declare(self, weight=weight), {}, trunks=("in", "out"))

    def compact_layers(self) -> list[Layer]:
        return [self._pixels(), Convolution(np.asarray(self.weight, np.float64), None)]

    def options(self) -> dict[str, Any]:
        return {name: list(value) if isinstance(value, tuple) else value for name, value in super().options().items()}


class Downsample(Part):
    """The means over windows of 2 × 2, and a linear map of the channels: [in, *positions] → [out, *halved(positions)].

    >>> import jax
    >>> Downsample(2, 3, positions=(5, 4), key=jax.random.key(0))(jnp.ones((2, 5, 4))).shape
    (3, 2, 2)
    """

    weight: Float[Array, "out in"]
    positions: tuple[int, ...] = eqx.field(static=True)  # of what enters

    def __init__(self, n_in: int, n_out: int, positions: Sequence[int], *, key: PRNGKeyArray):
        self.weight = random_kernel(key, (check_size("n_out", n_out), check_size("n_in", n_in)), n_in, gain=1)
        self.positions = tuple(check_size("positions", n) for n in positions)

    n_in = property(lambda self: self.weight.shape[-1])
    n_out = property(lambda self: self.weight.shape[-2])
    window = property(lambda self: tuple(min(n, 2) for n in self.positions))

    def __call__(self, x: Float[Array, "in ..."]) -> Float[Array, "out ..."]:
        return JAX.conv_in_loop(self.kernel(self.weight), None, JAX.pool(self.window, x))

    def kernel(self, weight: Any) -> Any:
        return weight.reshape(*weight.shape, *[1] * len(self.positions))

    def axes(self) -> Axes:
        weight = ArrayAxes(("out", "in"), MAP, math.prod(halved(self.positions)))
        return Axes(declare(self, weight=weight), {}, trunks=("in", "out"))

    def compact_layers(self) -> list[Layer]:
        weight = np.asarray(self.weight, np.float64)
        return [Pool(self.n_in, self.window), Convolution(self.kernel(weight), None)]

    def options(self) -> dict[str, Any]:
        return super().options() | {"positions": list(self.positions)}


def halved(positions: Sequence[int]) -> tuple[int, ...]:
    """Return how many positions come out of means over windows of 2, in each direction.

    >>> halved((28, 7, 1))
    (14, 3, 1)
    """
    return tuple(max(1, n // 2) for n in positions)


def image_shape(shape: Any) -> tuple[int, ...]:
    """Return the shape of an image, (height, width) or (height, width, channels); ValueError where it is none."""
    if not isinstance(shape, tuple | list) or len(shape) not in (2, 3):
        raise ValueError(f"input_shape={short(shape)} must be (height, width) or (height, width, channels).")
    return tuple(check_size("input_shape", n) for n in shape)


def _each_channel(name: str, value: Any, channels: int, *limits: Any) -> tuple[float, ...]:
    values = np.ravel(np.asarray(value, float)).tolist()
    values = values * channels if len(values) == 1 else values
    if len(values) != channels:
        raise ValueError(f"{name}={short(value)} must be a number, or {channels}: one for each channel.")
    for number in values:
        check_number(name, number, *limits)
    return tuple(values)
