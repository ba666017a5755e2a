"""A study with training, validation and test parts: the model of the best validation epoch is kept and tested.

Curves and marks are the paper's: training red, validation blue, a dot at the best value of each, and an asterisk at the kept
model's epoch, at the height of its test figure. The other seeds are pale.
"""

import math
import statistics
import textwrap
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from meristem.pictures.axes import measure_axis, nodes_axis, units_axis
from meristem.pictures.curves import CUT_LINE, PARTS, line, ring
from meristem.pictures.sheet import INK, OTHER, SEED_MARKER, Axes, Figure
from meristem.pictures.studies.frontier import frontier
from meristem.pictures.studies.overview import Average, Mark, Panel, Settle, overview, size_panels
from meristem.pictures.studies.records import SIZES, Drawings, Required, Run, StudyFiles, StudyPictures, value_of
from meristem.pictures.studies.sizes import size_rows
from meristem.pictures.studies.training import Handles, Row, TrainingLayout, others, rate_changes, training
from meristem.pictures.studies.tried import tried
from meristem.show.measures import ERROR, Measure

DOT: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 6, "markeredgecolor": "white", "markeredgewidth": 0.7}
ASTERISK: dict[str, Any] = {"linestyle": "", "marker": (6, 2, 0), "markersize": 9, "color": "black", "markeredgewidth": 1.3}


@dataclass(frozen=True)
class LearningPictures(StudyPictures):
    """Training of each model, the overview, and what was tried. The last measure selects the model."""

    kind: ClassVar[str] = "learning"

    measures: tuple[Measure, ...] = (ERROR,)
    scores: tuple[str, ...] = ("test",)  # the parts whose figures the overview shows, of "dev" and "test"
    apart: bool = False  # whether each task has a panel of its own there

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Self:
        measures = tuple(Measure(**measure) for measure in fields["measures"])
        return cls(**fields | {"measures": measures, "scores": tuple(fields["scores"])})

    @property
    def selects(self) -> Measure:
        """The measure that chooses the model, and the setting."""
        return self.measures[-1]

    def required(self) -> Required:
        chosen = f"dev_{self.selects.name}"
        return Required(
            values=("model", "task", "seed", "best_epoch", "soft_size"),
            nulls=(chosen, *(f"test_{measure.name}" for measure in self.measures)),
            arrays={part + measure.name: 1 for measure in self.measures for part in PARTS} | SIZES,
            tried=("model", "task", "sd", "chosen", chosen),
        )

    def rank(self, run: Run) -> float:
        """By the figure that selects; a run without one comes last."""
        value = value_of(run, f"dev_{self.selects.name}")
        return math.inf if value is None else value

    def drawings(self, files: StudyFiles) -> Drawings:
        layout = TrainingLayout(
            rows=partial(_rows, self.measures),
            heading=partial(_heading, self.selects),
            handles=_handles,
            cell=(3.6, 2.0),
            shared=False,
            legend_columns=(2, 4),
        )
        drawings: Drawings = {model: partial(training, model=model, layout=layout) for model in files.models}
        drawings["sizes"] = partial(_overview, pictures=self)
        if files.settings:
            drawings["tried"] = partial(tried, measure=self.selects)
        if files.path:
            drawings["frontier"] = partial(frontier, measure=ERROR, part="test")
        return drawings


def _rows(measures: tuple[Measure, ...], files: StudyFiles, model: str) -> list[Row]:
    curves = [Row(_wrapped(measure.label), partial(_curves, measure), partial(measure_axis, measure)) for measure in measures]
    return [*curves, *size_rows(files, model, color=INK, mark="best_epoch", nodes=nodes_axis)]


def _wrapped(label: str) -> str:
    """In lines that fit beside an axis."""
    return textwrap.fill(label, 15)


