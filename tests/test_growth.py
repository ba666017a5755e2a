"""Growth and the tree it acts on: what closes, what opens, what waits, and that everything follows its layer.

Every layer, bud, γ and moment is marked with a number of its own, so that it is known wherever it goes.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from meristem import adam, grow, resize
from meristem.gate import Confined
from meristem.nn import Bud, Budding, GrowthInfo, Linear, Tunnel, axes
from meristem.nn.linear import he_layer
from meristem.nn.tree import in_order, inner_of, leaf_depth, leaves_of, living, n_leaves, seedling, spans
from meristem.nn.tree_growth import anyone, is_due, waiting

WIDTH = 2
KEY = jax.random.key(7)

grow = eqx.filter_jit(grow)


@eqx.filter_jit
def output(body: Budding, x: Any) -> jax.Array:
    return body(x)


# ---- a body in which everything has a mark: layer j is 100 + j, its bud 200 + j


def marked(rows: int, start: float) -> tuple[np.ndarray, np.ndarray]:
    marks = start + np.arange(float(rows), dtype=np.float32)
    return np.broadcast_to(marks[:, None, None], (rows, WIDTH, WIDTH)), np.broadcast_to(marks[:, None], (rows, WIDTH))


def make_body(depth: list[int], gamma: dict[int, float]) -> Budding:
    """A tree by its depth array; γ is 0.5 at inner nodes and 1 at leaves, but for `gamma` (by place in the tree's order)."""
    capacity, leaves = len(depth), 1 + sum(level >= 0 for level in depth)
    values = np.ones(2 * capacity - 1)
    values[1 : 2 * leaves - 1 : 2] = 0.5
    values[list(gamma)] = list(gamma.values())
    alive = (np.arange(capacity) < leaves)[:, None]
    weight, bias = marked(capacity, 100)
    bud_weight, bud_bias = marked(capacity, 200)
    return eqx.tree_at(
        lambda b: (b.weight, b.bias, b.bud, b.leafness, b.depth),
        Budding(WIDTH, capacity=capacity, key=jax.random.key(0)),
        (
            jnp.asarray(weight * alive[..., None]),
            jnp.asarray(bias * alive),
            Bud(jnp.asarray(bud_weight * alive[..., None]), jnp.asarray(bud_bias * alive)),
            Confined(jnp.asarray(values, jnp.float32)),
            jnp.asarray(depth, jnp.int32),
        ),
    )


def make_state(body: Budding) -> Any:
    """Adam's state, all of it marked: μ of layer j 1000 + j, ν 2000 + j, age 10 + j; of node i 3000 + i, 4000 + i, 30 + i."""
    state = adam().init(body)

    def mark(mirror: Budding, layer: float, node: float) -> Budding:
        def rows(leaf: jax.Array, start: float) -> jax.Array:
            marks = (start + np.arange(leaf.shape[0])).astype(leaf.dtype)
            return jnp.asarray(np.broadcast_to(marks.reshape(-1, *[1] * (leaf.ndim - 1)), leaf.shape))

        return eqx.tree_at(
            lambda m: (m.weight, m.bias, m.leafness.value),
            mirror,
            (rows(mirror.weight, layer), rows(mirror.bias, layer), rows(mirror.leafness.value, node)),
        )

    inner = state[0]
    return (type(inner)(mark(inner.age, 10, 30), mark(inner.mu, 1000, 3000), mark(inner.nu, 2000, 4000)), *state[1:])


def layers(body: Budding) -> list[float]:
    """The marks of the live layers; weight and bias must agree."""
    n, weight, bias = int(body.n_leaves), np.asarray(body.weight), np.asarray(body.bias)
    assert weight[:, 0, 0].tolist() == weight[:, -1, -1].tolist() == bias[:, 0].tolist()
    assert not weight[n:].any()
    return bias[:n, 0].tolist()


def gammas(body: Budding) -> list[float]:
    values = np.asarray(body.leafness.value)
    assert (values[2 * int(body.n_leaves) - 1 :] == 1).all()
    return values[: 2 * int(body.n_leaves) - 1].tolist()


def fresh_bud(place: int) -> tuple[jax.Array, jax.Array]:
    return he_layer(jax.random.fold_in(jax.random.fold_in(KEY, 0), place), (WIDTH, WIDTH))


def assert_buds(body: Budding, expected: list[float | None]) -> None:
    """The marks of the live leaves' buds; None: drawn afresh, from the key of its place."""
    assert int(body.n_leaves) == len(expected)
    for place, mark in enumerate(expected):
        weight, bias = (np.full((WIDTH, WIDTH), mark), np.full(WIDTH, mark)) if mark is not None else fresh_bud(place)
        # Compiled and not, the same draw may differ in its last bit.
        np.testing.assert_allclose(np.asarray(body.bud.weight)[place], weight, rtol=0 if mark else 1e-6)
        np.testing.assert_allclose(np.asarray(body.bud.bias)[place], bias, rtol=0 if mark else 1e-6)


def assert_state(state: Any, n: int, layer: list[int | None], node: list[int | None]) -> None:
    """Which old layer and which old node each row of moments and ages comes from; None: newborn, zero."""
    for mirror, layer_start, node_start in zip(state[0], (10, 1000, 2000), (30, 3000, 4000), strict=True):
        expected = [0 if j is None else layer_start + j for j in layer]
        for part in (np.asarray(mirror.weight), np.asarray(mirror.bias)):
            assert part.reshape(part.shape[0], -1)[:n].min(1).tolist() == expected
            assert part.reshape(part.shape[0], -1)[:n].max(1).tolist() == expected
        assert np.asarray(mirror.leafness.value)[: 2 * n - 1].tolist() == [0 if i is None else node_start + i for i in node]
        assert mirror.bud.weight is None  # dormant: an optimiser keeps nothing for it


def info_of(info: GrowthInfo) -> tuple[int, int, int]:
    return int(info.opened), int(info.closed), int(info.waited)


def test_a_single_leaf_waits_and_keeps_its_state() -> None:
    body = Budding(width=WIDTH, capacity=1, key=KEY)
    body = eqx.tree_at(lambda b: b.leafness.value, body, jnp.array([0.9]))
    grown, state, info = grow(body, make_state(body), key=KEY)
    assert info_of(info) == (0, 0, 1) and gammas(grown) == [1]
    assert_state(state, 1, [0], [0])
    for new, old in zip(jax.tree.leaves(grown)[:4], jax.tree.leaves(body)[:4], strict=True):
        assert (new == old).all()


# ---- tree.py


def test_a_seedling_is_one_leaf() -> None:
    depth = seedling(3)
    assert int(n_leaves(depth)) == 1
    assert living(depth).tolist() == [True, False, False]
    assert leaf_depth(depth)[0] == 0


@pytest.mark.parametrize(
    ("depth", "first", "last", "leaves"),
    [
        ([-1, 0, -1], [3, 0, 3], [-1, 1, -1], [1, 1]),  # (0 1)
        ([-1, 0, 1], [3, 0, 1], [-1, 2, 2], [1, 2, 2]),  # (0 (1 2))
        ([-1, 1, 0], [3, 0, 0], [-1, 1, 2], [2, 2, 1]),  # ((0 1) 2)
        ([-1, 1, 0, 1], [4, 0, 0, 2], [-1, 1, 3, 3], [2, 2, 2, 2]),  # ((0 1) (2 3))
        ([-1, 0, 2, 1, -1], [5, 0, 1, 1, 5], [-1, 3, 2, 3, -1], [1, 3, 3, 2]),  # (0 ((1 2) 3))
    ],
)
def test_spans_and_depths_of_known_trees(depth: list[int], first: list[int], last: list[int], leaves: list[int]) -> None:
    array = jnp.array(depth)
    assert [part.tolist() for part in spans(array)] == [first, last]
    assert leaf_depth(array)[: len(leaves)].tolist() == leaves


def test_the_trees_order_and_back() -> None:
    nodes = in_order(jnp.array([0.0, 2.0, 4.0]), jnp.array([-9.0, 1.0, 3.0]))
    assert nodes.tolist() == [0, 1, 2, 3, 4]
    assert leaves_of(nodes).tolist() == [0, 2, 4]
    assert inner_of(nodes).tolist() == [0, 1, 3]


def test_depths_give_each_layer_the_depth_at_which_it_was_created() -> None:
    body = make_body([-1, 0, 2, 1, -1], {})  # (0 ((1 2) 3))
    depths = axes.depths(body, body.axes())
    assert depths.weight[:4].tolist() == [0, 1, 3, 2]
    assert depths.leafness.value[:7].tolist() == [1, 0, 3, 2, 3, 1, 2]
    assert depths.bud.weight[:4].tolist() == [2, 4, 4, 3]


# ---- open, close


def test_nothing_due_changes_nothing() -> None:
    body = make_body([-1, 1, 0, -1], {})
    state = make_state(body)
    assert not is_due(body)
    after, after_state, info = grow(body, state, key=KEY)
    assert info_of(info) == (0, 0, 0)
    assert eqx.tree_equal((after, after_state), (body, state))


def test_open_then_close_gives_the_leaf_back_with_its_bud() -> None:
    body = make_body([-1, -1, -1], {0: 0.75})
    opened, state, info = grow(body, make_state(body), key=KEY)
    assert info_of(info) == (1, 0, 0)
    assert opened.depth.tolist() == [-1, 0, -1]
    assert layers(opened) == [100, 200]  # the bud became the next layer
    assert_buds(opened, [None, None])
    assert gammas(opened) == [1, 0.75, 1]
    assert_state(state, 2, layer=[0, None], node=[None, 0, None])  # γ with its history is the inner node's

    at_one = eqx.tree_at(lambda b: b.leafness.value, opened, opened.leafness.value.at[1].set(1.0))
    closed, state, info = grow(at_one, state, key=KEY)
    assert info_of(info) == (0, 1, 0)
    assert closed.depth.tolist() == [-1, -1, -1]
    assert layers(closed) == [100]
    assert_buds(closed, [200])
    assert gammas(closed) == [1]
    assert_state(state, 1, layer=[0], node=[0])


def test_nested_closings_the_outermost_wins() -> None:
    # (0 ((1 2) 3)) 4: the node of (1 2 3), node 5, and within it the one of (1 2), node 3.
    body = make_body([-1, 1, 3, 2, 0], {3: 1.0, 5: 1.0})
    after, state, info = grow(body, make_state(body), key=KEY)
    assert info_of(info) == (0, 1, 0)
    assert after.depth.tolist() == [-1, 1, 0, -1, -1]
    assert layers(after) == [100, 101, 104]
    assert_buds(after, [200, 103, 204])  # of the closed node's right child, which is leaf 3
    assert gammas(after) == [1, 0.5, 1, 0.5, 1]
    assert_state(state, 3, layer=[0, 1, 4], node=[0, 1, 5, 7, 8])


def test_a_closing_root_takes_all_with_it() -> None:
    body = make_body([-1, 1, 0, 1], {3: 1.0, 0: 0.5, 6: 0.5})  # leaves that want to open go too
    after, state, info = grow(body, make_state(body), key=KEY)
    assert info_of(info) == (0, 1, 0)
    assert after.depth.tolist() == [-1, -1, -1, -1]
    assert layers(after) == [100]
    assert_buds(after, [102])  # the right child's layer is that of its left-most leaf
    assert gammas(after) == [1]
    assert_state(state, 1, layer=[0], node=[3])


def test_two_closings_side_by_side() -> None:
    body = make_body([-1, 1, 0, 1], {1: 1.0, 5: 1.0})
    after, state, info = grow(body, make_state(body), key=KEY)
    assert info_of(info) == (0, 2, 0)
    assert after.depth.tolist() == [-1, 0, -1, -1]
    assert layers(after) == [100, 102]
    assert_buds(after, [101, 103])
    assert_state(state, 2, layer=[0, 2], node=[1, 3, 5])


def test_several_openings_at_once() -> None:
    body = make_body([-1, 1, 0, -1, -1, -1], {0: 0.25, 4: 0.75})  # leaves 0 and 2 of ((0 1) 2)
    after, state, info = grow(body, make_state(body), key=KEY)
    assert info_of(info) == (2, 0, 0)
    assert after.depth.tolist() == [-1, 2, 1, 0, 1, -1]  # (((0 0') 1) (2 2'))
    assert layers(after) == [100, 200, 101, 102, 202]
    assert_buds(after, [None, None, 201, None, None])
    assert gammas(after) == [1, 0.25, 1, 0.5, 1, 0.5, 1, 0.75, 1]
    assert_state(state, 5, layer=[0, None, 1, 2, None], node=[None, 0, None, 1, 2, 3, None, 4, None])


def test_left_most_leaves_win_the_free_places_and_the_others_wait() -> None:
    body = make_body([-1, 0, 1, -1], {0: 0.25, 2: 0.5, 4: 0.75})
    after, state, info = grow(body, make_state(body), key=KEY)
    assert info_of(info) == (1, 0, 2)
    assert after.depth.tolist() == [-1, 1, 0, 1]
    assert layers(after) == [100, 200, 101, 102]
    assert_buds(after, [None, None, 201, 202])
    assert gammas(after) == [1, 0.25, 1, 0.5, 1, 0.5, 1]  # those who wait are leaves again
    assert_state(state, 4, layer=[0, None, 1, 2], node=[None, 0, None, 1, 2, 3, 4])  # with their moments


def test_a_full_tree_holds_its_leaves_back() -> None:
    body = make_body([-1, 0], {2: 0.9})
    state = make_state(body)
    assert not is_due(body)
    assert waiting(body).tolist() == [False, True]
    after, after_state, info = grow(body, state, key=KEY)
    assert info_of(info) == (0, 0, 1)
    assert gammas(after) == [1, 0.5, 1]
    assert eqx.tree_equal(after_state, state)
    assert layers(after) == layers(body)


def test_a_closing_makes_room_for_an_opening_in_the_same_step() -> None:
    body = make_body([-1, 1, 0], {1: 1.0, 4: 0.75})  # ((0 1) 2): the left pair closes, leaf 2 opens
    after, state, info = grow(body, make_state(body), key=KEY)
    assert info_of(info) == (1, 1, 0)
    assert after.depth.tolist() == [-1, 0, 1]
    assert layers(after) == [100, 102, 202]
    assert_buds(after, [101, None, None])
    assert gammas(after) == [1, 0.5, 1, 0.75, 1]
    assert_state(state, 3, layer=[0, 2, None], node=[1, 3, None, 4, None])


def test_several_bodies_in_one_model_grow_apart_and_draw_different_buds() -> None:
    bodies = [make_body([-1, -1, -1], {0: 0.75}), make_body([-1, -1, -1], {0: 0.75}), make_body([-1, 0, -1], {})]
    state = optax.adam(1e-3).init(eqx.filter(bodies, eqx.is_inexact_array))
    after, after_state, info = grow(bodies, state, key=KEY)
    assert info_of(info) == (2, 0, 0)
    assert [int(body.n_leaves) for body in after] == [2, 2, 2]
    assert_buds(after[0], [None, None])
    assert not np.array_equal(after[0].bud.weight, after[1].bud.weight)
    assert_buds(after[2], [200, 201])
    assert jax.tree.structure(after_state) == jax.tree.structure(state)


def test_grow_refuses_what_it_cannot_serve() -> None:
    with pytest.raises(ValueError, match="no body in the model that grows"):
        grow(Tunnel(WIDTH, 1, key=KEY), None, key=KEY)
    bodies = [make_body([-1, -1], {}), make_body([-1, -1], {})]
    state = optax.sgd(1e-3, momentum=0.9).init(eqx.filter(bodies[0], eqx.is_inexact_array))
    with pytest.raises(ValueError, match="another model"):
        grow(bodies, state, key=KEY)


def test_the_output_continues_smoothly_through_an_opening() -> None:
    """The opened tree at γ is what the leaf's own formula gave at γ: growth does not move the output."""
    body = Budding(WIDTH, capacity=3, activation="tanh", key=jax.random.key(1))
    body = eqx.tree_at(lambda b: b.leafness.value, body, body.leafness.value.at[0].set(0.75))
    x = jnp.array([0.5, -1.0])
    after, _, info = grow(body, None, key=KEY)
    assert int(info.opened) == 1
    np.testing.assert_allclose(output(after, x), output(body, x), rtol=1e-6)


# ---- capacity


def test_resize_keeps_everything_that_lives() -> None:
    body = make_body([-1, 1, 0], {})
    body = eqx.tree_at(lambda b: (b.weight, b.bias), body, he_layer(jax.random.key(3), (3, WIDTH, WIDTH)))
    x, state = jnp.array([0.5, -1.0]), make_state(body)
    larger, larger_state = resize(body, state, 7)
    assert larger.capacity == 7
    assert larger.depth.tolist() == [-1, 1, 0, -1, -1, -1, -1]
    assert larger.leafness.value.tolist() == [1, 0.5, 1, 0.5, 1] + [1] * 8
    np.testing.assert_array_equal(output(larger, x), output(body, x))
    assert_state(larger_state, 3, layer=[0, 1, 2], node=[0, 1, 2, 3, 4])
    assert not larger_state[0].mu.weight[3:].any()
    assert not larger_state[0].mu.leafness.value[5:].any()
    assert eqx.tree_equal(resize(larger, larger_state, 3), (body, state))


def test_resize_says_what_is_too_small() -> None:
    body = make_body([-1, 1, 0, -1], {})
    with pytest.raises(ValueError, match=r"capacity=2 is too small: the network has 3 live leaves"):
        resize(body, None, 2)
    with pytest.raises(ValueError, match=r"capacity=0 must be an integer of at least 1"):
        resize(body, None, 0)
    assert resize(body, None, 3)[0].capacity == 3


def test_resize_leaves_other_arrays_alone() -> None:
    model = {"head": Linear(4, 4, key=KEY), "body": make_body([-1, -1, -1, -1], {})}
    resized, _ = resize(model, None, 2)
    assert eqx.tree_equal(resized["head"], model["head"])
    assert resized["body"].capacity == 2


# ---- populations


def stack(bodies: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)), *bodies)


