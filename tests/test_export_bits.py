"""ONNX files in eight bits: onnxruntime computes what was said when they were written, in fewer bytes than in float."""

import re

import numpy as np
import onnx
import onnxruntime
import pytest

from c_programs import needs_compiler, run_c
from commanding import meristem_here
from exported_estimators import trained
from exporting import KINDS, random_layer
from meristem import fit_table
from meristem.compact import CompactNetwork
from meristem.compact.inference import spread
from meristem.export import to_onnx
from meristem.layers.layer import Affine, Bag, Perceptron, Pick
from meristem.layers.ops.numpy import NUMPY
from meristem.layers.ops.onnx_rounding import RoundingOps

WIDTH = 5
pytestmark = pytest.mark.filterwarnings("ignore")  # trainings are short


def run(path, x) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    kind = np.float64 if "double" in session.get_inputs()[0].type else np.float32
    return session.run(None, {"X": np.asarray(x, kind)})


@pytest.mark.parametrize("kind", sorted(KINDS - {Pick}, key=str), ids=lambda kind: kind.__name__)
def test_onnxruntime_computes_what_was_measured(kind, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, WIDTH)).astype(np.float32) * np.float32([1, 1, 1, 1, 30])
    network = CompactNetwork((random_layer(kind, "relu", rng), Affine(rng.normal(size=(2, WIDTH)).astype(np.float32), None)))
    path = to_onnx(tmp_path / "x.onnx", network, bits=8, X=x)
    order = np.random.default_rng(0).permutation(len(x))  # as the rows are shuffled there
    ops, rough, exact = RoundingOps(len(x)), x[order], x[order]
    for layer in map(spread, network.layers):
        rough.flags.writeable = exact.flags.writeable = False  # a formula may read them twice
        rough, exact = layer(ops, rough), layer(NUMPY, exact)
    y = run(path, x)[0][order]
    steps = np.abs(y - rough).max(1) / exact.std()
    assert np.median(steps) < 1e-5 and steps.max() < 0.05, "a half may be rounded to either side"
    assert np.sqrt(((y - exact) ** 2).mean()) <= 0.03 * exact.std()


def test_a_file_in_eight_bits_is_smaller_from_a_thousand_parameters_on(tmp_path):
    rng = np.random.default_rng(0)

    def draw(*shape):
        return rng.normal(size=shape).astype(np.float32)

    def member(width):
        return Perceptron(draw(width, 10), draw(width), "relu"), Affine(draw(1, width), draw(1))

    for network in (CompactNetwork(member(84)), CompactNetwork((Bag(tuple(member(17) for _ in range(5))),))):
        assert 1000 <= network.n_parameters <= 1100
        sizes = [to_onnx(tmp_path / "x.onnx", network, **more).stat().st_size for more in ({}, {"bits": 8, "X": draw(50, 10)})]
        assert sizes[1] < 0.75 * sizes[0], sizes


@needs_compiler
@pytest.mark.parametrize("name", ["digits", "diabetes"])
def test_an_estimator_in_eight_bits_agrees_with_its_c_file(name, tmp_path):
    estimator, x = trained(name)
    path = estimator.to_onnx(tmp_path / "x.onnx", bits=8, X=x)
    (cost,) = [entry.value for entry in onnx.load(path).metadata_props if entry.key == "rounding"]
    returned, y = run_c(estimator.to_c(tmp_path / "x.c", bits=8, X=x), x)
    if hasattr(estimator, "classes_"):
        label, expected = run(path, x)[0], estimator.predict(x)
        assert (label == expected).mean() >= 0.99 and (label == estimator.classes_[returned]).mean() >= 0.98
        assert "have the class of the network in float" in cost
    else:
        numbers, expected = run(path, x)[0], estimator.predict(x)
        assert [np.sqrt(((numbers - own) ** 2).mean()) <= 0.03 * expected.std() for own in (expected, y[:, 0])] == [True, True]
        assert float(re.search(r"([\d.]+)% of their standard deviation", cost)[1]) < 3


def test_a_table_is_exported_in_eight_bits_by_the_command(tmp_path):
    rng = np.random.default_rng(0)
    size, color = rng.normal(size=80), rng.choice(["red", "blue"], 80)
    lines = [f"{a:.4f},{c},{2 * a + (c == 'red'):.4f}" for a, c in zip(size, color, strict=True)]
    (tmp_path / "table.csv").write_text("\n".join(["size,color,price", *lines]) + "\n")
    quick = {"cv": 2, "penalties": [1e-3], "max_epochs": 60, "max_width": 4, "depth": 1, "refit": "one"}
    model = fit_table(tmp_path / "table.csv", target="price", **quick)
    model.save(tmp_path / "model.safetensors")
    files = ["--onnx", tmp_path / "x.onnx", "--c", tmp_path / "x.c"]
    done = meristem_here("export", tmp_path / "model.safetensors", *files, "--bits", "8", "--rows", tmp_path / "table.csv")
    assert done.returncode == 0 and done.stdout.count("8 bits: in 16 rows that did not set the ranges") == 2, done
    session = onnxruntime.InferenceSession(tmp_path / "x.onnx", providers=["CPUExecutionProvider"])
    (y,) = session.run(None, {"size": size[:, None], "color": color[:, None].astype(object)})
    expected = model.predict(tmp_path / "table.csv")
    assert np.sqrt(((y - expected) ** 2).mean()) < 0.03 * expected.std()


def test_what_eight_bits_need_is_asked_for(tmp_path):
    network = CompactNetwork((Affine(np.eye(2, dtype=np.float32), None),))
    for options, message in [
        ({"bits": 8}, "bits=8 needs rows"),
        ({"bits": 16, "X": np.ones((3, 2))}, "bits=16 must be 8 or None"),
        ({"bits": 8, "X": np.ones((3, 3))}, r"X has shape \(3, 3\); it must be rows of 2 features"),
    ]:
        with pytest.raises(ValueError, match=message):
            to_onnx(tmp_path / "x.onnx", network, **options)
    assert not (tmp_path / "x.onnx").exists()
