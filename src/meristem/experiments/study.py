"""A study as one record: its options, tasks, table, the paper's values and figures; and its results.

    STUDY = Study(name="two-spirals", options=SpiralsOptions, plan=plan, columns=(…), paper={…}, pictures=…, …)
    result = run(STUDY, options, STUDY.plan(options), trainer)              (study_training.py)

A new study is a file of this folder with such a record, from which command line, summary, table and figures follow. A column
of the table is a value of a model's runs on a task, averaged over seeds, beside the paper's value. Each run has a record in
`summary.json`, where errors are fractions and null means "does not apply", and its values by epoch in `history.npz`.
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import Any

import equinox as eqx
import jax
import numpy as np

import meristem
from meristem.compact import n_parameters
from meristem.experiments.options import Options
from meristem.nn import Network
from meristem.nn.network import BODIES
from meristem.pictures.studies.study_pictures import StudyPictures
from meristem.show.describe import without_empty
from meristem.show.measures import LOSS, MACRO_F1, Measure, error_measure
from meristem.train.hyperparameters import Recipe
from meristem.train.metrics import Measures
from meristem.train.optimizer import trainable
from meristem.train.run import Run
from meristem.train.training_data import Data

Record = dict[str, Any]
Arrays = dict[str, np.ndarray]
Average = Callable[[Sequence[float], int], str]  # of values, with so many digits
PaperValues = Mapping[str, Mapping[str, float]]  # "model/task" → what the paper reports
HISTORY_FIELDS = ["error", "loss", "macro_f1", "dev_error", "dev_loss", "dev_macro_f1"]
HISTORY_FIELDS += ["layer_sizes", "hard_size", "hard_cost", "stage", "waited"]


def features_network(task: "Task", body: str, *, key: Any) -> Network:
    """Return a network on vectors of features."""
    size: dict[str, Any] = {"width": "auto", "max_width": task.width} if task.learns_width else {"width": task.width}
    if "depth" in signature(BODIES[body]).parameters:
        size["depth"] = task.depth
    return Network.create(body, task.data.x.shape[1], task.n_out, key=key, **size)


@dataclass(frozen=True)
class Task:
    """What a network is trained on, and how."""

    name: str
    data: Data
    n_out: int
    recipe: Recipe
    width: int
    depth: int  # of bodies with a fixed number of layers
    expected_epochs: int  # of one seed, to estimate the time left
    test: Data | None = None  # its x and y
    record_fields: dict[str, Any] = field(default_factory=dict)  # further values of its records: features, split
    arrays: Arrays = field(default_factory=dict)  # further arrays of history.npz, below data/
    learns_width: bool = False  # up to `width`
    create: Callable[..., Network] = features_network  # (task, body, key=…)

    @property
    def measure(self) -> Measure:
        """The measure that selects a model's best epoch, and then its setting."""
        error = error_measure(self.recipe.task.error_name, is_share=self.recipe.task.error_is_share)
        return {"error": error, "macro_f1": MACRO_F1, "loss": LOSS}[self.recipe.select]

    def resized(self, options: Options) -> "Task":
        """Return the task with networks of the requested size, which settle if that is requested."""
        recipe, has_budget = self.recipe, options.budget is not None
        if has_budget or options.settle or options.penalties is not None:
            recipe = replace(recipe, settle=True, price="parameters" if has_budget else recipe.price)
        width, depth = options.width or self.width, options.depth or self.depth
        return replace(self, recipe=recipe, width=width, depth=depth, learns_width=self.learns_width or has_budget)


def mean_and_sd(values: Sequence[float], digits: int) -> str:
    """Return mean ± standard deviation.

    >>> mean_and_sd([1.50, 1.60], 2), mean_and_sd([3], 0)
    ('1.55 ± 0.07', '3')
    """
    mean = f"{statistics.mean(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):.{digits}f}"


def median_and_range(values: Sequence[float], digits: int = 0) -> str:
    """Return median (range); the median of integers may lie half-way.

    >>> median_and_range([20, 25, math.inf]), median_and_range([1, 2])
    ('25 (20–∞)', '1.5 (1–2)')
    """

    def show(number: float) -> str:
        return "∞" if number == math.inf else f"{number:.{digits if digits or number == int(number) else 1}f}"

    median, least, most = show(statistics.median(values)), show(min(values)), show(max(values))
    return median if least == most else f"{median} ({least}–{most})"


@dataclass(frozen=True)
class Column:
    """A column, and that of the paper beside it."""

    name: str
    value: str | Callable[[Record], float | None]  # of a run: a key of its record, or a function; None: it has none
    digits: int | Callable[[Record], int] = 0
    percent: bool = False  # of fractions
    paper: str | None = None  # the name of the paper's value
    line: str | None = None  # how a line of progress shows it, such as "test error {} %"
    average: Average | None = None  # in place of the study's

    def show(self, runs: Sequence[Record], average: Average) -> str:
        """Return the average over the runs of one model on one task that have a value, or a dash."""
        values = [self.value(run) if callable(self.value) else run.get(self.value) for run in runs]
        numbers = [100 * value if self.percent else value for value in values if value is not None]
        digits = self.digits(runs[0]) if callable(self.digits) else self.digits
        return (self.average or average)(numbers, digits) if numbers else "–"


PARAMETERS = (  # of the compact network; live ones for old records that lack these
    Column("parameters", "n_parameters"),
    Column("live parameters", lambda run: None if "n_parameters" in run else run["live_parameters"]),
)


@dataclass(frozen=True)
class Plan:
    """The tasks that the options of a study ask for, with their data."""

    tasks: Sequence[Task]
    title: str  # of the table and in summary.json
    is_papers_data: bool = True  # so that its values can be compared with ours
    pictures: StudyPictures | None = None  # in place of the study's
    summary_fields: Record = field(default_factory=dict)  # further values of summary.json


