"""Images as people have them, and the numbers that a network on them needs: their shape, and the mean and scale of its pixels.

    X [n, height, width] or [n, height, width, channels]     bytes or other numbers, of any size and number of channels
    X [n, values] with shape=(height, width[, channels])     flat images
    X [n, values] without a shape                            images of one row: a table, as scikit-learn's checks have it

Mean and scale are rough on purpose (the scale is a power of 2): they are constants of the compiled program, which similar
images then share.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Shaped
from sklearn.utils.validation import validate_data

from meristem.check import many, short
from meristem.compact import CompactNetwork, compact
from meristem.compact.inference import as_numpy
from meristem.estimators.input_checks import length_error, naming_argument, value_error
from meristem.layers.image_layers import raw_pixels
from meristem.nn import Network
from meristem.targets import Classes

LEAST_SIDE = 5  # of images that a flat row may be
BLOCK = 1024  # images
LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True, eq=False)
class EncodedImages:
    """The images of a fit, and the encoding of their classes."""

    x: np.ndarray  # [n, height, width, …]
    y: np.ndarray  # encoded
    weight: np.ndarray  # [n]
    targets: Classes
    seed: int
    is_stream: bool


def check_images(estimator: Any, X: Any, *y: Any, reset: bool) -> Any:
    """Return X as images, bytes or float32, or X and y; ValueError of one line that names the argument and the value."""
    options: dict[str, Any] = {"dtype": "numeric", "allow_nd": True}
    try:
        checked_X = validate_data(estimator, X, *y, reset=reset, **options)
    except (ValueError, TypeError) as error:
        raise value_error(X) or length_error(X, *y) or naming_argument(error, "X or y" if y else "X") from None
    array, *rest = checked_X if y else (checked_X,)
    images = as_images(array, estimator.shape, warns=reset)
    expected = images.shape[1:] if reset else estimator.image_shape_
    if images.shape[1:] != expected:
        raise ValueError(f"X has images of shape {images.shape[1:]}, but those that were trained on have {expected}.")
    return (images, *rest) if y else images


def as_images(array: Shaped[np.ndarray, "n ..."], shape: Any = None, *, warns: bool = False) -> Shaped[np.ndarray, "n h w ..."]:
    """Return images [n, height, width] or [n, height, width, channels] of bytes or float32.

    >>> as_images(np.zeros((2, 12), np.uint8), (2, 2, 3)).shape, as_images(np.zeros((2, 12))).shape
    ((2, 2, 2, 3), (2, 1, 12))
    """
    n, size = len(array), array[0].size
    if shape is not None:
        if array.ndim != 2 and array.shape[1:] != tuple(shape):
            raise ValueError(f"shape={shape}, but X has images of shape {array.shape[1:]}; leave it out.")
        if size != np.prod(shape):
            raise ValueError(f"shape={shape} is of {np.prod(shape):,} values, but X has {many(size, 'value')} for each image.")
        array = array.reshape(n, *shape)
    elif array.ndim == 2:
        sides = {suffix: round((size / channels) ** 0.5) for suffix, channels in (("", 1), (", 3", 3))}
        likely = [f"({side}, {side}{suffix})" for suffix, side in sides.items() if size == side**2 * (3 if suffix else 1)]
        if warns and likely and min(sides.values()) >= LEAST_SIDE - 2 and size >= LEAST_SIDE**2:
            advice = f"if they are flat images, give shape={likely[0]}"
            warnings.warn(f"X has {size} values for each image, and they are taken for a single row; {advice}.", stacklevel=6)
        array = array.reshape(n, 1, size)
    elif array.ndim > 4:
        raise ValueError(f"X has shape {array.shape}; give [images, height, width] or [images, height, width, channels].")
    if array.dtype == np.uint8:
        return array
    if np.abs(array).max(initial=0) > LARGEST:
        raise ValueError(f"X holds {short(float(array.flat[np.abs(array).argmax()]))}, beyond single precision; scale it.")
    return array.astype(np.float32)


def compact_on_pixels(network: Network, *, takes_bytes: bool) -> CompactNetwork:
    """Return the compact network, which takes pixels as they are: bytes as numbers from 0 to 255."""
    return raw_pixels(as_numpy(compact(network)), 255.0 if takes_bytes else 1.0)


def pixel_scaling(images: Shaped[np.ndarray, "n h w ..."]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the rough mean and scale of the pixels of each channel, of bytes relative to 255.

    >>> pixel_scaling(np.array([[[0.0, 9.0]], [[1.0, 10.0]]], np.float32))
    ((5.0,), (4.0,))
    """
    channels = images.shape[3] if images.ndim == 4 else 1
    total, squares = np.zeros(channels), np.zeros(channels)
    for start in range(0, len(images), BLOCK):
        values: Float[np.ndarray, "pixels channels"] = images[start : start + BLOCK].reshape(-1, channels).astype(float)
        total, squares = total + values.sum(0), squares + (values**2).sum(0)
    n = images.size / channels
    mean = total / n
    deviation = np.sqrt(np.maximum(squares / n - mean**2, 0))
    unit = 255.0 if images.dtype == np.uint8 else 1.0
    scale = 2.0 ** np.round(np.log2(np.where(deviation > 0, deviation, np.maximum(np.abs(mean), 1)) / unit))
    return tuple((np.round(mean / unit / scale * 4) / 4 * scale).tolist()), tuple(scale.tolist())
