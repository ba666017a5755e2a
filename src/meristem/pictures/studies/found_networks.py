"""The networks of a study as pictures, and the error against live parameters, from the files of the study.

Live parameters are those of the compact network after an epoch. A line goes from epoch to epoch of the median run through them
and the validation error; a dot is the network that a seed kept, with its test error.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from meristem.pictures import figure_style
from meristem.pictures.figure_style import GREY, Figure, figure_grid, legend_below, model_label
from meristem.pictures.structure_plot import POINTS_PER_INCH, SCALE, render
from meristem.pictures.studies.study_results import Run, StudyResults, finite_value, run_key
from meristem.show.measures import Measure
from meristem.show.network_structure import stages_from
from meristem.show.structure_drawing import WIDTH, draw, with_legend

STRUCTURE = "structure/"  # the prefix of a run's arrays that describe its network
BEGIN = 0.1  # the share of the epochs that a line leaves out: errors of a network that has hardly learned
DOT: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 6, "markeredgecolor": "white", "markeredgewidth": 0.7}
OTHERS: dict[str, Any] = {"linestyle": "", "marker": "D", "markersize": 6, "markerfacecolor": "none", "color": "black"}
SIZE_LABELS: dict[str, Any] = {"textcoords": "offset points", "xytext": (0, 8), "ha": "center", "fontsize": 8, "color": GREY}


def runs_with_structure(results: StudyResults) -> dict[tuple[str, str], Run]:
    """Return the median run of each model on each task whose network the files describe."""
    cells = {}
    for model, task in itertools.product(results.models, results.tasks):
        runs = results.runs_of(model, task)
        if runs and structure_of(results, median := results.median_run(runs)):
            cells[model, task] = median
    return cells


def structure_of(results: StudyResults, run: Run) -> dict[str, np.ndarray]:
    prefix = f"{run_key(run)}/{STRUCTURE}"
    return {name.removeprefix(prefix): array for name, array in results.arrays.items() if name.startswith(prefix)}


def draw_structures(results: StudyResults) -> Figure:
    """Draw the network of each median run: a row for each block with a cell for each channel, the open ones colored."""
    cells = runs_with_structure(results)
    drawings = [with_legend(draw(stages_from(structure_of(results, run)), width=1.6 * WIDTH)) for run in cells.values()]
    if len(drawings) > 1:  # the legend of the last is that of all
        drawings[:-1] = [draw(stages_from(structure_of(results, run)), width=1.6 * WIDTH) for run in [*cells.values()][:-1]]
    heights = [SCALE * drawing.height / POINTS_PER_INCH for drawing in drawings]
    width = SCALE * max(drawing.width for drawing in drawings) / POINTS_PER_INCH
    cell = width, sum(heights) / len(heights) + 0.45
    figure, axes = figure_grid(len(drawings), 1, cell=cell, frame=0.6, height_ratios=heights)
    for ax, ((model, task), run), drawing, height in zip(axes[:, 0], cells.items(), drawings, heights, strict=True):
        render(ax, drawing, (width, height))
        error = finite_value(run, f"test_{results.pictures.selects.name}")
        facts = [f"seed {run['seed']}", f"{run['n_parameters']:,} parameters"]
        facts += [f"test {results.pictures.selects.label} {results.pictures.selects.show(error)}"] * (error is not None)
        ax.set_title(f"{model_label(model)}, {results.task_label(task)}: {', '.join(facts)}", loc="left", fontsize=10)
    figure.suptitle(f"The networks found on {results.subject}")
    return figure


def draw_error_by_parameters(results: StudyResults, measure: Measure, published: Sequence[tuple[str, float, float]]) -> Figure:
    """Draw a panel for each task: validation errors epoch by epoch, test errors of all seeds, and published ones."""
    from matplotlib.ticker import LogLocator

    figure, axes = figure_grid(1, len(results.tasks), cell=(5.2, 3.6))
    marks: dict[str, dict[str, Any]] = {"median seed, validation, epoch by epoch": {"color": GREY, "linewidth": 1.0}}
    for ax, task in zip(axes[0], results.tasks, strict=True):
        for model in results.models:
            runs, color = results.runs_of(model, task), results.colors[model]
            if runs:
                median = results.median_run(runs)
                parameters, errors = (results.series(median, name) for name in ("hard_cost", f"dev_{measure.name}"))
                begin = int(BEGIN * len(errors))
                ax.plot(parameters[begin:], errors[begin:], color=color, linewidth=1.0, alpha=0.6)
            for run in runs:
                test = finite_value(run, f"test_{measure.name}")
                if test is not None:
                    marks["kept, test"] = {"color": GREY, **DOT}
                    ax.plot(run["n_parameters"], test, color=color, zorder=4, **DOT)
        for words, size, error in published:
            marks["published"] = OTHERS
            ax.plot(size, error, **OTHERS)
            ax.annotate(words, (size, error), **SIZE_LABELS)
        low, high = ax.dataLim.intervalx
        ax.set(xscale="log", xlim=(0.5 * low, 2 * high), xlabel="live parameters", ylabel=measure.label)
        ax.set_title(results.task_label(task) if len(results.tasks) > 1 else "")
        ax.grid(axis="y")
        figure_style.scale_measure(measure, ax)
        ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.xaxis.set_major_formatter("{x:,.0f}")
        ax.xaxis.set_minor_formatter("")
    figure.suptitle(f"Error against live parameters on {results.subject}")
    legend_below(figure, results.colors, marks)
    return figure
