"""A picture as a file: a PNG with a mark that says whose it is, written whole, never over a file that is not such a picture.

matplotlib draws it in memory, so that a disk that is full is found by the one place that writes files. Imports files.
"""

import io
from pathlib import Path
from typing import Any

from meristem.files.atomic_write import write_whole
from meristem.pictures.sheet import Figure

MARK = b"tEXtSoftware\x00meristem"  # a text chunk, as matplotlib writes it among the first ones


def png(figure: Figure, **options: Any) -> bytes:
    """The bytes of a picture; `options` of matplotlib's savefig."""
    packed = io.BytesIO()
    figure.savefig(packed, format="png", metadata={"Software": "meristem"}, **options)
    return packed.getvalue()


def is_picture(path: Path) -> bool:
    """Whether a file is a picture that `png` made."""
    try:
        with path.open("rb") as file:
            return MARK in file.read(4096)
    except OSError:
        return False


def check_place(name: str, path: Path) -> Path:
    """Where a picture may be written; ValueError, naming the option `name`, where something else is."""
    if path.suffix.lower() != ".png":
        raise ValueError(f"{name}={str(path)!r} must be a file that ends in .png, or a folder.")
    if (path.exists() or path.is_symlink()) and not is_picture(path):
        raise ValueError(f"{str(path)!r} is there and no picture of meristem's; move it away, or give another {name} FILE.png.")
    return path


def write_png(path: Path, figure: Figure, **options: Any) -> None:
    """The picture in its place, whole."""
    write_whole(path, png(figure, **options))
