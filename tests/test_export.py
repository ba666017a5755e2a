"""Networks in onnxruntime and in PyTorch compute what they compute here, with whatever stands around; mistakes are one line.

What is drawn at random is compared with the NumPy form, which is what `predict` computes. Layer by layer: test_compact_ops.py.
"""

import importlib.util
import sys
from typing import Any

import jax
import numpy as np
import onnx
import pytest
from hypothesis import given, settings, strategies as st

from exporting import ROWS, assert_close, build, everywhere, random_layer, run, session, some_x
from meristem.compact import CompactNetwork, compact
from meristem.compact.inference import Predictor, as_numpy
from meristem.export import AnyOf, OneOf, Raw, Values, to_onnx, to_torch
from meristem.layers.activation import ACTIVATIONS
from meristem.layers.layer import Affine, Cascade, Gated, Highway, Layer, Perceptron, Residual, Tree
from meristem.nn import Network, Tunnel
from meristem.targets import Classes, Scaling
from test_compact import around, with_identity_root
from test_reference import DEPTH, WIDTH, make_budding, make_highway, make_tunnel, many, seeds, trees, unit

PAIR = CompactNetwork((Affine(np.ones((2, 3), np.float32), np.array([0, 1], np.float32)),))  # one with two outputs
activations = st.sampled_from(list(ACTIVATIONS))


# ---- networks: random structures


@pytest.mark.parametrize("rows", [(2,), (1, 3), (0, 3, 4), (0, 1, 2, 3), (0, 1, 2, 3, 4)])
def test_units_that_copy_are_copied_exactly(rows):
    """However many are open; also with an activation that is not 0 at 0."""
    network = CompactNetwork((random_layer(Gated, "softplus", np.random.default_rng(0), rows),))
    x = 100 * some_x(5)
    closed = [unit for unit in range(5) if unit not in rows]
    for got in everywhere(network, x):
        np.testing.assert_array_equal(got[:, closed], x[:, closed])
        assert_close(got, Predictor(network).outputs(x))


def tunnels(gates: list[float], activation: str, rng: np.random.Generator, seed: int) -> Network:
    some_open = np.where(rng.uniform(size=len(gates)) < rng.choice([0.2, 0.8]), gates, 0).tolist()
    return around(make_tunnel(some_open, rng, activation), int(rng.choice([2, 40])), seed)


def buddings(tree: dict[str, Any], activation: str, rng: np.random.Generator, seed: int) -> Network:
    return around(make_budding(tree, activation), 4, seed, n_out=1)


def copying_buddings(drawn: tuple[dict[str, Any], float], activation: str, rng: np.random.Generator, seed: int) -> Network:
    tree, copied = drawn
    return around(with_identity_root(make_budding(tree, activation), copied), 4, seed, n_out=1)


def highways(_: None, activation: str, rng: np.random.Generator, seed: int) -> Network:
    return around(make_highway(rng, activation), 4, seed)


def plains(kinds: list[type[Layer]], activation: str, rng: np.random.Generator, seed: int) -> CompactNetwork:
    return CompactNetwork(tuple(random_layer(kind, activation, rng) for kind in [*kinds, Affine]))


gate_lists = st.lists(unit, min_size=DEPTH * WIDTH, max_size=DEPTH * WIDTH)
plain_lists = st.lists(st.sampled_from([Perceptron, Residual]), min_size=1, max_size=3)


@pytest.mark.parametrize(
    ("make", "drawn", "kinds"),
    [
        (tunnels, gate_lists, {Affine, Gated, Cascade}),
        (buddings, trees(), {Affine, Perceptron, Tree}),
        (copying_buddings, st.tuples(trees(), unit), {Affine, Perceptron, Tree}),
        (highways, st.none(), {Affine, Highway}),
        (plains, plain_lists, {Affine, Perceptron, Residual}),
    ],
)
def test_random_structures(make, drawn, kinds):
    seen = set()

    @settings(many, max_examples=20)
    @given(drawn=drawn, activation=activations, seed=seeds)
    def check(drawn, activation, seed):
        network = as_numpy(compact(make(drawn, activation, np.random.default_rng(seed), seed)))
        seen.update(map(type, network.layers))
        x = some_x(network.layers[0].n_in)
        for got in everywhere(network, x):
            assert_close(got, Predictor(network).outputs(x))

    check()
    assert seen >= kinds


