"""A layer says its formula once, and JAX, NumPy, onnxruntime and PyTorch compute the same by it: every kind, every activation.

That the formulas are right is shown in test_compact.py, against the networks that were compacted.
"""

from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from exporting import KINDS, assert_close, everywhere, random_layer, some_x
from meristem.compact import CompactNetwork
from meristem.compact.inference import Predictor, spread
from meristem.layers.activation import ACTIVATIONS
from meristem.layers.image_layers import ConvolutionBlock, GatedConvolution, InvertedBlock, Pixels, Pool
from meristem.layers.layer import Affine, Convolution, Gated, Layer, Leaf, Mean, Perceptron, Tree
from meristem.layers.ops.jax import JAX

WIDTH = 5


def variants(activation: str) -> Iterator[Layer]:
    """Every kind of layer, and what of each kind takes another way through the operations."""
    rng = np.random.default_rng(0)
    for kind in sorted(KINDS, key=str):
        yield random_layer(kind, activation, rng)
    for rows in [(2,), (0, 3, 4), (0, 1, 2, 3, 4)]:
        yield random_layer(Gated, activation, rng, rows)
    yield Affine(*_arrays(rng, (3, WIDTH), (3,)))
    yield Perceptron(*_arrays(rng, (2, WIDTH), (2,)), activation)
    yield Tree((Leaf(*_arrays(rng, (3, WIDTH), (3,), (1,)), (0,)),), activation)


def _arrays(rng: np.random.Generator, *shapes: tuple[int, ...]) -> list[np.ndarray]:
    return [rng.normal(size=shape).astype(np.float32) for shape in shapes]


def test_no_kind_of_layer_is_missing():
    ours = {kind for kind in Layer.__subclasses__() if kind.__module__.startswith("meristem.")}
    on_positions = {Convolution, Mean, Pixels, Pool, GatedConvolution, ConvolutionBlock, InvertedBlock}
    assert ours == KINDS | on_positions and set(map(type, variants("relu"))) == KINDS


def backends(network: CompactNetwork, x: np.ndarray) -> Iterator[np.ndarray]:
    """Its outputs in NumPy of both precisions, in onnxruntime, and in PyTorch where that is installed."""
    before = x.copy()
    yield Predictor(network).outputs(x)
    yield Predictor(network).outputs(x, np.float32)
    assert (x == before).all(), "what a network is given is not written over"
    yield from everywhere(network, x)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_layer_is_the_same_everywhere(activation):
    x = some_x(WIDTH)
    for layer in variants(activation):
        network = CompactNetwork((layer,))
        expected = np.asarray(jax.vmap(network)(jnp.asarray(x)))
        assert_close(np.stack([network(jnp.asarray(row)) for row in x[:2]]), expected[:2])
        for got in backends(network, x):
            assert_close(got, expected)


class SomeChannels(Layer):
    """Some channels of a convolution among the others, which copy."""

    weight: np.ndarray
    bias: np.ndarray
    gate: np.ndarray
    rows: tuple[int, ...] = eqx.field(static=True)

    units = property(lambda self: (len(self.rows),))

    def __call__(self, ops, h):
        new = ops.activate("relu", ops.conv(self.weight, self.bias, h))
        return ops.merge_rows(self.gate, self.rows, WIDTH, new, h, positions=self.weight.ndim - 2)


KERNELS, ROWS = [(1,), (2,), (3,), (4,), (1, 1), (3, 2)], [(2,), (0, 3, 4), (0, 1, 2, 3, 4)]


@pytest.mark.parametrize(("kernel", "rows"), [*((kernel, ROWS[1]) for kernel in KERNELS), ((3,), ROWS[0]), ((3,), ROWS[2])])
def test_convolutions_are_the_same_everywhere(kernel, rows):
    rng = np.random.default_rng(0)
    positions = (7, 4)[: len(kernel)]
    own = SomeChannels(*_arrays(rng, (len(rows), WIDTH, *kernel), (len(rows),), (len(rows),)), rows)
    layers = (own, Convolution(_arrays(rng, (3, WIDTH, *kernel))[0], None), Mean(3, positions))
    x = rng.normal(size=(6, WIDTH, *positions)).astype(np.float32)
    for depth in (1, 2, 3):
        network = CompactNetwork(layers[:depth], positions)
        expected = np.asarray(jax.vmap(network)(jnp.asarray(x)))
        assert_close(np.stack([network(jnp.asarray(sample)) for sample in x[:2]]), expected[:2])
        for got in backends(network, x) if depth == 3 else [Predictor(network).outputs(x)]:
            assert_close(got, expected)


