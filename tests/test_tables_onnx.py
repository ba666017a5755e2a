"""A table's model in onnxruntime: raw columns in, labels and probabilities or numbers out, as `predict` says them."""

import json
import sys

import numpy as np
import onnx
import onnxruntime
import pytest

import meristem
from commanding import meristem_here
from meristem.tables.encoding import features, feeds
from meristem.tables.evaluation import TOLERANCE, onnx_agreement
from meristem.tables.reading import read_table, table_of

QUICK = {"cv": 2, "max_epochs": 20, "depth": 2, "max_width": 8, "penalties": [1e-4], "l2s": [1e-4], "learning_rate": 0.03}
pytestmark = [
    pytest.mark.filterwarnings("ignore::meristem.GrowthWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
ROWS = 300


def columns(seed=0):
    """Every kind of column, with holes, numbers that no float32 holds, rare categories, and names that outputs have."""
    rng = np.random.default_rng(seed)
    size, number = rng.normal(size=ROWS), rng.integers(0, 1000, ROWS)
    color = rng.choice(["red", "green", "blue", "", "NA"], ROWS, p=[0.4, 0.3, 0.2, 0.05, 0.05])
    color[0] = f"odd {seed}"
    return {
        "size": np.where(rng.random(ROWS) < 0.1, np.nan, size * 1e150),
        "label": color,
        "is_old": rng.random(ROWS) < 0.3,
        "born": np.datetime64("2020-01-01") + number,
        "order": 10**15 + number,
        "price": 1e140 * (size + 2 * (color == "red") + number / 300),
    }


@pytest.fixture(scope="module")
def models():
    """A model of a number, of texts, and of whole numbers."""
    frame = columns()
    price = frame.pop("price") / 1e140
    texts = np.where(price > 3, "high", np.where(price < 1, "low", "middle"))
    targets = {"number": 1e140 * price, "texts": texts, "whole": (price > 2).astype(int)}
    return {name: meristem.fit_table(frame | {"y": y}, target="y", refit="bag", **QUICK) for name, y in targets.items()}


@pytest.mark.parametrize("name", ["number", "texts", "whole"])
@pytest.mark.filterwarnings("ignore:column .* unseen categories:UserWarning")
def test_onnxruntime_says_what_the_model_says(models, name, tmp_path):
    model, new = models[name], {**columns(seed=1), "more": np.arange(ROWS)}
    path = model.to_onnx(tmp_path / "model.onnx")
    opened = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    kinds = {one.name: (one.type, one.shape) for one in opened.get_inputs()}
    number, text = ("tensor(double)", ["N", 1]), ("tensor(string)", ["N", 1])
    assert kinds == {"size": number, "label": text, "is_old": text, "born": number, "order": number}
    given = {
        "size": new["size"][:, None],
        "label": new["label"].astype(object)[:, None],
        "is_old": new["is_old"].astype(str).astype(object)[:, None],
        "born": new["born"].astype("datetime64[D]").astype(float)[:, None],
        "order": new["order"].astype(float)[:, None],
    }
    said = dict(zip([one.name for one in opened.get_outputs()], opened.run(None, given), strict=True))
    if name == "number":
        expected = model.predict(new)
        assert said["predictions"].shape == expected.shape == (ROWS,)
        assert np.abs(said["predictions"] - expected).max() <= TOLERANCE * expected.std()
        return
    assert list(said) == ["label_", "probabilities"], "a column is called label"
    np.testing.assert_allclose(said["probabilities"], model.predict_proba(new), rtol=0, atol=TOLERANCE)
    assert (said["label_"] == model.predict(new)).mean() > 0.99 and set(said["label_"]) <= set(model.classes.tolist())
    about = opened.get_modelmeta().custom_metadata_map
    assert json.loads(about["columns"])["born"] == "date" and about["target"] == "y"


def test_missing_unseen_and_infinite_values_are_what_they_are_in_a_table(models, tmp_path):
    model = models["texts"]
    (tmp_path / "new.csv").write_text("size,label,born,order\ninf,pink,,7\n,?,2020-05-01,\n1e150,odd 0,1970-01-01,1e15\n")
    table = read_table(tmp_path / "new.csv", model.schema.texts)
    opened = onnxruntime.InferenceSession(model.onnx_bytes(), providers=["CPUExecutionProvider"])
    given = feeds(model.schema, table, np.arange(3))
    given["size"][0], given["label"][1] = np.inf, "?"
    with (
        pytest.warns(UserWarning, match="lacks 1 of 5 columns, missing in every row: 'is_old'"),
        pytest.warns(UserWarning, match=r"column 'label': \d rows? of unseen categories, such as 'pink'"),
        pytest.warns(UserWarning, match="column 'size': 1 row with something else than a number"),
    ):
        expected = model.predict_proba(table)
    np.testing.assert_allclose(opened.run(None, given)[1], expected, rtol=0, atol=TOLERANCE)
    assert onnx_agreement(model.onnx_bytes(), model, table, np.arange(3))["rows"] == 3


def test_a_graph_that_says_something_else_is_refused(models):
    table, rows = table_of(columns()), np.arange(ROWS)
    for name, other in (("texts", "whole"), ("number", "number")):
        wrong = onnx.load_from_string(models[name].onnx_bytes())
        for one in wrong.graph.initializer:
            if one.data_type == onnx.TensorProto.FLOAT and len(one.dims) == 2:
                weight = onnx.numpy_helper.to_array(one) * 1.01
                one.CopyFrom(onnx.numpy_helper.from_array(weight.astype(np.float32), one.name))
        with pytest.raises(ValueError, match=r"the ONNX graph differs from the model by .* in onnxruntime"):
            onnx_agreement(wrong.SerializeToString(), models[name], table, rows)
        assert onnx_agreement(models[other].onnx_bytes(), models[other], table, rows)["furthest"] <= TOLERANCE


def test_without_onnxruntime_nothing_is_agreement(models, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert onnx_agreement(b"", models["texts"], table_of(columns()), np.arange(3)) is None


def test_export_writes_the_columns_too_and_one_network_of_the_bag(models, tmp_path):
    model = models["whole"]
    model.save(tmp_path / "model")
    for more, name in (([], "bag"), (["--member", "1"], "one")):
        done = meristem_here("export", tmp_path / "model", "--onnx", tmp_path / name, *more)
        assert done.returncode == 0 and done.stdout.startswith(f"{tmp_path / name}: "), done.stderr
    assert (tmp_path / "bag").read_bytes() == model.onnx_bytes()
    opened = onnxruntime.InferenceSession(str(tmp_path / "one"), providers=["CPUExecutionProvider"])
    new = table_of(columns(seed=1))
    one = model.estimator.estimators_[1].predict_proba(features(model.schema, new))
    said = opened.run(None, feeds(model.schema, new, np.arange(ROWS)))[1]
    np.testing.assert_allclose(said, one, rtol=0, atol=TOLERANCE)
