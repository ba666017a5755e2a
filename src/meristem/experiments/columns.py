"""The table of a study as data: each column says what it shows of a model's runs on a task, and which of the paper's values.

    table((percent("test error, %", "test_error", 2, paper="test_error"), …), runs, paper) → names of columns, rows

Model and task are the first two columns of every table; columns without any value are left out. Values of several seeds are a
mean ± sd or a median (range), as a study says.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from meristem.experiments.summary import Record
from meristem.show.text_table import without_empty

Papers = Mapping[str, Mapping[str, float]]  # "model/task" → what the paper reports of it
Values = Sequence[float | None]  # of the seeds; None: there is none
Value = str | Callable[[Record], float | None]  # of a run: a key of its record, or a function


def number(value: float | None, digits: int | None = None, factor: float = 1.0) -> str:
    """One of the paper's values, or a dash.

    >>> number(0.0167, 2, factor=100), number(None), number(23)
    ('1.67', '–', '23')
    """
    if value is None:
        return "–"
    return f"{factor * value:g}" if digits is None else f"{factor * value:.{digits}f}"


@dataclass(frozen=True)
class Column:
    """What stands below a name, and beside it under "paper"."""

    name: str
    show: Callable[[Sequence[Record]], str]  # the runs of one model on one task
    paper: str | None = None  # the name of the paper's value
    show_paper: Callable[[float | None], str] = number


def table(columns: Sequence[Column], runs: Sequence[Record], paper: Papers) -> tuple[list[str], list[list[str]]]:
    """Names of columns and rows, ours beside the paper's.

    >>> runs = [{"model": "tunnel", "task": "ten", "epochs": epochs} for epochs in (3, 5)]
    >>> table([mean("epochs", "epochs", 0, paper="epochs")], runs, {"tunnel/ten": {"epochs": 175}})
    (['model', 'task', 'epochs', 'paper'], [['tunnel', 'ten', '4 ± 1', '175']])
    """
    names, rows = ["model", "task"], []
    for column in columns:
        names += [column.name, "paper"] if column.paper else [column.name]
    for model, task, group in groups(runs):
        known, row = paper.get(f"{model}/{task}", {}), [model, task]
        for column in columns:
            row.append(column.show(group))
            if column.paper:
                row.append(column.show_paper(known.get(column.paper)))
        rows.append(row)
    return without_empty(names, rows)


def groups(runs: Sequence[Record]) -> list[tuple[str, str, list[Record]]]:
    """The runs of each model on each task, in the order in which they were trained."""
    cells = dict.fromkeys((one["model"], one["task"]) for one in runs)
    return [(model, task, [one for one in runs if (one["model"], one["task"]) == (model, task)]) for model, task in cells]


# Kinds of columns -----------------------------------------------------------------------------------------------------------


def mean(name: str, value: Value, digits: int, *, paper: str | None = None) -> Column:
    """Mean ± sd of the seeds."""
    return Column(name, lambda runs: mean_and_sd(values_of(runs, value), digits), paper)


def percent(name: str, value: Value, digits: int, *, paper: str | None = None) -> Column:
    """Mean ± sd of the seeds, of a share as per cent."""
    show = partial(number, digits=digits, factor=100)
    return Column(name, lambda runs: mean_and_sd(values_of(runs, value), digits, 100), paper, show)


def median(name: str, value: Value, digits: int = 0, *, paper: str | None = None) -> Column:
    """Median (range) of the seeds that have a value."""

    def show(runs: Sequence[Record]) -> str:
        found = [one for one in values_of(runs, value) if one is not None]
        return spread(found, digits) if found else "–"

    return Column(name, show, paper)


def parameters(kind: Callable[[str, Value, int], Column]) -> tuple[Column, Column]:
    """The numbers that the best network stores in its compact form; of records without it, those that are alive at the end."""

    def live(run: Record) -> float | None:
        return None if "n_parameters" in run else run["live_parameters"]

    return kind("parameters", "n_parameters", 0), kind("live parameters", live, 0)


def values_of(runs: Sequence[Record], value: Value) -> Values:
    """Of each run, None where it has none."""
    return [value(run) if callable(value) else run.get(value) for run in runs]


# Several seeds in words -----------------------------------------------------------------------------------------------------


def spread(values: Values, digits: int = 0) -> str:
    """Median and range; a run that never got there counts as ∞.

    >>> spread([20, 25, None])
    '25 (20–∞)'
    """
    numbers = sorted(float("inf") if value is None else value for value in values)

    def show(number: float) -> str:
        if number == float("inf"):
            return "∞"
        # A median of whole numbers may lie half-way: then it is shown so.
        return f"{number:.{digits if digits or number == int(number) else 1}f}"

    middle, least, most = show(statistics.median(numbers)), show(numbers[0]), show(numbers[-1])
    return middle if least == most else f"{middle} ({least}–{most})"


def mean_and_sd(values: Values, digits: int, factor: float = 1.0) -> str:
    """Mean ± standard deviation of the values that there are.

    >>> mean_and_sd([0.0150, 0.0160, None], 2, factor=100)
    '1.55 ± 0.07'
    """
    numbers = [factor * value for value in values if value is not None]
    if not numbers:
        return "–"
    mean = f"{statistics.mean(numbers):.{digits}f}"
    return mean if len(numbers) == 1 else f"{mean} ± {statistics.stdev(numbers):.{digits}f}"
