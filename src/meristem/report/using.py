"""The section that says how to use a model: from Python, from a shell, and of a table in onnxruntime alone.

    loading(evidence) → Section;  onnx_code(schema, reading, task) → code that reads a file and asks model.onnx

The code reads a file as the model's own table was read: with its separator, encoding and decimal commas, and by the same rules
for numbers, dates and missing values. The suite runs it as it is printed, on the table that the model was made from. Imports
evidence; sections imports it.
"""

from typing import Any

from meristem.check import many
from meristem.inputs.schema import CATEGORY, DATE, NUMBER, Schema
from meristem.report.evidence import Evidence
from meristem.report.section import Section

OPEN = """\
session = onnxruntime.InferenceSession("model.onnx")
kinds = json.loads(session.get_modelmeta().custom_metadata_map["columns"])  # name: number, date or text
"""
READ_CSV = """\
new = pandas.read_csv({file}, {options}dtype=str, keep_default_na=False)
new.columns = new.columns.str.strip()
"""
READ_PARQUET = """\
table = pyarrow.parquet.read_table("new.parquet")
new = {name.strip(): [written(value) for value in table[name].to_pylist()] for name in table.column_names}
"""
WRITTEN = """\


def written(value):  # as a CSV file would hold it
    if isinstance(value, datetime.timedelta):
        value = value / datetime.timedelta(days=1)
    return "" if value is None else value.decode() if isinstance(value, bytes) else str(value)


"""
NUMBERS = """\


def number(text):
{commas}    try:
        return float("nan") if "_" in text else float(text)
    except ValueError:
        return float("nan")  # missing
"""
COMMAS = """\
    if re.fullmatch(r"-?(\\d{1,3}(\\.\\d{3})+|\\d+),\\d+", text.strip()):
        text = text.replace(".", "").replace(",", ".")
"""
DATES = """\


def days(text):
    if not re.match(r"\\d{4}-\\d\\d-\\d\\d", text.strip()):
        return float("nan")  # missing
    try:
        when = datetime.datetime.fromisoformat(text.strip())
        when = when.astimezone(datetime.UTC) if when.tzinfo else when.replace(tzinfo=datetime.UTC)
    except (ValueError, OverflowError):
        return float("nan")  # missing
    return (when - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) / datetime.timedelta(days=1)
"""
ENDS = {
    "class": "labels, probabilities = session.run(None, columns)\n",
    "number": "predictions = session.run(None, columns)[0]\n",
}
ONNX = (
    "model.onnx (`model.to_onnx(path)`) needs onnxruntime alone, in any language. It takes an input for each raw column, [N, 1]"
    ": numbers as double, dates as days since 1970-01-01, categories as string; what is missing is NaN or the empty text. {}"
)
GIVES = {
    "class": "It gives the labels [N] and the probabilities [N, classes].",
    "number": "It gives the numbers [N].",
}
SIZE = (
    "model.safetensors is larger than its parameters are: it holds the networks as they were trained, closed parts and the "
    "optimizer's memory included, so that training can go on and everything can be drawn. {} holds only what is needed to "
    "predict; ship that."
)


def onnx_code(schema: Schema, reading: dict[str, Any], task: str) -> str:
    """Return a program that reads a file like the table that a model was made from, and asks model.onnx of its rows.

    >>> from meristem.inputs.schema import Field
    >>> code = onnx_code(Schema((Field("size"),)), {"format": "csv", "sep": ";", "encoding": "utf-8"}, "number")
    >>> print(code.splitlines()[6])
    new = pandas.read_csv("new.csv", sep=";", dtype=str, keep_default_na=False)
    """
    kinds, is_parquet = {field.kind for field in schema.fields}, reading.get("format") == "parquet"
    commas = reading.get("decimal_commas") or []
    modules = ["datetime"] * (DATE in kinds or is_parquet) + ["json"] + ["re"] * (DATE in kinds or bool(commas))
    functions = {NUMBER: (NUMBERS.format(commas=COMMAS if commas else ""), "number"), DATE: (DATES, "days")}
    used = {kind: functions[kind] for kind in (NUMBER, DATE) if kind in kinds}
    conversions = {kind: f"[{name}(text) for text in new[name]]" for kind, (_, name) in used.items()}
    if CATEGORY in kinds:
        conversions["text"] = "list(new[name])"
    lines = "".join(
        f'    {"el" * bool(place)}if kind == "{kind}":\n'
        f"        values = numpy.array({conversion}, {'object' if kind == 'text' else 'float'})\n"
        for place, (kind, conversion) in enumerate(conversions.items())
    )
    loop = f"columns = {{}}\nfor name, kind in kinds.items():\n{lines}    columns[name] = values.reshape(-1, 1)\n"
    others = "numpy, onnxruntime, pyarrow.parquet" if is_parquet else "numpy, onnxruntime, pandas"
    before = "".join(f"import {module}\n" for module in modules) + f"\nimport {others}\n\n"
    read = WRITTEN + READ_PARQUET if is_parquet else _read_csv(reading)
    defined = "".join(code for code, _ in used.values())
    return before + OPEN + read + defined + ("\n\n" if defined else "") + loop + ENDS[task]


def _read_csv(reading: dict[str, Any]) -> str:
    """How a CSV file is read."""
    sep, encoding = reading.get("sep") or ",", reading.get("encoding") or "utf-8"
    options = f"sep={_quoted(sep)}, " if sep != "," else ""
    options += f"encoding={_quoted(encoding)}, " if encoding != "utf-8" else ""
    is_packed = reading.get("format") == "csv.gz"
    options += 'compression="gzip", ' if is_packed else ""
    return READ_CSV.format(file=_quoted("new.csv.gz" if is_packed else "new.csv"), options=options)


def _quoted(text: str) -> str:
    return f'"{text}"' if text.isprintable() and '"' not in text and "\\" not in text else repr(text)


def loading(evidence: Evidence) -> Section:
    """How to use it."""
    if evidence.schema is not None:
        facts, task = evidence.facts, str(evidence.facts["task"])
        code = 'import meristem\n\nmodel = meristem.load("model.safetensors")\nmodel.predict("new.csv")  # or a frame\n'
        shell = "meristem predict model.safetensors new.csv --out predictions.csv\n"
        words = [
            "`meristem fit` wrote the model beside this page; from Python `model.save(path)` does.",
            ONNX.format(GIVES[task]),
            SIZE.format("model.onnx"),
        ]
        asked = onnx_code(evidence.schema, facts.get("reading") or {}, task)
        return Section("load", "How to use it", words, [], [], [code, shell, asked])
    code = (
        "import meristem\n\n"
        'model.save("model.safetensors")\n'
        'model = meristem.load("model.safetensors")\n'
        f"model.predict(X)  # {many(evidence.model.n_features_in_, 'column')}\n"
    )
    words = ["It is one file, with everything that prediction needs.", SIZE.format("What `model.to_onnx(path)` writes")]
    return Section("load", "How to use it", words, [], [], [code])
