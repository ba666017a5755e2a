"""The section that says how to use a model: from Python, from a shell, and of a table in onnxruntime alone.

    loading(evidence) → Section

RUN_ONNX reads new.csv and asks model.onnx; the suite runs it as it stands. Imports evidence; sections imports it.
"""

from meristem.check import many
from meristem.report.evidence import Evidence
from meristem.report.section import Section

RUN_ONNX = """\
import json
import onnxruntime, pandas

session = onnxruntime.InferenceSession("model.onnx")
kinds = json.loads(session.get_modelmeta().custom_metadata_map["columns"])  # name: number, date or text
new = pandas.read_csv("new.csv", dtype={name: str for name in kinds if kinds[name] == "text"})
given = {}
for name, kind in kinds.items():
    column = new[name].fillna("") if kind == "text" else new[name]
    if kind == "date":
        column = (pandas.to_datetime(column) - pandas.Timestamp("1970-01-01")) / pandas.Timedelta(days=1)
    given[name] = column.to_numpy(object if kind == "text" else float).reshape(-1, 1)
"""
ENDS = {
    "class": "labels, probabilities = session.run(None, given)\n",
    "number": "predictions = session.run(None, given)[0]\n",
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


def loading(evidence: Evidence) -> Section:
    """How to use it."""
    if evidence.facts:
        kind = str(evidence.facts["task"])
        code = 'import meristem\n\nmodel = meristem.load("model.safetensors")\nmodel.predict("new.csv")  # or a frame\n'
        shell = "meristem predict model.safetensors new.csv --out predictions.csv\n"
        words = [
            "`meristem fit` wrote the model beside this page; from Python `model.save(path)` does.",
            ONNX.format(GIVES[kind]),
            SIZE.format("model.onnx"),
        ]
        return Section("load", "How to use it", words, [], [], [code, shell, RUN_ONNX + ENDS[kind]])
    code = (
        "import meristem\n\n"
        'model.save("model.safetensors")\n'
        'model = meristem.load("model.safetensors")\n'
        f"model.predict(X)  # {many(evidence.model.n_features_in_, 'column')}\n"
    )
    words = ["It is one file, with everything that prediction needs.", SIZE.format("What `model.to_onnx(path)` writes")]
    return Section("load", "How to use it", words, [], [], [code])
