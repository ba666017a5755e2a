"""A fair race: both sides do the same, and take turns.

Before the clock starts meristem's network and PyTorch's, with the same weights, must give the same outputs, the same gradient
and the same rate for every parameter. Then a repeat of a side is followed at once by a repeat of the next one, so that a slow
moment of the machine hits all.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import numpy as np
import torch

import torch_networks
from meristem.nn import Network
from meristem.train.epoch import cost
from meristem.train.hyperparameters import L2, Knobs, Recipe
from meristem.train.optimizer import layer_depths

TOLERANCE = 1e-5  # relative to the largest entry


class UnfairError(Exception):
    """Both sides do not do the same, or not what is claimed."""


def must(holds: bool, otherwise: str) -> None:
    if not holds:
        raise UnfairError(f"Not a fair race: {otherwise}.")


def in_turns(sides: dict[str, Callable[[], float]], repeats: int) -> dict[str, list[float]]:
    """What every side returns, `repeats` times, after one that does not count: it compiles, warms up."""
    for run in sides.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(repeats):
        for name, run in sides.items():
            times[name].append(run())
    return times


def match(
    network: Network,
    theirs: torch_networks.Network,
    optimizer: torch.optim.Adam,
    x: np.ndarray,
    y: np.ndarray,
    recipe: Recipe,
    penalty: float,
) -> None:
    """Copy the weights over, and check on the samples x [n, in] and y that both compute the same; else UnfairError."""
    _copy(network, theirs)
    with jax.default_matmul_precision("highest"):  # a GPU would round factors to 10 bits
        _check_same(network, theirs, optimizer, x, y, recipe, penalty)


def _named(network: Network) -> dict[str, jax.Array]:
    """The trained arrays by name; also those of a gradient or of any tree of the network's shape."""
    body = network.body
    gates = body.gate if hasattr(body, "gate") else body.leafness
    arrays = (network.embed.weight, network.head.weight, network.head.bias, body.weight, body.bias, gates.value)
    return dict(zip(["embed", "head", "head_bias", "weight", "bias", "gates"], arrays, strict=True))


def _copy(network: Network, theirs: torch_networks.Network) -> None:
    with torch.no_grad():
        for name, values in _named(network).items():
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
    optimizer: torch.optim.Adam,
    x: np.ndarray,
    y: np.ndarray,
    recipe: Recipe,
    penalty: float,
) -> None:
    """Outputs, gradients of J (with PyTorch's weight decay added, as Adam does) and rates; else the race means nothing."""
    their_x, their_y = (torch.tensor(a, device=theirs.embed.weight.device) for a in (x, y))
    _same("the outputs", jax.vmap(network)(x), theirs(their_x).detach())
    grads = eqx.filter_grad(cost)(network, x, y, Knobs(1e-3, penalty, L2), recipe)
    torch_networks.objective(theirs, penalty, their_x, their_y, recipe.task.name).backward()
    group_of = {p: group for group in optimizer.param_groups for p in group["params"]}
    first = optimizer.param_groups[0]["lr"]  # that of depth 0
    depths = _named(layer_depths(network))
    for name, ours in _named(grads).items():
        tensors = theirs.named()[name]
        full = [p.grad + group_of[p]["weight_decay"] * p.detach() for p in tensors]
        _same(f"the gradients of {name!r}", np.stack(_rows(name, ours)), torch.stack(full))
        rates = [group_of[p]["lr"] / first for p in tensors]
        _same(f"the rates of {name!r}", recipe.depth_decay ** np.atleast_1d(np.asarray(depths[name])), torch.tensor(rates))


def _same(what: str, ours: object, theirs: torch.Tensor) -> None:
    ours, other = np.asarray(ours), theirs.cpu().numpy()
    must(ours.shape == other.shape, f"{what} of meristem have the shape {ours.shape}, those of PyTorch {other.shape}")
    gap = np.abs(ours - other).max() / np.abs(other).max()
    must(gap <= TOLERANCE, f"{what} of meristem and PyTorch differ by {gap:.1e} of the largest")
