"""Axes to draw on; matplotlib is imported when they are asked for, so that a file's other tests run without it."""

from typing import Any


def subplots(*shape: int, **options: Any) -> Any:
    from matplotlib.figure import Figure

    return Figure(**options).subplots(*shape)
