"""Growth as a value: what closes, what opens, and where every row of every array goes.

After an optimizer step (clipped by `gate.project`)
    close   an inner node that reached γ = 1 becomes a leaf: its subtree goes, its right child's layer stays as its bud
    open    a leaf below γ = 1 becomes an inner node: its bud becomes the next layer; both children get fresh buds, γ = 1
Each is a `Move`: for every row of the next structure, the row it comes from. Mirrors, which are what an optimizer keeps for a
body in its shape (moments, ages), move by the same `Move`; what is born starts with zeros there. A leaf that finds no place has
its γ set back to 1 and is counted as waiting; left-most leaves win the free places.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from meristem.nn.body import GrowthInfo
from meristem.nn.linear import he_layer
from meristem.nn.tree import in_order, inner_of, leaf_depth, leaves_of, living, n_leaves, spans

Budding = Any  # the class imports this file


class Move(NamedTuple):
    """Sources of the next structure's rows; a source too large for its array is none.

    What an optimizer keeps for a layer does not follow it where it becomes a bud, or the other way round: that is too large.
    """

    layer: Int[Array, " capacity"]  # of [layers, buds]: the layer that stays one, or the bud that becomes one
    bud: Int[Array, " capacity"]  # of [buds, layers]: the bud that stays one, or the layer that becomes one
    node: Int[Array, " nodes"]  # the node whose γ this is
    depth: Int[Array, " capacity"]  # the next tree


def close_and_open(body: Budding, mirrors: Sequence[Any], key: PRNGKeyArray) -> tuple[Budding, list[Any], GrowthInfo]:
    """Close and open nodes; `key` draws the fresh buds."""
    # A person's optimizer may keep functions too; only arrays pass through cond.
    arrays, rest = eqx.partition((body, list(mirrors)), eqx.is_array)

    def change(arrays: PyTree) -> tuple[PyTree, GrowthInfo]:
        body, mirrors = eqx.combine(arrays, rest)
        close, closed = closing(body.leafness.value, body.depth)
        body = _move_body(body, close, None)
        open_, opened = opening(body.leafness.value, body.depth)
        body = _move_body(body, open_, jax.random.fold_in(key, 0))
        moved = [_move_mirror(_move_mirror(mirror, close), open_) for mirror in mirrors]
        info = GrowthInfo(opened, closed, jnp.zeros((), jnp.int32))
        return eqx.filter((body, moved), eqx.is_array), info

    moved, info = list(mirrors), GrowthInfo.total()
    if body.capacity > 1:  # a single leaf has no place to open into, and nothing to close
        arrays, info = jax.lax.cond(anyone(is_due(body)), change, lambda arrays: (arrays, info), arrays)
        body, moved = eqx.combine(arrays, rest)
    # Leaves that found no place stay leaves; their moments are kept, so they ask again.
    waits = waiting(body)
    gamma = jnp.where(in_order(waits, jnp.zeros_like(waits)), 1, body.leafness.value)
    body = eqx.tree_at(lambda b: b.leafness.value, body, gamma)
    return body, moved, info._replace(waited=waits.sum(dtype=jnp.int32))


def is_due(body: Budding) -> Bool[Array, ""]:
    """Whether any inner node closes, or any leaf wants to open and there is room."""
    closes = (body.depth >= 0) & (inner_of(body.leafness.value) >= 1)
    return closes.any() | (waiting(body).any() & (body.n_leaves < body.capacity))


def waiting(body: Budding) -> Bool[Array, " capacity"]:
    """The leaves below γ = 1: they want to open."""
    return living(body.depth) & (leaves_of(body.leafness.value) < 1)


@jax.custom_batching.custom_vmap
def anyone(flag: Bool[Array, ""]) -> Bool[Array, ""]:
    """The flag itself; under `vmap`, whether any member has it, as one unbatched value.

    A `cond` on it stays a real branch in a population, where `vmap` would turn it into "do both, always".
    """
    return flag


anyone.def_vmap(lambda size, is_batched, flag: (anyone(flag.any(0) if is_batched[0] else flag), False))


def closing(gamma: Float[Array, " nodes"], depth: Int[Array, " capacity"]) -> tuple[Move, Int[Array, ""]]:
    """The move that turns every inner node with γ = 1 into a leaf, and how many there are (the outermost count)."""
    index = jnp.arange(depth.shape[0], dtype=depth.dtype)
    first, last = spans(depth)
    closed = (depth >= 0) & (inner_of(gamma) >= 1)
    inside = (first[:, None] < index[None, :]) & (index[None, :] <= last[:, None])  # [node, inner node below or itself]
    gone = (closed[:, None] & inside).any(0)
    covered = (closed[:, None] & inside & (index[:, None] != index[None, :])).any(0)
    outermost = closed & ~covered
    # The node that becomes a leaf at each of the old positions, if one does.
    none = 2 * depth.shape[0]
    heir = jnp.where(outermost[:, None] & (first[:, None] == index[None, :]), index[:, None], none).min(0)

    keep = living(depth) & ~gone
    source = _inverse(keep, jnp.cumsum(keep, dtype=jnp.int32) - 1)
    heir = _rows(heir, source, none)
    move = Move(
        layer=source,
        bud=jnp.where(heir < none, depth.shape[0] + heir, source),
        node=in_order(jnp.where(heir < none, 2 * heir - 1, 2 * source), 2 * source - 1),
        depth=_rows(depth, source, -1),
    )
    return move, outermost.sum(dtype=jnp.int32)


def opening(gamma: Float[Array, " nodes"], depth: Int[Array, " capacity"]) -> tuple[Move, Int[Array, ""]]:
    """The move that makes two leaves of every leaf with γ < 1 that finds a place, and how many there are."""
    capacity = depth.shape[0]
    alive = living(depth)
    wants = alive & (leaves_of(gamma) < 1)
    opened = wants & (jnp.cumsum(wants, dtype=jnp.int32) <= capacity - n_leaves(depth))
    place = jnp.arange(capacity, dtype=depth.dtype) + jnp.cumsum(opened, dtype=jnp.int32) - opened
    source = _inverse(alive, place)
    mother = _inverse(opened, place + 1)  # for a newborn layer, the leaf whose bud it was
    is_born, none = mother < capacity, 2 * capacity
    stays = jnp.where(_rows(opened, source, False), none, source)
    layer = jnp.where(is_born, capacity + mother, source)
    move = Move(
        layer=layer,
        bud=stays,
        # The opened leaf's γ, with all its history, is now the inner node's.
        node=in_order(2 * stays, jnp.where(is_born, 2 * mother, 2 * source - 1)),
        depth=_rows(jnp.concatenate([depth, leaf_depth(depth)]), layer, -1),
    )
    return move, opened.sum(dtype=jnp.int32)


def with_capacity(body: Budding, capacity: int, mirrors: Sequence[Any]) -> tuple[Budding, list[Any]]:
    """The same body and mirrors with room for `capacity` leaves. A host function: shapes change."""
    needed = int(np.max(body.axes().in_use()))
    if needed > capacity:
        raise ValueError(f"capacity={capacity} is too small: the network has {needed} live leaves.")
    axis = body.depth.ndim - 1  # a population has its members in front

    def resized(gamma: float, rows_of: str, leaf: Array) -> Array:
        n, fill = (2 * capacity - 1 if rows_of == "node" else capacity), {"node": gamma, "depth": -1}.get(rows_of, 0)
        old = np.asarray(leaf)[(slice(None),) * axis + (slice(n),)]
        free = [(0, n - old.shape[axis] if k == axis else 0) for k in range(old.ndim)]
        return jax.device_put(np.pad(old, free, constant_values=fill))

    return _by_row(body, partial(resized, 1)), [_by_row(mirror, partial(resized, 0)) for mirror in mirrors]


def _by_row(tree: Budding, change: Callable[[str, Array], Array]) -> Budding:
    """change("layer", "bud", "node" or "depth", array) for all arrays of a body, or of what mirrors it, that have such rows."""
    parts = {"weight": "layer", "bias": "layer", "bud": "bud", "leafness": "node", "depth": "depth"}
    changed = [jax.tree.map(partial(change, rows), getattr(tree, name)) for name, rows in parts.items()]
    return eqx.tree_at(lambda b: [getattr(b, name) for name in parts], tree, changed, is_leaf=lambda node: node is None)


def _move_body(body: Budding, move: Move, key: PRNGKeyArray | None) -> Budding:
    def parts(body: Budding) -> Any:
        return body.weight, body.bias, body.bud.weight, body.bud.bias, body.leafness.value, body.depth

    layer, bud = parts(body)[:2], parts(body)[2:4]
    layers = [_rows(jnp.concatenate(pair), move.layer, 0) for pair in zip(layer, bud, strict=True)]
    buds = [_rows(jnp.concatenate(pair), move.bud, 0) for pair in zip(bud, layer, strict=True)]
    if key is not None:
        fresh = living(move.depth) & (move.bud >= 2 * body.capacity)
        keys = jax.vmap(lambda j: jax.random.fold_in(key, j))(jnp.arange(fresh.shape[0]))
        drawn = jax.vmap(lambda k: he_layer(k, body.weight.shape[1:], is_drawn_once=False))(keys)
        is_fresh = fresh[:, None, None], fresh[:, None]
        buds = [jnp.where(new, own.astype(old.dtype), old) for new, own, old in zip(is_fresh, drawn, buds, strict=True)]
    return eqx.tree_at(parts, body, (*layers, *buds, _rows(body.leafness.value, move.node, 1), move.depth))


def _move_mirror(mirror: Budding, move: Move) -> Budding:
    """Rows follow their parameter, the newborn start at zero."""
    return _by_row(mirror, lambda rows_of, leaf: leaf if rows_of == "depth" else _rows(leaf, getattr(move, rows_of), 0))


def _rows(values: Array, source: Int[Array, " rows"], fill: float) -> Array:
    """values[source], and `fill` where there is no such row."""
    return values.at[source].get(mode="fill", fill_value=fill, wrap_negative_indices=False)


def _inverse(moves: Bool[Array, " capacity"], place: Int[Array, " capacity"]) -> Int[Array, " capacity"]:
    """For each place the row that goes there, 2 · capacity if none does."""
    index = jnp.arange(place.shape[0], dtype=place.dtype)
    return jnp.where(moves[None, :] & (place[None, :] == index[:, None]), index[None, :], 2 * place.shape[0]).min(1)
