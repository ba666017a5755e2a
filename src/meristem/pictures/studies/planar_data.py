"""Two classes of points in the plane, and the decision boundaries that networks learned of them."""

import itertools

import numpy as np

from meristem.pictures.decision_boundary import shade_probability
from meristem.pictures.figure_style import CLASSES, GREY, Axes, Figure, figure_grid, model_label
from meristem.pictures.studies.study_results import Run, StudyResults, run_key


def runs_with_discriminant(results: StudyResults) -> dict[tuple[str, str], Run]:
    """Return the runs whose decision boundaries can be drawn, by model and task: the median run, or else the first."""
    cells: dict[tuple[str, str], Run] = {}
    for model, task in itertools.product(results.models, results.tasks):
        runs = results.runs_of(model, task)
        for run in [*reversed(runs), results.median_run(runs)] if runs else []:
            if f"{run_key(run)}/discriminant" in results.arrays:
                cells[model, task] = run
    return cells


def draw_data(results: StudyResults) -> Figure:
    figure, axes = figure_grid(1, len(results.tasks), cell=(2.9, 3.1), sharex=True, sharey=True)
    for ax, task in zip(axes[0], results.tasks, strict=True):
        _draw_points(ax, results, task, size=11.0)
        ax.locator_params(nbins=5, steps=[1, 2, 3, 5, 10])
        ax.set(title=results.task_label(task), xlabel="$x_1$")
    axes[0, 0].set_ylabel("$x_2$")
    subject = f"{results.subject[:1].upper()}{results.subject[1:]}"
    figure.suptitle(subject if len(results.tasks) == 1 else f"{subject}, from easy to hard")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2, markerscale=1.6)
    return figure


def draw_discriminants(results: StudyResults) -> Figure:
    """Draw models × tasks: the probability of class 1, the boundary, the points."""
    cells = runs_with_discriminant(results)
    models = list(dict.fromkeys(model for model, _ in cells))
    figure, axes = figure_grid(len(models), len(results.tasks), cell=(2.5, 2.55), frame=0.6, sharex=True, sharey=True)
    for row, model in zip(axes, models, strict=True):
        row[0].set_ylabel(model_label(model), fontsize=11.0)
        for ax, task in zip(row, results.tasks, strict=True):
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
            if (model, task) not in cells:
                continue
            run = cells[model, task]
            probability, limit = results.series(run, "discriminant").astype(float), results.series(run, "discriminant_limit")
            grid = (np.linspace(-limit, limit, len(probability)),) * 2
            shading = shade_probability(ax, grid, probability, CLASSES, white=0.5)
            _draw_points(ax, results, task, size=7.0)
            ax.set(xlim=(-limit, limit), ylim=(-limit, limit))
            ax.set_xlabel(f"seed {run['seed']}", fontsize=8.5, color=GREY, labelpad=3)
    for ax, task in zip(axes[0], results.tasks, strict=True):
        ax.set_title(results.task_label(task))
    place = {"shrink": max(0.4, 1 / len(models)), "aspect": 18, "pad": 0.02, "ticks": [0, 0.5, 1]}
    figure.colorbar(shading, ax=axes, label="probability of class 1", **place).outline.set_visible(False)
    figure.suptitle("What the networks learned")
    return figure


def _draw_points(ax: Axes, results: StudyResults, task: str, size: float) -> None:
    x, y = (results.arrays[f"data/{task}/{name}"] for name in ("x", "y"))
    for label, color in enumerate(CLASSES):
        ax.scatter(*x[y == label].T, s=size, color=color, linewidths=0, label=f"class {label}")
    ax.set_aspect("equal")