MEMBERS = [
    ([-1, -1, -1, -1], {0: 0.75}),  # opens
    ([-1, 1, 0, -1], {1: 1.0}),  # closes
    ([-1, 0, 1, 2], {6: 0.5}),  # waits
    ([-1, 0, -1, -1], {}),  # rests
    ([-1, 1, 0, 1], {1: 1.0, 4: 0.5}),  # closes and opens
]


def test_a_population_is_each_of_its_members() -> None:
    bodies = [make_body(*member) for member in MEMBERS]
    # Free places without marks: what is there is nobody's, and a population may clear it earlier.
    states = [resize(*resize(body, make_state(body), int(body.n_leaves)), 4)[1] for body in bodies]
    keys = jax.random.split(KEY, len(bodies))
    together = jax.jit(jax.vmap(lambda b, s, k: grow(b, s, key=k)))(stack(bodies), stack(states), keys)
    alone = [grow(body, state, key=key) for body, state, key in zip(bodies, states, keys, strict=True)]
    assert [info_of(info) for _, _, info in alone] == [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 0), (1, 1, 0)]
    for got, expected in zip(jax.tree.leaves(together), jax.tree.leaves(stack(alone)), strict=True):
        np.testing.assert_array_equal(got, expected)
    assert together[0].axes().in_use().tolist() == [2, 2, 4, 2, 4]


