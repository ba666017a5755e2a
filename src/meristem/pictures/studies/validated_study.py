"""Figures of a study with training, validation and test parts: the model of the best validation epoch is kept and tested.

Curves and marks are the paper's: training red, validation blue, a dot at the best value of each, and an asterisk at the best
epoch at the height of its test value. The other seeds are pale.
"""

import math
import statistics
import textwrap
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from meristem.pictures.curves import CUT_LINE, PARTS, plot_curve, ring, scale_measure, scale_nodes, scale_units
from meristem.pictures.figure_style import INK, OTHER, SEED_MARKER, Axes, Figure
from meristem.pictures.studies.final_values import Average, Mark, Panel, ScaleAxis, draw_final_values, size_panels
from meristem.pictures.studies.path_figures import draw_penalty_path
from meristem.pictures.studies.settings_tried import draw_settings
from meristem.pictures.studies.study_results import SIZES, Drawings, Required, Run, StudyPictures, StudyResults, finite_value
from meristem.pictures.studies.training_curves import (
    Handles,
    Row,
    TrainingLayout,
    draw_training,
    plot_other_seeds,
    rate_changes,
    size_rows,
)
from meristem.show.measures import ERROR, Measure

DOT: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 6, "markeredgecolor": "white", "markeredgewidth": 0.7}
ASTERISK: dict[str, Any] = {"linestyle": "", "marker": (6, 2, 0), "markersize": 9, "color": "black", "markeredgewidth": 1.3}


@dataclass(frozen=True)
class LearningPictures(StudyPictures):
    """The training of each model, final values, tried settings and the penalty path. The last measure selects the model."""

    kind: ClassVar[str] = "learning"

    measures: tuple[Measure, ...] = (ERROR,)
    scores: tuple[str, ...] = ("test",)  # the parts whose values are compared, of "dev" and "test"
    panel_per_task: bool = False  # whether each task has a panel and a scale of its own there; "apart" in JSON

    def as_json(self) -> dict[str, Any]:
        fields = super().as_json()
        fields["apart"] = fields.pop("panel_per_task")
        return fields

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Self:
        measures = tuple(Measure(**measure) for measure in fields["measures"])
        names = {"measures": measures, "scores": tuple(fields["scores"]), "panel_per_task": fields.get("apart", False)}
        return cls(**{name: value for name, value in fields.items() if name != "apart"} | names)

    @property
    def selects(self) -> Measure:
        """The measure that selects the model and the setting."""
        return self.measures[-1]

    def required(self) -> Required:
        selected = f"dev_{self.selects.name}"
        return Required(
            values=("model", "task", "seed", "best_epoch", "soft_size"),
            nullable=(selected, *(f"test_{measure.name}" for measure in self.measures)),
            arrays={part + measure.name: 1 for measure in self.measures for part in PARTS} | SIZES,
            tried=("model", "task", "sd", "chosen", selected),
        )

    def rank(self, run: Run) -> float:
        value = finite_value(run, f"dev_{self.selects.name}")
        return math.inf if value is None else value

    def drawings(self, results: StudyResults) -> Drawings:
        layout = TrainingLayout(
            rows=partial(_rows, self.measures),
            heading=partial(_heading, self.selects),
            handles=_handles,
            cell=(3.6, 2.0),
            shares_scale=False,
            legend_columns=(2, 4),
        )
        drawings: Drawings = {model: partial(draw_training, model=model, layout=layout) for model in results.models}
        drawings["sizes"] = partial(_draw_scores_and_sizes, pictures=self)
        if results.settings:
            drawings["tried"] = partial(draw_settings, measure=self.selects)
        if results.path:
            drawings["frontier"] = partial(draw_penalty_path, measure=ERROR, part="test")
        return drawings


def _rows(measures: tuple[Measure, ...], results: StudyResults, model: str) -> list[Row]:
    curves = [
        Row(_wrap(measure.label), partial(_plot_measure, measure), partial(scale_measure, measure)) for measure in measures
    ]
    return [*curves, *size_rows(results, model, color=INK, mark="best_epoch", scale_nodes=scale_nodes)]


