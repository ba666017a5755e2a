"""The seconds that one online training step takes, meristem's and PyTorch's, measured in turns in this process.

Every function returns {side: [seconds per step, one per repeat]}. A step's time is that of a whole epoch of the difficult
spirals (194 samples, batch 1; shuffling and the measures at its end included) over 194.
"""

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import torch
from torch import Tensor

import torch_networks
from fair import in_turns, match, must
from meristem.data.spirals import two_spirals
from meristem.nn import Network
from meristem.train.hyperparameters import Knobs, Recipe
from meristem.train.live_size import adapt_capacity
from meristem.train.programs import start, unpack, whole_epoch
from meristem.train.run import MAX_CAPACITY
from meristem.train.train_state import EpochInfo, TrainState
from meristem.train.training_data import Data
from networks import RESTING_RATE, full_tree, half_open_tunnel

T = TypeVar("T")
DATA = Data(*two_spirals("difficult"))
RECIPE, PENALTY, WIDTH = Recipe(), 1e-3, 10
TUNNEL_RATE = 3e-3
OURS_PER_REPEAT = 10  # epochs; one alone is too short for the clock


# One thread, and no penalty for tiny numbers: XLA flushes them to zero, too.
torch.set_num_threads(1)
torch.set_flush_denormal(True)


def tunnel(repeats: int) -> dict[str, list[float]]:
    """10 layers × 10 units."""
    size = {"n_in": 2, "n_out": 1, "width": WIDTH, "depth": 10}
    return _against_torch(half_open_tunnel(**size), torch_networks.tunnel(**size), TUNNEL_RATE, repeats)


def budding(repeats: int) -> dict[str, list[float]]:
    """Four live leaves, ((0 1) (2 3)), in their ordinary capacity of 4; the structure does not change while timed."""
    size = {"n_in": 2, "n_out": 1, "width": WIDTH, "height": 2}
    return _against_torch(full_tree(**size), torch_networks.budding(**size), RESTING_RATE, repeats)


def live_size(repeats: int) -> dict[str, list[float]]:
    """Two live leaves: in a network that never had more, and in one that had 16 and shrank as `fit` lets it shrink."""
    ordinary = _spiral_tree(height=1, capacity=4)
    state, knobs, path = start(_spiral_tree(height=4), jax.random.key(2), recipe=RECIPE), _knobs(RESTING_RATE), []
    while not path or state.network.body.capacity < path[-1][0] or path[-1][1] == 16:
        state, packed = whole_epoch(state, DATA, knobs, recipe=RECIPE)
        info = unpack(packed)
        path.append((state.network.body.capacity, int(info.most_leaves)))
        if len(path) == 1:
            # Both children of the root reach γ = 1: the next step closes them, and what is left are two leaves.
            gamma = state.network.body.leafness.value.at[jnp.array([7, 23])].set(1)
            state = eqx.tree_at(lambda s: s.network.body.leafness.value, state, gamma)
        state = adapt_capacity(state, info, ordinary.body.capacity, MAX_CAPACITY)
    must(path[0] == (16, 16) and path[-1] == (4, 2), f"it should shrink from 16 leaves to 2, (capacity, leaves) was {path}")
    fresh = start(ordinary, jax.random.key(2), recipe=RECIPE)
    sides = {"never larger": fresh, "shrunk from 16": state}
    return in_turns({name: _ours(s, RESTING_RATE, leaves=2) for name, s in sides.items()}, repeats)


def _spiral_tree(height: int, capacity: int | None = None) -> Network:
    return full_tree(2, 1, width=WIDTH, height=height, capacity=capacity)


def _against_torch(network: Network, theirs: torch_networks.Network, rate: float, repeats: int) -> dict[str, list[float]]:
    optimizer = torch_networks.adam(theirs, rate)
    x, y = (np.asarray(a) for a in DATA[:2])
    match(network, theirs, optimizer, x, y, RECIPE, PENALTY)
    leaves = int(network.body.n_leaves) if hasattr(network.body, "leafness") else 0
    torch_epoch = partial(_torch_epoch, theirs, optimizer, torch.tensor(x), torch.tensor(y))
    return in_turns(
        {
            "meristem": _ours(start(network, jax.random.key(2), recipe=RECIPE), rate, leaves),
            "PyTorch": lambda: _clock(torch_epoch)[0],
        },
        repeats,
    )


def _ours(state: TrainState, rate: float, leaves: int) -> Callable[[], float]:
    """A repeat of meristem's side: epochs as `fit` runs them, the news fetched after each."""
    knobs = _knobs(rate)

    def epoch() -> EpochInfo:
        nonlocal state
        state, packed = whole_epoch(state, DATA, knobs, recipe=RECIPE)
        return unpack(packed)

    def run() -> float:
        times, infos = zip(*(_clock(epoch) for _ in range(OURS_PER_REPEAT)), strict=True)
        must(all(i.opened == i.closed == 0 for i in infos), "the structure changed while the clock ran")
        must(all(i.most_leaves == leaves for i in infos), f"there were not {leaves} live leaves all the time")
        return statistics.median(times)

    return run


def _torch_epoch(network: torch_networks.Network, optimizer: torch.optim.Adam, x: Tensor, y: Tensor) -> tuple[float, float]:
    """Online training over shuffled samples, split beforehand; then the mean loss and error over all of them."""
    samples = list(zip(x.split(1), y.split(1), strict=True))
    for index in torch.randperm(len(samples)).tolist():
        torch_networks.step(network, optimizer, PENALTY, *samples[index], RECIPE.task.name)
    with torch.no_grad():
        outputs = network(x)
        loss = torch_networks.LOSSES[RECIPE.task.name](outputs, y)
        return loss.item(), ((outputs[:, 0] > 0) != (y > 0)).float().mean().item()


def _clock(epoch: Callable[[], T]) -> tuple[float, T]:
    """The seconds per step, and what the epoch returned."""
    begin = time.perf_counter()
    result = epoch()
    return (time.perf_counter() - begin) / DATA.x.shape[0], result


def _knobs(rate: float) -> Knobs:
    return Knobs(jnp.float32(rate), jnp.float32(PENALTY))
