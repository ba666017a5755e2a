"""Every picture of the two-spirals study, redrawn from its files alone.

    draw(out): out/summary.json + out/history.npz → data, tunnel, highway, budding, discriminants, sizes … .png beside them

A picture is drawn for what the files hold: any models, tasks and seeds. Of several seeds the *middle* one is drawn, whose
zero-error epoch is the (lower) median, a seed that never got there counting as ∞; the others are thin grey lines.
The only file that imports matplotlib, inside functions; `pyplot` is not used and all settings are put back.
"""

import json
import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from meristem.data.spirals import TASKS

Axes = Any  # matplotlib's; named here, imported nowhere
Figure = Any
Run = dict[str, Any]  # an entry of summary.json's "runs"

EXPERIMENT = "two-spirals"
NAMES = {"tunnel": "tunnel", "highway": "highway", "highway-penalized": "penalized highway", "budding": "budding"}
COLORS = {"tunnel": "#0072B2", "highway": "#E69F00", "highway-penalized": "#CC79A7", "budding": "#009E73"}  # Okabe and Ito's
CLASSES = ("#0072B2", "#D55E00")
GREY, OTHER = "#666666", "#BDBDBD"
SEED_MARKER: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 4.5, "markeredgewidth": 0}
UNSOLVED_MARKER: dict[str, Any] = {"linestyle": "", "marker": "x", "markersize": 4.5, "markeredgewidth": 1.2}
PAPER_MARKER: dict[str, Any] = {
    "linestyle": "",
    "marker": "D",
    "markersize": 6,
    "markerfacecolor": "none",
    "markeredgecolor": "black",
}
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.labelsize": 10,
    "figure.titlesize": 13,
    "figure.constrained_layout.h_pad": 0.07,
    "figure.constrained_layout.w_pad": 0.06,
    "legend.fontsize": 9.5,
    "legend.frameon": False,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.8,
    "lines.linewidth": 1.6,
    "savefig.dpi": 150,
}

RUN_KEYS = ("model", "task", "seed", "zero_error_epoch", "soft_size")
RANKS = {"error": 1, "layer_sizes": 2, "hard_size": 1, "stage": 1}  # what a run must have in history.npz


def have_matplotlib() -> bool:
    """Whether pictures can be drawn here."""
    try:
        return find_spec("matplotlib") is not None
    except ValueError:  # blocked on purpose, as sys.modules["matplotlib"] = None does
        return False


def draw(out: Path) -> list[Path]:
    """Draw every picture that the files in `out` hold; the paths of the PNGs, in reading order.

    ValueError, in one line, where `summary.json` or `history.npz` is missing or does not hold a two-spirals study.
    """
    study = load(out)
    if not have_matplotlib():
        raise ImportError("Figures need matplotlib; install it with `pip install 'meristem[cli]'`.")
    import matplotlib

    with matplotlib.rc_context(STYLE):
        return [_save(figure(study), out / f"{name}.png") for name, figure in _pictures(study).items()]


def _pictures(study: "Study") -> dict[str, Callable[["Study"], Figure]]:
    """Name → what draws it, in reading order."""
    pictures: dict[str, Callable[[Study], Figure]] = {"data": _data}
    for model in study.models:
        if model in NAMES:
            pictures[model] = partial(_training, model=model)
    if study.pictured:
        pictures["discriminants"] = _discriminants
    if any(model in NAMES for model in study.models):
        pictures["sizes"] = _overview
    return pictures


def _save(figure: Figure, path: Path) -> Path:
    figure.savefig(path)
    return path


# ---- the files --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Study:
    """What the two files hold, checked."""

    runs: list[Run]
    paper: dict[str, Any]  # "model/task" → {"soft_size": …, "zero_error_epoch": …}, the paper's
    arrays: dict[str, np.ndarray]  # "model/task/seed/field"; epochs first

    @property
    def models(self) -> list[str]:
        return _ordered([run["model"] for run in self.runs], list(NAMES))

    @property
    def tasks(self) -> list[str]:
        return _ordered([run["task"] for run in self.runs], TASKS)

    @property
    def pictured(self) -> list[str]:
        """The models with a discriminant."""
        return [m for m in self.models if any(self.discriminant(m, task) for task in self.tasks)]

    def of(self, model: str, task: str) -> list[Run]:
        return [run for run in self.runs if (run["model"], run["task"]) == (model, task)]

    def series(self, run: Run, field: str) -> np.ndarray:
        return self.arrays[f"{_key(run)}/{field}"]

    def discriminant(self, model: str, task: str) -> tuple[Run, np.ndarray] | None:
        """The middle seed's, or else that of the first seed which has one."""
        runs = self.of(model, task)
        for run in [middle(runs), *runs] if runs else []:
            if f"{_key(run)}/discriminant" in self.arrays:
                return run, self.series(run, "discriminant").astype(float)
        return None


