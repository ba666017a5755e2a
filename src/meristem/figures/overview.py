"""The overview: final sizes and epochs to zero error of all seeds and models, beside the paper's."""

import statistics
from typing import Any

from meristem.figures.files import Study, solved, zero_epoch
from meristem.figures.sheet import (
    COLORS,
    GREY,
    NAMES,
    PAPER_MARKER,
    SEED_MARKER,
    UNSOLVED_MARKER,
    Axes,
    Figure,
    from_zero,
    grid,
)


def overview(study: Study) -> Figure:
    """Final sizes (units and tree nodes are different things: a panel each) and epochs to zero error."""
    models = [model for model in study.models if model in NAMES]
    stacks = [model for model in models if model != "budding"]
    panels = [(stacks, "soft_size", "Final soft size, in units", "units")] if stacks else []
    panels += [(["budding"], "soft_size", "Final soft size, in tree nodes", "nodes")] if "budding" in models else []
    panels += [(models, "zero_error_epoch", "Epochs to zero error", "epoch")]
    widths = [2.0 + 0.4 * len(shown) for shown, *_ in panels]
    figure, axes = grid(1, len(panels), cell=(3.4, 3.3), width_ratios=widths)
    for ax, (shown, field, title, label) in zip(axes[0], panels, strict=True):
        _panel(ax, study, shown, field)
        ax.set_title(title)
        ax.set_ylabel(label)
    figure.suptitle("Final size and training time on two spirals")
    _overview_legend(figure, study, models)
    return figure


def _panel(ax: Axes, study: Study, models: list[str], field: str) -> None:
    """Tasks along the axis, the models of a task beside one another."""
    width = min(0.5, 0.76 / len(models))
    for place, model in enumerate(models):
        for position, task in enumerate(study.tasks):
            center = position + width * (place - (len(models) - 1) / 2)
            _dots(ax, study, model, task, field, center, width)
    ax.set_xticks(range(len(study.tasks)), study.tasks)
    ax.set_xlim(-0.55, len(study.tasks) - 0.45)
    ax.tick_params(axis="x", length=0)
    for border in range(1, len(study.tasks)):
        ax.axvline(border - 0.5, color="#D9D9D9", linewidth=0.8, zorder=0.5)
    ax.grid(axis="y")
    if field == "zero_error_epoch":
        _epoch_axis(ax, study, models)
    else:
        from_zero(ax)
        ax.yaxis.get_major_locator().set_params(integer=True)


def _dots(ax: Axes, study: Study, model: str, task: str, field: str, center: float, width: float) -> None:
    """All seeds as dots (crosses: never at zero error), their median as a bar, the paper's figure as a hollow diamond."""
    color, never, runs = COLORS[model], _never(study), study.of(model, task)
    values = [zero_epoch(run) if field == "zero_error_epoch" else run[field] for run in runs]
    for place, (run, value) in enumerate(zip(runs, values, strict=True)):
        at = center + 0.55 * width * ((place + 0.5) / len(runs) - 0.5)
        ax.plot(at, min(value, never), color=color, zorder=4, **(SEED_MARKER if solved(run) else UNSOLVED_MARKER))
    if len(runs) > 1:
        ends, level = [center - 0.4 * width, center + 0.4 * width], min(statistics.median(values), never)
        ax.plot(ends, [level, level], color=color, alpha=0.5, linewidth=3, solid_capstyle="butt", zorder=3)
    paper = _paper(study, model, task, field)
    if paper is not None:
        ax.plot(center, paper, **PAPER_MARKER, zorder=5)


def _paper(study: Study, model: str, task: str, field: str) -> Any:
    """The paper's figure for something that was run here, or None."""
    return study.paper.get(f"{model}/{task}", {}).get(field) if study.of(model, task) else None


def _epoch_axis(ax: Axes, study: Study, models: list[str]) -> None:
    """A log axis, with a level of its own for seeds that never reach zero error."""
    from matplotlib.ticker import FixedLocator, NullLocator

    never = _never(study)
    top = 1.6 * ax.get_ylim()[1]
    ticks = [10.0**power for power in range(10) if 10.0**power < min(top, 0.6 * never)]
    labels = [f"{tick:.0f}" for tick in ticks]
    if any(run["model"] in models and not solved(run) for run in study.runs):
        ax.axhline(never, color=GREY, linewidth=0.8, linestyle=":", zorder=1)
        top, ticks, labels = 1.4 * never, [*ticks, never], [*labels, "never"]
    ax.set_yscale("log")
    ax.set_ylim(0.75, top)
    ax.yaxis.set_major_locator(FixedLocator(ticks))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_yticklabels(labels)


def _never(study: Study) -> float:
    """The height at which "never" is drawn: well above the longest training, the paper's included."""
    paper = [_paper(study, run["model"], run["task"], "zero_error_epoch") or 0 for run in study.runs]
    return 2.5 * max(*paper, *(len(study.series(run, "error")) for run in study.runs))


def _overview_legend(figure: Figure, study: Study, models: list[str]) -> None:
    """Names for the colors and for the kinds of marks that are there."""
    from matplotlib.lines import Line2D

    cells = [(model, task) for model in models for task in study.tasks]
    runs = [run for cell in cells for run in study.of(*cell)]
    handles = [Line2D([], [], color=COLORS[model], linewidth=5, label=NAMES[model]) for model in models]
    if any(solved(run) for run in runs):
        handles.append(Line2D([], [], color=GREY, label="one seed", **SEED_MARKER))
    if not all(solved(run) for run in runs):
        handles.append(Line2D([], [], color=GREY, label="never at zero error", **UNSOLVED_MARKER))
    if any(len(study.of(*cell)) > 1 for cell in cells):
        handles.append(Line2D([], [], color=GREY, alpha=0.5, linewidth=3, label="median"))
    if any(_paper(study, *cell, field) is not None for cell in cells for field in ("soft_size", "zero_error_epoch")):
        handles.append(Line2D([], [], label="paper", **PAPER_MARKER))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), columnspacing=1.4, handlelength=1.5)
