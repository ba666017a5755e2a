"""What a network became: its gates as a heat map (`gates.py`), or its tree (`tree.py`)."""

from typing import Any

import jax
import numpy as np

from meristem.compact.lower import check_concrete
from meristem.pictures.sheet import Axes
from meristem.nn import Budding, Highway, Network, Residual, Tunnel
from meristem.pictures.advice import not_drawn
from meristem.pictures.gates import GatePicture, draw_gates
from meristem.pictures.tree import draw_tree

BLOCK = 4096  # samples
RANGE = "0 copies, 1 transforms"
SOFT = "soft size\n(Σ gates)"


def plot_structure(model: Any, *, X: Any = None, ax: Any = None) -> Axes:
    """Draw an estimator's network, or any Network, and return the Axes.

    A stack of layers is a heat map of its gates, a layer per row, its units from the most open to the closed ones; a layer
    whose units are all closed copies its input, and says so. A highway's gates depend on its input: they are averaged over
    `X` [samples, features], or without it those that the biases alone would give are drawn. A budding perceptron is a tree:
    its leaves are the layers, in the order of their use, an inner node has its γ written in it.

    >>> import jax
    >>> from matplotlib.figure import Figure
    >>> network = Network.create("tunnel", n_in=2, n_out=1, depth=3, key=jax.random.key(0))
    >>> plot_structure(network, ax=Figure().subplots()).get_title()
    'Tunnel network: no unit is open'
    """
    network = _network(model)
    body = network.body
    if isinstance(body, Budding):
        return draw_tree(body, ax)
    if isinstance(body, Tunnel):
        return draw_gates(_tunnel(np.asarray(body.gate.value)), ax)
    if isinstance(body, Highway):
        return draw_gates(_highway(network, body, None if X is None else _features(model, network, X)), ax)
    return draw_gates(_fixed(body), ax)


def _network(model: Any) -> Network:
    network = getattr(model, "network_", model)
    if not isinstance(network, Network):
        raise not_drawn("plot_structure()", "a fitted estimator of meristem or a Network", model)
    check_concrete("plot_structure()", network)
    return network


def _tunnel(gates: np.ndarray) -> GatePicture:
    n_open = int((gates > 0).sum())
    told = f"soft size {gates.sum():.1f}, {n_open} of {gates.size} units open" if n_open else "no unit is open"
    label = f"gate: {RANGE}; grey: closed, exactly 0"
    return GatePicture(gates, ("Tunnel network", told), label, SOFT, "open units\n(gate > 0)", gates > 0)


def _highway(network: Network, body: Highway, inputs: np.ndarray | None) -> GatePicture:
    if inputs is None:
        gates = np.asarray(jax.nn.sigmoid(body.gate_bias))
        told, summed = f"{gates.size} units, gates of the biases alone", "Σ gates"
        label = f"gate without an input: {RANGE}; X=… draws the mean gate"
    else:
        total = jax.jit(lambda x: jax.vmap(body.gates)(jax.vmap(network.embed)(x)).sum(0))
        blocks = [inputs[start : start + BLOCK] for start in range(0, len(inputs), BLOCK)]
        gates = np.sum([total(block) for block in blocks], 0) / len(inputs)
        told, summed = f"soft size {gates.sum():.1f} of {gates.size} units", SOFT
        label = f"mean gate over {len(inputs)} samples: {RANGE}"
    return GatePicture(gates, ("Highway network", told), label, summed, "units with\ngate > ½", gates > 0.5)


def _fixed(body: Any) -> GatePicture:
    """As if all gates were 1: every unit counts."""
    gates = np.ones(body.bias.shape)
    name, rest = ("Residual", ", each added to its input") if isinstance(body, Residual) else ("Plain", " without gates")
    told = f"{gates.shape[0]} × {gates.shape[1]} units{rest}"
    return GatePicture(gates, (f"{name} network", told), None, "soft size", "units", gates > 0)


def _features(model: Any, network: Network, X: Any) -> np.ndarray:
    """As the network takes them: an estimator standardizes."""
    x = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
    n_in = network.embed.weight.shape[1]
    if x.ndim != 2 or x.shape[1] != n_in or not len(x) or x.dtype.kind not in "fiub":
        raise ValueError(f"X has shape {x.shape} and type {x.dtype}; it must be numbers [samples, {n_in}].")
    return model._scaling_(x) if model is not network else x.astype(np.float32)
