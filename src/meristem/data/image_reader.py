"""Pixels of image files (PNG, JPEG, WebP and what else Pillow reads) as bytes; only this module imports Pillow.

    read_image(path) → [height, width, channels]     1 channel for gray, 3 for color

What is transparent is white, and a photograph is turned as the camera was held.
A file that is damaged, or no image, is a ValueError of one line that names it.
"""

import warnings
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from meristem.check import cut

ENDINGS = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff")
GRAY = ("1", "L", "LA", "I", "F", "I;16")  # Pillow's modes without color


def read_image(path: Path, size: tuple[int, int] | None = None) -> UInt8[np.ndarray, "height width channels"]:
    """Return the pixels of an image file, scaled to a size (height, width) if one is given."""
    try:
        from PIL import Image, ImageOps
    except ImportError:
        raise ValueError(f"{path} needs Pillow, which is not installed: pip install 'meristem-nn[images]'.") from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path) as file:
                image: Image.Image = ImageOps.exif_transpose(file)
                image.load()
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
        raise ValueError(f"{path} cannot be read as an image ({cut(reason, 90)}); replace or remove it.") from error
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
