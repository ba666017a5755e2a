"""What a notebook shows: scikit-learn's diagram, and of a fitted estimator its size and structure; paths and tables' models."""

import re
import xml.etree.ElementTree as ElementTree

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sklearn
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_html_repr

import meristem
from estimating import iris
from meristem.nn import Budding, Linear, Network
from meristem.show.network_structure import stages_of
from meristem.show.structure_drawing import COLORS, card, draw, svg, table

QUICK = {"width": 8, "settle": False, "random_state": 0, "max_epochs": 3}
pytestmark = [
    pytest.mark.filterwarnings("ignore::meristem.GrowthWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def drawings(shown: str) -> list[ElementTree.Element]:
    """Every drawing in it; one that is not well formed raises."""
    return [ElementTree.fromstring(text) for text in re.findall(r"<svg.*?</svg>", shown, re.DOTALL)]


def ours(shown: str) -> str:
    """What stands after scikit-learn's part."""
    return shown.partition('<div class="meristem-card"')[2]


@pytest.fixture(scope="module")
def tunnel():
    return meristem.TunnelClassifier(**QUICK, depth=2).fit(*iris())


def sketch(network: Network) -> str:
    return svg(draw(stages_of(network)))


def with_gates(gates: list[list[float]]) -> Network:
    values = jnp.array(gates)
    network = Network.create("tunnel", 2, 1, width=values.shape[1], depth=len(gates), key=jax.random.key(0))
    return eqx.tree_at(lambda n: n.body.gate.value, network, values)


def test_an_unfitted_estimator_looks_as_scikit_learns_do():
    shown = meristem.TunnelClassifier()._repr_html_()
    assert "meristem-card" not in shown and "sk-top-container" in shown


@pytest.mark.parametrize("kind", ["tunnel", "budding", "highway"])
def test_a_fitted_one_shows_size_and_structure(kind, tunnel):
    options = {"budding": {"max_leaves": 2, "penalty": 1.0}, "highway": {"depth": 1}}
    model = (
        tunnel if kind == "tunnel" else getattr(meristem, f"{kind.title()}Classifier")(**QUICK, **options[kind]).fit(*iris())
    )
    shown = model._repr_html_()
    assert "sk-top-container" in shown and f"<b>{model.n_parameters_:,}</b> parameters" in ours(shown)
    assert "<b>4</b> features" in ours(shown) and "<b>8</b> wide" in ours(shown)
    assert len(drawings(shown)) == 1
    assert ours(model._repr_mimebundle_()["text/html"]) == ours(shown)
    assert repr(model) == model._repr_mimebundle_()["text/plain"]


def test_display_text_shows_no_html(tunnel):
    with sklearn.config_context(display="text"):
        assert not hasattr(tunnel, "_repr_html_") and "text/html" not in tunnel._repr_mimebundle_()


def test_scikit_learns_own_diagram_is_as_it_was(tunnel):
    numbered = re.compile(r"sk-(container|estimator)-id-\d+")
    assert numbered.sub("", tunnel._repr_html_()).startswith(numbered.sub("", estimator_html_repr(tunnel)))
    assert "meristem-card" not in make_pipeline(tunnel)._repr_html_()


def test_a_cell_is_an_open_unit():
    drawing = drawings(sketch(with_gates([[0.0, 0.75, 0.5, 0.0], [0.0, 0.0, 0.0, 0.0]])))[0]
    filled = [rect for rect in drawing.iter("rect") if "fill-opacity" in rect.attrib]
    assert [float(cell.attrib["fill-opacity"]) for cell in filled] == [0.82, 0.65]  # the most open first
    numbers = ["2", "2 of 4", "1.25", "0 of 4", "0.00", "1"]
    assert [text.text for text in drawing.iter("text") if text.text[0].isdigit()] == numbers


def test_units_on_closed_dimensions_are_none():
    network = Network.create("tunnel", 2, 1, width="auto", max_width=3, depth=1, key=jax.random.key(0))
    network = eqx.tree_at(lambda n: n.body.gate.value, network, jnp.ones((1, 3)))
    network = eqx.tree_at(lambda n: n.body.trunk.value, network, jnp.array([1.0, 0.0, 1.0]))
    assert "layer 1: 2 of 3, outputs: 1" in sketch(network)


def test_many_units_and_layers_stay_small():
    drawing = drawings(sketch(with_gates(np.ones((40, 500)).tolist())))[0]
    assert float(drawing.attrib["width"]) <= 350 and float(drawing.attrib["height"]) < 400
    assert "layer 40: 500 of 500" in drawing.attrib["aria-label"]


def test_a_tree_has_its_nodes_and_lines():
    keys = jax.random.split(jax.random.key(0), 3)
    tree = Budding(4, capacity=4, key=keys[0])
    tree = eqx.tree_at(lambda b: b.depth, tree, jnp.array([-1, 1, 0, -1], jnp.int32))  # ((0 1) 2)
    network = Network(Linear(2, 4, use_bias=False, key=keys[1]), tree, Linear(4, 1, key=keys[2]))
    drawing = drawings(sketch(network))[0]
    count = {name: len(list(drawing.iter(name))) for name in ("rect", "circle", "line")}
    assert count == {"rect": 3 + 5, "circle": 2, "line": 4}  # and two inputs, an output, each row on its ground
    assert drawing.attrib["aria-label"] == "3 layers, soft size 1, hard size 5; inputs: 2, outputs: 1"


def test_nothing_is_loaded_from_elsewhere_and_colors_are_the_pages(tunnel):
    shown = ours(tunnel._repr_html_())
    assert "http" not in shown and "<script" not in shown and "currentColor" in shown
    assert set(re.findall(r"#[0-9a-f]{3,8}\b", shown)) <= set(COLORS.values())


def test_names_are_escaped():
    assert "<script>" not in card({"<script>": "<script>"}, {"<script>": with_gates([[1.0]])}, title="<script>")
    assert "<script>" not in table(["<script>"], [["<script>"]])


def test_a_search_shows_its_networks_and_its_path():
    quick = {"cv": 2, "max_epochs": 20, "depth": 1, "max_width": 4, "penalties": [1e-4], "learning_rate": 0.03}
    x, how = np.arange(40), quick | {"refit": "bag"}
    model = meristem.fit_table({"x & y": x, "side": np.where(x < 20, "left", "right")}, target="side", **how)
    shown = model._repr_html_()
    assert "side (class) from x &amp; y" in shown and "<b>2</b> networks, averaged" in shown and len(drawings(shown)) == 2
    assert ours(model.estimator._repr_html_()) in shown.replace("<div>side (class) from x &amp; y</div>", "")
    path = model.estimator.path_
    told = path._repr_html_()
    assert told.count("<tr>") == 1 + len(path.points)
    assert f"<b>{path.best().n_parameters:,.0f}</b>" in told and told.count("<b>") == 8
