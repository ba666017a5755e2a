"""Error against size along a path of penalties: a dot for each run, those that none beats in both joined, the paper's error.

A row for each task, a column for each model; dots are colored by their penalty. The paper says no number of parameters, so its
error is a line, and what it says of the size stands in the corner.
"""

from typing import Any

import numpy as np

from meristem.pictures.axes import measure_axis
from meristem.pictures.frontier import non_dominated
from meristem.pictures.sheet import GREY, INK, Axes, Figure, grid, name_of
from meristem.pictures.studies.records import StudyFiles, value_of
from meristem.show.measures import Measure

DOTS: dict[str, Any] = {"s": 30, "cmap": "viridis", "edgecolor": "white", "linewidth": 0.6, "zorder": 3, "clip_on": False}


def frontier(files: StudyFiles, measure: Measure, part: str) -> Figure:
    """`part` is "test" or "train": whose errors are drawn."""
    from matplotlib.colors import LogNorm

    models = [model for model in files.models if any(run["model"] == model for run in files.path)]
    penalties = [run["penalty"] for run in files.path if run["penalty"] > 0]
    norm = LogNorm(min(penalties), max(penalties)) if len(set(penalties)) > 1 else None
    figure, axes = grid(len(files.tasks), len(models), cell=(4.2, 3.0))
    for row, task in zip(axes, files.tasks, strict=True):
        for ax, model in zip(row, models, strict=True):
            ax.set_title(f"{name_of(model)}, {files.label(task)}")
            dots = _panel(ax, files, model, task, f"{part}_{measure.name}", norm)
            _paper(ax, files, model, task, f"{part}_{measure.name}", measure)
            measure_axis(measure, ax)
            ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
            ax.xaxis.set_minor_formatter(lambda value, _: "")
    for ax in axes[-1]:
        ax.set_xlabel("parameters")
    for ax in axes[:, 0]:
        ax.set_ylabel(f"{'test' if part == 'test' else 'training'} {measure.label}")
    if norm is not None:
        figure.colorbar(dots, ax=axes, label="penalty", shrink=0.8)
    figure.suptitle(f"Error and size along the penalty on {files.subject}")
    return figure


def _panel(ax: Axes, files: StudyFiles, model: str, task: str, name: str, norm: Any) -> Any:
    runs = [run for run in files.path if (run["model"], run["task"]) == (model, task)]
    found = [(run["n_parameters"], value, run["penalty"]) for run in runs if (value := value_of(run, name)) is not None]
    sizes, errors, penalties = np.array(found, float).reshape(-1, 3).T
    best = non_dominated(sizes, errors)
    ax.plot(sizes[best], errors[best], color=INK, linewidth=1.2, zorder=2)
    ax.set_xscale("log")
    ax.grid(axis="y")
    return ax.scatter(sizes, errors, c=np.maximum(penalties, 1e-300), norm=norm, **DOTS)


def _paper(ax: Axes, files: StudyFiles, model: str, task: str, name: str, measure: Measure) -> None:
    error, size = files.paper_value(model, task, name), files.paper_value(model, task, "soft_size")
    if error is None and files.paper_value(model, task, "zero_error_epoch") is not None:
        error = 0.0
    if error is None:
        return
    words = f"the paper: {measure.show(error)}" + (f", soft size {size:g}" if size is not None else "")
    ax.axhline(error, color=GREY, linestyle=(0, (4, 3)), linewidth=1, zorder=1)
    ax.text(0.98, 0.97, words, transform=ax.transAxes, ha="right", va="top", color=GREY, fontsize=9)
