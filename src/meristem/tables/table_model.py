"""The model of a table: the schema of its columns and a fitted estimator, as one object that takes frames; and its file.

A frame is anything that `table_of` takes, or the path of a file. Columns that the model does not have are ignored.

    header   {"encoding": {…}, "target": "price", "task": "number", "facts": {…}, "search": the header of a search}
    arrays   those of the search                                                        see estimators/estimator_file.py

Facts (`TableModel.facts`, summary.json) are checked against FACTS when a file is read or written, because reports, `repr` and
scores rely on them. Facts that FACTS does not name may be anything.
"""

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from meristem.check import cut, many, short
from meristem.estimators import estimator_file
from meristem.estimators.size_card import size_card
from meristem.files import FileKind, register, save
from meristem.files.atomic_write import PATHS, write_whole
from meristem.files.named_arrays import Arrays
from meristem.inputs import Inputs, Schema
from meristem.inputs.schema import CATEGORY
from meristem.json_schema import ANY, COUNT, FLAG, NUMBER, OBJECT, POSITIVE, SHA256, TEXT, Rule, check_json, integer, one_of
from meristem.report.baselines import NAMES
from meristem.report.scoring import in_words
from meristem.report.task_metrics import BY_LABEL, DEFAULTS, Outcome, Predicted
from meristem.tables.encoding import absent, codes, differences, feature_blocks, features
from meristem.tables.evaluation import Evaluation
from meristem.tables.reading import as_table
from meristem.tables.split import CLASS, TASKS, original_test_rows, target_values
from meristem.tables.split_rule import GROUP, RANDOM, TIME
from meristem.tables.table_columns import Table

NAMED = 12  # columns that a notebook names
MEDIAN = 0.5
HEADER = {"encoding": OBJECT, "target": TEXT, "task": one_of(TASKS), "facts": ANY, "search": OBJECT}
PROBLEM = "its facts do not fit: "
SHARE = Rule("a number between 0 and 1", lambda value: NUMBER.fits(value) and 0 < value < 1)
SECONDS = Rule("a number of seconds", lambda value: NUMBER.fits(value) and 0 <= value < 1e10)
PLAIN = Rule("a number, true or false", lambda value: isinstance(value, bool) or NUMBER.fits(value))
TEXTS = {TEXT: TEXT}
SCORE = {"measure": TEXT, "value": NUMBER, "low": NUMBER, "high": NUMBER, "rmse?": NUMBER, TEXT: ANY}
BASELINE = SCORE | {"lacks?": TEXT, "label?": TEXT, "seconds?": SECONDS, "n_parameters?": (None, COUNT)}
GAIN = dict.fromkeys(["value", "low", "high"], NUMBER)
BASELINE |= {"gain?": GAIN}
TEST_TABLE = {"table": TEXT, "sha256": (None, SHA256), TEXT: ANY}
FACTS: dict[Any, Any] = {
    **dict.fromkeys(["table", "target", "task", "why", "device", "body?", "estimator?", "rule?"], TEXT),
    **dict.fromkeys(["inputs", "cores", "folds?"], POSITIVE),
    **dict.fromkeys(["n_parameters", "marks_of_missing_values?"], COUNT),
    **{"columns": TEXTS, "dropped?": TEXTS, "versions?": TEXTS},
    "seed": integer(0, bits=63),
    "classes": (None, [TEXT]),
    "rows": dict.fromkeys(["all", "train", "test", "searched_with", "learned_from?"], POSITIVE)
    | {"without_target": COUNT, TEXT: ANY},
    "baselines": {f"{name}?": BASELINE for name in NAMES},
    "score": SCORE,
    "seconds": {"all": SECONDS, "limit?": (None, SECONDS), "ended_the_search?": FLAG, TEXT: ANY}
    | dict.fromkeys(["reading?", "baselines?", "search?"], SECONDS),
    "table_sha256?": (None, SHA256),
    "reading?": dict.fromkeys(["format", "sep", "encoding"], (None, TEXT)) | {"decimal_commas": [TEXT], TEXT: ANY},
    "split?": {"kind": one_of([RANDOM, TIME, GROUP]), "column": (None, TEXT), "share": (None, SHARE), TEXT: ANY}
    | {"duplicates": COUNT, "without_time": COUNT, "left_out?": COUNT, "group_column?": TEXT},
    "learning_curve?": (None, {"measure": TEXT, "rows": [POSITIVE], "scores": [NUMBER]} | {"gain": GAIN, TEXT: ANY}),
    "test_table?": (None, TEST_TABLE),
    "test?": ANY,  # metrics by name; in earlier files the test table
    "test_intervals?": {TEXT: [NUMBER]},
    "threshold?": (None, NUMBER),
    "positive_class?": (None, TEXT),
    "warnings?": [TEXT],
    **{name: [TEXT] for name in ("table_warnings?", "doubts?")},  # their names in earlier files
    "budget?": (None, Rule("a number of parameters, or of bytes of flash", lambda v: TEXT.fits(v) or POSITIVE.fits(v))),
    "flash?": {"bytes": POSITIVE, "bits": (None, POSITIVE)},
    "chosen?": {TEXT: NUMBER},
    "path?": [{TEXT: PLAIN}],
    "onnx?": (None, {"onnxruntime": TEXT, "rows": COUNT, "furthest": NUMBER, TEXT: ANY}),
    TEXT: ANY,
}


