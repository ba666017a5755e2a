"""The fast models against the oracle: values, gradients and sizes, over random trees, gates, leafness and inputs.

Values vary, shapes do not, so every fast function compiles once per precision.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import Phase, given, settings, strategies as st

import reference as ref
from meristem import Knobs, Recipe, hard_size, layer_sizes, soft_size
from meristem.gate import Confined
from meristem.nn import Bud, Budding, Highway, Linear, Network, Plain, Residual, Tunnel
from meristem.nn.tree_growth import opening
from meristem.train.epoch import cost
from reference_trainer import ReferenceTrainer
from soak import FACTOR, many as tries

CAPACITY, WIDTH, DEPTH = 5, 3, 4
TOLERANCE = {"float64": 1e-10, "float32": 1e-5}
# Examples are small as they are; shrinking one with the slow side takes minutes.
phases = (Phase.explicit, Phase.generate)
many = settings(max_examples=tries(5), deadline=None, derandomize=True, database=None, phases=phases)
some = settings(many, max_examples=tries(3))

# ---- what is drawn

unit = st.sampled_from([0.0, 1.0]) | st.floats(0, 1, width=32, allow_subnormal=False)
seeds = st.integers(0, 2**32 - 1)


@st.composite
def structures(draw: Any) -> list[int]:
    """A depth array of tree.py from random recursive splits."""
    depth = [-1] * CAPACITY

    def split(first: int, last: int, level: int) -> None:
        if first < last:
            inner = draw(st.integers(first + 1, last))
            depth[inner] = level
            split(first, inner - 1, level + 1)
            split(inner, last, level + 1)

    split(0, draw(st.integers(1, CAPACITY)) - 1, 0)
    return depth


@st.composite
def trees(draw: Any) -> dict[str, Any]:
    """The arrays of a random `Budding`. Leaves have γ = 1; free places hold garbage, which nobody may see."""
    depth = np.array(draw(structures()), np.int32)
    rng = np.random.default_rng(draw(seeds))
    gamma = np.ones(2 * CAPACITY - 1)
    gamma[1::2] = draw(st.lists(unit, min_size=CAPACITY - 1, max_size=CAPACITY - 1))
    free = np.flatnonzero(depth[1:] < 0) + 1
    gamma[np.concatenate([2 * free, 2 * free - 1])] = rng.uniform(size=2 * len(free))
    return {
        "depth": depth,
        "gamma": gamma,
        "weight": rng.normal(size=(CAPACITY, WIDTH, WIDTH)),
        "bias": rng.normal(size=(CAPACITY, WIDTH)),
        "bud_weight": rng.normal(size=(CAPACITY, WIDTH, WIDTH)),
        "bud_bias": rng.normal(size=(CAPACITY, WIDTH)),
        "x": rng.normal(size=WIDTH),
        "direction": rng.normal(size=WIDTH),
    }


def examples(precision: str) -> settings:
    return many if precision == "float64" else some


def floats(array: Any) -> jax.Array:
    return jnp.asarray(array, jnp.result_type(float))


def make_budding(tree: dict[str, Any], activation: str, probe: str = "bud", identity: float | None = None) -> Budding:
    root = "layer" if identity is None else "identity"
    body = Budding(WIDTH, capacity=CAPACITY, activation=activation, probe=probe, root=root, key=jax.random.key(0))
    if identity is not None:
        body = eqx.tree_at(lambda b: b.identity.value, body, floats(identity))
    bud = Bud(floats(tree["bud_weight"]), floats(tree["bud_bias"]))
    return eqx.tree_at(
        lambda b: (b.weight, b.bias, b.bud, b.leafness, b.depth),
        body,
        (floats(tree["weight"]), floats(tree["bias"]), bud, Confined(floats(tree["gamma"])), jnp.asarray(tree["depth"])),
    )


def random_stack(rng: np.random.Generator) -> tuple[jax.Array, jax.Array]:
    return floats(rng.normal(size=(DEPTH, WIDTH, WIDTH))), floats(rng.normal(size=(DEPTH, WIDTH)))


def make_tunnel(gates: list[float], rng: np.random.Generator, activation: str) -> Tunnel:
    body = Tunnel(WIDTH, DEPTH, activation=activation, key=jax.random.key(0))
    values = (*random_stack(rng), Confined(floats(gates).reshape(DEPTH, WIDTH)))
    return eqx.tree_at(lambda b: (b.weight, b.bias, b.gate), body, values)


def make_highway(rng: np.random.Generator, activation: str) -> Highway:
    body = Highway(WIDTH, DEPTH, activation=activation, key=jax.random.key(0))
    values = (*random_stack(rng), *random_stack(rng))
    return eqx.tree_at(lambda b: (b.weight, b.bias, b.gate_weight, b.gate_bias), body, values)


# ---- the two sides. A scalar that depends on the output in every direction and on the price:

PRICE = 0.3


@eqx.filter_jit
def fast_value(body: Any, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    return body.priced(x)


@eqx.filter_jit
def fast_gradient(body: Any, x: jax.Array, direction: jax.Array) -> Any:
    def scalar(both: Any) -> jax.Array:
        y, price = both[0].priced(both[1])
        return direction @ y + PRICE * price

    return eqx.filter_grad(scalar)((body, x))


@eqx.filter_jit
def fast_sizes(body: Any, inputs: jax.Array) -> tuple[jax.Array, jax.Array]:
    return soft_size(body, inputs), hard_size(body)


def compiled_for_stacks(slow: Callable[..., Any]) -> Callable[..., Any]:
    """The oracle of a stack always has one shape and compiles once; a tree's recursion runs as it is."""
    compiled = eqx.filter_jit(slow)

    def call(model: Any, *arguments: Any) -> Any:
        body = getattr(model, "body", model)
        return slow(model, *arguments) if isinstance(body, Budding) else compiled(model, *arguments)

    return call


