"""The table of a study: each column is a value of a model's runs on a task, averaged over seeds, beside the paper's value.

    table((Column("test error, %", "test_error", 2, percent=True, paper="test_error"), …), runs, paper) → names of columns, rows

The first two columns are model and task; columns without any value are left out.
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from meristem.experiments.summary import Record
from meristem.show.text_table import without_empty

PaperValues = Mapping[str, Mapping[str, float]]  # "model/task" → what the paper reports


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
    average: Callable[[Sequence[float], int], str] = mean_and_sd  # of the seeds that have a value

    def show(self, runs: Sequence[Record]) -> str:
        """Return the average over the runs of one model on one task, or a dash."""
        values = [self.value(run) if callable(self.value) else run.get(self.value) for run in runs]
        numbers = [100 * value if self.percent else value for value in values if value is not None]
        digits = self.digits(runs[0]) if callable(self.digits) else self.digits
        return self.average(numbers, digits) if numbers else "–"

    def show_paper(self, value: float | None) -> str:
        """Return a value of the paper, or a dash."""
        if value is None:
            return "–"
        return f"{100 * value:.{self.digits}f}" if self.percent else f"{value:g}"


def table(columns: Sequence[Column], runs: Sequence[Record], paper: PaperValues) -> tuple[list[str], list[list[str]]]:
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
            row.append(column.show(group))
            if column.paper:
                row.append(column.show_paper(paper_values.get(column.paper)))
        rows.append(row)
    return without_empty(names, rows)


def parameter_columns(column: Callable[..., Column] = Column) -> tuple[Column, Column]:
    """Return columns of the compact network's parameters, and of live parameters for records that lack these."""

    def live(run: Record) -> float | None:
        return None if "n_parameters" in run else run["live_parameters"]

    return column("parameters", "n_parameters"), column("live parameters", live)
