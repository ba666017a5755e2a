"""The seconds that one online training step takes, meristem's and PyTorch's, measured in turns in this process.

Every function returns {side: [seconds per step, one per repeat]}; a repeat of a side is followed at once by a repeat of the
other, so that a slow moment of the machine hits both. A step's time is that of a whole epoch of the difficult spirals (194
samples, batch 1; shuffling and the measures at its end included) over 194. Before the clock starts both sides must agree:
the same outputs, the same gradient and the same rate for every parameter.
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

import torch_networks
from meristem.data.spirals import two_spirals
from meristem.nn import Network
from meristem.nn.linear import he_layer
from meristem.train import objective
from meristem.train.capacity import adapt
from meristem.train.loop import MAX_CAPACITY, _epoch, _start
from meristem.train.optimizer import layer_depths
from meristem.train.samples import Data
from meristem.train.step import EpochInfo, Knobs, Recipe, TrainState

T = TypeVar("T")
DATA = Data(*two_spirals("difficult"))
RECIPE, PENALTY, WIDTH = Recipe(), 1e-3, 10
TUNNEL_RATE = 3e-3
# Budding is timed at rest: 1 − 1e-9 is 1 in float32, so no leaf opens, and the number of leaves is the one that is claimed.
RESTING_RATE = 1e-9
TOLERANCE = 1e-5  # relative to the largest entry
OURS_PER_REPEAT = 10  # epochs; one alone is too short for the clock


# One thread, and no penalty for tiny numbers: XLA flushes them to zero, too.
torch.set_num_threads(1)
torch.set_flush_denormal(True)


class UnfairError(Exception):
    """Both sides do not do the same, or not what is claimed."""


def tunnel(repeats: int) -> dict[str, list[float]]:
    """10 layers × 10 units. The gates start half open: then L2 reaches every weight, as PyTorch's weight decay does."""
    network = Network.create("tunnel", 2, 1, width=WIDTH, depth=10, key=jax.random.key(0))
    gates = jax.random.uniform(jax.random.key(1), network.body.gate.value.shape, minval=0.2, maxval=0.8)
    network = eqx.tree_at(lambda n: n.body.gate.value, network, gates)
    return _against_torch(network, *torch_networks.tunnel(2, WIDTH, 10), TUNNEL_RATE, repeats)


def budding(repeats: int) -> dict[str, list[float]]:
    """Four live leaves, ((0 1) (2 3)), in their ordinary capacity of 4; the structure does not change while timed."""
    return _against_torch(full_tree(height=2), *torch_networks.budding(2, WIDTH, 2), RESTING_RATE, repeats)


def live_size(repeats: int) -> dict[str, list[float]]:
    """Two live leaves: in a network that never had more, and in one that had 16 and shrank as `fit` lets it shrink."""
    ordinary = full_tree(height=1, capacity=4)
    state, knobs, path = _start(full_tree(height=4), recipe=RECIPE, key=jax.random.key(2)), _knobs(RESTING_RATE), []
    while not path or state.network.body.capacity < path[-1][0] or path[-1][1] == 16:
        state, info = _epoch(state, DATA, knobs, recipe=RECIPE)
        path.append((state.network.body.capacity, int(info.most_leaves)))
        if len(path) == 1:
            # Both children of the root reach γ = 1: the next step closes them, and what is left are two leaves.
            gamma = state.network.body.leafness.value.at[jnp.array([7, 23])].set(1)
            state = eqx.tree_at(lambda s: s.network.body.leafness.value, state, gamma)
        state = adapt(state, jax.device_get(info), ordinary.body.capacity, MAX_CAPACITY)
    _must(path[0] == (16, 16) and path[-1] == (4, 2), f"it should shrink from 16 leaves to 2, (capacity, leaves) was {path}")
    fresh = _start(ordinary, recipe=RECIPE, key=jax.random.key(2))
    sides = {"never larger": fresh, "shrunk from 16": state}
    return _in_turns({name: _ours(s, RESTING_RATE, leaves=2) for name, s in sides.items()}, repeats)


def full_tree(height: int, capacity: int | None = None) -> Network:
    """A budding network with 2^height leaves of equal depth; every inner γ is 0.5."""
    n = 2**height
    capacity = capacity or n
    network = Network.create("budding", 2, 1, width=WIDTH, capacity=capacity, key=jax.random.key(0))
    layers, dormant = (he_layer(jax.random.key(k), (capacity, WIDTH, WIDTH)) for k in (1, 2))
    # Inner node j of a full tree is the less deep the more often 2 divides j.
    depth = [height - (j & -j).bit_length() if 0 < j < n else -1 for j in range(capacity)]
    inner = jnp.arange(2 * capacity - 1)
    leafness = jnp.where((inner % 2 == 1) & (inner < 2 * n - 1), 0.5, 1.0).astype(jnp.float32)
    return eqx.tree_at(
        lambda m: (m.body.weight, m.body.bias, m.body.bud.weight, m.body.bud.bias, m.body.leafness.value, m.body.depth),
        network,
        (*layers, *dormant, leafness, jnp.asarray(depth, jnp.int32)),
    )


