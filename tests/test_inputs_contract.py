"""What is shipped answers as what was judged: `predict`, a saved file, ONNX at every level and PyTorch, on random tables.

What `fit` accepted, nothing after it may refuse: an error of an export is a failure here.
"""

import importlib.util
import warnings

import numpy as np
import onnxruntime
import pandas
import pytest
import scipy.sparse

import meristem
from random_tables import ROWS, RandomTable
from soak import FACTOR, many, parts, tell

LEVELS = ["ORT_DISABLE_ALL", "ORT_ENABLE_BASIC", "ORT_ENABLE_EXTENDED", "ORT_ENABLE_ALL"]
SEARCH = {"cv": 2, "penalties": [1e-4], "l2s": [1e-4], "input_dropouts": [0.0], "refit": "bag"}
QUICK = {"max_epochs": 1, "depth": 1, "max_width": 4, "learning_rate": 0.03, "settle": False, "random_state": 0}
AT_ONCE = (
    {} if FACTOR > 1 else {"input_dropout": 0.0, "early_stopping": False}
)  # no trials, which compile programs of their own
TOLERANCE = 1e-5
PARTS = parts(2)
# The suite has a seed for each kind of estimator and form of X, and of tables for each form with texts and numbers; a soak all.
TABLES = range(many(13)) if FACTOR > 1 else [0, 1, 2, 5, 6]
MATRICES = range(many(12)) if FACTOR > 1 else [0, 5, 6, 7]
pytestmark = pytest.mark.filterwarnings("ignore")


def sessions(path):
    for name in LEVELS:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, name)
        yield onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def check_answers(answers, labels, probabilities, y, what):
    """Of a graph or a module: probabilities, and labels where they are certain; or numbers."""
    if probabilities is None:
        predicted, unit = np.asarray(answers[0], float).reshape(labels.shape), np.std(np.asarray(y, float))
        off = np.abs(predicted - labels) / np.maximum(unit, np.abs(labels - np.mean(y)) / 10)
        assert off.max() <= TOLERANCE, (what, off.max())
        return
    assert np.abs(answers[-1] - probabilities).max() <= TOLERANCE, (what, np.abs(answers[-1] - probabilities).max())
    top = np.sort(probabilities, 1)
    is_certain = top[:, -1] - top[:, -2] > 2 * TOLERANCE
    if len(answers) > 1:
        assert (np.asarray(answers[0]).astype(labels.dtype) == labels)[is_certain].all(), what


def check_table(table, new, folder, form):
    """One table, in one form, fitted and asked of new rows of the same form."""
    is_file = form == "csv"
    y = np.asarray(table.target)
    given, asked = {
        "csv": lambda: (table.as_csv(folder / "table.csv"), new.as_csv(folder / "new.csv", target=False)),
        "frame": lambda: (table.as_frame(typed=False), new.as_frame(typed=False, target=False)),
        "nullable": lambda: (table.as_frame(), new.as_frame(target=False)),
    }[form]()
    task = "number" if y.dtype.kind == "f" else "class"
    try:
        model = meristem.fit_table(given, target="y", task=task, **SEARCH, **QUICK)
    except ValueError as error:
        if "no column to learn from" in str(error):  # each is constant, or each of its texts occurs once
            return False
        raise
    labels = model.predict(asked)
    probabilities = model.predict_proba(asked) if model.task == "class" else None
    model.save(folder / "model.safetensors")
    again = meristem.load(folder / "model.safetensors")
    np.testing.assert_array_equal(again.predict(asked), labels)
    if probabilities is not None:
        np.testing.assert_array_equal(again.predict_proba(asked), probabilities)
    raw = {name: values for name, values in new.raw(is_file=is_file).items() if name in model.schema.names}
    for level, session in zip(LEVELS, sessions(model.to_onnx(folder / "model.onnx")), strict=True):
        check_answers(session.run(None, raw), labels, probabilities, y, (form, level))
    if importlib.util.find_spec("torch"):
        import torch

        with torch.no_grad():
            answers = [model.to_torch()(torch.tensor(model.codes(asked))).numpy()]
        check_answers(answers, labels, probabilities, y, (form, "torch"))
    return True


