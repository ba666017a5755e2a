"""Pixels of image files (PNG, JPEG, WebP and what else Pillow reads) as bytes; only this module imports Pillow.

    read_image(path) → [height, width, channels]     1 channel for gray, 3 for color
    read_size(path) → (height, width)                without its pixels
    png_bytes(pixels)                                the file of pixels

What is transparent is white, and a photograph is turned as the camera was held.
A file that is damaged, or no image, is a ValueError of one line that names it.
"""

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt8

from meristem.check import cut

ENDINGS = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff")
ORIENTATION = 274  # the tag of Exif
GRAY = ("1", "L", "LA", "I", "F", "I;16")  # Pillow's modes without color


def read_size(path: Path) -> tuple[int, int]:
    """Return the height and width of an image file, of which no pixels are read."""
    with _opened(path) as file:
        is_turned = file.getexif().get(ORIENTATION) in (5, 6, 7, 8)
        width, height = file.size[::-1] if is_turned else file.size
    return height, width


def png_bytes(pixels: UInt8[np.ndarray, "height width *channels"]) -> bytes:
    """Return the PNG file of pixels, gray or of three channels."""
    from PIL import Image

    packed = io.BytesIO()
    Image.fromarray(pixels[..., 0] if pixels.shape[2:] == (1,) else pixels).save(packed, "png")
    return packed.getvalue()


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Yield an image file; inside, what does not fit is a ValueError of one line that names it."""
    try:
        from PIL import Image
    except ImportError:
        raise ValueError(f"{path} needs Pillow, which is not installed: pip install 'meristem-nn[images]'.") from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path) as file:
                yield file
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
        raise ValueError(f"{path} cannot be read as an image ({cut(reason, 90)}); replace or remove it.") from error


def read_image(path: Path, size: tuple[int, int] | None = None) -> UInt8[np.ndarray, "height width channels"]:
    """Return the pixels of an image file, scaled to a size (height, width) if one is given."""
    with _opened(path) as file:
        from PIL import Image, ImageOps

        image: Image.Image = ImageOps.exif_transpose(file)
        image.load()
    mode = "L" if image.mode in GRAY else "RGB"
    if image.mode in ("I", "F", "I;16"):  # of 16 or 32 bits: Pillow would cut them off at 255
        values = np.asarray(image, np.float64)
        image = Image.fromarray(np.clip(values / (257 if values.max(initial=0) > 255 else 1), 0, 255).astype(np.uint8))
    if "transparency" in image.info or image.mode in ("LA", "RGBA", "PA"):
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    image = image.convert(mode)
    if size is not None and image.size != size[::-1]:
        image = image.resize(size[::-1], Image.Resampling.BILINEAR, reducing_gap=3.0)
    pixels = np.array(image)
    return pixels[..., None] if pixels.ndim == 2 else pixels