@dataclass(frozen=True)
class Study:
    name: str
    help: str
    description: str
    example: str  # options of a typical command
    options: type[Any]  # a subclass of Options
    plan: Callable[[Any], Plan]  # of the options; loads the data
    columns: tuple[Column, ...]
    pictures: StudyPictures
    average: Average = mean_and_sd  # of the seeds
    averages: str = "mean ± sd"  # what the table's numbers are, in words
    paper: PaperValues = field(default_factory=dict)
    arrays: Callable[[Network], Arrays] = lambda network: {}  # further arrays of a run's best network in history.npz
    setup: Callable[[], Any] = lambda: None  # called before JAX computes anything


def table(
    columns: Sequence[Column], runs: Sequence[Record], paper: PaperValues, average: Average = mean_and_sd
) -> tuple[list[str], list[list[str]]]:
    """Return the names of the columns and the rows, a row for each model on each task in the order of training.

    >>> runs = [{"model": "tunnel", "task": "ten", "epochs": epochs} for epochs in (3, 5)]
    >>> table([Column("epochs", "epochs", paper="epochs")], runs, {"tunnel/ten": {"epochs": 175}})
    (['model', 'task', 'epochs', 'paper'], [['tunnel', 'ten', '4 ± 1', '175']])
    """
    names, rows = ["model", "task"], []
    for column in columns:
        names += [column.name, "paper"] if column.paper else [column.name]
    for model, task in dict.fromkeys((run["model"], run["task"]) for run in runs):
        group = [run for run in runs if (run["model"], run["task"]) == (model, task)]
        paper_values, row = paper.get(f"{model}/{task}", {}), [model, task]
        for column in columns:
            row.append(column.show(group, average))
            if column.paper:
                value = paper_values.get(column.paper)
                row.append("–" if value is None else f"{100 * value:.{column.digits}f}" if column.percent else f"{value:g}")
        rows.append(row)
    return without_empty(names, rows)


@dataclass
class Result:
    """Records and further lists of records for summary.json, and arrays for history.npz."""

    runs: list[Record] = field(default_factory=list)
    history: dict[str, np.ndarray] = field(default_factory=dict)
    extra: dict[str, list[Record]] = field(default_factory=dict)

    def add(self, trained: Sequence[tuple[Record, Run]], arrays: Callable[[Network], Arrays] = lambda network: {}) -> None:
        """Add runs with their histories; `arrays` returns further arrays of a run's best network."""
        for row, run in trained:
            self.runs.append(row)
            values = {part: run.history[part] for part in HISTORY_FIELDS if part in run.history} | arrays(run.best)
            self.history |= {f"{row['model']}/{row['task']}/{row['seed']}/{part}": array for part, array in values.items()}

    def join(self, other: "Result") -> None:
        self.runs += other.runs
        self.history |= other.history
        for name, records in other.extra.items():
            self.extra.setdefault(name, []).extend(records)

    def summary(self, study: Study, plan: Plan, wall_seconds: float, command: str) -> Record:
        return {
            "experiment": study.name,
            "title": plan.title,
            "meristem": meristem.__version__,
            "jax": jax.__version__,
            "device": jax.default_backend(),
            "device_name": jax.devices()[0].device_kind,
            "command": command,
            "wall_seconds": round(wall_seconds, 1),
            "runs": self.runs,
            "paper": dict(study.paper if plan.is_papers_data else {}),
            **plan.summary_fields,
            "pictures": (plan.pictures or study.pictures).as_json(),
            **self.extra,
        }


def record(run: Run, test: Measures | None, **fields: Any) -> Record:
    """Return a run as it goes into summary.json, with further `fields`; measures are those of the best epoch.

    Epochs with a non-finite loss are ignored; without any other epoch the values are None.
    """
    best, history = int(run.best_epoch), run.history
    finite = np.isfinite(history["loss"]) & np.isfinite(history["dev_loss"])
    zero = np.flatnonzero((history["error"] == 0) & finite)
    sizes, trees = history["layer_sizes"][finite], history["hard_size"][finite]
    is_tree, live = bool(run.last.capacity), int(run.last.live_parameters())  # a tree has nodes in place of layers of units
    trained = sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(run.last, trainable(run.last))))
    layers, nodes = sizes[: 0 if is_tree else None], trees[: None if is_tree else 0]
    measures: dict[str, Any] = {}
    for name in ("error", "macro_f1"):
        for part, values in (("train", history.get(name)), ("dev", history.get(f"dev_{name}"))):
            measures[f"{part}_{name}"] = values[best - 1] if best and values is not None else None
        measures[f"test_{name}"] = getattr(test, name, None)
    return {
        "features": None,
        "split": None,
        **fields,
        "epochs": int(run.epochs),
        "zero_error_epoch": int(zero[0]) + 1 if zero.size else None,
        "best_epoch": best,
        **{name: None if value is None else float(value) for name, value in measures.items()},
        "soft_size": float(sizes[-1].sum()) if len(sizes) else None,
        "peak_soft_size": float(sizes.sum(1).max()) if len(sizes) else None,
        "best_soft_size": float(history["layer_sizes"][best - 1].sum()) if best else None,
        "layer_sizes": layers[-1].tolist() if len(layers) else None,
        "peak_layer_sizes": layers.max(0).tolist() if len(layers) else None,
        "hard_size": int(nodes[-1]) if len(nodes) else None,
        "peak_hard_size": int(nodes.max()) if len(nodes) else None,
        "parameters": live if is_tree else trained,
        "live_parameters": live,
        "n_parameters": n_parameters(run.best) if best else None,
        "diverged": bool(run.diverged),
    }
