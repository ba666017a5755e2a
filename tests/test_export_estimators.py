"""Trained estimators: onnxruntime and PyTorch say what `predict` and `predict_proba` say, without meristem."""

import json

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from exported_estimators import CASES, batch, trained
from exporting import TOLERANCE, assert_close, fresh, run, run_torch, session
from meristem.estimators import TunnelClassifier
from meristem.export import onnx_of, torch_of


@pytest.mark.parametrize("name", CASES)
def test_onnxruntime_says_what_the_estimator_says(name, tmp_path):
    estimator, x = trained(name)
    path = onnx_of(estimator, tmp_path / "model.onnx")
    assert [file.name for file in tmp_path.iterdir()] == ["model.onnx"]
    opened = session(path)
    assert [(i.name, i.type, i.shape) for i in opened.get_inputs()] == [("X", "tensor(float)", ["N", x.shape[1]])]
    for n in (1, 7, 1000):
        some = batch(x, n)
        got, expected = run(opened, some), estimator.predict(some)
        if not hasattr(estimator, "predict_proba"):
            assert list(got) == ["predictions"]
            assert_close(got["predictions"], expected)
            assert got["predictions"].shape == expected.shape == (n, *{"two-targets": (2,), "quantiles": (3,)}.get(name, ()))
            continue
        label = "labels" if name == "multi-label" else "label"
        assert list(got) == [label, "probabilities"]
        assert got[label].tolist() == expected.tolist()
        assert got[label].dtype == (object if name == "iris" else np.int64)
        assert got["probabilities"].shape == (n, len(estimator.classes_))
        assert np.abs(got["probabilities"] - estimator.predict_proba(some)).max() <= TOLERANCE


@pytest.mark.parametrize("name", CASES)
def test_torch_says_what_the_estimator_says(name, torch):
    estimator, x = trained(name)
    module, raw = torch_of(estimator), torch_of(estimator, raw=True)
    for n in (1, 7, 1000):
        some = batch(x, n)
        expected = (estimator.predict_proba if hasattr(estimator, "predict_proba") else estimator.predict)(some)
        for dtype in (np.float32, np.float64):
            assert_close(run_torch(torch, module, np.asarray(some, dtype)), expected)
        if hasattr(estimator, "decision_function"):
            assert_close(run_torch(torch, raw, some).reshape(n, -1), estimator.decision_function(some).reshape(n, -1))
    if name == "iris":
        assert module.classes == ["setosa", "versicolor", "virginica"]


def test_the_file_says_what_it_is(tmp_path):
    estimator, x = trained("iris")
    path = onnx_of(estimator, str(tmp_path / "iris.onnx"))
    about = session(path).get_modelmeta()
    assert about.producer_name == "meristem" and about.graph_name == "meristem"
    assert json.loads(about.custom_metadata_map["feature_names"]) == list(x.columns)
    assert json.loads(about.custom_metadata_map["versions"]).keys() == {"meristem", "jax", "numpy", "onnx"}
    assert about.custom_metadata_map["estimator"] == "BuddingClassifier"
    assert "feature_names" not in session(onnx_of(trained("digits")[0], path)).get_modelmeta().custom_metadata_map


def test_the_same_network_gives_the_same_bytes(tmp_path):
    first, second = (onnx_of(trained("iris")[0], tmp_path / name).read_bytes() for name in ("a", "b"))
    assert first == second


def test_the_file_opens_in_a_fresh_process(tmp_path):
    estimator, x = trained("iris")
    path = onnx_of(estimator, tmp_path / "iris.onnx")
    np.savez(tmp_path / "is.npz", x=np.asarray(x, np.float32), p=estimator.predict_proba(x), y=estimator.predict(x).astype(str))
    code = """
import numpy as np, onnxruntime
data = np.load(sys.argv[2])
label, p = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"]).run(None, {"X": data["x"]})
assert (label == data["y"]).all() and abs(p - data["p"]).max() < 1e-5
"""
    fresh(code, path, tmp_path / "is.npz")


def test_an_estimator_must_be_fitted(tmp_path):
    for export in (torch_of, lambda estimator: onnx_of(estimator, tmp_path / "x.onnx")):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            export(TunnelClassifier())