def named(network: Network) -> dict[str, jax.Array]:
    """The trained arrays by name; also those of a gradient or of any tree of the network's shape."""
    body = network.body
    gates = body.gate if hasattr(body, "gate") else body.leafness
    arrays = (network.embed.weight, network.head.weight, network.head.bias, body.weight, body.bias, gates.value)
    return dict(zip(["embed", "head", "head_bias", "weight", "bias", "gates"], arrays, strict=True))


def _against_torch(network: Network, theirs: torch_networks.Network, price: Callable, rate: float, repeats: int) -> dict:
    optimizer = torch_networks.adam(theirs, rate)
    x, y = (torch.tensor(np.asarray(a)) for a in DATA[:2])
    _copy(network, theirs)
    _check_same(network, theirs, price, optimizer, x, y)
    leaves = int(network.body.n_leaves) if hasattr(network.body, "leafness") else 0
    return _in_turns(
        {
            "meristem": _ours(_start(network, recipe=RECIPE, key=jax.random.key(2)), rate, leaves),
            "PyTorch": lambda: _clock(partial(torch_networks.epoch, theirs, price, optimizer, PENALTY, x, y))[0],
        },
        repeats,
    )


def _ours(state: TrainState, rate: float, leaves: int) -> Callable[[], float]:
    """A repeat of meristem's side: epochs as `fit` runs them, the news fetched after each."""
    knobs = _knobs(rate)

    def epoch() -> EpochInfo:
        nonlocal state
        state, info = _epoch(state, DATA, knobs, recipe=RECIPE)
        return jax.device_get(info)

    def run() -> float:
        times, infos = zip(*(_clock(epoch) for _ in range(OURS_PER_REPEAT)), strict=True)
        _must(all(i.opened == i.closed == 0 for i in infos), "the structure changed while the clock ran")
        _must(all(i.most_leaves == leaves for i in infos), f"there were not {leaves} live leaves all the time")
        return statistics.median(times)

    return run


def _in_turns(sides: dict[str, Callable[[], float]], repeats: int) -> dict[str, list[float]]:
    for run in sides.values():
        run()  # compiles, warms up
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(repeats):
        for name, run in sides.items():
            times[name].append(run())
    return times


def _clock(epoch: Callable[[], T]) -> tuple[float, T]:
    """The seconds per step, and what the epoch returned."""
    begin = time.perf_counter()
    result = epoch()
    return (time.perf_counter() - begin) / DATA.x.shape[0], result


def _knobs(rate: float) -> Knobs:
    return Knobs(jnp.float32(rate), jnp.float32(PENALTY))


def _copy(network: Network, theirs: torch_networks.Network) -> None:
    with torch.no_grad():
        for name, values in named(network).items():
            for tensor, row in zip(theirs.named()[name], _rows(name, values), strict=True):
                tensor.copy_(torch.tensor(row))
        if hasattr(network.body, "bud"):
            for j, bud in enumerate(torch_networks.buds(theirs)):
                bud.weight.copy_(torch.tensor(np.asarray(network.body.bud.weight[j])))
                bud.bias.copy_(torch.tensor(np.asarray(network.body.bud.bias[j])))


def _rows(name: str, values: jax.Array) -> list[np.ndarray]:
    """What is stacked in meristem is one tensor per layer or node in PyTorch."""
    stacked = name in ("weight", "bias", "gates")
    return list(np.asarray(values)) if stacked else [np.asarray(values)]


def _check_same(
    network: Network,
    theirs: torch_networks.Network,
    price: Callable,
    optimizer: torch.optim.Adam,
    x: torch.Tensor,
    y: torch.Tensor,
) -> None:
    """Outputs, gradients of J (with PyTorch's weight decay added, as Adam does) and rates; else the race means nothing."""
    _same("the outputs", jax.vmap(network)(DATA.x), theirs(x).detach())
    grads = eqx.filter_grad(objective.total)(network, DATA.x, DATA.y, kind="binary", penalty=PENALTY, l2=RECIPE.l2)
    torch_networks.objective(theirs, price, PENALTY, x, y).backward()
    group_of = {p: group for group in optimizer.param_groups for p in group["params"]}
    first = optimizer.param_groups[0]["lr"]  # that of depth 0
    depths = named(layer_depths(network))
    for name, ours in named(grads).items():
        tensors = theirs.named()[name]
        full = [p.grad + group_of[p]["weight_decay"] * p.detach() for p in tensors]
        _same(f"the gradients of {name!r}", np.stack(_rows(name, ours)), torch.stack(full))
        rates = [group_of[p]["lr"] / first for p in tensors]
        _same(f"the rates of {name!r}", RECIPE.depth_decay ** np.atleast_1d(np.asarray(depths[name])), torch.tensor(rates))


def _same(what: str, ours: object, theirs: torch.Tensor) -> None:
    ours, other = np.asarray(ours), theirs.numpy()
    gap = np.abs(ours - other).max() / np.abs(other).max()
    _must(ours.shape == other.shape and gap <= TOLERANCE, f"{what} of meristem and PyTorch differ by {gap:.1e} of the largest")


def _must(holds: bool, otherwise: str) -> None:
    if not holds:
        raise UnfairError(f"Not a fair race: {otherwise}.")
