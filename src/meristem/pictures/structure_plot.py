"""The structure of a network, drawn with matplotlib from the drawing of notebooks and reports (show/structure_drawing.py)."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meristem.nn import Network
from meristem.nn.body import bodies_of
from meristem.nn.compaction import check_concrete, check_values
from meristem.nn.structure import Nodes
from meristem.pictures.figure_style import Axes, axes_inches, canvas, first_estimator, not_drawable, set_title
from meristem.show.network_structure import stages_of
from meristem.show.structure_drawing import COLORS, WIDTH, Circle, Drawing, Line, Rect, Text, draw, with_legend

POINTS_PER_INCH = 72
SCALE = 0.85  # points per pixel of the drawing, in a new figure
MAX_SCALE = 0.95
MIN_WIDTH, MAX_WIDTH = 6.0, 7.4  # inches, of a new figure


def plot_structure(model: Any, *, X: Any = None, ax: Any = None) -> Axes:
    """Draw an estimator's network, any Network, or the first body of a model of one's own, and return the Axes.

    A stack of layers has a row per layer and a cell for each unit, from the most open to the closed ones; a layer whose units
    are all closed copies its input, and says so. A highway's gates depend on its input: they are averaged over `X` [samples,
    features]; without it those of the biases alone are drawn. A budding perceptron is a tree: its leaves are the layers, in
    the order of their use, an inner node shows its γ; above a root that may copy its input stands γ₀. Inputs, outputs and,
    where its width is learned, the trunk are rows of their own. Of a bag of networks the first is drawn; pass
    `model.estimators_[1]` for another.

    >>> import jax
    >>> from matplotlib.figure import Figure
    >>> network = Network.create("tunnel", n_in=2, n_out=1, depth=3, key=jax.random.key(0))
    >>> plot_structure(network, ax=Figure().subplots()).get_title()
    'Tunnel network: no unit is open'
    """
    model, position = first_estimator(model)
    network = getattr(model, "network_", model)
    if isinstance(network, Network):
        check_concrete("plot_structure()", network)
        inputs = None if X is None else jax.vmap(network.embedded)(jnp.asarray(_network_inputs(model, network, X)))
        body, stages = network.body, stages_of(network, inputs)
    else:
        bodies = bodies_of(model) if isinstance(model, eqx.Module) else []
        if not bodies:
            drawable = "a fitted estimator of meristem, a Network, or a model with bodies in it"
            raise not_drawable("plot_structure()", drawable, model)
        check_values("plot_structure()", bodies[0])
        body, position = bodies[0], f"(1 of {len(bodies)})" if len(bodies) > 1 else ""
        stages = stages_of(body, None if X is None else jnp.asarray(X))
    kind = "perceptron" if isinstance(stages[0].structure, Nodes) else "network"
    drawing = with_legend(draw(stages, width=max(WIDTH, POINTS_PER_INCH * MAX_WIDTH / SCALE)))
    width, height = (SCALE * pixels / POINTS_PER_INCH for pixels in (drawing.width, drawing.height))
    size = max(MIN_WIDTH, width), height
    with canvas("ax", ax, size=(size[0] + 0.2, size[1] + 0.7)) as (axes,):
        if ax is not None:
            size = axes_inches(axes)
            drawing = with_legend(draw(stages, width=max(WIDTH, POINTS_PER_INCH * size[0] / SCALE)))
        render(axes, drawing, size)
        set_title(axes, f"{type(body).__name__} {kind} {position}".rstrip(), drawing.title, pad=10)
    return axes


def _network_inputs(model: Any, network: Network, X: Any) -> np.ndarray:
    """Return X as the network takes it, standardized if the model is an estimator."""
    x = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
    n_in = network.input_shape[0] if model is network else model.n_features_in_
    if x.ndim != 2 or x.shape[1] != n_in or not len(x) or x.dtype.kind not in "fiub":
        raise ValueError(f"X has shape {x.shape} and type {x.dtype}; it must be numbers [samples, {n_in}].")
    return model._inputs_(x) if model is not network else x.astype(np.float32)


def render(ax: Axes, drawing: Drawing, inches: tuple[float, float]) -> None:
    """Draw the shapes at the upper edge of axes of that size, as large as fits; text has the color of the current style."""
    import matplotlib
    from matplotlib import patches

    width, height = (POINTS_PER_INCH * length for length in inches)
    scale = min(MAX_SCALE, width / drawing.width, height / drawing.height)
    margin = (width / scale - drawing.width) / 2
    ax.set(xlim=(-margin, drawing.width + margin), ylim=(height / scale, 0), xticks=[], yticks=[])
    ax.set_aspect("equal")
    ax.spines[:].set_visible(False)
    for shape in drawing.shapes:
        color = COLORS[shape.color]
        if color == "currentColor":
            color = matplotlib.rcParams["text.color"]
        match shape:
            case Rect(x, y, width, height, _, opacity):
                alpha = opacity if opacity < 1 else None
                ax.add_patch(patches.Rectangle((x, y), width, height, facecolor=color, alpha=alpha, linewidth=0, clip_on=False))
            case Circle(x, y, radius, _, stroke):
                ring = {"fill": False, "edgecolor": color, "linewidth": stroke * scale}
                ax.add_patch(patches.Circle((x, y), radius, clip_on=False, **ring))
            case Line(x1, y1, x2, y2, _, stroke):
                style = {"color": color, "linewidth": stroke * scale, "solid_capstyle": "round", "clip_on": False}
                ax.plot([x1, x2], [y1, y2], scalex=False, scaley=False, **style)
            case Text(x, y, words, _, anchor, size):
                align = {"start": "left", "middle": "center", "end": "right"}[anchor]
                ax.text(x, y, words, color=color, ha=align, va="baseline", fontsize=size * scale)
