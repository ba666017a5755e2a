"""Size against the epoch: per layer and in all of a stack, nodes and soft size of a tree."""

import math
from functools import partial
from typing import Any

import numpy as np

from meristem.pictures.curves import line, seeds
from meristem.pictures.sheet import Axes, Figure, from_zero, layer_colors
from meristem.pictures.studies.study import Run, Study
from meristem.pictures.studies.training import Row


def size_rows(model: str, *, color: str, mark: str, least_tree: float = 0) -> list[Row]:
    """The rows that show a model's size; a ring is drawn at the epoch that the run's `mark` names.

    The soft size of a tree is shown from `least_tree` on.
    """
    soft = partial(_soft_size, color=color, mark=mark)
    if model == "budding":
        hard = partial(_hard_size, color=color, mark=mark)
        return [Row("hard size (nodes)", hard), Row("soft size (nodes)", soft, partial(from_zero, zero=least_tree))]
    return [Row("soft size per layer", _layer_sizes, legend=_layer_bar), Row("total soft size", soft)]


def _soft_size(ax: Axes, study: Study, runs: list[Run], drawn: Run, **look: Any) -> None:
    seeds(ax, runs, drawn, lambda run: study.series(run, "layer_sizes").sum(1), **look)


def _hard_size(ax: Axes, study: Study, runs: list[Run], drawn: Run, **look: Any) -> None:
    """The drawn seed alone: this size jumps, and several on top of one another cannot be told apart."""
    seeds(ax, [drawn], drawn, lambda run: study.series(run, "hard_size"), drawstyle="steps-post", linewidth=1.0, **look)
    ax.yaxis.get_major_locator().set_params(integer=True)


def _layer_sizes(ax: Axes, study: Study, runs: list[Run], drawn: Run) -> None:
    """One line per layer, the first on top."""
    sizes = study.series(drawn, "layer_sizes")
    for layer, color in reversed(list(enumerate(layer_colors(sizes.shape[1])))):
        line(ax, sizes[:, layer], color=color, linewidth=1.4)


def _layer_bar(figure: Figure, row: Any, study: Study, runs: list[Run]) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import BoundaryNorm, ListedColormap

    layers = max(study.series(run, "layer_sizes").shape[1] for run in runs)
    norm = BoundaryNorm(np.arange(layers + 1) + 0.5, layers)
    ticks = np.arange(1, layers + 1, max(1, math.ceil((layers - 1) / 9)))
    bar = figure.colorbar(
        ScalarMappable(norm, ListedColormap(layer_colors(layers))),
        ax=row.tolist(),
        ticks=ticks,
        label="layer",
        aspect=14,
        pad=0.01,
    )
    bar.ax.tick_params(which="both", length=0, labelsize=8)
    bar.ax.invert_yaxis()
    bar.outline.set_visible(False)
