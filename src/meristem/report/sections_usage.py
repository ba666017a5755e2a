"""Sections about the use of a model (Python, shell, onnxruntime) and its provenance (data, seed, versions).

    onnx_code(schema, reading, task) → a program that reads a file and runs model.onnx

The program reads a file as the model's own table was read: separator, encoding, decimal commas, numbers, dates and missing
values. The suite runs it as it is printed.
"""

import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from meristem import __version__
from meristem.check import many
from meristem.inputs.schema import CATEGORY, DATE, NUMBER, Schema, inputs_in_words
from meristem.report.formatting import count
from meristem.report.report_data import ReportData, Section, Table, n_training_rows
from meristem.show.elements import shorten
from meristem.show.templates import render_template

OUTPUTS = {"class": "the labels [N] and the probabilities [N, classes]", "number": "the numbers [N]"}
ONNX = (
    "model.onnx (`model.to_onnx(path)`) needs onnxruntime only, in any language. It has an input [N, 1] for each raw column"
    ": numbers as double, dates as days since 1970-01-01, categories as string; missing values are NaN or the empty string. "
    "It returns {}."
)
SIZE = (
    "model.safetensors is larger than its parameters: it holds the networks as they were trained, with closed parts and the "
    "state of the optimizer, so that training can continue. {} holds only what prediction needs; ship that."
)
NO_FILE = "none: the table was not read from a file"


def onnx_code(schema: Schema, reading: dict[str, Any], task: str) -> str:
    """Return a program that reads a file like the table of a model, and predicts its rows with model.onnx.

    >>> from meristem.inputs.schema import Field
    >>> code = onnx_code(Schema((Field("size"),)), {"format": "csv", "sep": ";", "encoding": "utf-8"}, "number")
    >>> print(code.splitlines()[6])
    new = pandas.read_csv("new.csv", sep=";", dtype=str, keep_default_na=False)
    """
    kinds, is_gzip = {field.kind for field in schema.fields}, reading.get("format") == "csv.gz"
    sep, encoding = reading.get("sep") or ",", reading.get("encoding") or "utf-8"
    options = [f"sep={_quoted(sep)}"] * (sep != ",") + [f"encoding={_quoted(encoding)}"] * (encoding != "utf-8")
    return render_template(
        "meristem.report",
        "onnx_example.py.jinja",
        file=_quoted("new.csv.gz" if is_gzip else "new.csv"),
        options="".join(f"{option}, " for option in [*options, *['compression="gzip"'] * is_gzip]),
        is_parquet=reading.get("format") == "parquet",
        has_commas=bool(reading.get("decimal_commas")),
        has_numbers=NUMBER in kinds,
        has_dates=DATE in kinds,
        has_texts=CATEGORY in kinds,
        task=task,
    )


def _quoted(text: str) -> str:
    return f'"{text}"' if text.isprintable() and '"' not in text and "\\" not in text else repr(text)


def usage_section(data: ReportData) -> Section:
    """Return how to load and use the model."""
    if data.schema is not None:
        task = str(data.facts["task"])
        python = 'import meristem\n\nmodel = meristem.load("model.safetensors")\nmodel.predict("new.csv")  # or a frame\n'
        shell = "meristem predict model.safetensors new.csv --out predictions.csv\n"
        text = [
            "`meristem fit` writes the model next to this page; in Python use `model.save(path)`.",
            ONNX.format(OUTPUTS[task]),
            SIZE.format("model.onnx"),
        ]
        code = [python, shell, onnx_code(data.schema, data.facts.get("reading") or {}, task)]
        return Section("load", "How to use the model", text, [], [], code)
    python = (
        "import meristem\n\n"
        'model.save("model.safetensors")\n'
        'model = meristem.load("model.safetensors")\n'
        f"model.predict(X)  # {many(data.model.n_features_in_, 'column')}\n"
    )
    text = ["One file holds all that prediction needs.", SIZE.format("What `model.to_onnx(path)` writes")]
    return Section("load", "How to use the model", text, [], [], [python])


def provenance_section(data: ReportData) -> Section:
    """Return data, seed, versions and parameters, to reproduce the model."""
    model, facts = data.model, data.facts
    items = {"estimator": type(model).__name__}
    if facts:
        inputs, test = inputs_in_words(facts["inputs"], len(model._inputs_.gaps)), facts.get("test")
        items |= {"table": shorten(str(facts["table"]), 120), "rows": row_counts(facts)}
        if test:
            items["test table"] = shorten(str(test["table"]), 120)
            items["rows of the test table"] = f"{count(facts['rows']['test'])} with a target"
            items["digest of the test table (SHA-256)"] = test["sha256"] or NO_FILE
        items["inputs"] = f"{inputs}, from {many(len(facts['columns']), 'column')}"
        items["target"] = f"{shorten(str(facts['target']), 60)}: {facts['why']}"
        items["device"] = f"{facts['device']}, {many(int(facts['cores']), 'core')}"
    else:
        items |= {"training rows": count(n_training_rows(model)), "rows of this report": count(data.n_rows)}
    seed = facts["seed"] if facts else model.random_state
    items["seed"] = str(seed) if seed is not None else "none: another fit gives another model"
    items["digest of the data (SHA-256)"] = data.digest or NO_FILE
    for name, numbers in (("versions of the fit", facts.get("versions")), ("versions of this report", versions())):
        if numbers:
            items[name] = ", ".join(f"{package} {number}" for package, number in numbers.items())
    tables = [Table("Origin of the model", ["item", "value"], [list(item) for item in items.items()])]
    defaults = type(model)().get_params()
    changed = [
        [name, shorten(repr(value), 120)] for name, value in model.get_params().items() if repr(value) != repr(defaults[name])
    ]
    if changed:
        tables.append(Table("Parameters that differ from the default", ["parameter", "value"], changed, len(changed) > 6))
    return Section("made", "Data, seed and versions", [], [], tables)


def row_counts(facts: dict[str, Any]) -> str:
    """Return how the rows of the table are used; they add up.

    >>> rows = {"all": 132, "train": 130, "test": 48, "without_target": 2}
    >>> row_counts({"rows": rows, "test": {"table": "test.csv", "sha256": None}})
    '132: 130 for training, 2 without a target'
    """
    rows = facts["rows"]
    held_out = 0 if facts.get("test") else rows["test"]
    uses = {"for training": rows["train"], "held out": held_out, "without a target": rows["without_target"]}
    return f"{count(rows['all'])}: {', '.join(f'{count(n)} {use}' for use, n in uses.items() if n)}"


def versions() -> dict[str, str]:
    """Return the installed versions that results depend on."""
    names = {"meristem": __version__, "Python": sys.version.split()[0]}
    for package in ("jax", "NumPy", "equinox", "scikit-learn"):
        with suppress(PackageNotFoundError):
            names[package] = version(package)
    return names
