"""Convolutional bodies: the promises of every body, and the equations as loops over pixels; counts by hand: test_axes.py."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import contract
import reference
from exporting import assert_close, everywhere
from meristem import Confined, Data, fit
from meristem.compact import compact
from meristem.compact.inference import Predictor
from meristem.gate import fully_open, map_gates
from meristem.nn import ConvBranch, ConvInverted, ConvTunnel, Downsample, ImageStem, Network, Stages
from meristem.train.settle import model_cost
from soak import FACTOR

KEY = jax.random.key(0)
HEIGHT, WIDTH = 5, 4


def images(n: int) -> Data:
    """Noise of two channels; 1 where the first has a bright square of 2 × 2 somewhere, 0 where it has a bar."""
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0, 0.35, (n, HEIGHT, WIDTH, 2)), rng.integers(0, 2, n)
    for image, target in zip(x, y, strict=True):
        row, column = rng.integers(0, HEIGHT - 3), rng.integers(0, WIDTH - 2)
        height, width = (2, 2) if target else (4, 1)
        image[row : row + height, column : column + width, 0] += 0.6
    return Data(x.astype(np.float32), y.astype(np.float32))


SIZES = {  # of two stages, and of two blocks in one
    "conv-branch": {"max_width": (5, 7), "depth": 1},
    "conv-inverted": {"max_width": 6, "depth": 2, "normalize": True},
    "conv-tunnel": {"max_width": 8, "depth": 2},
}
N_IMAGES = {"conv-branch": 100, "conv-inverted": 80, "conv-tunnel": 80}  # after which gates of several parts are open


@pytest.fixture(scope="module", params=SIZES)
def trained(request):
    def create(key: jax.Array) -> Network:
        return Network.create(request.param, input_shape=(HEIGHT, WIDTH, 2), n_out=1, **SIZES[request.param], key=key)

    return contract.train(create, images(N_IMAGES[request.param]))


@pytest.mark.parametrize("check", contract.CHECKS, ids=lambda check: check.__name__)
def test_the_promises_of_every_body(check, trained, tmp_path):
    check(trained, tmp_path)


KINDS = {"branch": ConvBranch, "inverted": ConvInverted, "tunnel": ConvTunnel}


def some_body(name: str, positions=(2, 3)):
    """Two blocks with some gates of units and a dimension of the trunk closed, and biases other than 0."""
    sizes = {"kernel": 2} if name == "tunnel" else {"units": 4}  # an even kernel, too: one more zero before than behind
    body = KINDS[name](width=3, depth=2, positions=positions, learn_width=True, key=KEY, **sizes)
    rng = np.random.default_rng(1)

    def drawn(node):
        if not isinstance(node, Confined):
            return jnp.asarray(rng.normal(size=node.shape) / 3, node.dtype)
        values = rng.uniform(0.1, 1, node.value.shape) * (rng.random(node.value.shape) < 0.7)
        return node.at(jnp.asarray(values, node.value.dtype))

    return jax.tree.map(drawn, body, is_leaf=lambda node: isinstance(node, Confined))


def oracle(body, x):
    """By the equations, of the body's arrays."""
    gate, trunk = body.gate.value, body.trunk.value
    match body:
        case ConvTunnel():
            return reference.conv_tunnel(body.weight, body.bias, gate, trunk, x)
        case ConvBranch():
            return reference.conv_branch(body.inner, body.bias, gate, body.outer, trunk, x)
    return reference.conv_inverted(body.inner, body.bias, body.depthwise, body.shift, gate, body.outer, trunk, x)


