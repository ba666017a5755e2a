"""What the tests of export share: running what was exported, and random layers."""

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from meristem.export import to_torch
from meristem.export.onnx import onnx_bytes
from meristem.layers.layer import INPUT, Affine, Bag, Cascade, Gated, Highway, Layer, Leaf, Perceptron, Pick, Residual, Tree

TOLERANCE = 1e-5
ROWS = 20
KINDS = {Pick, Affine, Perceptron, Residual, Gated, Cascade, Highway, Tree, Bag}  # on vectors


def session(model: Any) -> Any:
    """Of a path, or of a model."""
    import onnxruntime  # here: most tests of layers need no other program

    source = str(model) if not hasattr(model, "SerializeToString") else model.SerializeToString()
    return onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"])


def build(network: Any, **options: Any) -> Any:
    """The file of a network, as an `onnx.ModelProto`."""
    import onnx

    return onnx.load_from_string(onnx_bytes(network, **options))


def run(model: Any, x: Any) -> dict[str, np.ndarray]:
    opened = model if hasattr(model, "get_outputs") else session(model)
    names = [output.name for output in opened.get_outputs()]
    dtype = {"tensor(float)": np.float32, "tensor(double)": np.float64}[opened.get_inputs()[0].type]
    return dict(zip(names, opened.run(None, {"X": np.asarray(x, dtype)}), strict=True))


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

    if kind is Pick:
        return Pick(rows, 5)
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
        reads = [(0,), (0, 1), (INPUT, 1, 2)]
        return Tree(tuple(Leaf(draw(5, 5), draw(5), draw(len(r)), r) for r in reads), activation)
    if kind is Bag:
        parts = [(Gated, Tree), (Gated, Gated, Highway), (Residual,)]
        return Bag(tuple(tuple(random_layer(one, activation, rng) for one in member) for member in parts))
    return kind(draw(5, 5), draw(5), activation)  # type: ignore[call-arg]


def fresh(code: str, *arguments: Any) -> None:
    """Run it in a process that has neither meristem nor jax."""
    block = "import sys; sys.modules.update(dict.fromkeys(['meristem', 'jax', 'equinox']))\n"
    subprocess.run([sys.executable, "-c", block + code, *map(str, arguments)], check=True)