def middle(runs: list[Run]) -> Run:
    """The run whose zero-error epoch is the lower median; None counts as ∞.

    >>> middle([{"seed": s, "zero_error_epoch": e} for s, e in enumerate([None, 9, 4])])["seed"]
    1
    """
    return sorted(runs, key=lambda run: (_zero_epoch(run), run["seed"]))[(len(runs) - 1) // 2]


def load(out: Path) -> Study:
    """Read and check both files."""
    summary_file, history_file = out / "summary.json", out / "history.npz"
    summary = _read_summary(summary_file)
    runs, paper = summary["runs"], summary.get("paper") or {}
    arrays = _read_history(history_file)
    wanted = {f"{_key(run)}/{field}": rank for run in runs for field, rank in RANKS.items()}
    wanted |= {f"data/{run['task']}/{name}": rank for run in runs for name, rank in (("x", 2), ("y", 1))}
    for key in [key for key in arrays if key.endswith("/discriminant")]:
        wanted |= {key: 2, f"{key}_limit": 0}
    _lacking(history_file, [key for key in wanted if key not in arrays])
    for key, rank in wanted.items():
        if arrays[key].ndim != rank or 0 in arrays[key].shape:
            raise _unfit(history_file, f"holds {key!r} of shape {arrays[key].shape}, which must have {rank} filled axes")
    return Study(runs, paper, arrays)


def _read_summary(file: Path) -> dict[str, Any]:
    _present(file)
    try:
        summary = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _unfit(file, "is not readable JSON") from error
    if not isinstance(summary, dict):
        raise _unfit(file, "is not a JSON object")
    _lacking(file, [key for key in ("experiment", "runs") if key not in summary])
    if summary["experiment"] != EXPERIMENT:
        raise _unfit(file, f"is of the experiment {summary['experiment']!r}; figures are drawn for {EXPERIMENT!r}")
    if not isinstance(summary["runs"], list) or not summary["runs"] or not all(isinstance(r, dict) for r in summary["runs"]):
        raise _unfit(file, "holds no runs")
    known = [{key for key, value in run.items() if value is not None or key == "zero_error_epoch"} for run in summary["runs"]]
    _lacking(file, [f"runs[{i}].{key}" for i, keys in enumerate(known) for key in RUN_KEYS if key not in keys])
    return summary


def _read_history(file: Path) -> dict[str, np.ndarray]:
    _present(file)
    try:
        with file.open("rb") as handle, np.load(handle) as archive:
            return {key: archive[key] for key in archive.files}
    except Exception as error:  # zip, zlib, header and pickle errors have no common class
        raise _unfit(file, "is not a readable NumPy archive") from error


def _present(file: Path) -> None:
    if not file.is_file():
        raise _unfit(file, "is missing")


def _lacking(file: Path, keys: list[str]) -> None:
    if keys:
        more = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
        raise _unfit(file, f"lacks {keys[0]!r}{more}")


def _unfit(file: Path, problem: str) -> ValueError:
    return ValueError(f"{file} {problem}; run `meristem reproduce {EXPERIMENT} --out {file.parent}` first.")


def _key(run: Run) -> str:
    return f"{run['model']}/{run['task']}/{run['seed']}"


def _ordered(names: list[str], order: list[str]) -> list[str]:
    """Each name once, the known ones first and in their order."""
    once = list(dict.fromkeys(names))
    return [name for name in order if name in once] + [name for name in once if name not in order]


def _zero_epoch(run: Run) -> float:
    return math.inf if run["zero_error_epoch"] is None else float(run["zero_error_epoch"])


def _solved(run: Run) -> bool:
    return run["zero_error_epoch"] is not None


# ---- data and discriminants: pictures of the plane --------------------------------------------------------------------------


def _data(study: Study) -> Figure:
    """The spiral variants side by side."""
    figure, axes = _grid(1, len(study.tasks), cell=(2.9, 3.1), sharex=True, sharey=True)
    for ax, task in zip(axes[0], study.tasks, strict=True):
        _points(ax, study, task, size=11.0)
        ax.set(xticks=range(-6, 7, 3), yticks=range(-6, 7, 3))
        ax.set_title(task)
        ax.set_xlabel("$x_1$")
    axes[0, 0].set_ylabel("$x_2$")
    figure.suptitle("Two spirals" if len(study.tasks) == 1 else "Two spirals, from easy to hard")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, markerscale=1.6)
    return figure