@pytest.mark.parametrize("part", PARTS)
def test_every_way_out_of_a_random_table_says_the_same(tmp_path, part):
    fitted = 0
    seeds = TABLES[part :: len(PARTS)]
    for seed in seeds:
        table = RandomTable.draw(seed)
        new = RandomTable.draw(seed + 10**6, new=table)
        fitted += check_table(table, new, tmp_path, ["csv", "frame", "nullable"][seed % 3])
    assert fitted >= 0.8 * len(seeds)
    tell(f"contract-tables-{part}", fitted=fitted, tried=len(seeds))


def test_five_thousand_columns_and_one(tmp_path):
    table = RandomTable.draw(1, n_columns=5000 if FACTOR > 1 else 300)
    assert check_table(table, RandomTable.draw(1 + 10**6, new=table), tmp_path, "csv")


def matrix(seed):
    """X and new rows of it: any scale and offset, gaps, constants; dense, sparse or a frame."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([1, 3, 20]))
    scale = np.where(rng.random(n) < 0.3, 10.0 ** rng.uniform(-150, 138, n), 1.0)
    offset = scale * rng.choice([0.0, 1.0, 50.0, 2e6, 1e10], n)
    x, new = (offset + scale * rng.standard_normal((ROWS, n)) for _ in range(2))
    if rng.random() < 0.5:
        x[rng.random(x.shape) < 0.1] = new[rng.random(x.shape) < 0.1] = np.nan
    form = rng.choice(["array", "sparse", "frame", "nullable"])
    if form == "sparse":
        x, new = (np.where(rng.random(part.shape) < 0.7, 0, part) for part in (x, new))
        return scipy.sparse.csr_array(x), scipy.sparse.csr_array(new), new
    if form == "array":
        return x, new, new
    frames = [pandas.DataFrame(part, columns=[f"c{k}" for k in range(n)]) for part in (x, new)]
    frames = [frame.convert_dtypes() for frame in frames] if form == "nullable" else frames
    return *frames, new


@pytest.mark.parametrize("part", PARTS)
def test_every_way_out_of_an_estimator_says_the_same(tmp_path, part):
    kinds = ["TunnelClassifier", "TunnelRegressor", "BuddingClassifier", "TunnelRegressorCV"]
    for seed in MATRICES[part :: len(PARTS)]:
        x, new, raw = matrix(seed)
        rng, name = np.random.default_rng(seed), kinds[seed % len(kinds)]
        signal = rng.standard_normal(ROWS)
        numbers = 10.0 ** rng.uniform(-140, 140) * (signal + rng.choice([0, 1e6]))
        y = numbers if "Regressor" in name else np.arange(ROWS) % rng.integers(2, 4)
        options = {key: value for key, value in QUICK.items() if "Budding" not in name or key != "depth"}
        model = getattr(meristem, name)(**options, **(SEARCH if name.endswith("CV") else AT_ONCE)).fit(x, y)
        labels, probabilities = model.predict(new), model.predict_proba(new) if "Classifier" in name else None
        model.save(tmp_path / "model.safetensors")
        np.testing.assert_array_equal(meristem.load(tmp_path / "model.safetensors").predict(new), labels)
        for level, session in zip(LEVELS, sessions(model.to_onnx(tmp_path / "model.onnx")), strict=True):
            dtype = {"tensor(float)": np.float32, "tensor(double)": np.float64}[session.get_inputs()[0].type]
            check_answers(session.run(None, {"X": raw.astype(dtype)}), labels, probabilities, y, (seed, name, level))
        if importlib.util.find_spec("torch"):
            import torch

            with torch.no_grad(), warnings.catch_warnings():
                answers = [model.to_torch()(torch.tensor(raw)).numpy()]
            check_answers(answers, labels, probabilities, y, (seed, name, "torch"))
