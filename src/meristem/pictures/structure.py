"""What a network became: its gates as a heat map (`gates.py`), or its tree (`tree.py`), as its body shows them.

Which of the two is drawn, and what is said, follows from `structure(body)` (`nn/structure.py`); so any body is drawn.
"""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meristem.complexity import hard_size, soft_size
from meristem.nn import Network
from meristem.nn.body import Body, bodies_of
from meristem.nn.concrete import check_concrete, check_values
from meristem.nn.structure import Gates, Nodes, structure
from meristem.pictures.advice import not_drawn
from meristem.pictures.bag import first_of
from meristem.pictures.gates import GatePicture, draw_gates
from meristem.pictures.sheet import Axes
from meristem.pictures.strips import strips_of, strips_of_trunk
from meristem.pictures.tree import draw_tree

RANGE = "0 copies, 1 transforms"
SOFT = "soft size\n(Σ gates)"


def plot_structure(model: Any, *, X: Any = None, ax: Any = None) -> Axes:
    """Draw an estimator's network, any Network, or the first body of a model of one's own, and return the Axes.

    A stack of layers is a heat map of its gates, a layer per row, its units from the most open to the closed ones; a layer
    whose units are all closed copies its input, and says so. A highway's gates depend on its input: they are averaged over
    `X` [samples, features], or without it those that the biases alone would give are drawn. A budding perceptron is a tree:
    its leaves are the layers, in the order of their use, an inner node has its γ written in it; above a root that may copy
    its input stands γ₀. Where the width of the trunk is learned, or inputs may close, a strip shows how open each of them is.
    Of an estimator that is a bag of networks the first is drawn; any other is drawn of `model.estimators_[1]`.

    >>> import jax
    >>> from matplotlib.figure import Figure
    >>> network = Network.create("tunnel", n_in=2, n_out=1, depth=3, key=jax.random.key(0))
    >>> plot_structure(network, ax=Figure().subplots()).get_title()
    'Tunnel network: no unit is open'
    """
    model, which = first_of(model)
    network = getattr(model, "network_", model)
    if isinstance(network, Network):
        check_concrete("plot_structure()", network)
        body, width, strips = network.body, network.width, strips_of(network)
        inputs = None if X is None else jax.vmap(network.embedded)(jnp.asarray(_features(model, network, X)))
    else:
        body, which = _first_body(model)
        inputs = None if X is None else jnp.asarray(X)
        width, strips = int(getattr(body, "width", 0)), strips_of_trunk(body)
    shown = structure(body, inputs)
    name = type(body).__name__
    if isinstance(shown, Nodes):
        words = _tree_words(body, shown, width)
        return draw_tree(shown, (f"{name} perceptron {which}".rstrip(), words), ax, strips)
    picture = _gate_picture(shown, f"{name} network {which}".rstrip(), 0 if inputs is None else len(inputs))
    return draw_gates(replace(picture, strips=strips), ax)


def _first_body(model: Any) -> tuple[Body, str]:
    """The first body of a model of one's own, and which of how many it is."""
    bodies = bodies_of(model) if isinstance(model, eqx.Module) else []
    if not bodies:
        raise not_drawn("plot_structure()", "a fitted estimator of meristem, a Network, or a model with bodies in it", model)
    check_values("plot_structure()", bodies[0])
    return bodies[0], f"(1 of {len(bodies)})" if len(bodies) > 1 else ""


def _features(model: Any, network: Network, X: Any) -> np.ndarray:
    """As the network takes them: an estimator standardizes."""
    x = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
    n_in = network.input_shape[0] if model is network else model.n_features_in_
    if x.ndim != 2 or x.shape[1] != n_in or not len(x) or x.dtype.kind not in "fiub":
        raise ValueError(f"X has shape {x.shape} and type {x.dtype}; it must be numbers [samples, {n_in}].")
    return model._inputs_(x) if model is not network else x.astype(np.float32)


def _tree_words(body: Body, nodes: Nodes, width: int) -> str:
    soft, hard = float(soft_size(body, jnp.zeros((1, width)))), int(hard_size(body))
    if hard == 0:
        return "a copy of its input, soft size 0, hard size 0"
    layers = "a single layer" if nodes.n_leaves == 1 else f"{nodes.n_leaves} layers"
    return f"{layers}, soft size {1 if soft == 1 else format(soft, '.2f')}, hard size {hard}"


def _gate_picture(gates: Gates, name: str, samples: int) -> GatePicture:
    """What is said of gates, by where they come from."""
    values = gates.values
    is_open = values > 0
    layers, units = len(values), is_open.sum(1).max()
    label: str | None = None
    summed, counted, is_counted = SOFT, "units with\ngate > ½", values > 0.5
    if gates.source == "parameters":
        words = (
            f"soft size {values.sum():.1f}, {is_open.sum()} of {values.size} units open" if is_open.any() else "no unit is open"
        )
        label, counted, is_counted = f"gate: {RANGE}; grey: closed, exactly 0", "open units\n(gate > 0)", is_open
    elif gates.source == "inputs":
        words = f"soft size {values.sum():.1f} of {is_open.sum()} units"
        label = f"mean gate over {samples} samples: {RANGE}"
    elif gates.source == "biases":
        words, summed = f"{is_open.sum()} units, gates of the biases alone", "Σ gates"
        label = f"gate without an input: {RANGE}; X=… draws the mean gate"
    else:  # as if all gates were 1: every unit counts
        words, summed, counted, is_counted = f"{layers} × {units} units", "soft size", "units", is_open
    remark = f" {gates.remark}" if label is None else f", {gates.remark}"
    return GatePicture(values, (name, words + remark * bool(gates.remark)), label, summed, counted, is_counted)