def _discriminants(study: Study) -> Figure:
    """Models × tasks: the probability of class 1, the boundary, the points."""
    models = study.pictured
    figure, axes = _grid(len(models), len(study.tasks), cell=(2.5, 2.55), frame=0.6, sharex=True, sharey=True)
    shading = None
    for row, model in zip(axes, models, strict=True):
        row[0].set_ylabel(NAMES.get(model, model), fontsize=11.0)
        for ax, task in zip(row, study.tasks, strict=True):
            shading = _discriminant(ax, study, model, task) or shading
    for ax, task in zip(axes[0], study.tasks, strict=True):
        ax.set_title(task)
    bar = figure.colorbar(
        shading, ax=axes.ravel().tolist(), shrink=max(0.4, 1 / len(models)), aspect=18, pad=0.02, ticks=[0, 0.5, 1]
    )
    bar.set_label("probability of class 1")
    bar.outline.set_visible(False)
    figure.suptitle("What the networks learned")
    return figure


def _discriminant(ax: Axes, study: Study, model: str, task: str) -> Any:
    """One cell; its shading, or None where the files have no discriminant."""
    ax.set(xticks=[], yticks=[])
    for spine in ax.spines.values():
        spine.set_visible(False)
    found = study.discriminant(model, task)
    if found is None:
        return None
    run, probability = found
    limit = float(study.series(run, "discriminant_limit"))
    edge = limit * (1 + 1 / max(1, len(probability) - 1))  # the values are at the centers of the pixels
    shading = ax.imshow(
        probability,
        origin="lower",
        extent=(-edge, edge, -edge, edge),
        vmin=0,
        vmax=1,
        cmap=_class_map(),
        interpolation="bilinear",
    )
    if probability.min() < 0.5 < probability.max():
        along = np.linspace(-limit, limit, len(probability))
        ax.contour(along, along, probability, levels=[0.5], colors="black", linewidths=1.1)
    _points(ax, study, task, size=7.0)
    ax.set(xlim=(-limit, limit), ylim=(-limit, limit))
    ax.set_xlabel(f"seed {run['seed']}", fontsize=8.5, color=GREY, labelpad=3)
    return shading


def _points(ax: Axes, study: Study, task: str, size: float) -> None:
    x, y = (study.arrays[f"data/{task}/{name}"] for name in ("x", "y"))
    for label, color in enumerate(CLASSES):
        chosen = x[y == label]
        ax.scatter(chosen[:, 0], chosen[:, 1], s=size, color=color, linewidths=0, label=f"class {label}")
    ax.set_aspect("equal")


def _class_map() -> Any:
    """Class 0's color → white → class 1's, pale enough for the points to stand out."""
    from matplotlib.colors import LinearSegmentedColormap, to_rgb

    pale = [tuple(0.5 + 0.5 * np.asarray(to_rgb(color))) for color in CLASSES]
    return LinearSegmentedColormap.from_list("classes", [pale[0], "white", pale[1]])


# ---- training: error and size against the epoch -----------------------------------------------------------------------------


def _training(study: Study, model: str) -> Figure:
    """Tasks side by side; below one another the error and the sizes of the middle seed."""
    tasks = [task for task in study.tasks if study.of(model, task)]
    figure, axes = _grid(3, len(tasks), cell=(2.9, 2.0), sharex="col", sharey="row")
    for column, task in zip(axes.T, tasks, strict=True):
        runs = study.of(model, task)
        drawn = middle(runs)
        _heading(column[0], task, runs, drawn)
        for ax, (paint, _) in zip(column, _rows(model), strict=True):
            paint(ax, study, runs, drawn)
            _rate_cuts(ax, study, drawn)
            ax.grid(axis="y")
        column[-1].set_xlabel("epoch")
    for ax, (_, label) in zip(axes[:, 0], _rows(model), strict=True):
        ax.set_ylabel(label)
        _from_zero(ax)
    if model != "budding":
        layers = max(study.series(run, "layer_sizes").shape[1] for task in tasks for run in study.of(model, task))
        _layer_bar(figure, axes[1], layers)
    figure.suptitle(f"{NAMES[model].capitalize()} {'perceptron' if model == 'budding' else 'network'} on two spirals")
    _training_legend(figure, study, model, tasks)
    return figure