def _wrap(label: str) -> str:
    return textwrap.fill(label, 15)


def _plot_measure(measure: Measure, ax: Axes, results: StudyResults, runs: list[Run], median: Run) -> None:
    """Plot the curves of both parts with their marks; the much larger first epochs leave through the top."""
    later = []
    for prefix, (_, color, light) in PARTS.items():
        series = partial(results.series, field=prefix + measure.name)
        plot_other_seeds(ax, runs, median, series, color=light, linewidth=0.8)
        values = series(median)
        plot_curve(ax, values, color=color)
        best = measure.best(values, prefer=median["best_epoch"] - 1 if prefix else 0)
        if best is not None:
            ax.plot(best + 1, values[best], color=color, zorder=4, clip_on=False, **DOT)
        later.append(values[len(values) // 20 :])
    test = finite_value(median, f"test_{measure.name}")
    if test is not None:
        ax.plot(median["best_epoch"], test, zorder=5, clip_on=False, **ASTERISK)
    reached = np.concatenate(later)
    top = 1.1 * max(reached[np.isfinite(reached)].max(initial=0), test or 0)
    if measure.lower_is_better and top < 0.7 * ax.get_ylim()[1]:
        ax.set_ylim(top=top)


def _heading(measure: Measure, runs: list[Run], median: Run) -> str:
    seed = f"seed {median['seed']}" + (f" (median of {len(runs)})" if len(runs) > 1 else "")
    test = finite_value(median, f"test_{measure.name}")
    tested = f"test {measure.label} {measure.show(test)} at " if test is not None else ""
    return f"{seed}: {tested}epoch {median['best_epoch']}"


def _handles(results: StudyResults, groups: list[list[Run]]) -> Handles:
    from matplotlib.lines import Line2D

    medians = [results.median_run(runs) for runs in groups]
    handles: Handles = {label: Line2D([], [], color=color) for label, color, _ in PARTS.values()}
    handles["best of its curve"] = tuple(Line2D([], [], color=color, **DOT) for _, color, _ in PARTS.values())
    if any(run["best_epoch"] for run in medians):
        handles["kept model's test figure"] = Line2D([], [], **ASTERISK)
        handles["kept model's size"] = Line2D([], [], linestyle="", **ring(INK))
    if any(len(runs) > 1 for runs in groups):
        light_colors = [*(light for _, _, light in PARTS.values()), OTHER]
        handles["other seeds"] = tuple(Line2D([], [], color=color, linewidth=1) for color in light_colors)
    if any(rate_changes(results, run).size for run in medians):
        handles["learning rate shrinks"] = Line2D([], [], **CUT_LINE)
    return handles


def _draw_scores_and_sizes(results: StudyResults, pictures: LearningPictures) -> Figure:
    measure, words = pictures.selects, {"dev": "Validation", "test": "Test"}
    fields = {f"{part}_{measure.name}": f"{words[part]} {measure.label}" for part in pictures.scores}
    task_groups = [[task] for task in results.tasks] if pictures.panel_per_task else [results.tasks]
    scale = partial(scale_measure, measure, min_span=0.0 if pictures.panel_per_task else 1.06 * _largest(results, list(fields)))
    panels = [
        Panel(title, _wrap(measure.label), field, partial(finite_value, field=field), results.models, tasks, scale)
        for field, title in fields.items()
        for tasks in task_groups
    ]
    scales: dict[str, ScaleAxis] = {"units (log scale)": scale_units, "nodes": partial(scale_nodes, min_span=0.25)}
    marks, average = [Mark("one seed", SEED_MARKER)], Average("mean", statistics.fmean)
    title = f"Results and final sizes on {results.subject}"
    return draw_final_values(results, title, [*panels, *size_panels(results, scales)], marks, average)


def _largest(results: StudyResults, fields: list[str]) -> float:
    """Return the largest value of these fields, the paper's included, for a scale that panels share."""
    pairs = [(run, field) for run in results.runs for field in fields]
    paper = [results.paper_value(run["model"], run["task"], field) or 0 for run, field in pairs]
    return max([finite_value(run, field) or 0 for run, field in pairs] + paper)
