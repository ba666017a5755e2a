"""Figures as PNG files that say whose they are, written whole, and never over a file that meristem did not draw."""

import io
from pathlib import Path
from typing import Any

from meristem.files.atomic_write import write_whole
from meristem.pictures.figure_style import Figure

MARK = b"tEXtSoftware\x00meristem"  # a text chunk, which matplotlib writes among the first


def png(figure: Figure, **options: Any) -> bytes:
    """Return the bytes of a PNG; `options` are passed to savefig. In memory, so that only `write_whole` meets a full disk."""
    packed = io.BytesIO()
    figure.savefig(packed, format="png", metadata={"Software": "meristem"}, **options)
    return packed.getvalue()


def is_picture(path: Path) -> bool:
    """Return whether a file was made by `png`."""
    try:
        with path.open("rb") as file:
            return MARK in file.read(4096)
    except OSError:
        return False


def check_png_path(name: str, path: Path) -> Path:
    """Return a path to which a figure may be written; raise ValueError, naming the option `name`, for any other."""
    if path.suffix.lower() != ".png":
        raise ValueError(f"{name}={str(path)!r} must be a file that ends in .png, or a folder.")
    if (path.exists() or path.is_symlink()) and not is_picture(path):
        raise ValueError(
            f"{name}={str(path)!r} exists and is not a figure drawn by meristem; move it away, or give another {name} FILE.png."
        )
    return path


def write_png(path: Path, figure: Figure, **options: Any) -> None:
    write_whole(path, png(figure, **options))
