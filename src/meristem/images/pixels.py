"""The pixels of many files as one array: all of one size, gray or in color.

    size = choose_size(paths)            a size for all
    read = read_pixels(paths, size)      bytes [n, height, width] or [n, height, width, 3], and what cannot be read

Every file is scaled to one height and width, whatever its proportions were: by default the median height and the median width
of the files, made smaller where the longer of them is above 64. The pictures are gray if all three channels are equal in every
file; one file in color makes all of them pictures in color.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt8

from meristem.check import many
from meristem.data.image_reader import read_image, read_size
from meristem.memory import memory
from meristem.train.loop import cores

MOST_SIDE = 64  # of the size that is chosen
LARGEST_SIDE = 1024
WEIGHTS = np.array([0.299, 0.587, 0.114])  # of red, green and blue in gray
MEMORY_SHARE = 0.25  # for the bytes of all pictures
NAMED = 3  # files in a message


@dataclass(frozen=True)
class ReadPixels:
    """What could be read of some files."""

    pixels: UInt8[np.ndarray, "n height width *channels"]
    rows: np.ndarray  # which files these are
    failures: tuple[str, ...]  # a line for each file that cannot be read

    @property
    def words(self) -> str | None:
        """What cannot be read, in one line; None if there is nothing."""
        if not self.failures:
            return None
        n, files = len(self.failures), "; ".join(line.partition("; ")[0] for line in self.failures[:NAMED])
        more = f"; and {n - NAMED:,} more" if n > NAMED else ""
        return f"{many(n, 'file is', 'files are')} left out: {files}{more}"


def parse_size(text: str) -> tuple[int, int]:
    """Return height and width.

    >>> parse_size("32"), parse_size("24x48")
    ((32, 32), (24, 48))
    """
    parts = text.lower().replace("×", "x").split("x")
    numbers = [int(part) if part.strip().isdigit() else 0 for part in parts]
    if len(numbers) not in (1, 2) or not all(1 <= number <= LARGEST_SIDE for number in numbers):
        raise ValueError(f"image_size={text} must be a side, such as 32, or HEIGHTxWIDTH, such as 24x48, up to {LARGEST_SIDE}.")
    return numbers[0], numbers[-1]


def choose_size(paths: Sequence[Path]) -> tuple[int, int]:
    """Return the median height and width of the files that can be read, scaled to a longer side of at most 64."""
    sizes = [size for size in _each(read_size, paths) if not isinstance(size, str)]
    if not sizes:
        raise ValueError(f"None of {many(len(paths), 'file')} can be read as a picture, such as {str(paths[0])!r}.")
    height, width = np.median(np.array(sizes), axis=0)
    factor = min(1.0, MOST_SIDE / max(height, width))
    return max(1, round(factor * height)), max(1, round(factor * width))


def read_pixels(
    paths: Sequence[Path], size: tuple[int, int], *, is_gray: bool | None = None, needs_one: bool = True
) -> ReadPixels:
    """Return the pixels of files, scaled to a size; gray, or in color, or as they are.

    ValueError where none can be read, or where they would need more than a quarter of the memory.
    """
    available, needed = memory(), len(paths) * size[0] * size[1] * 3
    if available is not None and needed > MEMORY_SHARE * available:
        what = f"{len(paths):,} pictures of {size[0]} × {size[1]} need {needed / 1e9:,.0f} GB of memory"
        raise ValueError(f"image_size={size[0]}x{size[1]}: {what}, of {available / 1e9:,.0f} GB; give a smaller one.")
    images = list(_each(lambda path: read_image(path, size), paths))
    rows = np.array([row for row, image in enumerate(images) if not isinstance(image, str)], int)
    failures = tuple(image for image in images if isinstance(image, str))
    if not len(rows) and needs_one:
        raise ValueError(f"None of {many(len(paths), 'file')} can be read: {failures[0]}")
    arrays = [image for image in images if not isinstance(image, str)]
    if is_gray is None:
        is_gray = all(image.shape[2] == 1 or bool((image == image[..., :1]).all()) for image in arrays)
    if not arrays:
        return ReadPixels(np.zeros((0, *size), np.uint8), rows, failures)
    return ReadPixels(np.stack([_as_gray(image) if is_gray else _as_color(image) for image in arrays]), rows, failures)


def _as_color(image: UInt8[np.ndarray, "h w c"]) -> UInt8[np.ndarray, "h w 3"]:
    return image if image.shape[2] == 3 else np.repeat(image, 3, axis=2)


def _as_gray(image: UInt8[np.ndarray, "h w c"]) -> UInt8[np.ndarray, "h w"]:
    return image[..., 0] if image.shape[2] == 1 else np.round(image @ WEIGHTS).astype(np.uint8)


def _each(read: Callable[[Path], Any], paths: Sequence[Path]) -> list[Any]:
    """Return what a function returns for each file, or the line of its ValueError."""

    def attempt(path: Path) -> Any:
        try:
            return read(path)
        except ValueError as error:
            return str(error)

    with ThreadPoolExecutor(cores()) as pool:
        return list(pool.map(attempt, paths))