@dataclass(frozen=True, eq=False, repr=False)
class TableModel:
    """The result of `fit_table`; `facts` is the content of summary.json: what was used, and how good the model is.

    >>> from meristem import fit_table
    >>> x = np.arange(40)
    >>> quick = {"cv": 2, "max_epochs": 100, "depth": 1, "max_width": 4, "penalties": [1e-4], "learning_rate": 0.1}
    >>> model = fit_table({"x": x, "side": np.where(x < 20, "left", "right")}, target="side", refit="bag", **quick)
    >>> isinstance(model, TableModel), model.predict({"x": [0, 39]}).tolist()
    (True, ['left', 'right'])
    """

    schema: Schema
    estimator: Any  # one of the CV estimators, fitted
    target: str
    task: str
    facts: dict[str, Any] = field(repr=False)
    evaluation: Evaluation | None = field(default=None, repr=False)  # of the test rows; not saved

    @property
    def inputs(self) -> Inputs:
        """The schema of its columns, and the preprocessor of its estimator."""
        return Inputs(self.estimator._inputs_.preprocessor, self.schema)

    @property
    def classes(self) -> np.ndarray:
        """The labels, in the order of `predict_proba`'s columns."""
        if self.task != CLASS:
            raise ValueError(f"The target {self.target!r} is a number; it has no classes.")
        return np.asarray(self.estimator.classes_)

    @property
    def levels(self) -> tuple[float, ...]:
        """The predicted quantiles, in the order of `predict`'s columns; empty for other losses."""
        return tuple(getattr(self.estimator._targets_, "levels", ()))

    def __repr__(self) -> str:
        columns, size = many(len(self.schema.fields), "column"), many(int(self.facts["n_parameters"]), "parameter")
        return f"<TableModel: {self.target!r} from {columns}, {size}, {in_words(self.facts['score'])}>"

    def table(self, frame: Any, **reading: Any) -> Table:
        """Return a frame or a file as this model reads it; `reading` are options of `read_table`."""
        classes = {self.target: [str(label) for label in self.classes.tolist()]} if self.task == CLASS else {}
        return as_table(frame, self.schema.texts | classes, **reading)

    def table_warnings(self, frame: Any) -> list[str]:
        """Return how a table differs from the training table, a line each."""
        return differences(self.schema, self.table(frame))

    doubts = table_warnings  # its earlier name

    def predict(self, frame: Any) -> np.ndarray:
        """Return the label or the number of each row, of several quantiles a column each; warns as `table_warnings` does."""
        return self._by_blocks(self._warned(frame), self.estimator.predict)

    def predict_proba(self, frame: Any) -> np.ndarray:
        """Return the probability of each class, [rows, classes]."""
        _ = self.classes  # raises ValueError for a number
        return self._by_blocks(self._warned(frame), self.estimator.predict_proba)

    def predict_interval(self, frame: Any, coverage: float = 0.9) -> np.ndarray:
        """Return the lower and the upper bound of each row, [rows, 2]: the number is between them with this probability."""
        if self.task == CLASS:
            raise ValueError(f"The target {self.target!r} is a class; it has sets, predict_set, and no intervals.")
        return self._by_blocks(self._warned(frame), lambda x: self.estimator.predict_interval(x, coverage))

    def predict_set(self, frame: Any, coverage: float = 0.9, *, allow_empty: bool = True) -> np.ndarray:
        """Return which classes are in the set of each row, [rows, classes]: it has the true one with this probability."""
        _ = self.classes  # raises ValueError for a number
        options: dict[str, Any] = {"coverage": coverage, "allow_empty": allow_empty}
        return self._by_blocks(self._warned(frame), lambda x: self.estimator.predict_set(x, **options))

    def score(self, frame: Any) -> float:
        """Return the accuracy of labels, or R² of numbers, over the rows that have a target."""
        table = self.table(frame)
        values, rows = target_values(table, self.target, self.task, getattr(self.estimator, "classes_", None))
        predicted = self._by_blocks(table, lambda x: self.point_predictions(self.outputs(x)), rows)
        return DEFAULTS[self.task].value(Outcome(self.task, values[rows], Predicted(predicted)))

    def outputs(self, x: np.ndarray) -> np.ndarray:
        """Return the network's outputs [n, n_out] for rows of features."""
        return np.asarray(self.estimator._predictor_.outputs(self.estimator._inputs_(x)))

    def point_predictions(self, outputs: np.ndarray) -> np.ndarray:
        """Return one value [n] per row of outputs: the index of its class, or a number, of several quantiles the median."""
        decoded: np.ndarray = self.estimator._targets_.decode(outputs)
        if self.task == CLASS:
            return np.searchsorted(self.classes, decoded)
        return decoded[:, self.levels.index(MEDIAN)] if decoded.ndim == 2 else decoded

    def codes(self, frame: Any) -> np.ndarray:
        """Return what the module of `to_torch` takes, [rows, columns]: numbers, days since 1970-01-01, codes of categories.

        A code is an index into the `texts` of the column's field (`model.schema`); −1 is missing, −2 unseen.
        """
        return codes(self.schema, self._warned(frame))

    def save(self, path: PATHS) -> None:
        """Write the model to a file, which `meristem.load(path)` reads."""
        save(path, self)

    def to_onnx(self, path: PATHS, **options: Any) -> Path:
        """Write an ONNX file that takes raw columns, an input for each, [N, 1].

        Numbers are double, dates are days since 1970-01-01, categories are string; what is missing is NaN or the empty text.
        Outputs are `label` [N] and `probabilities` [N, classes], or `predictions` [N]; docs/first-fit.md shows how to run it.
        """
        write_whole(path, self.onnx_bytes(**options))
        return Path(path)

    def onnx_bytes(self, *, bits: int | None = None, X: Any = None) -> bytes:
        """Return the content of that file; the same model gives the same bytes.

        With bits=8 and the training table or its file, X, weights are int8.
        """
        from meristem.export.endings import Values, ending_of
        from meristem.export.onnx import onnx_bytes

        ending = ending_of(self.estimator._targets_)
        if isinstance(ending, Values):
            ending = Values(ending.mean, ending.scale, ending.is_flat, ending.link, np.float64)
        kinds = {column.name: "text" if column.kind == CATEGORY else column.kind for column in self.schema.fields}
        rows = None if X is None else features(self.schema, self._warned(X))
        metadata = {"columns": json.dumps(kinds), "target": self.target, "estimator": type(self.estimator).__name__}
        return onnx_bytes(self.estimator.compact(), scaling=self.inputs, ending=ending, metadata=metadata, bits=bits, X=rows)

    def to_c(self, path: PATHS, **options: Any) -> Path:
        """Write a C99 file without dependencies, and its header: `int NAME_predict(const float *x, float *y)`.

        x is a row of `codes(frame)`: numbers, days since 1970-01-01 and codes of categories. Options are those of
        `meristem.export.to_c`: numbers, class_names, bits (with the training table or its file, X) and budget.
        """
        from meristem.export.c import to_c
        from meristem.export.endings import ending_of

        ending = ending_of(self.estimator._targets_)
        if options.get("X") is not None:
            options["X"] = self.codes(options["X"])
        return to_c(path, self.estimator.compact(), scaling=self.inputs, ending=ending, **options)

    def to_torch(self) -> Any:
        """Return a `torch.nn.Module` that takes `codes(frame)` as a tensor, and returns probabilities or numbers."""
        from meristem.export.endings import ending_of
        from meristem.export.torch import to_torch

        return to_torch(self.estimator.compact(), scaling=self.inputs, ending=ending_of(self.estimator._targets_))

    def report(self, path: PATHS, frame: Any = None) -> Path:
        """Write an HTML report: how good the model is, beside baselines, and what it is made of (docs/report.md).

        It uses the rows that `fit_table` held out, which a model from a file no longer has. With `frame` it uses the rows of
        that table; if that is the training file, those that were held out.
        """
        from meristem.report import from_table, render_page

        write_whole(path, render_page(from_table(self, frame)).encode())
        return Path(path)

    def evaluated(self, frame: Any) -> tuple[Evaluation, bool, list[str]]:
        """Evaluate the rows of a table that have a target; return whether they are the held-out rows, and warnings, too."""
        table, split = self.table(frame), self.facts.get("split", {})
        groups = split.get("group_column", split["column"] if split.get("kind") == GROUP else None)
        if groups is not None and table.digest is not None and table.digest == self.facts.get("table_sha256"):
            table = self.table(frame, keep=[groups])  # as it was read for the fit
        rows = original_test_rows(self.facts, self.target, self.task, table)
        values, with_target = target_values(table, self.target, self.task, getattr(self.estimator, "classes_", None))
        lines, counts = differences(self.schema, table), self.facts["rows"]
        if rows is None and table.digest is None and table.rows == counts["all"]:
            lines.append("the table has as many rows as the training table: if it is the same, most were learned from")
        elif rows is None and table.digest is not None and table.digest == self.facts.get("table_sha256"):
            lines.append("these rows were learned from: on others the model will be worse")
        return Evaluation.of(self, table, with_target if rows is None else rows, values, {}), rows is not None, lines

    def _repr_html_(self) -> str:
        names = self.schema.names
        columns = ", ".join(names[:NAMED]) + f" and {len(names) - NAMED} more" * (len(names) > NAMED)
        return size_card(self.estimator, title=f"{self.target} ({self.task}) from {columns}")

    def _warned(self, frame: Any) -> Table:
        """Return the table, after a UserWarning for each difference from the training table."""
        table = self.table(frame)
        lines, names = differences(self.schema, table), absent(self.schema, table)
        if names:
            lacks = f"{len(names)} of {many(len(self.schema.fields), 'column')}"
            missing = f"{table.source} lacks {lacks}, missing in every row: {cut(', '.join(map(repr, names)), 200)}"
            lines = [missing, *lines[len(names) :]]
        for line in lines:
            warnings.warn(line, UserWarning, stacklevel=3)
        return table

    def _by_blocks(self, table: Table, predict: Callable[[np.ndarray], np.ndarray], rows: Any = None) -> np.ndarray:
        absent(self.schema, table)  # a table with none of the columns is an error
        blocks = feature_blocks(self.schema, table, np.arange(table.rows) if rows is None else rows)
        return np.concatenate([predict(block) for block in blocks])