@pytest.mark.parametrize("name", KINDS)
def test_values_and_gradients_are_those_of_the_equations(name):
    with jax.enable_x64(True):
        body = some_body(name)
        x = jnp.asarray(np.random.default_rng(2).normal(size=(3, 2, 3)))

        def value_and_slopes(function):
            return jax.jit(jax.value_and_grad(lambda body, x: (function(body, x) ** 3).sum(), argnums=(0, 1)))(body, x)

        ours, expected = value_and_slopes(lambda body, x: body(x)), value_and_slopes(oracle)
        for got, slope in zip(jax.tree.leaves(ours), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(got, slope, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["branch", "inverted"])
def test_a_closed_block_is_the_identity_and_only_its_gates_have_a_slope(name):
    body = some_body(name)
    closed = eqx.tree_at(lambda b: b.gate.value, body, body.gate.value.at[0].set(0))
    x = jnp.asarray(np.random.default_rng(2).normal(size=(3, 2, 3)), jnp.float32)
    last = jax.tree.map(lambda leaf: leaf[1:] if leaf.ndim > 1 else leaf, closed)
    np.testing.assert_array_equal(closed(x), last(x))
    slopes = jax.jit(jax.grad(lambda b: (b(x) ** 2).sum()))(closed)
    moves = {
        name: bool((leaf.value if name == "gate" else leaf)[0].any()) for name, leaf in vars(slopes).items() if name not in FREE
    }
    assert moves.pop("gate") and not any(moves.values())


FREE = {"trunk", "rows", "positions", "activation", "norm", "depthwise_norm"}  # what is not of a block


@pytest.mark.parametrize(("shape", "body"), [((6, 5, 3), "branch"), ((5, 6), "inverted"), ((1, 7, 1), "tunnel")])
def test_images_of_any_shape_are_the_same_everywhere(shape, body):
    """Odd sizes, a single row, without channels; with gates and pixel scales of all kinds, compact and exported.

    The suite tries each shape with one body, a soak (MERISTEM_SOAK) with all.
    """
    n = (*shape, 1)[2]
    scales = {"pixel_mean": [0.1 * (k + 1) for k in range(n)], "pixel_scale": [0.5 / (k + 1) for k in range(n)]}
    for name in KINDS if FACTOR > 1 else [body]:
        network = Network.create(
            f"conv-{name}", input_shape=shape, n_out=3, max_width=(3, 4), depth=(1, 2), **scales, key=jax.random.key(1)
        )
        rng = np.random.default_rng(0)
        network = map_gates(
            lambda gate, rng=rng: gate.at(
                jnp.asarray(rng.random(gate.value.shape) * (rng.random(gate.value.shape) < 0.7), float)
            ),
            network,
        )
        x = rng.random((4, *shape)).astype(np.float32)
        expected = np.asarray(contract.outputs(network, jnp.asarray(x)))
        small = compact(network)
        assert small.n_parameters < n_parameters_of(network)
        for got in [contract.outputs(small, jnp.asarray(x)), Predictor(small).outputs(x), *everywhere(network, x)]:
            assert_close(np.asarray(got), expected)


class OwnModel(eqx.Module):
    """One of a person's own: two stages among other layers."""

    body: Stages
    last: eqx.nn.Linear

    def __call__(self, x):
        return self.last(self.body(x).mean((1, 2)))


def test_a_model_of_ones_own_holds_bodies_without_trunk_gates():
    keys = jax.random.split(KEY, 4)
    first = ConvInverted(width=2, units=4, depth=1, positions=(5, 4), key=keys[0])
    second = ConvBranch(width=3, units=3, depth=1, positions=(2, 2), key=keys[1])
    model = OwnModel(Stages([first, Downsample(2, 3, (5, 4), key=keys[2]), second]), eqx.nn.Linear(3, 2, key=keys[3]))
    model = eqx.tree_at(lambda m: m.body.parts[0].gate.value, model, jnp.array([[0.5, 0.0, 0.0, 1.0]]))
    x = jnp.asarray(np.random.default_rng(0).normal(size=(2, 5, 4)), jnp.float32)
    small = compact(model)
    np.testing.assert_allclose(small(x), model(x), rtol=1e-5, atol=1e-6)
    assert small.body.units == (2, 2, 3)
    assert float(model_cost(fully_open(model))) == small.body.n_parameters + 2 * 3 + 2


def n_parameters_of(network: Network) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(network))


def test_the_first_layer_reads_pixels_relative_to_mean_and_scale():
    stem = ImageStem((2, 3, 2), 1, kernel=1, pixel_mean=(0.5, 0.25), pixel_scale=(0.25, 0.5), key=KEY)
    stem = eqx.tree_at(lambda s: s.weight, stem, jnp.array([1.0, 10.0]).reshape(1, 2, 1, 1))
    x = np.random.default_rng(0).random((2, 3, 2)).astype(np.float32)
    expected = (x[..., 0] - 0.5) / 0.25 + 10 * (x[..., 1] - 0.25) / 0.5
    np.testing.assert_allclose(stem(jnp.asarray(x))[0], expected, rtol=1e-5)


def test_stages_are_halved_by_means():
    down = Downsample(1, 1, (5, 4), key=KEY)
    down = eqx.tree_at(lambda d: d.weight, down, jnp.ones((1, 1)))
    x = np.arange(20, dtype=np.float32).reshape(1, 5, 4)
    np.testing.assert_allclose(down(jnp.asarray(x))[0], [[2.5, 4.5], [10.5, 12.5]])
    assert Downsample(1, 1, (1, 9), key=KEY)(jnp.ones((1, 1, 9))).shape == (1, 1, 4)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"n_in": 3}, "input_shape"),
        ({"input_shape": (4,)}, "input_shape"),
        ({"input_shape": (4, 0)}, "input_shape"),
        ({"input_shape": (4, 4), "max_width": ()}, "max_width"),
        ({"input_shape": (4, 4), "depth": (1, 2)}, "depth"),
        ({"input_shape": (4, 4), "width": "wide"}, "width"),
        ({"input_shape": (4, 4), "expansion": -1}, "expansion"),
        ({"input_shape": (4, 4), "gate_start": 2}, "gate_start"),
        ({"input_shape": (4, 4), "kernel": 0}, "kernel"),
        ({"input_shape": (4, 4), "kernels": 3}, "'kernel'"),
        ({"input_shape": (4, 4, 3), "pixel_mean": (0.5, 0.5)}, "pixel_mean"),
        ({"input_shape": (4, 4), "pixel_scale": 0}, "pixel_scale"),
        ({"input_shape": (4, 4), "feature_gates": True}, "feature_gates"),
        ({"input_shape": (4, 4), "n_out": None}, "n_out"),
    ],
)
def test_bad_arguments_are_named(arguments, word):
    with pytest.raises(ValueError, match=word) as caught:
        Network.create("conv-branch", **{"n_out": 2, "max_width": 4, "key": KEY} | arguments)
    assert "\n" not in str(caught.value)


def test_vectors_and_images_are_told_apart():
    with pytest.raises(ValueError, match="n_in"):
        Network.create("tunnel", input_shape=(4, 4), n_out=2, depth=2, key=KEY)
    network = Network.create("conv-branch", input_shape=(4, 5, 2), n_out=1, width=3, key=KEY)
    assert network.body.trunk is None and network.width == 3
    with pytest.raises(ValueError, match=r"\[samples, 4, 5, 2\]"):
        fit(network, Data(np.zeros((3, 4, 5)), np.zeros(3)), learning_rate=0.1, penalty=0.0, key=KEY)
    with pytest.raises(ValueError, match=r"input_shape=\(6, 5, 2\)"):
        fit(network, Data(np.zeros((3, 6, 5, 2)), np.zeros(3)), learning_rate=0.1, penalty=0.0, key=KEY)