def test_a_network_that_is_not_compact_yet_is_made_so():
    network = around(make_tunnel([0.0] * DEPTH * WIDTH, np.random.default_rng(0), "relu"), 4, 0)
    assert [node.op_type for node in build(network).graph.node] == ["Gemm", "Identity"]
    assert_close(run(build(network), some_x(4))["outputs"], Predictor(as_numpy(compact(network))).outputs(some_x(4)))


def test_double_precision():
    """ONNX files are float32; a module has the type of its network."""
    layers = [random_layer(kind, "gelu", np.random.default_rng(0)) for kind in (Highway, Gated, Tree)]
    network = jax.tree.map(lambda a: a.astype(np.float64), CompactNetwork(tuple(layers)))
    x = np.random.default_rng(0).normal(size=(ROWS, 5))
    for got, dtype in zip(everywhere(network, x), (np.float32, np.float64), strict=False):
        assert got.dtype == dtype
        np.testing.assert_allclose(got, Predictor(network).outputs(x), rtol=1e-5, atol=1e-5)


# ---- what stands around


@pytest.mark.parametrize("offset", [0, 1e3, 1e6, 1e9])
def test_a_large_mean_costs_no_precision(offset):
    """Features as they arrive, in float32; those of a deviation far below a float's last digit say nothing to anyone."""
    rng = np.random.default_rng(0)
    x = rng.normal(offset + 0.123, max(1, 1e-7 * offset * 10), (200, 5)).astype(np.float32)
    scaling = Scaling.of(x.astype(float))
    network = CompactNetwork((random_layer(Perceptron, "tanh", rng), random_layer(Affine, "", rng)))
    expected, pair = Predictor(network).outputs(scaling(x)), (scaling.mean, scaling.scale)
    for given_x in (x, x.astype(np.float64)):
        for got in everywhere(network, given_x, scaling=pair):
            assert_close(got, expected)


@pytest.mark.parametrize(
    ("classes", "dtype"),
    [
        ([3, 7], np.int64),
        (np.array([1, 2, 200], np.uint8), np.int64),
        ([False, True], np.bool_),
        ([0.0, 1.0, 2.0], np.float64),
        (["ja", "nein"], object),
        (np.array(["a", "é", "日本"], object), object),
        ([5], np.int64),
    ],
    ids=["two", "bytes", "booleans", "floats", "texts", "objects", "one"],
)
def test_classes_of_every_type(classes, dtype):
    n = len(classes)
    network = CompactNetwork((Affine(some_x(3, 1 if n == 2 else n), None),))
    got = run(build(network, ending=OneOf(classes)), some_x(3))
    targets, z = Classes(np.array(classes)), Predictor(network).outputs(some_x(3))
    assert list(got) == ["label", "probabilities"] and got["label"].dtype == dtype
    assert got["label"].tolist() == targets.decode(z).tolist()
    assert n == 1 or len(set(got["label"].tolist())) > 1
    for probabilities in everywhere(network, some_x(3), ending=OneOf(classes)):
        assert_close(probabilities, targets.probabilities(z))


def test_two_classes_of_two_outputs():
    """The second logit of PAIR is the first plus 1."""
    assert run(build(PAIR, ending=OneOf([3, 7])), some_x(3, 1))["label"].tolist() == [7]
    for probabilities in everywhere(PAIR, some_x(3, 1), ending=OneOf([3, 7])):
        assert_close(probabilities, np.array([[1, np.e]]) / (1 + np.e))


@pytest.mark.parametrize("is_flat", [True, False])
def test_a_log_link(is_flat):
    """What a network that learned log y says of y, exp(z · scale + mean), is never below 0."""
    network = CompactNetwork((Affine(some_x(3, 1 if is_flat else 2), None),))
    mean, scale = np.array([0.5, -1])[: 1 + (not is_flat)], np.array([2.0, 0.1])[: 1 + (not is_flat)]
    expected = np.exp(Predictor(network).outputs(some_x(3)) * scale + mean)
    ending = Values(mean, scale, is_flat=is_flat, link="log")
    assert list(run(build(network, ending=ending), some_x(3))) == ["predictions"]
    for y in everywhere(network, some_x(3), ending=ending):
        assert_close(y, expected[:, 0] if is_flat else expected)
        assert (y > 0).all()


