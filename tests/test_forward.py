"""The NumPy form of a network says what JAX's says, for every body and every activation."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from meristem.compact import compact
from meristem.compact.inference import BLOCK, Predictor, as_numpy
from meristem.layers.activation import ACTIVATIONS
from meristem.nn import Network
from meristem.nn.network import BODIES
from meristem.targets import Classes, Labels

GATES = {
    "shut": lambda shape: np.zeros(shape),
    "few open": lambda shape: (np.random.default_rng(0).random(shape) < 0.2) * 0.7,
    "half open": lambda shape: (np.random.default_rng(0).random(shape) < 0.5) * 0.7,
    "open": lambda shape: np.ones(shape),
}


def agree(network: Network, rows: int = 50) -> None:
    x = np.random.default_rng(1).normal(size=(rows, network.embed.weight.shape[1])).astype(np.float32)
    wanted = np.asarray(jax.vmap(network)(x))
    got = Predictor(as_numpy(compact(network))).outputs(x)
    assert got.shape == wanted.shape
    assert np.abs(got - wanted).max() <= 2e-5 * np.abs(wanted).max()


def network(body: str, activation: str = "relu", **options: Any) -> Network:
    options = options or ({} if body == "budding" else {"depth": 3})
    return Network.create(body, 5, 3, width=8, key=jax.random.key(0), activation=activation, **options)


@pytest.mark.parametrize("body", [body for body in BODIES if body != "tunnel"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_body_and_activation(body, activation):
    agree(network(body, activation))


@pytest.mark.parametrize("gates", GATES)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_tunnels_of_every_openness(gates, activation):
    fresh = network("tunnel", activation)
    value = jnp.asarray(GATES[gates](fresh.body.gate.value.shape), jnp.float32)
    agree(eqx.tree_at(lambda n: n.body.gate.value, fresh, value))


@pytest.mark.parametrize("root", ["layer", "identity"])
@pytest.mark.parametrize("gamma", [0.0, 0.3, 1.0])
def test_trees(gamma, root):
    rng = np.random.default_rng(0)
    tree = network("budding", "tanh", capacity=4, root=root)
    if root == "identity":
        tree = eqx.tree_at(lambda n: n.body.identity.value, tree, jnp.float32(gamma))
    draws = [jnp.asarray(rng.normal(size=a.shape), jnp.float32) for a in (tree.body.weight, tree.body.bias)]
    leafness = np.ones(7, np.float32)
    leafness[[1, 3]] = gamma
    agree(
        eqx.tree_at(
            lambda n: (n.body.weight, n.body.bias, n.body.leafness.value, n.body.depth),
            tree,
            (*draws, jnp.asarray(leafness), jnp.asarray([-1, 0, 1, -1], tree.body.depth.dtype)),
        )
    )


def test_many_rows_go_through_in_blocks_and_none_is_changed_by_the_others():
    small = as_numpy(compact(network("highway")))
    x = np.random.default_rng(1).normal(size=(BLOCK + 10, 5)).astype(np.float32)
    whole = Predictor(small).outputs(x)
    assert whole.shape == (BLOCK + 10, 3)
    for row in (0, BLOCK - 1, BLOCK, BLOCK + 9):
        assert np.allclose(Predictor(small).outputs(x[row : row + 1]), whole[row], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("body", ["tunnel", "budding", "highway"])
@pytest.mark.parametrize("targets", [Classes(np.arange(2)), Classes(np.arange(3)), Labels(3)], ids=["two", "three", "labels"])
def test_single_precision_decides_as_double_does(body, targets):
    """Rows on both sides of a decision, ever closer to it: by bisection, until single precision cannot tell them apart."""
    options = {} if body == "budding" else {"depth": 3}
    fresh = Network.create(body, 5, targets.n_out, width=8, key=jax.random.key(0), **options)
    small = as_numpy(
        compact(fresh if body != "tunnel" else eqx.tree_at(lambda n: n.body.gate.value, fresh, jnp.full((3, 8), 0.4)))
    )

    def decide(x):
        return targets.decode(Predictor(small).outputs(x)).reshape(len(x), -1)

    pairs = np.random.default_rng(2).normal(scale=3, size=(2, 2000, 5))
    near, far = pairs[:, (decide(pairs[0]) != decide(pairs[1])).any(1)]
    for _ in range(60):
        middle = (near + far) / 2
        alike = (decide(middle) == decide(near)).all(1)[:, None]
        near, far = np.where(alike, middle, near), np.where(alike, far, middle)
    rest = np.random.default_rng(3).normal(size=(2000, 5))
    x = np.concatenate([near, far, rest])
    asked = []

    def unsure(rough, within):
        asked.append(targets.unsure(rough, within))
        return asked[-1]

    decided = targets.decode(Predictor(small).decisive_outputs(x, unsure)).reshape(len(x), -1)
    assert (decided == decide(x)).all()
    rough = targets.decode(Predictor(small).outputs(x, np.float32)).reshape(len(x), -1)
    assert (rough != decide(x)).any(), "single precision alone would be wrong somewhere"
    assert asked[0][: -len(rest)].mean() > 0.9 > 0.5 > asked[0][-len(rest) :].mean(), "double precision is for the close ones"


def test_what_single_precision_cannot_hold_is_decided_in_double():
    fresh = network("tunnel")
    huge = as_numpy(compact(eqx.tree_at(lambda n: n.head.weight, fresh, fresh.head.weight * 1e37)))
    x = 100 * np.random.default_rng(0).normal(size=(20, 5))
    with np.errstate(over="ignore", invalid="ignore"):
        got = Predictor(huge).decisive_outputs(x, Classes(np.arange(3)).unsure)
    assert np.isfinite(got).all() and (got == Predictor(huge).outputs(x)).all()
