"""A table's model: the encoding of its columns and the estimator that found its price, as one thing that takes frames.

    model.predict(frame)  model.predict_proba(frame)  model.score(frame)  model.doubts(frame)
    model.save(path)  model.to_onnx(path)  model.report(path)

A frame is anything that `table_of` takes, or the path of a file. Columns that the model does not know are ignored; what of the
others is unlike those it was made from, `doubts` says. Imports the encoding; fitting, files and commands import it.
"""

import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from meristem.check import cut, many
from meristem.estimators.repr import size_card
from meristem.files.whole import PATHS, write_whole
from meristem.tables.column import MISSING
from meristem.tables.encoding import Encoding
from meristem.tables.reading import tabled
from meristem.tables.scoring import in_words, scored
from meristem.tables.table import Table
from meristem.tables.target import CLASS

NAMED = 12  # columns that a notebook is told of
MOST_HELD, MOST_NUMBERS = 20_000, 20_000_000  # rows, and rows × inputs, that a report looks at


class Held(NamedTuple):
    """Rows that a model is judged by, encoded: at most as many as a report looks at."""

    X: np.ndarray  # [rows, inputs]
    y: np.ndarray  # places of classes (negative: none of them), or numbers
    said: dict[str, np.ndarray]  # what baselines say of them, by name


