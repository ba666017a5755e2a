"""Growth of a whole model: every body in it changes after an update, and whatever an optimizer keeps for it changes with it.

    grow(model, opt_state, key)           after each update, inside `jit` if you like
    resize(model, opt_state, capacity)    between dispatches, on the host: shapes change

`opt_state` is any optax state. Its mirrors are what is shaped as the model's bodies: moments, ages. A body says what happens to
it and its mirrors (`Body.after_update`, `Body.with_capacity`).
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax
from jaxtyping import PRNGKeyArray

from meristem.check import check_size
from meristem.nn.body import Body, GrowthInfo, bodies_of, is_body

M = TypeVar("M")
S = TypeVar("S")


def grow(model: M, opt_state: S, *, key: PRNGKeyArray) -> tuple[M, S, GrowthInfo]:
    """Let every body of a model that can grow do so; call it after each update. `key` draws what is new.

    >>> import equinox as eqx, optax
    >>> from meristem.nn import Budding
    >>> body = Budding(width=3, key=jax.random.key(0))
    >>> body = eqx.tree_at(lambda b: b.leafness.value, body, body.leafness.value.at[0].set(0.9))   # an optimizer did this
    >>> opt_state = optax.adam(1e-3).init(eqx.filter(body, eqx.is_inexact_array))
    >>> body, opt_state, info = grow(body, opt_state, key=jax.random.key(1))
    >>> int(body.n_leaves), int(info.opened)
    (2, 1)
    """
    if not any(body.axes().capacity for body in bodies_of(model)):
        raise ValueError("grow() found no body in the model that grows, such as Budding; call it for models that have one.")
    return after_update(model, opt_state, key)


def after_update(model: M, opt_state: S, key: PRNGKeyArray) -> tuple[M, S, GrowthInfo]:
    """As `grow`, also for a model in which nothing grows."""
    return grow_each(model, opt_state, lambda index: jax.random.fold_in(key, index) if index else key)


def grow_each(model: M, opt_state: S, key_of: Callable[[int], PRNGKeyArray]) -> tuple[M, S, GrowthInfo]:
    """As `after_update`, with a key for each body by its index in the model."""
    infos: list[GrowthInfo] = []

    def change(body: Body, mirrors: Sequence[Any], index: int) -> tuple[Body, list[Any]]:
        body, moved, info = body.after_update(mirrors, key_of(index))
        infos.append(info)
        return body, moved

    model, opt_state = with_mirrors(change, model, opt_state)
    return model, opt_state, GrowthInfo.total(infos)


def resize(model: M, opt_state: S, capacity: int) -> tuple[M, S]:
    """The same model and optimizer state with room for `capacity` leaves. A host function: shapes change.

    >>> from meristem.nn import Budding
    >>> body, _ = resize(Budding(width=3, key=jax.random.key(0)), None, 8)
    >>> body.capacity
    8
    """
    capacity = check_size("capacity", capacity)
    return with_mirrors(lambda body, mirrors, _: body.with_capacity(capacity, mirrors), model, opt_state)


def with_mirrors(change: Callable[[Body, Sequence[Any], int], tuple[Body, list[Any]]], model: M, opt_state: S) -> tuple[M, S]:
    """change(body, its mirrors, its index) for every body: the new bodies in the model, the new mirrors in the state."""
    bodies, mirrors = bodies_of(model), bodies_of(opt_state)
    if bodies and len(mirrors) % len(bodies):
        raise ValueError(
            f"The optimizer state holds {len(mirrors)} copies of the model's {len(bodies)} bodies; made for another model? "
            "Make it with optimizer.init(eqx.filter(model, eqx.is_inexact_array))."
        )
    changed = [change(body, mirrors[i :: len(bodies)], i) for i, body in enumerate(bodies)]
    moved = zip(*(moved for _, moved in changed), strict=True)  # copy by copy, as the state has them
    return _replaced(model, [body for body, _ in changed]), _replaced(opt_state, [mirror for copy in moved for mirror in copy])


def _replaced(tree: M, bodies: Sequence[Any]) -> M:
    """The tree with these in place of its bodies, in their order."""
    following = iter(bodies)
    return jax.tree.map(lambda node: next(following) if is_body(node) else node, tree, is_leaf=is_body)