Paint = Callable[[Axes, Study, list[Run], Run], None]


def _rows(model: str) -> list[tuple[Paint, str]]:
    if model == "budding":
        return [(_error, "error rate"), (_hard_size, "hard size (nodes)"), (_soft_size, "soft size (nodes)")]
    return [(_error, "error rate"), (_layer_sizes, "soft size per layer"), (_soft_size, "total soft size")]


def _error(ax: Axes, study: Study, runs: list[Run], drawn: Run) -> None:
    _seeds(ax, runs, drawn, lambda run: study.series(run, "error"))


def _soft_size(ax: Axes, study: Study, runs: list[Run], drawn: Run) -> None:
    _seeds(ax, runs, drawn, lambda run: study.series(run, "layer_sizes").sum(1))


def _hard_size(ax: Axes, study: Study, runs: list[Run], drawn: Run) -> None:
    """The drawn seed alone: this size jumps, and several on top of one another cannot be told apart."""
    _seeds(ax, [drawn], drawn, lambda run: study.series(run, "hard_size"), drawstyle="steps-post", linewidth=1.0)


def _layer_sizes(ax: Axes, study: Study, runs: list[Run], drawn: Run) -> None:
    """One line per layer, the first on top."""
    sizes = study.series(drawn, "layer_sizes")
    for layer, color in reversed(list(enumerate(_layer_colors(sizes.shape[1])))):
        ax.plot(_epochs(sizes), sizes[:, layer], color=color, linewidth=1.4)


def _seeds(ax: Axes, runs: list[Run], drawn: Run, values: Callable[[Run], np.ndarray], **options: Any) -> None:
    """The drawn seed in color, marked at its zero-error epoch; the others behind it in grey."""
    for run in runs:
        if run is not drawn:
            ax.plot(_epochs(values(run)), values(run), color=OTHER, linewidth=0.8, zorder=1.5, **options)
    color, shown = COLORS[drawn["model"]], values(drawn)
    ax.plot(_epochs(shown), shown, color=color, **options)
    epoch = drawn["zero_error_epoch"]
    if epoch is not None and epoch <= len(shown):
        ax.plot(epoch, shown[epoch - 1], **_zero_marker(color), zorder=4, clip_on=False)


def _heading(ax: Axes, task: str, runs: list[Run], drawn: Run) -> None:
    """The task, and below it which seed is drawn, when it got to zero error, and how many seeds did."""
    epoch, solved = drawn["zero_error_epoch"], sum(_solved(run) for run in runs)
    text = f"seed {drawn['seed']}: " + ("never at zero error" if epoch is None else f"zero at epoch {epoch}")
    text += f"  ({solved}/{len(runs)} solved)" if len(runs) > 1 else ""
    ax.set_title(task, pad=20)
    ax.text(0.5, 1.03, text, transform=ax.transAxes, ha="center", va="bottom", fontsize=8.5, color=GREY)


def _from_zero(ax: Axes) -> None:
    """The axis begins a little below 0, so that a line at 0 is seen, and reaches 0.5 at least: noise must not look large."""
    top = max(0.5, ax.get_ylim()[1])
    ax.set_ylim(-0.025 * top, 1.02 * top)


def _rate_cuts(ax: Axes, study: Study, run: Run) -> None:
    for cut in _cuts(study, run):
        ax.axvline(cut, color=GREY, linestyle=(0, (4, 3)), linewidth=0.9, zorder=1.8)


def _cuts(study: Study, run: Run) -> np.ndarray:
    """Where the rate shrinks: between the last epoch of a stage and the first of the next."""
    return np.flatnonzero(np.diff(study.series(run, "stage")) > 0) + 1.5


def _epochs(values: np.ndarray) -> np.ndarray:
    return np.arange(1, len(values) + 1)


def _zero_marker(color: str) -> dict[str, Any]:
    return {"marker": "o", "markersize": 6.5, "markerfacecolor": "white", "markeredgecolor": color, "markeredgewidth": 1.6}


def _layer_colors(layers: int) -> list[Any]:
    """Dark for the first layer, light for the last; short of the yellow that white paper swallows."""
    from matplotlib import colormaps

    return [colormaps["viridis"](value) for value in np.linspace(0, 0.92, layers)]


