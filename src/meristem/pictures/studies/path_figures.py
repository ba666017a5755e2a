"""Error against size along a path of penalties: a dot per run, the Pareto frontier as a line, the paper's error dashed.

A row for each task, a column for each model; dots are colored by penalty. The paper reports no number of parameters, so its
error is a horizontal line, and its soft size is written in the corner.
"""

from typing import Any

import numpy as np

from meristem.pictures.curves import scale_measure
from meristem.pictures.figure_style import GREY, INK, Axes, Figure, figure_grid, model_label
from meristem.pictures.frontier_plot import non_dominated
from meristem.pictures.studies.study_results import StudyResults, finite_value
from meristem.show.measures import Measure

DOTS: dict[str, Any] = {"s": 30, "cmap": "viridis", "edgecolor": "white", "linewidth": 0.6, "zorder": 3, "clip_on": False}


def draw_penalty_path(results: StudyResults, measure: Measure, part: str) -> Figure:
    """Draw the errors of a part, "test" or "train"."""
    from matplotlib.colors import LogNorm

    models = [model for model in results.models if any(run["model"] == model for run in results.path)]
    penalties = [run["penalty"] for run in results.path if run["penalty"] > 0]
    norm = LogNorm(min(penalties), max(penalties)) if len(set(penalties)) > 1 else None
    figure, axes = figure_grid(len(results.tasks), len(models), cell=(4.2, 3.0))
    for row, task in zip(axes, results.tasks, strict=True):
        for ax, model in zip(row, models, strict=True):
            dots = _draw_panel(ax, results, model, task, measure, part, norm)
    for ax in axes[-1]:
        ax.set_xlabel("parameters")
    for ax in axes[:, 0]:
        ax.set_ylabel(f"{'test' if part == 'test' else 'training'} {measure.label}")
    if norm is not None:
        figure.colorbar(dots, ax=axes, label="penalty", shrink=0.8)
    figure.suptitle(f"Error and size along the penalty on {results.subject}")
    return figure


def _draw_panel(ax: Axes, results: StudyResults, model: str, task: str, measure: Measure, part: str, norm: Any) -> Any:
    """Draw the runs of a model on a task and the paper's error, and return the dots."""
    field = f"{part}_{measure.name}"
    runs = [run for run in results.path if (run["model"], run["task"]) == (model, task)]
    valued = [(run["n_parameters"], error, run["penalty"]) for run in runs if (error := finite_value(run, field)) is not None]
    sizes, errors, penalties = np.array(valued, float).reshape(-1, 3).T
    frontier = non_dominated(sizes, errors)
    ax.plot(sizes[frontier], errors[frontier], color=INK, linewidth=1.2, zorder=2)
    ax.set(title=f"{model_label(model)}, {results.task_label(task)}", xscale="log")
    ax.grid(axis="y")
    dots = ax.scatter(sizes, errors, c=np.maximum(penalties, 1e-300), norm=norm, **DOTS)
    error, size, epoch = (results.paper_value(model, task, name) for name in (field, "soft_size", "zero_error_epoch"))
    if error is None and epoch is not None:
        error = 0.0
    if error is not None:
        words = f"the paper: {measure.show(error)}" + (f", soft size {size:g}" if size is not None else "")
        ax.axhline(error, color=GREY, linestyle=(0, (4, 3)), linewidth=1, zorder=1)
        ax.text(0.98, 0.97, words, transform=ax.transAxes, ha="right", va="top", color=GREY, fontsize=9)
    scale_measure(measure, ax)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    ax.xaxis.set_minor_formatter(lambda value, _: "")
    return dots
