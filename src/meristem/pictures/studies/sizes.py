"""Size against the epoch: per layer and in all of a stack, nodes and soft size of a tree."""

from collections.abc import Callable
from functools import partial
from typing import Any

from meristem.pictures.axes import from_zero, whole_from_zero
from meristem.pictures.curves import layer_bar, layer_lines
from meristem.pictures.sheet import Axes, Figure
from meristem.pictures.studies.records import Run, StudyFiles
from meristem.pictures.studies.training import Row, seeds


def size_rows(files: StudyFiles, model: str, *, color: Any, mark: str, nodes: Callable[[Axes], None] = from_zero) -> list[Row]:
    """The rows that show a model's size; a ring is drawn at the epoch that the run's `mark` names.

    `nodes`: the axis of a tree's soft size.
    """
    soft = partial(_soft_size, color=color, mark=mark)
    if files.is_layered(model):
        return [Row("soft size per layer", _layer_sizes, legend=_layer_bar), Row("total soft size", soft)]
    hard = partial(_hard_size, color=color, mark=mark)
    return [Row("hard size (nodes)", hard, whole_from_zero), Row("soft size (nodes)", soft, nodes)]


def _soft_size(ax: Axes, files: StudyFiles, runs: list[Run], drawn: Run, **style: Any) -> None:
    seeds(ax, runs, drawn, lambda run: files.series(run, "layer_sizes").sum(1), **style)


def _hard_size(ax: Axes, files: StudyFiles, runs: list[Run], drawn: Run, **style: Any) -> None:
    """The drawn seed alone: this size jumps, and several on top of one another cannot be told apart."""
    seeds(ax, [drawn], drawn, lambda run: files.series(run, "hard_size"), drawstyle="steps-post", linewidth=1.0, **style)


def _layer_sizes(ax: Axes, files: StudyFiles, runs: list[Run], drawn: Run) -> None:
    layer_lines(ax, files.series(drawn, "layer_sizes"))


def _layer_bar(figure: Figure, row: Any, files: StudyFiles, runs: list[Run]) -> None:
    layers = max(files.series(run, "layer_sizes").shape[1] for run in runs)
    layer_bar(figure, layers, ax=row.tolist(), aspect=14, pad=0.01)
