"""What a picture of an estimator is drawn on: a person's own axes, in that person's style, or a new figure of pyplot's in ours.

    with canvas("ax", ax, size=(6, 4)) as (ax,): …

Settings of matplotlib are put back, and nothing is shown: notebooks do that by themselves, scripts with `plt.show()`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from meristem.pictures.sheet import STYLE, Axes, require_matplotlib


@contextmanager
def canvas(name: str, given: Any, *, size: tuple[float, float], rows: int = 1) -> Iterator[np.ndarray]:
    """Axes [rows]: those `given` as the argument `name`, or one below the other in a new figure of `size` inches."""
    require_matplotlib()
    import matplotlib

    if given is not None:
        yield _checked(name, given, rows)
        return
    import matplotlib.pyplot as plt

    # The backend is loaded with what is drawn first, and a notebook's switches interaction on: a setting that must not be put
    # back with ours, or no later figure would be shown.
    plt.draw_if_interactive()
    with matplotlib.rc_context(STYLE):
        axes = plt.subplots(rows, 1, figsize=size, layout="constrained", sharex=True, squeeze=False)[1][:, 0]
        for ax in axes:  # ticks are made when the figure is shown, after the settings are put back
            ax.tick_params(labelsize=STYLE["xtick.labelsize"])
        yield axes


def _checked(name: str, given: Any, rows: int) -> np.ndarray:
    from matplotlib.axes import Axes as MatplotlibAxes

    axes = np.ravel(np.asarray(given, object))
    if not all(isinstance(ax, MatplotlibAxes) for ax in axes):
        raise ValueError(f"{name}={given!r} must be matplotlib's Axes, as plt.subplots({rows}, 1) makes them.")
    if len(axes) != rows:
        raise ValueError(f"{name} holds {len(axes)} Axes; this picture has {rows}: plt.subplots({rows}, 1).")
    return axes


def inches(ax: Axes) -> tuple[float, float]:
    """Width and height of the axes; for a new figure, before its layout is made, roughly."""
    box = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
    return box.width, box.height


def titled(ax: Axes, name: str, text: str, **style: Any) -> None:
    """A title of one line, or of two where the axes are narrow."""
    ax.set_title(f"{name}: {text}" if inches(ax)[0] > 4.6 else f"{name}:\n{text}", **style)
