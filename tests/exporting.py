"""What the tests of export share: running what was exported, random layers, a handful of trained estimators."""

import functools
import importlib.util
import subprocess
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnxruntime
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, make_multilabel_classification

from meristem.compact.layers import Affine, Cascade, Gated, Highway, Layer, Leaf, Perceptron, Residual, Tree
from meristem.estimators import BuddingClassifier, HighwayRegressor, TunnelClassifier, TunnelRegressor
from meristem.export import to_torch
from meristem.export.onnx import build

TOLERANCE = 1e-5
ROWS = 20
KINDS = {Affine, Perceptron, Residual, Gated, Cascade, Highway, Tree}


def session(model: Any) -> onnxruntime.InferenceSession:
    """Of a path, or of a model."""
    source = str(model) if not hasattr(model, "SerializeToString") else model.SerializeToString()
    return onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"])


def run(model: Any, x: Any) -> dict[str, np.ndarray]:
    opened = model if isinstance(model, onnxruntime.InferenceSession) else session(model)
    names = [output.name for output in opened.get_outputs()]
    return dict(zip(names, opened.run(None, {"X": np.asarray(x, np.float32)}), strict=True))


def run_torch(torch: Any, module: Any, x: Any) -> np.ndarray:
    with torch.no_grad():
        return module(torch.tensor(np.asarray(x))).numpy()


def everywhere(network: Any, x: np.ndarray, **options: Any) -> Iterator[np.ndarray]:
    """Its last output in onnxruntime, and its output in PyTorch where that is installed."""
    yield list(run(build(network, **options), x).values())[-1]
    if importlib.util.find_spec("torch"):
        yield run_torch(importlib.import_module("torch"), to_torch(network, **options), x)


def assert_close(got: np.ndarray, expected: np.ndarray) -> None:
    """Within 1e-5 of the largest, or of 1."""
    assert got.shape == expected.shape
    assert np.abs(got - expected).max() <= TOLERANCE * max(1, np.abs(expected).max())


def some_x(n_in: int, n: int = ROWS) -> np.ndarray:
    return np.random.default_rng(5).normal(size=(n, n_in)).astype(np.float32)


def random_layer(kind: type[Layer], activation: str, rng: np.random.Generator, rows: tuple[int, ...] = (1, 3)) -> Layer:
    """Of width 5."""

    def draw(*shape: int) -> np.ndarray:
        return rng.normal(size=shape).astype(np.float32)

    if kind is Affine:
        return Affine(draw(5, 5), None)
    if kind is Gated:
        gate = rng.uniform(size=len(rows)).astype(np.float32)
        return Gated(draw(len(rows), 5), draw(len(rows)), gate, rows, activation)
    if kind is Cascade:
        return Cascade(draw(2 + 3 + 1 + 5, 5), draw(11), (draw(3, 2), draw(1, 5), draw(5, 6)), activation)
    if kind is Highway:
        return Highway(draw(5, 5), draw(5), draw(5, 5), draw(5), activation)
    if kind is Tree:
        reads = [(0,), (0, 1), (1, 2)]
        return Tree(tuple(Leaf(draw(5, 5), draw(5), draw(len(r)), r) for r in reads), activation)
    return kind(draw(5, 5), draw(5), activation)  # type: ignore[call-arg]


def fresh(code: str, *arguments: Any) -> None:
    """Run it in a process that has neither meristem nor jax."""
    block = "import sys; sys.modules.update(dict.fromkeys(['meristem', 'jax', 'equinox']))\n"
    subprocess.run([sys.executable, "-c", block + code, *map(str, arguments)], check=True)


@functools.cache
def iris() -> tuple[pd.DataFrame, np.ndarray]:
    data = load_iris(as_frame=True)
    return data.data, data.target_names[data.target]


def two_targets() -> tuple[np.ndarray, np.ndarray]:
    x, y = load_diabetes(return_X_y=True, scaled=False)
    return x, np.stack([y, 1e4 + 1e3 * x[:, 2]], 1)


CASES: dict[str, tuple[Any, Any]] = {
    "iris": (BuddingClassifier(width=8, max_leaves=2, activation="gelu"), iris),
    "breast-cancer": (TunnelClassifier(width=8, depth=2), lambda: load_breast_cancer(return_X_y=True)),
    "digits": (TunnelClassifier(width=32, depth=2, max_epochs=5), lambda: load_digits(return_X_y=True)),
    "multi-label": (TunnelClassifier(width=8, depth=2), lambda: make_multilabel_classification(random_state=0)),
    "diabetes": (TunnelRegressor(width=8, depth=2), lambda: load_diabetes(return_X_y=True, scaled=False)),
    "two-targets": (HighwayRegressor(width=8, depth=2), two_targets),
}


@functools.cache
def trained(name: str) -> tuple[Any, Any]:
    """The estimator and its X."""
    estimator, load = CASES[name]
    x, y = load()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few epochs are not meant to be enough
        return estimator.set_params(random_state=0, max_epochs=min(estimator.max_epochs, 10)).fit(x, y), x


def batch(x: Any, n: int) -> Any:
    rows = np.random.default_rng(n).integers(len(x), size=n)
    return x.iloc[rows] if isinstance(x, pd.DataFrame) else x[rows]
