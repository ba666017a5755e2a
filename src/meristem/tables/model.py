"""A table's model: what it reads and the estimator that found its price, as one thing that takes frames.

    model.predict(frame)  model.predict_proba(frame)  model.score(frame)  model.doubts(frame)
    model.save(path)  model.to_onnx(path)  model.to_torch(), of model.codes(frame)  model.report(path)

A frame is anything that `table_of` takes, or the path of a file. Columns that the model does not know are ignored; what of the
others is unlike those it was made from, `doubts` says. Imports coding and report; fitting, table_file and commands import it.
"""

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from meristem.check import cut, many
from meristem.estimators.size_card import size_card
from meristem.files import save
from meristem.files.whole import PATHS, write_whole
from meristem.inputs import Inputs, Schema
from meristem.inputs.field import CATEGORY
from meristem.report.scoring import in_words, scored
from meristem.tables.answers import answers
from meristem.tables.coding import absent, codes, differences, feature_blocks
from meristem.tables.evaluation import Evaluation
from meristem.tables.reading import tabled
from meristem.tables.table import Table
from meristem.tables.target import CLASS

NAMED = 12  # columns that a notebook is told of
MEDIAN = 0.5


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

    schema: Schema
    estimator: Any  # one of the CV estimators, fitted
    target: str
    task: str
    facts: dict[str, Any] = field(repr=False)
    evaluation: Evaluation | None = field(default=None, repr=False)  # of rows that were held out; no file has it

    @property
    def inputs(self) -> Inputs:
        """What it reads: the schema of its columns, and the preprocessor of its estimator."""
        return Inputs(self.estimator._inputs_.preprocessor, self.schema)

    @property
    def classes(self) -> np.ndarray:
        """The labels of a class, in the order of `predict_proba`'s columns."""
        if self.task != CLASS:
            raise ValueError(f"The target {self.target!r} is a number; it has no classes.")
        labels: np.ndarray = self.estimator.classes_
        return labels

    @property
    def levels(self) -> tuple[float, ...]:
        """The quantiles that are predicted, in the order of `predict`'s columns; none of other losses."""
        return tuple(getattr(self.estimator._targets_, "levels", ()))

    def __repr__(self) -> str:
        columns, size = many(len(self.schema.fields), "column"), many(int(self.facts["n_parameters"]), "parameter")
        return f"<TableModel: {self.target!r} from {columns}, {size}, {in_words(self.facts['score'])}>"

    def table(self, frame: Any, **reading: Any) -> Table:
        """A frame or a file as this model reads it; `reading` are options of `read_table`."""
        classes = {self.target: [str(label) for label in self.classes.tolist()]} if self.task == CLASS else {}
        return tabled(frame, self.schema.texts | classes, **reading)

    def doubts(self, frame: Any) -> list[str]:
        """What of a table is unlike the one that was learned from, a line each."""
        return differences(self.schema, self.table(frame))

    def predict(self, frame: Any) -> np.ndarray:
        """The label or the number of each row, of several quantiles a column each; UserWarnings say what is unlike."""
        return self._by_blocks(self._warned(frame), self.estimator.predict)

    def predict_proba(self, frame: Any) -> np.ndarray:
        """The probability of each class, [rows, classes]."""
        _ = self.classes  # a number has none, and says so
        return self._by_blocks(self._warned(frame), self.estimator.predict_proba)

    def score(self, frame: Any) -> float:
        """The share of labels that are right, or R² of numbers, over the rows that have a target."""
        table = self.table(frame)
        values, rows = self.answers(table)
        predicted = self._by_blocks(table, lambda x: self.point_predictions(self.outputs(x)), rows)
        return float(self.scored(values[rows], predicted)["value"])

    def scored(self, answers: np.ndarray, predicted: np.ndarray) -> dict[str, Any]:
        """The same with its limits, of `point_predictions`."""
        return scored(self.task, answers, predicted, int(self.facts["seed"]))

    def answers(self, table: Table) -> tuple[np.ndarray, np.ndarray]:
        """The target of each row, as the place of its class (negative: none of them) or as a number; the rows that have one."""
        return answers(table, self.target, self.task, self.classes if self.task == CLASS else None)

    def outputs(self, x: np.ndarray) -> np.ndarray:
        """What the network says of rows of features, [n, n_out]."""
        outputs: np.ndarray = self.estimator._predictor_.outputs(self.estimator._inputs_(x))
        return outputs

    def point_predictions(self, outputs: np.ndarray) -> np.ndarray:
        """One value [n] of each row from its outputs: the place of its class, or a number, of several quantiles the median."""
        decoded: np.ndarray = self.estimator._targets_.decode(outputs)
        if self.task == CLASS:
            return np.searchsorted(self.classes, decoded)
        return decoded[:, self.levels.index(MEDIAN)] if decoded.ndim == 2 else decoded

    def codes(self, frame: Any) -> np.ndarray:
        """What the module of `to_torch` takes, [rows, columns]: numbers, days since 1970-01-01, and codes of categories.

        A code is the place among the categories of the column's field (`model.schema`); −1 is missing, −2 unseen.
        """
        return codes(self.schema, self._warned(frame))

    def save(self, path: PATHS) -> None:
        """Write the whole of it to a file; `meristem.load(path)` gives it back."""
        save(path, self)

    def to_onnx(self, path: PATHS) -> Path:
        """Write it as an ONNX file that takes raw columns, an input for each, [N, 1].

        Numbers are double, dates are days since 1970-01-01, categories are string; what is missing is NaN or the empty text.
        Outputs are `label` [N] and `probabilities` [N, classes], or `predictions` [N]. docs/first-fit.md shows it in
        onnxruntime.
        """
        write_whole(path, self.onnx_bytes())
        return Path(path)

    def onnx_bytes(self) -> bytes:
        """The content of that file; the same model gives the same bytes."""
        from meristem.export.endings import Values
        from meristem.export.estimator import ending_of
        from meristem.export.onnx import onnx_bytes

        ending = ending_of(self.estimator._targets_)
        if isinstance(ending, Values):
            ending = Values(ending.mean, ending.scale, ending.is_flat, ending.link, np.float64)
        kinds = {column.name: "text" if column.kind == CATEGORY else column.kind for column in self.schema.fields}
        metadata = {"columns": json.dumps(kinds), "target": self.target, "estimator": type(self.estimator).__name__}
        return onnx_bytes(self.estimator.compact(), scaling=self.inputs, ending=ending, metadata=metadata)

    def to_torch(self) -> Any:
        """A plain `torch.nn.Module` that takes `codes(frame)` as a tensor: probabilities, or numbers."""
        from meristem.export.estimator import ending_of
        from meristem.export.torch import to_torch

        return to_torch(self.estimator.compact(), scaling=self.inputs, ending=ending_of(self.estimator._targets_))

    def report(self, path: PATHS, frame: Any = None, *, seconds: float = 3.0) -> Path:
        """Write a page that says how good it is, what it is beside simpler models, and what it became (docs/report.md).

        It is judged by the rows that `fit_table` held out; a model that comes from a file knows them no more. With `frame`, by
        the rows of that table; of the very file that it was made from, by those that were held out. `seconds`: for finding out
        how much each column matters.
        """
        from meristem.report import write_table_report

        return write_table_report(path, self, frame, seconds=seconds)

    def evaluated(self, frame: Any) -> tuple[Evaluation, bool, list[str]]:
        """Rows of a table with a target, whether they are those that were held out, and what is doubtful about them."""
        from meristem.tables.split import held_out_again

        table = self.table(frame)
        rows = held_out_again(self.facts, self.target, self.task, table)
        values, with_target = self.answers(table)
        lines, counts = differences(self.schema, table), self.facts["rows"]
        if rows is None and table.digest is None and table.rows == counts["all"]:
            lines.append(
                "the table has as many rows as the one it was made from: if it is that, most of them were learned from"
            )
        elif rows is None and table.digest is not None and table.digest == self.facts.get("table_sha256"):
            lines.append("these are the rows that it learned from: on others it will be worse")
        return Evaluation.of(self, table, with_target if rows is None else rows, values), rows is not None, lines

    def _repr_html_(self) -> str:
        """In a notebook: what is predicted from what, and the size and structure of its networks."""
        names = self.schema.names
        columns = ", ".join(names[:NAMED]) + f" and {len(names) - NAMED} more" * (len(names) > NAMED)
        return size_card(self.estimator, title=f"{self.target} ({self.task}) from {columns}")

    def _warned(self, frame: Any) -> Table:
        """The table, after a warning of what of it is unlike the one that was learned from."""
        table = self.table(frame)
        lines = differences(self.schema, table)
        if names := absent(self.schema, table):
            lacks = f"{len(names)} of {many(len(self.schema.fields), 'column')}"
            missing = f"{table.source} lacks {lacks}, missing in every row: {cut(', '.join(map(repr, names)), 200)}"
            lines = [missing, *lines[len(names) :]]
        for line in lines:
            warnings.warn(line, UserWarning, stacklevel=3)
        return table

    def _by_blocks(
        self, table: Table, answer: Callable[[np.ndarray], np.ndarray], rows: np.ndarray | None = None
    ) -> np.ndarray:
        """What is said of the features of some rows, a block at a time."""
        absent(self.schema, table)  # a table with none of the columns is an error
        rows = np.arange(table.rows) if rows is None else rows
        return np.concatenate([answer(block) for block in feature_blocks(self.schema, table, rows)])