def test_resize_of_a_population_is_decided_by_its_largest_member() -> None:
    population = stack([make_body(*member) for member in MEMBERS])
    larger, _ = resize(population, None, 6)
    assert larger.depth.shape == (len(MEMBERS), 6)
    x = jnp.array([0.5, -1.0])
    outputs = eqx.filter_jit(jax.vmap(lambda b: b(x)))
    np.testing.assert_array_equal(outputs(larger), outputs(population))
    with pytest.raises(ValueError, match="the network has 4 live leaves"):
        resize(population, None, 3)


def conds_in(jaxpr: Any) -> int:
    """How many `cond`s with a scalar predicate a program holds, at any depth."""
    count = 0
    for equation in jaxpr.eqns:
        count += equation.primitive.name == "cond" and equation.invars[0].aval.shape == ()
        for value in equation.params.values():
            inner = value if isinstance(value, (list, tuple)) else [value]
            count += sum(conds_in(getattr(one, "jaxpr", one)) for one in inner if hasattr(getattr(one, "jaxpr", one), "eqns"))
    return count


def test_the_branch_stays_a_branch_in_a_population() -> None:
    population = stack([make_body(*member) for member in MEMBERS])
    keys = jax.random.split(KEY, len(MEMBERS))
    program = jax.make_jaxpr(jax.vmap(lambda b, k: grow(b, None, key=k)[0].weight))(population, keys)
    assert conds_in(program.jaxpr) == 1


def test_anyone_is_one_value_for_all() -> None:
    flags = jnp.array([False, True, False])
    assert jax.vmap(anyone)(flags).tolist() == [True, True, True]
    assert jax.vmap(anyone)(jnp.zeros(3, bool)).tolist() == [False, False, False]
    assert jax.vmap(jax.vmap(anyone))(jnp.array([[False, True], [False, False]])).all()
    assert anyone(jnp.array(True))
    branch = jax.make_jaxpr(jax.vmap(lambda f: jax.lax.cond(anyone(f), lambda: 1.0, lambda: 2.0)))(flags)
    assert conds_in(branch.jaxpr) == 1
    plain = jax.make_jaxpr(jax.vmap(lambda f: jax.lax.cond(f, lambda: 1.0, lambda: 2.0)))(flags)
    assert conds_in(plain.jaxpr) == 0
