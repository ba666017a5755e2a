"""What a network became, drawn by matplotlib: units layer by layer, or its tree, as notebooks and reports draw it, too.

    plot_structure(model, X=X) → Axes

Which of the two is drawn, and what is said, follows from the body's structure (show/network_structure.py): any body is drawn.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meristem.nn import Network
from meristem.nn.body import Body, bodies_of
from meristem.nn.concrete import check_concrete, check_values
from meristem.nn.structure import Nodes
from meristem.pictures.advice import not_drawn
from meristem.pictures.bag import first_of
from meristem.pictures.canvas import canvas, inches, titled
from meristem.pictures.shapes import POINTS, render_shapes
from meristem.pictures.sheet import Axes
from meristem.show.network_structure import Stage, stages_of
from meristem.show.shape_drawing import Drawing
from meristem.show.structure_layout import WIDTH, draw, with_legend

SCALE = 0.85  # points for a pixel of the drawing, in a figure of ours
WIDTHS = 6.0, 7.4  # the least and the largest width of such a drawing, in inches


def plot_structure(model: Any, *, X: Any = None, ax: Any = None) -> Axes:
    """Draw an estimator's network, any Network, or the first body of a model of one's own, and return the Axes.

    A stack of layers has a row per layer, a cell for each unit, from the most open to the closed ones; a layer whose units are
    all closed copies its input, and says so. A highway's gates depend on its input: they are averaged over `X` [samples,
    features], or without it those that the biases alone would give are drawn. A budding perceptron is a tree: its leaves are
    the layers, in the order of their use, an inner node has its γ written in it; above a root that may copy its input stands
    γ₀. Inputs, outputs and, where its width is learned, the trunk are rows of their own. Of an estimator that is a bag of
    networks the first is drawn; any other is drawn of `model.estimators_[1]`.

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
        inputs = None if X is None else jax.vmap(network.embedded)(jnp.asarray(_features(model, network, X)))
        body, stages = network.body, stages_of(network, inputs)
    else:
        body, which = _first_body(model)
        stages = stages_of(body, None if X is None else jnp.asarray(X))
    kind = "perceptron" if isinstance(stages[0].structure, Nodes) else "network"
    name = f"{type(body).__name__} {kind} {which}".rstrip()
    drawing = _drawing(stages, WIDTHS[1])
    size = max(WIDTHS[0], SCALE * drawing.width / POINTS), SCALE * drawing.height / POINTS
    with canvas("ax", ax, size=(size[0] + 0.2, size[1] + 0.7)) as (axes,):
        if ax is not None:
            size = inches(axes)
            drawing = _drawing(stages, size[0])
        render_shapes(axes, drawing, size)
        titled(axes, name, drawing.title, pad=10)
    return axes


def _drawing(stages: list[Stage], width: float) -> Drawing:
    """The drawing for so many inches."""
    return with_legend(draw(stages, width=max(WIDTH, POINTS * width / SCALE)))


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