def test_on_the_fence_it_is_the_first_class():
    network = CompactNetwork((Affine(np.zeros((1, 2), np.float32), None),))
    got = run(build(network, ending=OneOf([3, 7])), some_x(2, 1))
    assert got["label"].tolist() == [3] and got["probabilities"].tolist() == [[0.5, 0.5]]


def test_small_probabilities_keep_their_digits():
    network = CompactNetwork((Affine(np.array([[15.0]], np.float32), None),))
    (first, _), (_, second) = run(build(network, ending=OneOf([0, 1])), np.array([[1.0], [-1.0]]))["probabilities"]
    assert first == pytest.approx(3.059e-7, rel=1e-2) and second == pytest.approx(3.059e-7, rel=1e-2)


# ---- what is wrong is said in one line


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ending": OneOf([1])}, "ending has 1 classes, the network 2 outputs; give 2 classes."),
        ({"ending": OneOf([1, 2, 3])}, "ending has 3 classes, the network 2 outputs; give 2 classes."),
        ({"ending": Values(np.zeros(1), np.ones(2))}, r"ending's mean has shape \(1,\); it must be 2 finite numbers."),
        ({"ending": Values(np.zeros(2), np.ones(2), True)}, "is_flat=True is for a network with one output, this one has 2"),
        ({"ending": Values(np.zeros(2), np.ones(2), link="logit")}, "link='logit' is not known. Did you mean 'log'?"),
        ({"scaling": (np.zeros(3), np.ones(2))}, r"scaling's scale has shape \(2,\); it must be 3 finite numbers."),
        ({"scaling": (np.zeros(3), np.array([1, 0, 1]))}, "scaling's scale is 0 for feature 1; give 1"),
    ],
)
def test_what_does_not_fit(options, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        to_onnx(tmp_path / "x.onnx", PAIR, **options)
    assert list(tmp_path.iterdir()) == []
    if importlib.util.find_spec("torch"):
        with pytest.raises(ValueError, match=message):
            to_torch(PAIR, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"feature_names": ["a"]}, "feature_names has 1 names, the model takes 3 features; give one for each."),
        ({"metadata": {"versions": "mine"}}, "metadata's name 'versions' is taken; choose another."),
    ],
)
def test_what_does_not_fit_a_file(options, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        to_onnx(tmp_path / "x.onnx", PAIR, **options)


def test_a_body_that_copies_is_not_exported():
    with pytest.raises(ValueError, match="it copies its input; there is nothing to export"):
        build(compact(Tunnel(3, 2, key=jax.random.key(0))))


def test_classes_must_be_of_one_kind():
    for classes in ([], [[1, 2]], np.array([1, None], object)):
        with pytest.raises(ValueError, match="must be a list of numbers, booleans or texts"):
            OneOf(classes)


@pytest.mark.parametrize(("where", "message"), [("", "is a folder"), ("no/where.onnx", "is no folder")])
def test_a_bad_path_is_one_clear_line(where, message, tmp_path):
    with pytest.raises(ValueError, match=message) as caught:
        to_onnx(tmp_path / where, PAIR)
    assert "\n" not in str(caught.value) and list(tmp_path.iterdir()) == []


def test_a_file_is_replaced_whole(tmp_path):
    path = to_onnx(tmp_path / "x.onnx", PAIR, ending=AnyOf(), metadata={"note": "first"})
    with pytest.raises(ValueError, match="feature_names"):
        to_onnx(path, PAIR, feature_names=[])
    assert session(path).get_modelmeta().custom_metadata_map["note"] == "first"
    to_onnx(path, PAIR, ending=Raw())
    assert list(run(path, some_x(3))) == ["outputs"]
    assert onnx.load(path).opset_import[0].version == 17


@pytest.mark.parametrize("extra", ["onnx", "torch"])
def test_a_missing_extra_says_what_to_install(extra, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, extra, None)
    with pytest.raises(ImportError, match=rf"pip install 'meristem-nn\[{extra}\]'"):
        to_onnx(tmp_path / "x.onnx", PAIR) if extra == "onnx" else to_torch(PAIR)