def _curves(measure: Measure, ax: Axes, files: StudyFiles, runs: list[Run], drawn: Run) -> None:
    """Both parts' curves with their marks; the first epochs, far off, leave through the top."""
    later = []
    for prefix, (_, color, pale) in PARTS.items():
        others(ax, runs, drawn, partial(files.series, field=prefix + measure.name), color=pale, linewidth=0.8)
        values = files.series(drawn, prefix + measure.name)
        line(ax, values, color=color)
        best = measure.best(values, prefer=drawn["best_epoch"] - 1 if prefix else 0)
        if best is not None:
            ax.plot(best + 1, values[best], color=color, zorder=4, clip_on=False, **DOT)
        later.append(values[len(values) // 20 :])
    test = _test(measure, drawn)
    if test is not None:
        ax.plot(drawn["best_epoch"], test, zorder=5, clip_on=False, **ASTERISK)
    reached = np.concatenate(later)
    top = 1.1 * max(reached[np.isfinite(reached)].max(initial=0), test or 0)
    if measure.lower_is_better and top < 0.7 * ax.get_ylim()[1]:
        ax.set_ylim(top=top)


def _test(measure: Measure, run: Run) -> float | None:
    return value_of(run, f"test_{measure.name}")


def _heading(measure: Measure, runs: list[Run], drawn: Run) -> str:
    """Which seed is drawn, which of its epochs is kept, and how that does on the test part."""
    which = f"seed {drawn['seed']}" + (f" (median of {len(runs)})" if len(runs) > 1 else "")
    test, epoch = _test(measure, drawn), drawn["best_epoch"]
    tested = f"test {measure.label} {measure.show(test)} at " if test is not None else ""
    return f"{which}: {tested}epoch {epoch}"


def _handles(files: StudyFiles, groups: list[list[Run]]) -> Handles:
    """Names for the kinds of lines and marks that are there."""
    from matplotlib.lines import Line2D

    drawn = [files.middle(runs) for runs in groups]
    colors = [color for _, color, _ in PARTS.values()]
    handles: Handles = {name: Line2D([], [], color=color) for name, color, _ in PARTS.values()}
    handles["best of its curve"] = tuple(Line2D([], [], color=color, **DOT) for color in colors)
    if any(run["best_epoch"] for run in drawn):
        handles["kept model's test figure"] = Line2D([], [], **ASTERISK)
        handles["kept model's size"] = Line2D([], [], linestyle="", **ring(INK))
    if any(len(runs) > 1 for runs in groups):
        pale = [*(pale for _, _, pale in PARTS.values()), OTHER]
        handles["other seeds"] = tuple(Line2D([], [], color=color, linewidth=1) for color in pale)
    if any(rate_changes(files, run).size for run in drawn):
        handles["learning rate shrinks"] = Line2D([], [], **CUT_LINE)
    return handles


def _overview(files: StudyFiles, pictures: LearningPictures) -> Figure:
    """Scores, then final sizes."""
    measure, words = pictures.selects, {"dev": "Validation", "test": "Test"}
    fields = {f"{part}_{measure.name}": f"{words[part]} {measure.label}" for part in pictures.scores}
    shared = 0.0 if pictures.apart else 1.06 * _largest(files, list(fields))  # one scale for all
    axis = partial(measure_axis, measure, least=shared)
    panels = [
        Panel(title, _wrapped(measure.label), field, partial(value_of, field=field), files.models, tasks, axis)
        for field, title in fields.items()
        for tasks in ([[task] for task in files.tasks] if pictures.apart else [files.tasks])
    ]
    sizes: dict[str, Settle] = {"units (log scale)": units_axis, "nodes": partial(nodes_axis, least=0.25)}
    title = f"Results and final sizes on {files.subject}"
    marks, average = [Mark("one seed", SEED_MARKER)], Average("mean", statistics.fmean)
    return overview(files, title, [*panels, *size_panels(files, sizes)], marks, average)


def _largest(files: StudyFiles, fields: list[str]) -> float:
    ours = [value_of(run, field) or 0 for run in files.runs for field in fields]
    return max(ours + [files.paper_value(run["model"], run["task"], field) or 0 for run in files.runs for field in fields])
