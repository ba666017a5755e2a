"""Augmentation by name: changes of the images of a step that keep their class, as functions of (key, images), on the device.

    flip      left and right are exchanged in half of the images
    crop      each image is shifted by up to an eighth of its side in both directions; its edges are mirrored into the gap
    cutout    a square of half the side, anywhere, has the mean color of its image

Images [n, height, width] or [n, height, width, channels] come as bytes or floats and stay what they are. One's own is a
function in `AUGMENTATIONS`, which `Recipe(augment=("flip", "mine"))` and files name.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, Num, PRNGKeyArray

Images = Num[Array, "n height width ..."]
CROP, CUTOUT = 1 / 8, 1 / 2  # of the side


def flip(key: PRNGKeyArray, x: Images) -> Images:
    is_flipped = jax.random.bernoulli(key, 0.5, (x.shape[0], *[1] * (x.ndim - 1)))
    return jnp.where(is_flipped, x[:, :, ::-1], x)


def crop(key: PRNGKeyArray, x: Images) -> Images:
    rows, columns = (
        _mirrored(own, n, x.shape[0]) for own, n in zip(jax.random.split(key), x.shape[1:3], strict=True)
    )  # [n, height], [n, width]
    return x[jnp.arange(x.shape[0])[:, None, None], rows[:, :, None], columns[:, None, :]]


def _mirrored(key: PRNGKeyArray, size: int, n: int) -> Int[Array, "n size"]:
    """Return the positions that n images are read at along an axis, each shifted; beyond an edge as in a mirror."""
    most = max(1, round(CROP * size)) if size > 1 else 0
    places = jnp.arange(size)[None] + jax.random.randint(key, (n, 1), -most, most + 1)
    places = jnp.abs(places)
    return jnp.where(places >= size, 2 * (size - 1) - places, places)


def cutout(key: PRNGKeyArray, x: Images) -> Images:
    inside = jnp.ones((x.shape[0], 1, 1), bool)
    for axis, own in zip((1, 2), jax.random.split(key), strict=True):
        size, side = x.shape[axis], max(1, round(CUTOUT * x.shape[axis]))
        first = jax.random.randint(own, (x.shape[0], 1), 0, size) - side // 2
        places = jnp.arange(size)[None]
        is_there = (places >= first) & (places < first + side)
        inside = inside & jnp.expand_dims(is_there, 3 - axis)
    color = x.mean((1, 2), keepdims=True).astype(x.dtype)
    return jnp.where(inside.reshape(*inside.shape, *[1] * (x.ndim - 3)), color, x)


AUGMENTATIONS: dict[str, Callable[[PRNGKeyArray, Images], Images]] = {"flip": flip, "crop": crop, "cutout": cutout}


def augmented(key: PRNGKeyArray, x: Images, names: tuple[str, ...]) -> Images:
    """Return the images after each of the changes, in this order.

    >>> augmented(jax.random.key(0), jnp.ones((2, 8, 8, 3), jnp.uint8), ("crop", "flip")).dtype
    dtype('uint8')
    """
    for number, name in enumerate(names):
        x = AUGMENTATIONS[name](jax.random.fold_in(key, number), x)
    return x


def check_images(names: tuple[str, ...], shape: tuple[int, ...]) -> None:
    """Raise ValueError where augmentation meets samples that are no images."""
    if names and len(shape) not in (2, 3):
        raise ValueError(f"augment={names} is for images [height, width] or [height, width, channels], not samples {shape}.")