@compiled_for_stacks
def reference_value(body: Any, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    layers = None if isinstance(body, Budding) else ref.to_layers(body.weight, body.bias)
    if isinstance(body, Tunnel):
        gates = list(body.gate.value)
        return ref.tunnel(layers, gates, x, body.activation), ref.tunnel_objective([], gates, 1.0)
    if isinstance(body, Highway):
        gate_layers = ref.to_layers(body.gate_weight, body.gate_bias)
        price = ref.tunnel_size(ref.highway_gates(layers, gate_layers, x, body.activation))
        return ref.highway(layers, gate_layers, x, body.activation), price
    root = ref.to_tree(body)
    if body.identity is not None:
        copied = body.identity.value
        return ref.rooted(root, copied, x, body.activation, body.probe), ref.rooted_objective([], root, copied, 1.0)
    return ref.budding(root, x, body.activation, body.probe), ref.budding_objective([], root, 1.0)


@compiled_for_stacks
def slow_gradient(body: Any, x: jax.Array, direction: jax.Array) -> Any:
    def scalar(both: Any) -> jax.Array:
        y, price = reference_value(*both)
        return direction @ y + PRICE * price

    return eqx.filter_grad(scalar)((body, x))


def assert_close(fast: Any, slow: Any, precision: str) -> None:
    """Every array of two trees, relative to the largest entry of each."""
    assert jax.tree.structure(fast) == jax.tree.structure(slow)
    for path, expected in jax.tree_util.tree_leaves_with_path(slow):
        got = dict(jax.tree_util.tree_leaves_with_path(fast))[path]
        assert got.dtype == expected.dtype == np.dtype(precision)
        scale = max(1.0, float(np.abs(expected).max(initial=0)))
        np.testing.assert_allclose(got, expected, rtol=0, atol=TOLERANCE[precision] * scale, err_msg=str(path))


@pytest.fixture(params=["float64", "float32"] if FACTOR > 1 else ["float64"])
def precision(request: pytest.FixtureRequest) -> Any:
    with jax.enable_x64(request.param == "float64"):
        yield request.param


def in_precision(names: str, cases: list[Any], single: bool = False) -> Any:
    """Parametrizes a test: all cases in float64; the last one in float32, which only rounds otherwise, too; in a soak all."""
    of_single = cases if FACTOR > 1 else cases[-1:] if single else []
    both = [("float64", case) for case in cases] + [("float32", case) for case in of_single]
    flat = [(precision, *(case if isinstance(case, tuple) else (case,))) for precision, case in both]
    return pytest.mark.parametrize(f"precision,{names}", flat, indirect=["precision"])


# ---- equations 1, 2, 3, 6, 7

slow_highway_size = eqx.filter_jit(ref.highway_size)

gate_lists = st.lists(unit, min_size=DEPTH * WIDTH, max_size=DEPTH * WIDTH)


@in_precision("activation", ["relu", "tanh"])
def test_tunnel(precision: str, activation: str) -> None:
    @examples(precision)
    @given(gates=gate_lists, seed=seeds)
    def check(gates: list[float], seed: int) -> None:
        rng = np.random.default_rng(seed)
        body = make_tunnel(gates, rng, activation)
        x, direction = floats(rng.normal(size=WIDTH)), floats(rng.normal(size=WIDTH))
        assert_close(fast_value(body, x), reference_value(body, x), precision)
        if activation == "tanh":
            assert_close(fast_gradient(body, x, direction), slow_gradient(body, x, direction), precision)
        soft, hard = fast_sizes(body, x[None])
        assert_close(soft, ref.tunnel_size(list(body.gate.value)), precision)
        assert int(hard) == sum(g > 0 for g in np.asarray(floats(gates)))

    check()


@in_precision("activation", ["relu", "tanh"])
def test_highway(precision: str, activation: str) -> None:
    @examples(precision)
    @given(seed=seeds)
    def check(seed: int) -> None:
        rng = np.random.default_rng(seed)
        body = make_highway(rng, activation)
        inputs, direction = floats(rng.normal(size=(2, WIDTH))), floats(rng.normal(size=WIDTH))
        assert_close(fast_value(body, inputs[0]), reference_value(body, inputs[0]), precision)
        if activation == "tanh":
            assert_close(fast_gradient(body, inputs[0], direction), slow_gradient(body, inputs[0], direction), precision)
        layers, gate_layers = ref.to_layers(body.weight, body.bias), ref.to_layers(body.gate_weight, body.gate_bias)
        soft, hard = fast_sizes(body, inputs)
        assert_close(soft, slow_highway_size(layers, gate_layers, list(inputs), activation), precision)
        assert int(hard) == DEPTH * WIDTH

    check()


def test_plain_and_residual_are_limits_of_the_tunnel() -> None:
    rng = np.random.default_rng(0)
    body = make_tunnel([1.0] * (DEPTH * WIDTH), rng, "relu")
    x = floats(rng.normal(size=WIDTH))
    plain, residual = (
        eqx.tree_at(lambda b: (b.weight, b.bias), kind(WIDTH, DEPTH, key=jax.random.key(0)), (body.weight, body.bias))
        for kind in (Plain, Residual)
    )
    assert_close(plain(x), reference_value(body, x)[0], "float32")
    expected = x
    for layer in ref.to_layers(body.weight, body.bias):
        expected = ref.perceptron(layer, expected, "relu") + expected
    assert_close(residual(x), expected, "float32")
    assert layer_sizes(plain, x[None]).tolist() == [WIDTH] * DEPTH


# ---- equations 4, 5, 8


@in_precision("activation,probe", [("relu", "zero"), ("relu", "bud"), ("tanh", "zero"), ("tanh", "bud")], single=True)
def test_budding(precision: str, activation: str, probe: str) -> None:
    @examples(precision)
    @given(tree=trees())
    def check(tree: dict[str, Any]) -> None:
        body, x = make_budding(tree, activation, probe), floats(tree["x"])
        assert_close(fast_value(body, x), reference_value(body, x), precision)
        if activation == "tanh":
            direction = floats(tree["direction"])
            # Every weight and bias, every γ of inner nodes and leaves, the buds (zero) and the input; free places: zero.
            assert_close(fast_gradient(body, x, direction), slow_gradient(body, x, direction), precision)

    check()


def test_budding_sizes(precision: str) -> None:
    @examples(precision)
    @given(tree=trees())
    def check(tree: dict[str, Any]) -> None:
        body = make_budding(tree, "tanh")
        soft, hard = fast_sizes(body, floats(tree["x"])[None])
        root = ref.to_tree(body)
        assert_close(soft, ref.budding_size(root), precision)
        assert int(hard) == ref.budding_hard_size(root)

    check()


def test_a_root_that_may_copy_its_input(precision: str) -> None:
    @examples(precision)
    @given(tree=trees(), copied=unit)
    def check(tree: dict[str, Any], copied: float) -> None:
        body, x = make_budding(tree, "tanh", identity=copied), floats(tree["x"])
        assert_close(fast_value(body, x), reference_value(body, x), precision)
        direction = floats(tree["direction"])
        assert_close(fast_gradient(body, x, direction), slow_gradient(body, x, direction), precision)
        soft, hard = fast_sizes(body, x[None])
        root = ref.to_tree(body)
        assert_close(soft, ref.rooted_size(root, body.identity.value), precision)
        assert int(hard) == (ref.budding_hard_size(root) if body.identity.value < 1 else 0)

    check()


@in_precision("activation", ["relu", "tanh"])
def test_a_leaf_and_the_same_node_opened_at_gamma_one_agree_to_the_bit(precision: str, activation: str) -> None:
    fast_opening = jax.jit(opening)

    @some
    @given(tree=trees(), which=st.integers(0, CAPACITY - 1))
    def check(tree: dict[str, Any], which: int) -> None:
        body, x = make_budding(tree, activation), floats(tree["x"])
        n = int(body.n_leaves)
        if n == CAPACITY:
            return
        leaf = which % n
        move, count = fast_opening(body.leafness.value.at[2 * leaf].set(0.5), body.depth)
        assert int(count) == 1
        layer, node = np.asarray(move.layer), np.asarray(move.node)
        opened = dict(tree, depth=np.asarray(move.depth))
        for part in ("weight", "bias"):  # the rows that the move names, and zeros for those it does not
            rows = np.concatenate([tree[part], tree["bud_" + part], np.zeros_like(tree[part][:1])])
            opened[part] = rows[np.minimum(layer, 2 * CAPACITY)]
        assert layer[leaf + 1] == CAPACITY + leaf  # the leaf's bud
        opened["gamma"] = np.append(tree["gamma"], 1.0)[np.minimum(node, len(tree["gamma"]))]
        assert opened["gamma"][2 * leaf + 1] == 1  # what was the leaf's γ is the inner node's
        # Operation by operation to the bit; a compiled program may add up the layers at different places differently.
        after = make_budding(opened, activation)
        np.testing.assert_array_equal(after(x), body(x))
        np.testing.assert_allclose(fast_value(after, x)[0], fast_value(body, x)[0], rtol=0, atol=TOLERANCE[precision])
        leaf_node = ref.leaves(ref.to_tree(body))[leaf]
        np.testing.assert_array_equal(
            ref.budding(ref.sprouted(leaf_node, leaf_node.layer, leaf_node.layer), x, activation),
            ref.budding(leaf_node, x, activation),
        )

    check()


def test_the_gamma_gradient_of_a_bud_is_the_derivative_of_the_opened_tree() -> None:
    """Central differences of equation 4, with the bud as a real right child."""

    def difference(tree: dict[str, Any], leaf: int, h: float) -> float:
        body = make_budding(tree, "tanh")
        ends = []
        for gamma in (1 + h, 1 - h):
            root = ref.to_tree(body)
            node = ref.leaves(root)[leaf]
            buds = ref.Layer(jnp.ones((WIDTH, WIDTH)), jnp.ones(WIDTH)), ref.Layer(jnp.zeros((WIDTH, WIDTH)), jnp.ones(WIDTH))
            opened = ref.sprouted(node, *buds)
            node.bud, node.left, node.right, node.gamma = None, opened.left, opened.right, gamma
            ends.append(floats(tree["direction"]) @ ref.budding(root, floats(tree["x"]), "tanh"))
        return float((ends[0] - ends[1]) / (2 * h))

    @some
    @given(tree=trees())
    def check(tree: dict[str, Any]) -> None:
        body = make_budding(tree, "tanh")
        gradient = fast_gradient(body, floats(tree["x"]), floats(tree["direction"]))[0].leafness.value
        for leaf in range(int(body.n_leaves)):
            expected = difference(tree, leaf, 1e-5) - PRICE  # the price is Σ 1 − γ
            np.testing.assert_allclose(gradient[2 * leaf], expected, rtol=1e-6, atol=1e-7)

    with jax.enable_x64(True):
        check()


# ---- objectives 2 and 5: J is a sum over samples; `cost` is its mean, with the penalty on the mean's scale


@compiled_for_stacks
def slow_objective(network: Network, x: jax.Array, y: jax.Array) -> Any:
    def scalar(network: Network) -> jax.Array:
        errors = []
        for one, target in zip(x, y, strict=True):
            logit = (network.head.weight @ reference_value(network.body, network.embed.weight @ one)[0] + network.head.bias)[0]
            errors.append(-jnp.log(jax.nn.sigmoid((2 * target - 1) * logit)))
        if isinstance(network.body, Budding):
            return ref.budding_objective(errors, ref.to_tree(network.body), PRICE)
        return ref.tunnel_objective(errors, list(network.body.gate.value), PRICE)

    return eqx.filter_value_and_grad(scalar)(network)


@in_precision("kind", ["budding", "tunnel"], single=True)
def test_objectives(precision: str, kind: str) -> None:
    n = 2
    fast: Callable[..., Any] = eqx.filter_jit(eqx.filter_value_and_grad(cost))

    @some
    @given(tree=trees(), gates=gate_lists)
    def check(tree: dict[str, Any], gates: list[float]) -> None:
        rng = np.random.default_rng(int(1e6 * abs(tree["x"][0])))
        body = make_budding(tree, "tanh") if kind == "budding" else make_tunnel(gates, rng, "tanh")
        embed, head = Linear(2, WIDTH, use_bias=False, key=jax.random.key(1)), Linear(WIDTH, 1, key=jax.random.key(2))
        network = Network(embed, body, head)
        x, y = floats(rng.normal(size=(n, 2))), floats(rng.integers(0, 2, n))

        got = fast(network, x, y, Knobs(1e-3, penalty=floats(PRICE / n), l2=0.0), Recipe())
        assert_close(jax.tree.map(lambda leaf: n * leaf, got), slow_objective(network, x, y), precision)

    check()


# ---- the gradient of the reference trainer, written by hand


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("probe", ["bud", "zero"])
def test_the_reference_trainers_gradient(activation: str, probe: str) -> None:
    penalty, l2 = 0.2, 0.1
    fast: Callable[..., Any] = eqx.filter_jit(eqx.filter_grad(cost))

    @many
    @given(tree=trees())
    def check(tree: dict[str, Any]) -> None:
        embed, head = Linear(2, WIDTH, use_bias=False, key=jax.random.key(1)), Linear(WIDTH, 1, key=jax.random.key(2))
        network = Network(embed, make_budding(tree, activation, probe), head)
        x, target = floats(tree["x"][:2]), floats(tree["x"][2] > 0)
        got = fast(network, x[None], target[None], Knobs(1e-3, penalty, l2), Recipe())

        trainer = ReferenceTrainer.of(network, rate=1.0, penalty=penalty, l2=l2)
        trainer.gradient(np.asarray(x), float(target))
        leaves, nodes = ref.leaves(trainer.root), ref.nodes(trainer.root)
        n = len(leaves)
        assert_close(got.embed.weight, trainer.embed.grad, "float64")
        assert_close((got.head.weight, got.head.bias), (trainer.head.weight.grad, trainer.head.bias.grad), "float64")
        assert_close(got.body.weight[:n], np.stack([leaf.layer.weight.grad for leaf in leaves]), "float64")
        assert_close(got.body.bias[:n], np.stack([leaf.layer.bias.grad for leaf in leaves]), "float64")
        assert_close(got.body.leafness.value[: 2 * n - 1], np.stack([node.gamma.grad for node in nodes]), "float64")

    with jax.enable_x64(True):
        check()
