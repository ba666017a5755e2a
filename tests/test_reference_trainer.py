"""The compiled trainer against the plain one, step by step: the same tree after every step, the same weights."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import reference as ref
from meristem.data.spirals import two_spirals
from meristem.nn import Network
from meristem.train.epoch import _batches, epoch as train_epoch, step
from meristem.train.hyperparameters import Knobs, Recipe
from meristem.train.train_state import start
from meristem.train.training_data import Data
from reference_trainer import ReferenceTrainer
from soak import FACTOR, many

RECIPE = Recipe()
LESS = min(2, many(1))  # epochs; in a soak two
TOLERANCE = 1e-9  # float64; rounding differs, and Adam divides by small numbers


class Setting(NamedTuple):
    capacity: int
    rate: float
    penalty: float
    probe: str
    epochs: int
    at_least: tuple[int, int, int]  # openings, closings, openings that waited
    root: str = "layer"


fast_step = jax.jit(step, static_argnames="recipe")


def assert_same(network: Network, opt_state: Any, trainer: ReferenceTrainer, tolerance: float) -> None:
    """Structure, parameters, buds, moments and ages."""
    network, adam = jax.device_get((network, opt_state[0]))  # slices of every length: NumPy compiles none of them
    body = network.body
    assert body.depth.tolist() == trainer.structure()
    leaves, nodes = ref.leaves(trainer.root), ref.nodes(trainer.root)
    n = len(leaves)
    close = partial(np.testing.assert_allclose, rtol=tolerance, atol=tolerance)
    close(body.bud.weight[:n], np.stack([leaf.bud.weight for leaf in leaves]))
    close(body.bud.bias[:n], np.stack([leaf.bud.bias for leaf in leaves]))
    plain = [trainer.embed, *trainer.head]
    fast = [lambda t: t.embed.weight, lambda t: t.head.weight, lambda t: t.head.bias]
    rows: list[tuple[Callable[[Any], Any], list[Any]]] = [
        (lambda t: t.body.weight, [leaf.layer.weight for leaf in leaves]),
        (lambda t: t.body.bias, [leaf.layer.bias for leaf in leaves]),
        (lambda t: t.body.leafness.value, [node.gamma for node in nodes]),
    ]
    if trainer.identity is not None:
        rows.append((lambda t: t.body.identity.value[None], [trainer.identity]))
    rows += [(lambda t, get=get: get(t)[None], [parameter]) for get, parameter in zip(fast, plain, strict=True)]
    for get, parameters in rows:
        count = len(parameters)
        close(get(network)[:count], np.stack([p.value for p in parameters]))
        close(get(adam.mu)[:count], np.stack([np.broadcast_to(p.m, np.shape(p.value)) for p in parameters]))
        close(get(adam.nu)[:count], np.stack([np.broadcast_to(p.v, np.shape(p.value)) for p in parameters]))
        assert get(adam.age)[:count].tolist() == [p.age for p in parameters]


@pytest.mark.parametrize(
    "setting",
    [
        pytest.param(Setting(capacity=8, rate=1e-2, penalty=1e-3, probe="bud", epochs=LESS, at_least=(5, 3, 0)), id="roomy"),
        pytest.param(Setting(capacity=3, rate=3e-3, penalty=1e-3, probe="bud", epochs=LESS, at_least=(2, 0, 5)), id="crowded"),
        pytest.param(Setting(8, 1e-2, 1e-3, "zero", epochs=LESS, at_least=(3, 2, 0), root="identity"), id="zero-root"),
        *(
            [
                pytest.param(Setting(8, 1e-2, 1e-3, "zero", epochs=LESS, at_least=(5, 3, 0)), id="zero"),
                pytest.param(
                    Setting(8, 1e-2, 1e-3, "bud", epochs=LESS, at_least=(3, 2, 0), root="identity"), id="identity-root"
                ),
            ]
            if FACTOR > 1
            else []
        ),
    ],
)
def test_the_plain_trainer_follows_the_compiled_one(setting: Setting) -> None:
    with jax.enable_x64(True):
        x, y = two_spirals("medium")
        network = Network.create(
            "budding",
            2,
            1,
            width=4,
            capacity=setting.capacity,
            probe=setting.probe,
            root=setting.root,
            key=jax.random.key(3),
        )
        knobs = Knobs(jnp.asarray(setting.rate), jnp.asarray(setting.penalty))
        trainer = ReferenceTrainer.of(
            network, rate=setting.rate, penalty=setting.penalty, l2=knobs.l2, decay=RECIPE.depth_decay
        )
        data = Data(x, y)
        state = stepped = start(network, jax.random.key(4), RECIPE)
        whole_epoch = jax.jit(train_epoch, static_argnames="recipe")
        openings = closings = waits = 0
        structures = set()

        for epoch in range(setting.epochs):
            # The shuffled samples and the key of each step, as the compiled epoch has them.
            epoch_key = jax.random.fold_in(state.key, epoch)
            order = _batches(data, RECIPE.batch_size, epoch_key, jnp.zeros((), int), 1, len(x))
            order = order._replace(x=np.asarray(order.x), y=np.asarray(order.y))
            counts = np.zeros(3, int)
            most = 0
            for index in range(len(x)):
                batch = jax.tree.map(lambda a, index=index: a[index], order)
                stepped, info = fast_step(stepped, batch, knobs, recipe=RECIPE)
                growth = trainer.step(np.asarray(batch.x[0]), float(batch.y[0]), batch.key)
                assert stepped.network.body.depth.tolist() == trainer.structure(), (epoch, index)
                assert tuple(map(int, info)) == (growth.opened, growth.closed, growth.waited), (epoch, index)
                counts += [growth.opened, growth.closed, growth.waited]
                most = max(most, len(ref.leaves(trainer.root)))
                structures.add(tuple(trainer.structure()))
                if index % 20 == 0 or any(info):
                    assert_same(stepped.network, stepped.opt_state, trainer, TOLERANCE)
            openings, closings, waits = np.add((openings, closings, waits), counts)

            # The scan of a whole epoch goes the same way as its steps.
            state, after = whole_epoch(state, data, knobs, recipe=RECIPE)
            assert [int(after.opened), int(after.closed), int(after.waited)] == counts.tolist()
            assert int(after.most_leaves) == most
            assert_same(state.network, state.opt_state, trainer, TOLERANCE)

        # The comparison means something only if much happened on the way.
        assert (np.array([openings, closings, waits]) >= setting.at_least).all(), (openings, closings, waits)
        assert len(structures) >= 3