@pytest.mark.parametrize("kernel", [(3,), (2, 3)])
def test_blocks_of_convolutions_are_the_same_everywhere(kernel):
    rng, ones = np.random.default_rng(0), (1,) * len(kernel)
    positions = (7, 5)[: len(kernel)]
    dense = _arrays(rng, (4, WIDTH, *kernel), (4,), (WIDTH, 4, *kernel))
    inverted = _arrays(rng, (6, WIDTH, *ones), (6,), (6, *kernel), (6,), (WIDTH, 6, *ones))
    gated = _arrays(rng, (2, WIDTH, *kernel), (2,), (2,))
    blocks = ConvolutionBlock(*dense, "tanh"), InvertedBlock(*inverted, "relu"), GatedConvolution(*gated, (1, 3), "relu")
    halves = tuple(n // 2 for n in positions)
    network = CompactNetwork((*blocks, Pool(WIDTH, (2,) * len(kernel)), Mean(WIDTH, halves)), positions)
    x = rng.normal(size=(6, WIDTH, *positions)).astype(np.float32)
    expected = np.asarray(jax.vmap(network)(jnp.asarray(x)))
    assert_close(np.stack([network(jnp.asarray(sample)) for sample in x[:2]]), expected[:2])
    for got in backends(network, x):
        assert_close(got, expected)


def test_a_convolution_is_a_sum_over_taps():
    """As many positions as before, zeros beyond the edge; written out."""
    rng = np.random.default_rng(0)
    weight, bias, h = _arrays(rng, (2, 3, 3), (2,), (3, 5))
    wide = np.pad(h, [(0, 0), (1, 1)])
    expected = [[(weight[o] * wide[:, t : t + 3]).sum() + bias[o] for t in range(5)] for o in range(2)]
    np.testing.assert_allclose(JAX.conv(weight, bias, jnp.asarray(h)), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_activation_is_the_same_everywhere_far_out_too(activation):
    network = CompactNetwork((Perceptron(np.eye(1, dtype=np.float32), np.zeros(1, np.float32), activation),))
    x = np.concatenate([np.linspace(-40, 40, 401), [-100, -0.0, 100]]).astype(np.float32)[:, None]
    expected = np.asarray(ACTIVATIONS[activation](jnp.asarray(x)))
    for got in backends(network, x):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gates_go_into_the_weights_only_where_that_is_the_same(activation):
    sigma, z = ACTIVATIONS[activation], jnp.linspace(-3, 3, 31)
    is_homogeneous = all(bool(jnp.allclose(sigma(gate * z), gate * sigma(z), atol=1e-6)) for gate in (0.0, 0.3, 1.0))
    assert is_homogeneous == sigma.is_homogeneous


@pytest.mark.parametrize("rows", [(2,), (0, 3), (0, 3, 4), (0, 1, 2, 3, 4)])
@pytest.mark.parametrize("activation", ["relu", "softplus"])
def test_a_layer_is_spread_from_half_open_on(rows, activation):
    layer = random_layer(Gated, activation, np.random.default_rng(0), rows)
    wide = spread(layer)
    if len(rows) < 3:
        assert wide is layer
        return
    assert wide.weight.shape == (WIDTH, WIDTH) and hasattr(wide, "gate") == (activation != "relu")
    x = jnp.asarray(some_x(WIDTH))
    assert_close(*(np.asarray(jax.vmap(lambda row, one=one: one(JAX, row))(x)) for one in (wide, layer)))


class Own(Layer):
    """One of a person's own, in every operation; it reads its input again after it was activated, added to and mixed with."""

    weight: Any

    @property
    def units(self) -> tuple[int, ...]:
        return (WIDTH,)

    def __call__(self, ops: Any, h: Any) -> Any:
        factor = np.arange(WIDTH, dtype=np.float32)
        active = ops.activate("relu", h)
        mixed = ops.mix(ops.activate("sigmoid", h), h, active)
        summed = ops.add(h, ops.scale(factor, h, name="factor"))
        merged = ops.merge_rows(factor / 5, range(WIDTH), WIDTH, h, summed)
        first, second = ops.split(ops.affine(self.weight, None, h, plus=merged), [2, 3])
        joined = ops.concat([second, first])
        return ops.combine(np.array([0.5, 0.25, 0.25], np.float32), [joined, mixed, h], name="shares")


def test_a_layer_of_ones_own_runs_everywhere():
    rng = np.random.default_rng(0)
    layers = Own(*_arrays(rng, (WIDTH, WIDTH))), random_layer(Affine, "", rng), Own(*_arrays(rng, (WIDTH, WIDTH)))
    network, x = CompactNetwork(layers), some_x(WIDTH)
    expected = np.asarray(jax.vmap(network)(jnp.asarray(x)))
    weights = [layer.weight for layer in layers]
    assert_close(expected, own_formula(weights[2], own_formula(weights[0], x) @ weights[1].T))
    for got in backends(network, x):
        assert_close(got, expected)


def own_formula(weight: np.ndarray, h: np.ndarray) -> np.ndarray:
    """`Own`, written plainly."""
    factor, active, gate = np.arange(WIDTH), np.maximum(h, 0), 1 / (1 + np.exp(-h))
    mixed, summed = gate * h + (1 - gate) * active, h + factor * h
    z = h @ weight.T + factor / 5 * h + (1 - factor / 5) * summed
    return 0.5 * z[:, [2, 3, 4, 0, 1]] + 0.25 * mixed + 0.25 * h
