"""Every parameter has bounds, said in one line before anything is made; deep stacks compile as quickly as shallow ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import meristem
from commanding import meristem_here
from estimating import iris
from meristem.nn import Network, stack
from meristem.train.hyperparameters import Knobs, Recipe
from meristem.train.run import begin

X, y = iris()
HUGE = 10**400
WHOLE = ["width", "max_epochs", "patience", "batch_size", "depth", "budget"]
NUMBERS = ["penalty", "l2", "learning_rate", "input_dropout", "depth_decay", "validation_fraction"]


def refused(estimator, said, x=X, targets=y):
    with pytest.raises(ValueError, match=said) as error:
        estimator.fit(x, targets)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 300


@pytest.mark.parametrize("name", [*WHOLE, *NUMBERS, "random_state"])
def test_a_number_that_no_float_holds_is_named(name):
    refused(meristem.TunnelClassifier(**{name: HUGE}), rf"{name}=1000.*… \(1329 bits\) must be")


@pytest.mark.parametrize("name", ["penalties", "l2s", "input_dropouts", "cv"])
def test_lists_of_numbers_are_looked_at_one_by_one(name):
    refused(meristem.TunnelClassifierCV(**{name: HUGE if name == "cv" else [0.1, HUGE]}), rf"{name}=(\[0\.1, )?1000")


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"depth": 10**9}, r"Layers of shape 1,000,000,000 × 64 × 64 need .* GB to train.*lower width, depth"),
        ({"width": 10**8, "depth": 1}, r"Layers of shape 100,000,000 × 32 need"),
        ({"width": 10**10}, r"width=10000000000 must be at most 2,147,483,647"),
        ({"max_width": 10**8}, r"Layers of shape"),
        ({"patience": 2**31}, r"patience=2147483648 must be at most 2,147,483,647"),
        ({"penalty": 1e39}, r"penalty=1e\+39 must be a number of at least 0 or 'auto'; single precision holds 1e-38 to 3e38"),
        ({"learning_rate": 1e-60}, r"learning_rate=1e-60 must be a number above 0 or .auto.; single precision"),
        ({"input_dropout": 1 - 1e-12}, r"input_dropout=0.999.* must be .* below 1 or 'auto'; single precision"),
        ({"class_weight": {0: np.nan}}, r"class_weight\[0\]=nan must be a number of at least 0"),
        ({"class_weight": {0: -1}}, r"class_weight\[0\]=-1 must be"),
        ({"class_weight": {0: HUGE}}, r"class_weight\[0\]=1000.*must be"),
    ],
)
def test_what_is_too_much_is_said_before_anything_is_made(parameters, said):
    refused(meristem.TunnelClassifier(**parameters), said)


def test_the_same_of_trees_and_quantiles():
    refused(meristem.BuddingClassifier(max_leaves=HUGE), "max_leaves=1000")
    refused(meristem.BuddingClassifier(width=10**7), "Layers of shape")
    refused(meristem.TunnelRegressor(loss="quantile", quantiles=[HUGE]), "quantiles=")


def test_the_same_of_networks_recipes_and_knobs():
    key = jax.random.key(0)
    with pytest.raises(ValueError, match="Layers of shape"):
        Network.create("residual", 2, 1, width=10, depth=10**9, key=key)
    with pytest.raises(ValueError, match="patience=2147483648 must be at most"):
        Recipe(patience=2**31)
    network = Network.create("tunnel", 2, 1, depth=2, key=key)
    for knobs in (Knobs(1e-3, 1e39), Knobs(1e-60, 1e-3), Knobs(1e-3, HUGE)):
        with pytest.raises(ValueError, match="fits into"):
            begin(network, Recipe(), knobs, key)


def test_the_same_of_studies(tmp_path):
    for given in (("--depth", 10**9), ("--seeds", 10**9), ("--penalty", "1e39"), ("--width", HUGE), ("--max-epochs", 2**31)):
        done = meristem_here("reproduce", "two-spirals", *given, "--models", "tunnel", "--out", tmp_path)
        assert done.returncode == 2, given
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("body", ["tunnel", "highway", "residual"])
def test_a_deep_stack_is_a_loop_that_computes_the_same(body, monkeypatch):
    network = Network.create(body, 3, 2, width="auto", max_width=4, depth=3, key=jax.random.key(0))
    network = jax.tree.map(lambda a: 0.3 * a + 0.1 if jnp.issubdtype(a.dtype, jnp.floating) else a, network)
    x = jnp.array([0.3, -0.2, 0.9])

    def values_and_gradient(network):
        return jax.value_and_grad(lambda n: n.priced(x)[0].sum() + n.priced(x)[1])(network)

    assert "scan" not in str(jax.make_jaxpr(network)(x))
    written_out = values_and_gradient(network)
    monkeypatch.setattr(stack, "DEEP", 3)
    assert "scan" in str(jax.make_jaxpr(network)(x))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), values_and_gradient(network), written_out)