def pack(model: TableModel) -> tuple[dict[str, Any], Arrays]:
    """Return a model's header, made of JSON values, and its arrays."""
    header, arrays = estimator_file.pack_search(model.estimator)
    own = {"encoding": model.schema.as_json(), "target": model.target, "task": model.task, "facts": model.facts}
    return own | {"search": header}, arrays


def unpack(header: Any, arrays: Arrays) -> TableModel:
    """Return the model, which predicts the same to the bit; raise ValueError where its parts, or its facts, do not fit it."""
    check_json(header, HEADER)
    target, task, facts = header["target"], header["task"], header["facts"]
    schema, estimator = Schema.of_json(header["encoding"]), estimator_file.unpack_search(header["search"], arrays)
    if hasattr(estimator, "predict_proba") != (task == CLASS):
        raise ValueError("its target and its estimator do not fit together.")
    if estimator.n_features_in_ != len(schema.features):
        raise ValueError(f"its encoding gives {len(schema.features)} inputs, its estimator takes {estimator.n_features_in_}.")
    labels = [str(label) for label in estimator.classes_.tolist()] if task == CLASS else None
    check_json(facts, FACTS, PROBLEM)
    if "test_table" not in facts:  # an earlier file: "test" was the test table
        facts = {name: value for name, value in facts.items() if name != "test"} | {"test_table": facts.get("test")}
        check_json(facts["test_table"], (None, TEST_TABLE), PROBLEM, "test")
    check_json(facts.get("test", {}), {TEXT: NUMBER}, PROBLEM, "test")
    expected = {"target": target, "task": task, "classes": labels, "inputs": len(schema.features)}
    for name, value in expected.items():
        if facts[name] != value:
            raise ValueError(f"{PROBLEM}{name} is {short(facts[name])}, and the model's is {short(value)}.")
    scores = {"score": facts["score"]} | {f"baselines.{name}": score for name, score in facts["baselines"].items()}
    for place, score in scores.items():
        metric = BY_LABEL.get(score["measure"])
        if metric is None or metric.task != facts["task"] or score["measure"] != facts["score"]["measure"]:
            raise ValueError(f"{PROBLEM}{place}.measure is {short(score['measure'])}, not that of a {facts['task']}.")
    rows = facts["rows"]
    most = max(rows["searched_with"], rows.get("learned_from", 0))
    if rows["train"] + rows["without_target"] > rows["all"] or most > rows["train"]:
        raise ValueError(f"{PROBLEM}rows is {short(rows)}, of which parts are more than the whole.")
    return TableModel(schema, estimator, target, task, facts)


register(FileKind("table", holds=lambda value: isinstance(value, TableModel), pack=pack, unpack=unpack, check=unpack))