def _layer_bar(figure: Figure, row: Any, layers: int) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import BoundaryNorm, ListedColormap

    norm = BoundaryNorm(np.arange(layers + 1) + 0.5, layers)
    ticks = np.arange(1, layers + 1, max(1, math.ceil((layers - 1) / 9)))
    bar = figure.colorbar(
        ScalarMappable(norm, ListedColormap(_layer_colors(layers))),
        ax=row.tolist(),
        ticks=ticks,
        label="layer",
        aspect=14,
        pad=0.01,
    )
    bar.ax.tick_params(which="both", length=0, labelsize=8)
    bar.ax.invert_yaxis()
    bar.outline.set_visible(False)


def _training_legend(figure: Figure, study: Study, model: str, tasks: list[str]) -> None:
    """Names for the kinds of lines that are there."""
    from matplotlib.lines import Line2D

    groups = [study.of(model, task) for task in tasks]
    drawn = [middle(runs) for runs in groups]
    handles = []
    if any(len(runs) > 1 for runs in groups):
        handles.append(Line2D([], [], color=COLORS[model], label="seed with the median zero-error epoch"))
        handles.append(Line2D([], [], color=OTHER, linewidth=1, label="other seeds"))
    if any(_solved(run) for run in drawn):
        handles.append(Line2D([], [], linestyle="", label="first epoch without error", **_zero_marker(COLORS[model])))
    if any(_cuts(study, run).size for run in drawn):
        handles.append(Line2D([], [], color=GREY, linestyle=(0, (4, 3)), linewidth=0.9, label="learning rate shrinks"))
    if handles:
        figure.legend(handles=handles, loc="outside lower center", ncols=1 if len(tasks) == 1 else 2 if len(tasks) == 2 else 4)


# ---- the overview: final sizes and epochs beside the paper's ----------------------------------------------------------------


def _overview(study: Study) -> Figure:
    """Final sizes (units and tree nodes are different things: a panel each) and epochs to zero error."""
    models = [model for model in study.models if model in NAMES]
    stacks = [model for model in models if model != "budding"]
    panels = [(stacks, "soft_size", "Final soft size, in units", "units")] if stacks else []
    panels += [(["budding"], "soft_size", "Final soft size, in tree nodes", "nodes")] if "budding" in models else []
    panels += [(models, "zero_error_epoch", "Epochs to zero error", "epoch")]
    widths = [2.0 + 0.4 * len(shown) for shown, *_ in panels]
    figure, axes = _grid(1, len(panels), cell=(3.4, 3.3), width_ratios=widths)
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
        _from_zero(ax)
        ax.yaxis.get_major_locator().set_params(integer=True)


def _dots(ax: Axes, study: Study, model: str, task: str, field: str, center: float, width: float) -> None:
    """All seeds as dots (crosses: never at zero error), their median as a bar, the paper's figure as a hollow diamond."""
    color, never, runs = COLORS[model], _never(study), study.of(model, task)
    values = [_zero_epoch(run) if field == "zero_error_epoch" else run[field] for run in runs]
    for place, (run, value) in enumerate(zip(runs, values, strict=True)):
        at = center + 0.55 * width * ((place + 0.5) / len(runs) - 0.5)
        ax.plot(at, min(value, never), color=color, zorder=4, **(SEED_MARKER if _solved(run) else UNSOLVED_MARKER))
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
    if any(run["model"] in models and not _solved(run) for run in study.runs):
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
    if any(_solved(run) for run in runs):
        handles.append(Line2D([], [], color=GREY, label="one seed", **SEED_MARKER))
    if not all(_solved(run) for run in runs):
        handles.append(Line2D([], [], color=GREY, label="never at zero error", **UNSOLVED_MARKER))
    if any(len(study.of(*cell)) > 1 for cell in cells):
        handles.append(Line2D([], [], color=GREY, alpha=0.5, linewidth=3, label="median"))
    if any(_paper(study, *cell, field) is not None for cell in cells for field in ("soft_size", "zero_error_epoch")):
        handles.append(Line2D([], [], label="paper", **PAPER_MARKER))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), columnspacing=1.4, handlelength=1.5)


# ---- the sheet --------------------------------------------------------------------------------------------------------------


def _grid(rows: int, columns: int, *, cell: tuple[float, float], frame: float = 1.1, **options: Any) -> tuple[Figure, Any]:
    """A figure and its axes [rows, columns], `cell` inches each, and `frame` inches for a title and a legend."""
    from matplotlib.figure import Figure

    size = max(4.6, 0.9 + cell[0] * columns), frame + cell[1] * rows
    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)
