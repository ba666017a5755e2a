"""The table of a study: each column says what it shows of a model's runs on a task, and which of the paper's values.

    table((percent_column("test error, %", "test_error", 2, paper="test_error"), …), runs, paper) → names of columns, rows

The first two columns are model and task; columns without any value are left out. Several seeds are summarized by mean ± sd or
by median (range).
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from meristem.experiments.summary import Record
from meristem.show.text_table import without_empty

PaperValues = Mapping[str, Mapping[str, float]]  # "model/task" → what the paper reports
Value = str | Callable[[Record], float | None]  # of a run: a key of its record, or a function


def format_number(value: float | None, digits: int | None = None, factor: float = 1.0) -> str:
    """Return a value of the paper in the table, or a dash.

    >>> format_number(0.0167, 2, factor=100), format_number(None), format_number(23)
    ('1.67', '–', '23')
    """
    if value is None:
        return "–"
    return f"{factor * value:g}" if digits is None else f"{factor * value:.{digits}f}"


@dataclass(frozen=True)
class Column:
    """A column, and that of the paper beside it."""

    name: str
    show: Callable[[Sequence[Record]], str]  # the runs of one model on one task
    paper: str | None = None  # the name of the paper's value
    show_paper: Callable[[float | None], str] = format_number


def table(columns: Sequence[Column], runs: Sequence[Record], paper: PaperValues) -> tuple[list[str], list[list[str]]]:
    """Return the names of the columns and the rows, a row for each model on each task in the order of training.

    >>> runs = [{"model": "tunnel", "task": "ten", "epochs": epochs} for epochs in (3, 5)]
    >>> table([mean_column("epochs", "epochs", 0, paper="epochs")], runs, {"tunnel/ten": {"epochs": 175}})
    (['model', 'task', 'epochs', 'paper'], [['tunnel', 'ten', '4 ± 1', '175']])
    """
    names, rows = ["model", "task"], []
    for column in columns:
        names += [column.name, "paper"] if column.paper else [column.name]
    for model, task in dict.fromkeys((run["model"], run["task"]) for run in runs):
        group = [run for run in runs if (run["model"], run["task"]) == (model, task)]
        paper_values, row = paper.get(f"{model}/{task}", {}), [model, task]
        for column in columns:
            row.append(column.show(group))
            if column.paper:
                row.append(column.show_paper(paper_values.get(column.paper)))
        rows.append(row)
    return without_empty(names, rows)


def mean_column(name: str, value: Value, digits: int, *, paper: str | None = None) -> Column:
    return Column(name, lambda runs: mean_and_sd(values_of(runs, value), digits), paper)


def percent_column(name: str, value: Value, digits: int, *, paper: str | None = None) -> Column:
    show = partial(format_number, digits=digits, factor=100)
    return Column(name, lambda runs: mean_and_sd(values_of(runs, value), digits, 100), paper, show)


def median_column(name: str, value: Value, digits: int = 0, *, paper: str | None = None) -> Column:
    """Return a column of the median and range of the seeds that have a value."""

    def show(runs: Sequence[Record]) -> str:
        values = [number for number in values_of(runs, value) if number is not None]
        return median_and_range(values, digits) if values else "–"

    return Column(name, show, paper)


def parameter_columns(kind: Callable[[str, Value, int], Column]) -> tuple[Column, Column]:
    """Return columns of the compact network's parameters, and of live parameters for records that lack these."""

    def live(run: Record) -> float | None:
        return None if "n_parameters" in run else run["live_parameters"]

    return kind("parameters", "n_parameters", 0), kind("live parameters", live, 0)


def values_of(runs: Sequence[Record], value: Value) -> Sequence[float | None]:
    """Return the value of each run, or None where it has none."""
    return [value(run) if callable(value) else run.get(value) for run in runs]


def median_and_range(values: Sequence[float | None], digits: int = 0) -> str:
    """Return median and range, where None (never reached) counts as ∞.

    >>> median_and_range([20, 25, None])
    '25 (20–∞)'
    """
    numbers = sorted(float("inf") if value is None else value for value in values)

    def show(number: float) -> str:
        if number == float("inf"):
            return "∞"
        # The median of integers may lie half-way.
        return f"{number:.{digits if digits or number == int(number) else 1}f}"

    median, least, most = show(statistics.median(numbers)), show(numbers[0]), show(numbers[-1])
    return median if least == most else f"{median} ({least}–{most})"


def mean_and_sd(values: Sequence[float | None], digits: int, factor: float = 1.0) -> str:
    """Return mean ± standard deviation of the values that are not None.

    >>> mean_and_sd([0.0150, 0.0160, None], 2, factor=100)
    '1.55 ± 0.07'
    """
    numbers = [factor * value for value in values if value is not None]
    if not numbers:
        return "–"
    mean = f"{statistics.mean(numbers):.{digits}f}"
    return mean if len(numbers) == 1 else f"{mean} ± {statistics.stdev(numbers):.{digits}f}"
