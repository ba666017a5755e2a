"""Models of one's own in a loop of one's own: settling, a budget, sizes, files and pictures, as a network of ours has them."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from matplotlib.figure import Figure

import meristem
from meristem import compact, decay_mask, grow, project, settle
from meristem.complexity import parameters
from meristem.data.spirals import two_spirals
from meristem.gate import hold
from meristem.nn import Budding, Linear, Tunnel
from test_own_convolution import TIME, TimeTunnel

X, Y = (jnp.asarray(part) for part in two_spirals("easy"))


class Mine(eqx.Module):
    enter: Linear
    body: eqx.Module
    leave: Linear

    def __init__(self, body):
        keys = jax.random.split(jax.random.key(0), 2)
        self.enter, self.body, self.leave = Linear(2, 8, key=keys[0]), body, Linear(8, 1, key=keys[1])

    def __call__(self, x):
        return self.leave(self.body(self.enter(x)))[0]


def loss(model, x, y):
    return jax.nn.softplus(jnp.where(y > 0.5, -1.0, 1.0) * model(x))


@pytest.fixture(scope="module", params=["tunnel", "budding"])
def trained(request):
    """A few hundred steps, a price on what is open, and settling at the end."""
    key = jax.random.key(1)
    body = Tunnel(8, 3, key=key, learn_width=True) if request.param == "tunnel" else Budding(8, key=key)
    model = Mine(body)
    optimizer = optax.chain(optax.adamw(3e-2, mask=decay_mask), project())
    state = optimizer.init(eqx.filter(model, eqx.is_inexact_array))

    @eqx.filter_jit
    def step(model, state, key, holds):
        def cost(model):
            return jax.vmap(loss, (None, 0, 0))(model, X, Y).mean() + 2e-3 * meristem.model_cost(model, "parameters") / 50

        grads = eqx.filter_grad(cost)(model)
        updates, state = optimizer.update(grads, state, eqx.filter(model, eqx.is_inexact_array))
        after = eqx.apply_updates(model, updates)
        if request.param == "tunnel":
            return hold(model, after, holds), state
        return grow(after, state, key=key)[:2]

    for number in range(300):
        model, state = step(model, state, jax.random.key(number), jnp.asarray(number > 250))
        if number > 200 and number % 25 == 0:
            model = settle(model, loss, X, Y, penalty=2e-3)
    return model


def mean_loss(model):
    return float(jax.vmap(loss, (None, 0, 0))(model, X, Y).mean())


def test_settling_closes_what_is_not_worth_its_price_and_keeps_the_rest(trained):
    dear = settle(trained, loss, X, Y, penalty=10.0)
    assert meristem.model_cost(dear) <= meristem.model_cost(trained), "at such a price hardly anything is worth it"
    if isinstance(trained.body, Tunnel):
        assert meristem.hard_size(dear) < meristem.hard_size(trained)
    free = settle(trained, loss, X, Y, penalty=0.0)
    assert mean_loss(free) <= mean_loss(trained) + 1e-6, "what costs nothing closes only where that is no worse"
    assert mean_loss(dear) > mean_loss(trained) or not isinstance(trained.body, Tunnel)


def test_a_budget_is_kept_exactly(trained):
    hard = float(meristem.model_cost(meristem.gate.fully_open(trained)))
    least = float(meristem.model_cost(meristem.gate.fully_open(settle(trained, loss, X, Y, penalty=1e6))))
    budget = (hard + least) / 2
    small = meristem.close_to_budget(trained, loss, X, Y, budget=budget)
    assert float(meristem.model_cost(meristem.gate.fully_open(small))) <= budget
    with pytest.raises(ValueError, match=r"budget=1 is below .* parameters; raise it"):
        meristem.close_to_budget(trained, loss, X, Y, budget=1)


def test_it_is_measured_compacted_saved_and_drawn(trained, tmp_path):
    small = compact.compact(trained)
    np.testing.assert_allclose(jax.vmap(small)(X), jax.vmap(trained)(X), atol=1e-4)
    assert 0 < parameters(trained) <= sum(leaf.size for leaf in jax.tree.leaves(trained))
    sizes = meristem.hard_size(trained), meristem.soft_size(trained, X[:1] @ jnp.ones((2, 8)))
    assert sizes[0] >= 1 and 0 < sizes[1] <= sizes[0] + 1e-6
    meristem.save(tmp_path / "model.safetensors", trained)
    again = meristem.load(tmp_path / "model.safetensors", like=trained)
    np.testing.assert_array_equal(jax.vmap(again)(X), jax.vmap(trained)(X))
    title = meristem.plot_structure(trained, ax=Figure().subplots()).get_title()
    assert type(trained.body).__name__ in title


def test_a_body_on_positions_needs_their_shape_outside_of_a_network(monkeypatch):
    body = TimeTunnel(3, 1, key=jax.random.key(0))
    body = eqx.tree_at(lambda b: b.trunk, body, None)
    with pytest.raises(ValueError, match=r"positions of a TimeTunnel outside of a Network: give it an attribute"):
        compact.compact(body)
    monkeypatch.setattr(TimeTunnel, "positions", (TIME,), raising=False)
    x = jax.random.normal(jax.random.key(1), (2, 3, TIME))
    np.testing.assert_allclose(jax.vmap(compact.compact(body))(x), jax.vmap(body)(x), rtol=1e-5, atol=1e-6)


def test_what_does_not_fit_is_named():
    model = Mine(Tunnel(8, 1, key=jax.random.key(0)))
    with pytest.raises(ValueError, match="price='grams' is not known"):
        meristem.model_cost(model, "grams")
    with pytest.raises(ValueError, match="x has 200 samples and y 3"):
        settle(model, loss, jnp.ones((200, 2)), jnp.ones(3), penalty=1.0)
    with pytest.raises((ValueError, TypeError), match="a model with bodies in it"):
        meristem.plot_structure(Linear(2, 2, key=jax.random.key(0)))
