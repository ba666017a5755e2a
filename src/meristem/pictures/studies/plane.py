"""Pictures of the plane: the data, and what the networks learned."""

from typing import Any

import numpy as np

from meristem.pictures.sheet import CLASSES, GREY, Axes, Figure, between_classes, grid, name_of
from meristem.pictures.studies.records import StudyFiles

WHITE = 0.5  # in the shading


def data(files: StudyFiles) -> Figure:
    """The tasks side by side, in reading order."""
    figure, axes = grid(1, len(files.tasks), cell=(2.9, 3.1), sharex=True, sharey=True)
    for ax, task in zip(axes[0], files.tasks, strict=True):
        _points(ax, files, task, size=11.0)
        ax.locator_params(nbins=5, steps=[1, 2, 3, 5, 10])
        ax.set_title(files.label(task))
        ax.set_xlabel("$x_1$")
    axes[0, 0].set_ylabel("$x_2$")
    subject = f"{files.subject[:1].upper()}{files.subject[1:]}"
    figure.suptitle(subject if len(files.tasks) == 1 else f"{subject}, from easy to hard")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, markerscale=1.6)
    return figure


def discriminants(files: StudyFiles) -> Figure:
    """Models × tasks: the probability of class 1, the boundary, the points."""
    models = files.pictured
    figure, axes = grid(len(models), len(files.tasks), cell=(2.5, 2.55), frame=0.6, sharex=True, sharey=True)
    shading = None
    for row, model in zip(axes, models, strict=True):
        row[0].set_ylabel(name_of(model), fontsize=11.0)
        for ax, task in zip(row, files.tasks, strict=True):
            shading = _discriminant(ax, files, model, task) or shading
    for ax, task in zip(axes[0], files.tasks, strict=True):
        ax.set_title(files.label(task))
    bar = figure.colorbar(
        shading, ax=axes.ravel().tolist(), shrink=max(0.4, 1 / len(models)), aspect=18, pad=0.02, ticks=[0, 0.5, 1]
    )
    bar.set_label("probability of class 1")
    bar.outline.set_visible(False)
    figure.suptitle("What the networks learned")
    return figure


def _discriminant(ax: Axes, files: StudyFiles, model: str, task: str) -> Any:
    """One cell; its shading, or None where the files have no discriminant."""
    ax.set(xticks=[], yticks=[])
    for spine in ax.spines.values():
        spine.set_visible(False)
    found = files.discriminant(model, task)
    if found is None:
        return None
    run, probability = found
    limit = float(files.series(run, "discriminant_limit"))
    edge = limit * (1 + 1 / max(1, len(probability) - 1))  # the values are at the centers of the pixels
    shading = ax.imshow(
        probability,
        origin="lower",
        extent=(-edge, edge, -edge, edge),
        vmin=0,
        vmax=1,
        cmap=between_classes(CLASSES, WHITE),
        interpolation="bilinear",
    )
    if probability.min() < 0.5 < probability.max():
        along = np.linspace(-limit, limit, len(probability))
        ax.contour(along, along, probability, levels=[0.5], colors="black", linewidths=1.1)
    _points(ax, files, task, size=7.0)
    ax.set(xlim=(-limit, limit), ylim=(-limit, limit))
    ax.set_xlabel(f"seed {run['seed']}", fontsize=8.5, color=GREY, labelpad=3)
    return shading


def _points(ax: Axes, files: StudyFiles, task: str, size: float) -> None:
    x, y = (files.arrays[f"data/{task}/{name}"] for name in ("x", "y"))
    for label, color in enumerate(CLASSES):
        chosen = x[y == label]
        ax.scatter(chosen[:, 0], chosen[:, 1], s=size, color=color, linewidths=0, label=f"class {label}")
    ax.set_aspect("equal")
