"""Pictures of fitted estimators: what is drawn is what was trained, on any axes, and nothing else is touched."""

import copy
import html
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.datasets import load_iris, make_friedman1, make_moons
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from meristem import hard_size, soft_size
from meristem.estimators import BuddingRegressor, HighwayClassifier, TunnelClassifier, TunnelClassifierCV
from meristem.nn import Network, structure
from meristem.pictures import plot_decision_boundary, plot_frontier, plot_growth, plot_structure
from meristem.pictures.growth_plot import draw_growth
from meristem.pictures.image_files import page_svg
from meristem.show.network_structure import nodes_of, stages_of, tree_size
from meristem.show.structure_drawing import Circle, Line, Rect, Text, draw, gamma_text
from own_body import own_network

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed (pip install 'meristem-nn[cli]')")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

SMALL: dict[str, Any] = {"width": 6, "batch_size": 25, "settle": False, "random_state": 0}
MOONS = make_moons(100, noise=0.2, random_state=0)
IRIS = load_iris()
FRIEDMAN = (lambda X, y: (X[:, :2], y))(*make_friedman1(100, random_state=0))


@pytest.fixture(autouse=True)
def tidy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is shown, settings are put back, figures are closed."""
    monkeypatch.setattr(plt, "show", lambda *args, **kwargs: pytest.fail("plt.show() was called"))
    before = dict(matplotlib.rcParams)
    yield
    assert dict(matplotlib.rcParams) == before
    plt.close("all")


def fitted(model: Any, X: Any, y: Any, **options) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a few epochs are too few, and it says so
        return model.fit(X, y, **options)


@pytest.fixture(scope="module")
def tunnel() -> TunnelClassifier:
    options = {"depth": 3, "max_epochs": 40, "patience": 2, "learning_rate": 0.03}
    X, y = MOONS
    return fitted(TunnelClassifier(**SMALL, **options), X[::2], y[::2], validation=(X[1::2], y[1::2]))


@pytest.fixture(scope="module")
def highway() -> HighwayClassifier:
    return fitted(HighwayClassifier(**SMALL, depth=2, max_epochs=3), *MOONS)


@pytest.fixture(scope="module")
def budding() -> BuddingRegressor:
    return fitted(BuddingRegressor(**SMALL, max_epochs=15, max_leaves=4, penalty=1e-6), *FRIEDMAN)


@pytest.fixture(scope="module")
def iris() -> TunnelClassifier:
    return fitted(TunnelClassifier(**SMALL, depth=1, max_epochs=8), IRIS.data[:, 2:], IRIS.target_names[IRIS.target])


def lines(ax: Any) -> dict[str, Any]:
    return {line.get_label(): line for line in ax.lines}


def curves(ax: Any, epochs: int) -> list[np.ndarray]:
    """The lines over all epochs, as drawn."""
    found = [line for line in ax.lines if np.array_equal(line.get_xdata(), np.arange(1, epochs + 1))]
    return [line.get_ydata() for line in found]


def dashed(ax: Any) -> list[float]:
    return [line.get_xdata()[0] for line in ax.lines if line.get_linestyle() == "--"]


def texts(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.texts]


# Growth ---------------------------------------------------------------------------------------------------------------------


def test_growth_of_a_stack_is_its_history(tunnel):
    losses, sizes = plot_growth(tunnel)
    history, epochs = tunnel.history_, tunnel.n_iter_
    assert np.array_equal(lines(losses)["training"].get_ydata(), history["loss"])
    assert np.array_equal(lines(losses)["validation"].get_ydata(), history["dev_loss"])
    total, *layers = curves(sizes, epochs)
    assert np.array_equal(total, history["soft_size"])
    assert np.array_equal(layers[::-1], history["layer_sizes"].T)
    assert [ax.get_xlabel() for ax in (losses, sizes)] == ["", "epoch"]


def test_growth_marks_rate_changes_and_the_kept_model(tunnel):
    losses, sizes = plot_growth(tunnel)
    changes = np.flatnonzero(np.diff(tunnel.history_["rate"])) + 1.5
    assert changes.size
    assert dashed(losses) == dashed(sizes) == changes.tolist()
    assert texts(losses) == ["0.009", "0.003"][: changes.size]
    ring = lines(losses)["kept model"]
    kept = tunnel.best_epoch_
    assert (ring.get_xdata()[0], ring.get_ydata()[0]) == (kept, tunnel.history_["dev_loss"][kept - 1])
    assert f"epoch {kept} of {tunnel.n_iter_}" in losses.get_title()
    legend = [text.get_text() for text in losses.get_legend().get_texts()]
    assert legend == ["training", "validation", "all layers", "kept model", "rate changes"]


def test_growth_of_a_tree_is_its_history(budding):
    losses, sizes = plot_growth(budding)
    assert "validation" not in lines(losses)  # there was none
    assert np.array_equal(lines(sizes)["hard size"].get_ydata(), budding.history_["hard_size"])
    assert np.array_equal(lines(sizes)["soft size"].get_ydata(), budding.history_["soft_size"])
    assert sizes.get_ylim()[0] <= 0


def test_growth_shows_rates_that_rise_again(tunnel):
    """As they do where fit() goes on from where it was."""
    rate = np.repeat([0.03, 0.009, 0.03], [4, 2, tunnel.n_iter_ - 6])
    losses, sizes = plot_growth(changed(tunnel, rate=rate))
    assert dashed(losses) == dashed(sizes) == [4.5, 6.5]


def test_growth_of_a_single_epoch_is_seen(tunnel):
    model = changed(tunnel, **{name: values[:1] for name, values in tunnel.history_.items()})
    model.best_epoch_ = 1
    losses, sizes = plot_growth(model)
    assert lines(losses)["training"].get_marker() == "."
    assert losses.get_xlim() == sizes.get_xlim() == (0.5, 1.5)
    assert [tick for tick in sizes.get_xticks() if 0.5 < tick < 1.5] == [1]


def test_losses_of_different_magnitude_are_drawn_on_a_log_scale(tunnel):
    for last, scale in [(1e-4, "log"), (0.2, "linear")]:
        loss = np.geomspace(1, last, tunnel.n_iter_)
        assert plot_growth(changed(tunnel, loss=loss, dev_loss=loss))[0].get_yscale() == scale


def test_a_growth_without_a_finite_epoch_has_no_ring(tunnel):
    nothing = np.full(tunnel.n_iter_, np.nan)
    model = changed(tunnel, loss=nothing, dev_loss=nothing)
    model.best_epoch_ = 0
    losses, _ = plot_growth(model)
    assert "kept model" not in lines(losses) and "no epoch was finite" in losses.get_title()


def test_growth_of_several_networks_is_a_line_each(tunnel, budding):
    losses, sizes = plt.figure().subplots(2, 1)
    draw_growth((losses, sizes), [tunnel, budding])
    for ax, name in ((losses, "dev_loss"), (sizes, "soft_size")):
        drawn = [line.get_ydata() for line in ax.lines if len(line.get_ydata()) > 1]
        assert all(np.array_equal(own, model.history_[name]) for own, model in zip(drawn, (tunnel, budding), strict=True))
        assert len(ax.lines) == 4  # and two rings
    assert [text.get_text() for text in losses.get_legend().get_texts()] == ["kept model"]


def test_a_figure_of_a_page_has_the_pages_colors_and_ids_of_its_own(tunnel):
    one, other, again = (
        page_svg(name, "a < b", "1 & 2", lambda *axes: draw_growth(axes, [tunnel]), rows=2) for name in ("one", "other", "one")
    )
    assert one == again, "to the byte"
    names = [re.findall(r' id="([^"]*)"', text) for text in (one, other)]
    assert len(set(names[0])) == len(names[0]) and not set(names[0]) & set(names[1])
    assert set(re.findall(r'(?:href="|url\()#([\w-]+)', one)) <= set(names[0])
    used = set(re.findall(r"(?:fill|stroke): ([^;\"]*)", one))
    assert all(color == "none" or "var(--" in color for color in used), used
    assert "a &lt; b" in one and "1 &amp; 2" in one and "http" not in one and "font-family" not in one


@pytest.mark.parametrize("text", ["$x^2$", "#ffffff", "3.14159", "</text>", "url(#a)"])
def test_a_text_in_a_figure_of_a_page_is_what_it_was(text):
    figure = page_svg("one", "", "", lambda ax: ax.set_xlabel(text, parse_math=False))
    assert f">{html.escape(text, quote=False)}</text>" in figure


def changed(model: Any, **history: np.ndarray) -> Any:
    """An estimator with another past."""
    other = copy.copy(model)
    other.history_ = model.history_ | history
    return other


# Structure ------------------------------------------------------------------------------------------------------------------


def drawn(model: Any, **options: Any) -> Any:
    """The drawing of a network, as it is data."""
    return draw(stages_of(getattr(model, "network_", model)), **options)


def of_kind(drawing: Any, kind: type) -> list[Any]:
    return [shape for shape in drawing.shapes if isinstance(shape, kind)]


def rows(drawing: Any) -> dict[str, list[str]]:
    """Name → numbers of each row of cells."""
    lines: dict[float, list[str]] = {}
    for text in of_kind(drawing, Text):
        lines.setdefault(text.y, []).append(text.words)
    return {name: numbers for name, *numbers in lines.values() if numbers}


def opacities(drawing: Any) -> list[list[float]]:
    """Of the cells of each layer."""
    layers: dict[float, list[float]] = {}
    for cell in of_kind(drawing, Rect):
        layers.setdefault(cell.y, []).extend([cell.opacity] if cell.color == "s1" else [])
    return [cells for _, cells in sorted(layers.items())]


def expected(gates: Any) -> list[list[float]]:
    """The opacities of such gates, without the rows of inputs and outputs."""
    return [[], *([round(0.3 + 0.7 * float(gate), 2) for gate in sorted(row, reverse=True) if gate > 0] for row in gates), []]


def test_a_tunnel_is_rows_of_its_sorted_gates(tunnel):
    drawing, ax = drawn(tunnel), plot_structure(tunnel)
    gates = np.asarray(tunnel.network_.body.gate.value)
    assert opacities(drawing) == expected(gates)
    for layer, gate in enumerate(gates):
        numbers = [f"{(gate > 0).sum()} of {gate.size}", f"{gate.sum():.2f}"]
        assert rows(drawing)[f"layer {layer + 1}"] == numbers and set(numbers) <= set(texts(ax))
    assert rows(drawing)["inputs"] == ["2"] and rows(drawing)["outputs"] == ["1"]
    assert f"soft size {tunnel.soft_size_:.1f}, {tunnel.hard_size_} of {gates.size} units open" in ax.get_title()


def test_matplotlib_draws_every_shape_within_the_axes(tunnel):
    for model in (tunnel, tree(8, 5, 0)):
        for ax in (plot_structure(model), plot_structure(model, ax=plt.figure().subplots(2, 2)[0, 0])):
            drawing = drawn(model, width=400)
            words = [text.words for text in of_kind(drawing, Text)]
            assert texts(ax)[: len(words)] == words and "".join(texts(ax)[len(words) :]).replace(" ", "") == (
                drawing.legend.replace(" ", "")
            )
            assert len(ax.patches) == len(of_kind(drawing, Rect)) + len(of_kind(drawing, Circle))
            assert len(ax.lines) == len(of_kind(drawing, Line))
            (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
            for text in ax.texts:
                x, y = text.get_position()
                assert left <= x <= right and top <= y <= bottom


def test_a_closed_layer_copies_its_input(tunnel):
    network = eqx.tree_at(lambda n: n.body.gate.value, tunnel.network_, tunnel.network_.body.gate.value.at[1].set(0))
    assert [row for row, numbers in rows(drawn(network)).items() if numbers[0] == "0 of 6"] == ["layer 2"]
    wide = Network.create("tunnel", 2, 1, width=12, depth=2, key=jax.random.key(0))
    assert texts(plot_structure(wide)).count("copies its input") == 2


def test_a_highways_gates_are_averaged_over_the_data_as_the_estimator_sees_them(highway):
    network, x = highway.network_, highway._inputs_(MOONS[0])
    mean = jax.vmap(network.body.gates)(jax.vmap(network.embed)(x)).mean(0)
    ax = plot_structure(highway, X=MOONS[0])
    sums = [f"{row.sum():.2f}" for row in mean]
    assert set(sums) <= set(texts(ax)) and f"soft size {highway.soft_size_:.1f} of 12 units" in ax.get_title()
    assert texts(plot_structure(network, X=x)) == texts(ax)


def test_a_highway_without_data_shows_its_biases(highway):
    ax = plot_structure(highway)
    bias = np.asarray(jax.nn.sigmoid(highway.network_.body.gate_bias))
    assert opacities(drawn(highway)) == expected(bias)
    assert "biases alone" in ax.get_title() and "soft size" not in ax.get_title()


@pytest.mark.parametrize(("kind", "remark"), [("plain", "3 × 4 units without gates"), ("residual", "each added to its input")])
def test_networks_of_fixed_size_are_all_open(kind, remark):
    network = Network.create(kind, 2, 1, width=4, depth=3, key=jax.random.key(0))
    assert opacities(drawn(network)) == expected(np.ones((3, 4))) and remark in plot_structure(network).get_title()


def test_many_layers_are_numbered_sparsely():
    network = Network.create("tunnel", 2, 1, width=150, depth=60, key=jax.random.key(0))
    network = eqx.tree_at(lambda n: n.body.gate.value, network, jax.random.uniform(jax.random.key(1), (60, 150)))
    drawing = drawn(network)
    bases = sorted({text.y for text in of_kind(drawing, Text)})
    assert min(np.diff(bases)) > 10 and drawing.height < 450 and drawing.width <= 350
    assert len(of_kind(drawing, Rect)) < 60 * 6 + 10  # units of one shade are drawn together
    assert sum(shape.width for shape in of_kind(drawing, Rect) if shape.color == "s1") == pytest.approx(
        sum(shape.width for shape in of_kind(drawing, Rect) if shape.color == "line" and shape.height < 10)
    )


@pytest.mark.parametrize("depth", range(1, 90, 4))
def test_rows_of_any_number_have_texts_that_do_not_overlap(depth):
    network = Network.create("plain", 100_000, 1, width="auto", max_width=8, depth=depth, key=jax.random.key(0))
    drawing = drawn(network)
    bases = sorted({text.y for text in of_kind(drawing, Text)})
    assert min(np.diff(bases)) > 10 and drawing.width <= 350
    assert {"inputs", "trunk", "layer 1", "outputs"} <= set(rows(drawing)) and rows(drawing)["inputs"] == ["100,000"]


def test_stages_stand_one_below_the_other_with_their_titles(tunnel, budding):
    stages = [
        stage._replace(title=f"stage {place}")
        for place, model in enumerate((tunnel, budding, tunnel), 1)
        for stage in stages_of(model.network_)
    ]
    drawing, single = draw(stages), drawn(tunnel)
    titles = [text for text in of_kind(drawing, Text) if text.words.startswith("stage ")]
    assert [text.words.partition(":")[0] for text in titles] == ["stage 1", "stage 2", "stage 3"]
    assert "soft size" in titles[0].words
    assert [text.y for text in titles] == sorted(text.y for text in titles)
    assert drawing.height > 2 * single.height and drawing.title == "3 stages"
    assert drawing.legend.count("Each cell is a unit") == 1


def tree(capacity: int, leaves: int, seed: int) -> Network:
    """A budding network with a random tree of that many leaves."""
    rng = np.random.default_rng(seed)
    depth, gamma = np.full(capacity, -1, np.int32), np.ones(2 * capacity - 1, np.float32)

    def split(first: int, last: int, level: int) -> None:
        if first < last:
            middle = int(rng.integers(first + 1, last + 1))
            depth[middle], gamma[2 * middle - 1] = level, rng.uniform()
            split(first, middle - 1, level + 1)
            split(middle, last, level + 1)

    split(0, leaves - 1, 0)
    network = Network.create("budding", 2, 1, width=3, capacity=capacity, key=jax.random.key(0))
    return eqx.tree_at(
        lambda n: (n.body.depth, n.body.leafness.value), network, (jnp.asarray(depth), jnp.asarray(gamma, jnp.float32))
    )


@pytest.mark.parametrize(("capacity", "leaves", "seed"), [(4, 1, 0), (4, 4, 1), (8, 5, 2), (8, 6, 3), (16, 16, 4)])
def test_the_drawn_tree_is_the_tree(capacity, leaves, seed):
    body = tree(capacity, leaves, seed).body
    nodes = nodes_of(structure(body))
    assert [node.place for node in nodes] == list(range(2 * leaves - 1))
    children = [child for node in nodes for child in node.children]
    (root,) = set(range(len(nodes))) - set(children)  # everyone else is somebody's child
    assert len(children) == len(set(children)) == len(nodes) - 1 and nodes[root].depth == 0
    for node in nodes:
        assert bool(node.children) == (node.place % 2 == 1)
        assert node.gamma == float(body.leafness.value[node.place])
        if node.children:
            left, right = (nodes[child] for child in node.children)
            assert left.place < node.place < right.place and left.depth == right.depth == node.depth + 1
            assert node.layer == left.layer and right.layer == (node.place + 1) // 2  # tied weights, and its own
    assert tree_size(structure(body)) == pytest.approx(float(soft_size(body, jnp.zeros((1, 3)))), rel=1e-5)


def test_every_node_is_drawn_once():
    network = tree(8, 5, 0)
    drawing, nodes = drawn(network), nodes_of(structure(network.body))
    rings, leaves = of_kind(drawing, Circle), squares(drawing)
    assert (len(rings), len(leaves)) == (4, 5) and len(rings) + len(leaves) == int(hard_size(network))
    labels = [gamma_text(node.gamma) if node.children else f"W{'₁₂₃₄₅'[node.layer]}" for node in nodes]
    ordered = sorted((text for text in of_kind(drawing, Text) if text.anchor == "middle"), key=lambda text: text.x)
    assert [text.words for text in ordered] == labels
    assert len(of_kind(drawing, Line)) == 8
    soft = float(soft_size(network, jnp.zeros((1, 2))))
    assert plot_structure(network).get_title() == f"Budding perceptron: 5 layers, soft size {soft:.2f}, hard size 9"


def squares(drawing: Any) -> list[Any]:
    """The leaves of a tree, from the left to the right."""
    return sorted((shape for shape in of_kind(drawing, Rect) if shape.height > 12), key=lambda shape: shape.x)


def test_tied_weights_have_one_color_and_open_nodes_thick_lines():
    network = tree(8, 5, 0)
    drawing, nodes = drawn(network), nodes_of(structure(network.body))
    leaves, rings = squares(drawing), sorted(of_kind(drawing, Circle), key=lambda ring: ring.x)
    assert [leaf.color for leaf in leaves] == ["s1", "s2", "s3", "s4", "s5"]
    for ring, node in zip(rings, [node for node in nodes if node.children], strict=True):
        left, right = (
            line for line in of_kind(drawing, Line) if np.hypot(line.x1 - ring.x, line.y1 - ring.y) < ring.radius + 2
        )
        assert left.x2 < ring.x < right.x2 and right.color == "s7"
        assert ring.color == left.color == leaves[node.layer].color
        assert left.stroke == right.stroke == pytest.approx(1 + 4 * (1 - node.gamma))


@pytest.mark.parametrize("leaves", [1, 2, 8, 16, 40])
@pytest.mark.parametrize("width", [350, 600])
def test_nodes_and_their_labels_do_not_overlap(leaves, width):
    drawing = drawn(tree(40, leaves, 1), width=width)
    rings, boxes = of_kind(drawing, Circle), squares(drawing)
    places = [(ring.x, ring.y) for ring in rings] + [(box.x + box.width / 2, box.y + box.height / 2) for box in boxes]
    reach = max([ring.radius for ring in rings] + [box.width / 2 for box in boxes])
    apart = [max(abs(a[0] - b[0]), abs(a[1] - b[1])) for i, a in enumerate(places) for b in places[:i]]
    assert min(apart, default=99) > 2 * reach
    assert all(reach <= x <= width - reach for x, _ in places) and drawing.width <= width
    for text in of_kind(drawing, Text):
        if text.anchor == "middle":
            assert text.size >= 7.5 and 0.58 * text.size * len(text.words) < 2 * reach


def test_a_fitted_tree(budding):
    drawing = drawn(budding)
    assert len(of_kind(drawing, Circle)) + len(squares(drawing)) == budding.hard_size_
    assert f"hard size {budding.hard_size_}" in plot_structure(budding).get_title()


def test_a_seedling_is_a_single_layer():
    ax = plot_structure(Network.create("budding", 2, 1, key=jax.random.key(0)))
    assert "W₁" in texts(ax) and not ax.lines
    assert ax.get_title() == "Budding perceptron: a single layer, soft size 1, hard size 1"


@pytest.mark.parametrize(("gamma", "soft"), [(0.25, 0.75), (1.0, 0.0), (0.0, 1.0)])
def test_above_a_root_that_may_copy_stands_its_gamma(gamma, soft):
    network = Network.create("budding", 2, 1, width=3, root="identity", key=jax.random.key(0))
    network = eqx.tree_at(lambda n: n.body.identity.value, network, jnp.asarray(gamma))
    drawing = drawn(network)
    (ring,), (leaf,), (line,) = of_kind(drawing, Circle), squares(drawing), of_kind(drawing, Line)
    assert ring.x == line.x1 == line.x2 == leaf.x + leaf.width / 2 and ring.y < line.y1 < line.y2 == leaf.y
    assert [text.words for text in of_kind(drawing, Text) if text.x == ring.x and text.y < leaf.y] == [gamma_text(gamma)]
    assert line.stroke == pytest.approx(1 + 4 * (1 - gamma)) and "γ₀ · x + (1 − γ₀) · tree(x)" in drawing.legend
    words = "a copy of its input, soft size 0, hard size 0" if gamma == 1 else f"soft size {soft:.3g}, hard size 1"
    assert words in plot_structure(network).get_title()


def test_a_grown_tree_below_a_root_that_may_copy():
    network, other = tree(8, 5, 0), Network.create("budding", 2, 1, width=3, capacity=8, root="identity", key=jax.random.key(0))
    network = eqx.tree_at(lambda n: n.body.identity, network, other.body.identity, is_leaf=lambda node: node is None)
    network = eqx.tree_at(lambda n: n.body.identity.value, network, jnp.asarray(0.5))
    drawing = drawn(network)
    top, root, *rest = sorted(of_kind(drawing, Circle), key=lambda ring: ring.y)
    assert top.x == root.x and len(rest) == 3 and len(squares(drawing)) == 5
    soft = float(soft_size(network, jnp.zeros((1, 2))))
    assert plot_structure(network).get_title().endswith(f"soft size {soft:.2f}, hard size 9")


def test_a_body_of_ones_own_is_drawn_by_its_gates():
    ax = plot_structure(own_network())
    assert opacities(drawn(own_network())) == expected([[1, 2 / 3, 1 / 3, 0]])
    assert ax.get_title() == "Shifts network: soft size 2.0, 3 of 4 units open"
    assert texts(plot_structure(own_network(), X=np.ones((5, 2)))) == texts(ax)


@pytest.mark.parametrize("is_layered", [True, False])
def test_growth_of_a_body_of_ones_own_goes_by_what_it_says(tunnel, is_layered):
    """Sizes per layer where it has layers, else those of the whole."""
    model = copy.copy(tunnel)
    body = own_network().body if is_layered else Network.create("budding", 2, 1, key=jax.random.key(0)).body
    model.network_ = eqx.tree_at(lambda n: n.body, model.network_, body)
    _, sizes = plot_growth(model)
    assert sizes.get_ylabel() == ("soft size" if is_layered else "size of the tree")


# The plane ------------------------------------------------------------------------------------------------------------------


def plane(ax: Any) -> np.ndarray:
    """The points that the pixels of the shading stand for."""
    left, right, low, high = ax.images[0].get_extent()
    n = ax.images[0].get_array().shape[0]
    across, up = (np.linspace(a + (b - a) / (2 * n), b - (b - a) / (2 * n), n) for a, b in [(left, right), (low, high)])
    return np.stack(np.meshgrid(across, up), -1).reshape(-1, 2)


def points(ax: Any) -> np.ndarray:
    """Those of the scattered samples, in their order."""
    return np.concatenate([marks.get_offsets() for marks in ax.collections if type(marks).__name__ == "PathCollection"])


def test_two_classes_are_shaded_by_probability(tunnel):
    X, y = MOONS
    ax = plot_decision_boundary(tunnel, X, y)
    probability = tunnel.predict_proba(plane(ax))[:, 1]
    assert np.allclose(ax.images[0].get_array().ravel(), probability, atol=1e-5)
    assert ax.images[0].get_clim() == (0, 1)
    assert np.allclose(points(ax), np.concatenate([X[y == 0], X[y == 1]]))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["class 0", "class 1"]
    (contour,) = [found for found in ax.collections if type(found).__name__ == "QuadContourSet"]
    edge = np.concatenate([path.vertices for path in contour.get_paths()])
    assert np.abs(tunnel.predict_proba(edge)[:, 1] - 0.5).max() < 0.1
    low, high = np.array([ax.get_xlim(), ax.get_ylim()]).T
    assert (low < X.min(0)).all() and (X.max(0) < high).all()


def test_more_classes_are_regions(iris):
    X, y = IRIS.data[:, 2:], IRIS.target_names[IRIS.target]
    ax = plot_decision_boundary(iris, X, y)
    region = iris.classes_[ax.images[0].get_array().ravel()]
    assert (region == iris.predict(plane(ax))).mean() > 0.999  # rounding may decide on the border itself
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list(IRIS.target_names)
    assert len(points(ax)) == 150


def test_a_regressor_is_shaded_by_its_value(budding):
    X, y = FRIEDMAN
    ax = plot_decision_boundary(budding, X, y)
    assert np.allclose(ax.images[0].get_array().ravel(), budding.predict(plane(ax)), atol=1e-3)
    assert ax.images[0].get_clim() == ax.collections[0].get_clim() == (y.min(), y.max())
    assert np.array_equal(ax.collections[0].get_array(), y)


def test_any_scikit_learn_estimator_will_do():
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(*MOONS)
    ax = plot_decision_boundary(model, *MOONS)
    assert np.allclose(ax.images[0].get_array().ravel(), model.predict_proba(plane(ax))[:, 1])


def test_columns_keep_their_names():
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(MOONS[0], columns=["east", "north"])
    model = LogisticRegression().fit(X, MOONS[1])
    ax = plot_decision_boundary(model, X, MOONS[1])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("east", "north")
    with pytest.raises(ValueError, match=r"columns \['north', 'east'\]; the estimator was fitted to \['east', 'north'\]"):
        plot_decision_boundary(model, X[["north", "east"]], MOONS[1])


def test_a_constant_feature_is_no_trouble(tunnel):
    X = np.stack([MOONS[0][:, 0], np.zeros(100)], 1)
    assert plot_decision_boundary(tunnel, X, MOONS[1]).get_ylim() == (-1, 1)


# Axes, errors, matplotlib ---------------------------------------------------------------------------------------------------


def test_given_axes_are_drawn_on(tunnel, budding):
    axes = plt.figure().subplots(2, 2)
    assert plot_structure(tunnel, ax=axes[0, 0]) is axes[0, 0]
    assert plot_structure(budding, ax=axes[0, 1]) is axes[0, 1]
    assert plot_decision_boundary(tunnel, *MOONS, ax=axes[1, 0]) is axes[1, 0]
    assert plt.get_fignums() == [1]
    below = plt.figure().subplots(2, 1)
    assert (plot_growth(tunnel, axes=below) == below).all()
    assert plt.get_fignums() == [1, 2]


def test_without_axes_a_figure_of_pyplots_is_made(tunnel):
    for plot in (
        lambda: plot_growth(tunnel)[0],
        lambda: plot_structure(tunnel),
        lambda: plot_decision_boundary(tunnel, *MOONS),
    ):
        assert plot().figure is plt.gcf()
    assert len(plt.get_fignums()) == 3
    for number in plt.get_fignums():
        plt.figure(number).canvas.draw()  # no warning of a layout that does not fit


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda t: plot_growth(TunnelClassifier()), r"a TunnelClassifier that is not fitted; call fit\(X, y\) first"),
        (lambda t: plot_growth(make_pipeline(t)), r"got a Pipeline; give it the last step: pipeline\[-1\]"),
        (
            lambda t: plot_growth(t, axes=plt.figure().subplots()),
            r"axes holds 1 Axes; this picture has 2: plt.subplots\(2, 1\)",
        ),
        (lambda t: plot_growth(t, axes=[1, 2]), r"axes=\[1, 2\] must be matplotlib's Axes"),
        (lambda t: plot_structure(t, ax=3), r"ax=3 must be matplotlib's Axes"),
        (lambda t: plot_structure(TunnelClassifier()), r"a TunnelClassifier that is not fitted; call fit\(X, y\) first"),
        (lambda t: plot_growth(TunnelClassifierCV()), r"a TunnelClassifierCV that is not fitted; call fit\(X, y\) first"),
        (lambda t: plot_structure(TunnelClassifierCV()), r"a TunnelClassifierCV that is not fitted; call fit\(X, y\) first"),
        (lambda t: plot_structure(GridSearchCV(LogisticRegression(), {}).fit(*MOONS)), r"search\.best_estimator_"),
        (lambda t: plot_structure("tunnel"), r"a Network, or a model with bodies in it, got a str\."),
        (lambda t: plot_structure(jax.tree.map(lambda a: a[None], t.network_)), r"a population of 1; pick one"),
        (lambda t: plot_decision_boundary(t, IRIS.data, IRIS.target), r"two features, got X of shape \(150, 4\)"),
        (lambda t: plot_decision_boundary(t, MOONS[0], MOONS[1][:5]), r"y has shape \(5,\)"),
        (lambda t: plot_decision_boundary(t, MOONS[0], MOONS[1] + 1), r"not among the estimator's classes \[0, 1\]"),
        (lambda t: plot_decision_boundary(TunnelClassifier(), *MOONS), r"not fitted"),
    ],
)
def test_errors_say_what_to_do(tunnel, call, told):
    with pytest.raises(ValueError, match=told):
        call(tunnel)


def test_an_estimator_of_more_features_has_no_plane():
    model = LogisticRegression(max_iter=1000).fit(IRIS.data, IRIS.target)
    with pytest.raises(ValueError, match=r"an estimator fitted to 4; fit one to two columns"):
        plot_decision_boundary(model, IRIS.data[:, :2], IRIS.target)


def test_several_values_per_sample_have_no_plane():
    model = LinearRegression().fit(MOONS[0], MOONS[0])
    with pytest.raises(ValueError, match=r"one value per sample; this estimator predicts 2"):
        plot_decision_boundary(model, MOONS[0], MOONS[0])


@pytest.mark.parametrize("X", [np.ones((3, 5)), np.ones(2), np.empty((0, 2)), np.array([["a", "b"]])])
def test_gates_need_data_of_the_right_shape(highway, X):
    with pytest.raises(ValueError, match=r"it must be numbers \[samples, 2\]"):
        plot_structure(highway, X=X)


def test_without_matplotlib_one_line_says_so(tunnel, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for plot in (lambda: plot_growth(tunnel), lambda: plot_structure(tunnel), lambda: plot_decision_boundary(tunnel, *MOONS)):
        with pytest.raises(ImportError, match=r"pip install 'meristem-nn\[cli\]'"):
            plot()


def test_the_frontier_joins_what_nothing_beats():
    ax = plot_frontier([100, 200, 400, 300], [0.10, 0.05, 0.06, 0.04], colors=[1e-2, 1e-3, 1e-4, 1e-4])
    x, y = ax.lines[0].get_data()
    assert x.tolist() == [100, 200, 300] and np.allclose(y, [10, 5, 4])
    with pytest.raises(ValueError, match="give as many of each"):
        plot_frontier([1, 2], [0.1])


def test_a_first_picture_leaves_a_notebooks_backend_interactive(tmp_path):
    """As in a notebook: a backend that is loaded with the first figure, and switches interaction on."""
    backend = "import matplotlib\nfrom matplotlib.backends.backend_agg import *\nmatplotlib.interactive(True)\n"
    (tmp_path / "notebooks.py").write_text(backend)
    drawn = "from meristem import plot_frontier; plot_frontier([1, 2], [0.2, 0.1])"
    code = f"{drawn}\nimport matplotlib\nprint(matplotlib.is_interactive())"
    environment = os.environ | {"MPLBACKEND": "module://notebooks", "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    assert done.stdout == "True\n"