@dataclass(frozen=True, eq=False, repr=False)
class TableModel:
    """Made by `fit_table`; `facts` is what summary.json says: what was used, held out, found, and how good it is.

    >>> from meristem import fit_table
    >>> x = np.arange(40)
    >>> quick = {"cv": 2, "max_epochs": 20, "depth": 1, "max_width": 4, "penalties": [1e-4], "learning_rate": 0.03}
    >>> model = fit_table({"x": x, "side": np.where(x < 20, "left", "right")}, target="side", **quick)
    >>> isinstance(model, TableModel), model.predict({"x": [0, 39]}).tolist()
    (True, ['left', 'right'])
    """

    encoding: Encoding
    estimator: Any  # one of the CV estimators, fitted
    target: str
    task: str
    facts: dict[str, Any] = field(repr=False)
    held: Held | None = field(default=None, repr=False)  # rows that were held out; no file keeps them

    @property
    def classes(self) -> np.ndarray:
        """The labels of a class, in the order of `predict_proba`'s columns."""
        if self.task != CLASS:
            raise ValueError(f"The target {self.target!r} is a number; it has no classes.")
        labels: np.ndarray = self.estimator.classes_
        return labels

    def __repr__(self) -> str:
        columns, size = many(len(self.encoding.columns), "column"), many(int(self.facts["n_parameters"]), "parameter")
        return f"<TableModel: {self.target!r} from {columns}, {size}, {in_words(self.facts['score'])}>"

    def table(self, frame: Any, sep: str | None = None) -> Table:
        """A frame or a file as this model reads it."""
        return tabled(frame, self.encoding.known, sep)

    def doubts(self, frame: Any) -> list[str]:
        """What of a table is unlike the one that was learned from, a line each."""
        return self.encoding.doubts(self.table(frame))

    def predict(self, frame: Any) -> np.ndarray:
        """The label or the number of each row; a UserWarning where columns are not there."""
        frame = self._warned(frame)
        return self._said(frame, None, self.estimator.predict)

    def predict_proba(self, frame: Any) -> np.ndarray:
        """The probability of each class, [rows, classes]."""
        _ = self.classes  # a number has none, and says so
        frame = self._warned(frame)
        return self._said(frame, None, self.estimator.predict_proba)

    def score(self, frame: Any) -> float:
        """The share of labels that are right, or R² of numbers, over the rows that have a target."""
        return float(self.scored(self.table(frame))["value"])

    def scored(self, table: Table, rows: np.ndarray | None = None) -> dict[str, Any]:
        """The same of some rows, with its limits."""
        values, there = self.answers(table)
        rows = there if rows is None else rows
        said = self._said(table, rows, self.estimator.predict)
        if self.task == CLASS:
            said = np.searchsorted(self.classes, said)
        return scored(self.task, values[rows], said, int(self.facts["seed"]))

    def answers(self, table: Table) -> tuple[np.ndarray, np.ndarray]:
        """The target of each row, as the place of its class (negative: none of them) or as a number; the rows that have one."""
        if self.target not in table:
            raise ValueError(f"{table.source} has no column {self.target!r}, which was to be predicted; give a table that has.")
        column = table[self.target]
        if self.task == CLASS:
            codes = column.as_codes([str(label) for label in self.classes.tolist()])
            there = np.flatnonzero(codes != MISSING)
        else:
            codes = column.as_numbers()
            there = np.flatnonzero(~np.isnan(codes))
        if not len(there):
            raise ValueError(
                f"{table.source}: column {self.target!r} is missing in every row; there is nothing to compare with."
            )
        return codes, there

    def save(self, path: PATHS) -> None:
        """Write the whole of it to a file; `meristem.load(path)` gives it back."""
        from meristem.files import save

        save(path, self)

    def to_onnx(self, path: PATHS) -> Path:
        """Write it as an ONNX file that takes raw columns, an input for each, [N, 1].

        Numbers are double, dates are days since 1970-01-01, categories are string; what is missing is NaN or the empty text.
        Outputs are `label` [N] and `probabilities` [N, classes], or `predictions` [N]. docs/first-fit.md shows it in
        onnxruntime.
        """
        from meristem.tables.graph import onnx_bytes

        write_whole(path, onnx_bytes(self))
        return Path(path)

    def report(self, path: PATHS, frame: Any = None, *, seconds: float = 3.0) -> Path:
        """Write a page that says how good it is, what it is beside simpler models, and what it became (docs/report.md).

        It is judged by the rows that `fit_table` held out; a model that comes from a file knows them no more. With `frame`, by
        the rows of that table; of the very file that it was made from, by those that were held out. `seconds`: for finding out
        how much each column matters.
        """
        from meristem.report import write_table_report

        return write_table_report(path, self, frame, seconds=seconds)

    def judged_by(self, frame: Any) -> tuple[Held, bool, list[str]]:
        """Rows of a table with a target, whether they are those that were held out, and what is doubtful about them."""
        from meristem.tables.understanding import held_again

        table = self.table(frame)
        rows = held_again(self.facts, self.target, self.task, table)
        values, there = self.answers(table)
        doubts = [*self.encoding.doubts(table)]
        known = self.facts["rows"]
        if rows is None and table.digest is None and table.rows == known["all"]:
            doubts.append(
                "the table has as many rows as the one it was made from: if it is that, most of them were learned from"
            )
        elif rows is None and table.digest is not None and table.digest == self.facts.get("table_sha256"):
            doubts.append("these are the rows that it learned from: on others it will be worse")
        return self.sampled(table, there if rows is None else rows, values), rows is not None, doubts

    def sampled(self, table: Table, rows: np.ndarray, values: np.ndarray, said: dict[str, np.ndarray] | None = None) -> Held:
        """Some of these rows, drawn from the seed; `said` is of all of them, `values` of the whole table."""
        most = min(MOST_HELD, max(100, MOST_NUMBERS // len(self.encoding.inputs)))
        some = np.arange(len(rows))
        if len(rows) > most:
            some = np.sort(np.random.default_rng(int(self.facts["seed"])).choice(len(rows), most, replace=False))
        few = {name: one[some] for name, one in (said or {}).items()}
        return Held(self.encoding(table, rows[some]), values[rows[some]], few)

    def _repr_html_(self) -> str:
        """In a notebook: what is predicted from what, and the size and structure of its networks."""
        names = [column.name for column in self.encoding.columns]
        columns = ", ".join(names[:NAMED]) + f" and {len(names) - NAMED} more" * (len(names) > NAMED)
        return size_card(self.estimator, title=f"{self.target} ({self.task}) from {columns}")

    def _warned(self, frame: Any) -> Table:
        """The table, after a warning of columns that it does not have."""
        table = self.table(frame)
        absent = self.encoding.absent(table)
        if absent and len(absent) < len(self.encoding.columns):  # else it is an error
            named = cut(", ".join(map(repr, absent)), 200)
            lacks = f"{len(absent)} of {many(len(self.encoding.columns), 'column')}"
            warnings.warn(f"{table.source} lacks {lacks}, missing in every row: {named}", UserWarning, stacklevel=3)
        return table

    def _said(self, frame: Any, rows: np.ndarray | None, say: Any) -> np.ndarray:
        """What the estimator says of some rows, a block at a time."""
        table = self.table(frame)
        if not any(one.name in table for one in self.encoding.columns):
            self.encoding.doubts(table)  # which says so
        rows = np.arange(table.rows) if rows is None else rows
        return np.concatenate([say(block) for block in self.encoding.blocks(table, rows)])
