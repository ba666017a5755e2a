"""The optimizer as an optax chain: Adam with an age and a learning rate per layer, then the projection of gates to [0, 1].

    m ← β1 m + (1 − β1) g        v ← β2 v + (1 − β2) g²        t: the age of the layer or node, not of the run
    p ← clip(p − rate · decay^depth · m̂ / (√v̂ + ε) − rate · weight_decay · p)

Weight decay is not for gates, which it would close, or nodes of a tree, which it would open.
Running statistics (nn/batch_norm.py) move by a fixed share of their gradient, whatever the optimizer and the rate.
A layer that was born late has its own t, so that its first step has the full length. Every array is updated as rows
[layers, rest], with one number per row for what belongs to a layer, so that the inner loop is long. The chain takes the model:

    optimizer = adam(depth_decay=0.75);  state = optimizer.init(model)
    updates, state = optimizer.update(grads, state, model, learning_rate=1e-3);  model = eqx.apply_updates(model, updates)

Another optimizer needs `decay_mask` (weight decay would *open* nodes) and `gate.project`; `Recipe(optimizer=…)` adds both.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, PyTree

from meristem.gate import is_confined, project
from meristem.nn.axes import depths
from meristem.nn.batch_norm import SHARE, Statistics
from meristem.nn.body import Body, Dormant

UNTRAINED = Dormant, Statistics  # no optimizer moves them


class AdamState(NamedTuple):
    """Moments with the shapes of the parameters, and ages with those of their rows."""

    age: PyTree
    mu: PyTree
    nu: PyTree


def trainable(model: PyTree) -> PyTree:
    """Return True for every array that an optimizer may change: floats outside dormant buds and running statistics.

    >>> import jax
    >>> from meristem.nn import Budding
    >>> mask = trainable(Budding(width=3, key=jax.random.key(0)))
    >>> mask.weight, mask.bud.weight, mask.depth
    (True, False, False)
    """
    return jax.tree.map(
        lambda node: jax.tree.map(lambda _: False, node) if isinstance(node, UNTRAINED) else eqx.is_inexact_array(node),
        model,
        is_leaf=lambda node: isinstance(node, UNTRAINED),
    )


def with_statistics(updates: PyTree, grads: PyTree) -> PyTree:
    """Return the updates with those of running statistics, whose gradient is their distance from what was seen."""

    def is_statistics(node: Any) -> bool:
        return isinstance(node, Statistics)

    def own(update: Any, grad: Any) -> Any:
        return jax.tree.map(lambda g: -SHARE * g, grad) if is_statistics(grad) else update

    return jax.tree.map(own, updates, grads, is_leaf=lambda node: node is None or is_statistics(node))


def decay_mask(params: PyTree) -> PyTree:
    """Return the mask for weight decay: False for gates, leafness and buds.

    >>> import equinox as eqx, jax, optax
    >>> from meristem.gate import project
    >>> from meristem.nn import Tunnel
    >>> optimizer = optax.chain(optax.adamw(1e-3, mask=decay_mask), project())
    >>> state = optimizer.init(eqx.filter(Tunnel(width=3, depth=2, key=jax.random.key(0)), eqx.is_inexact_array))
    """

    def is_exempt(node: Any) -> bool:
        return is_confined(node) or isinstance(node, UNTRAINED)

    return jax.tree.map(lambda node: jax.tree.map(lambda _: not is_exempt(node), node), params, is_leaf=is_exempt)


def layer_depths(model: PyTree) -> PyTree:
    """Return for every array of a model the depth of its layer: [] outside bodies, one per row inside."""

    def own_depths(node: Any) -> Any:
        if isinstance(node, Body):
            return depths(node, node.axes())
        return jnp.zeros((), jnp.int32) if eqx.is_array(node) else node

    return jax.tree.map(own_depths, model, is_leaf=lambda node: isinstance(node, Body))


@lru_cache
def adam(
    depth_decay: float = 0.75, *, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8, weight_decay: float = 0.0
) -> optax.GradientTransformationExtraArgs:
    """Return the paper's optimizer, whose `update` takes `learning_rate`; equal arguments give the same object.

    >>> import jax
    >>> from meristem.nn import Network
    >>> network = Network.create("budding", 2, 1, key=jax.random.key(0))
    >>> state = adam().init(network)
    """

    def init(model: PyTree) -> AdamState:
        chosen = trainable(model)
        params, depths = eqx.filter(model, chosen), eqx.filter(layer_depths(model), chosen)
        # Strong types and arrays that share no memory, so that the second epoch compiles nothing.
        zeros = [jax.tree.map(lambda p: jnp.zeros(p.shape, p.dtype), params) for _ in range(2)]
        return AdamState(jax.tree.map(lambda d: jnp.zeros(d.shape, jnp.int32), depths), *zeros)

    def update(
        grads: PyTree, state: AdamState, model: PyTree, *, learning_rate: Any, full_model: PyTree = None, **_: Any
    ) -> tuple[PyTree, AdamState]:
        model = model if full_model is None else full_model
        chosen = trainable(model)
        depths = eqx.filter(layer_depths(model), chosen)
        age, all_grads, grads = jax.tree.map(lambda a: a + 1, state.age), grads, eqx.filter(grads, chosen)

        def direction(depth: Array, age: Array, m: Array, v: Array) -> Array:
            dtype, rows = m.dtype, depth.size
            t = age.astype(dtype).reshape(rows, 1)
            correction1, correction2 = 1 - b1**t, jnp.sqrt(1 - b2**t)
            rate = learning_rate * depth_decay ** depth.astype(dtype).reshape(rows, 1)
            step = (rate * correction2 / correction1) * m.reshape(rows, -1)
            return (-step / (jnp.sqrt(v.reshape(rows, -1)) + eps * correction2)).reshape(m.shape)

        mu = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g.reshape(m.shape), state.mu, grads)
        nu = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * (g * g).reshape(v.shape), state.nu, grads)
        updates = jax.tree.map(direction, depths, age, mu, nu)
        if weight_decay:
            decays = eqx.filter(decay_mask(model), chosen)
            params = eqx.filter(model, chosen)
            rate = learning_rate * weight_decay
            updates = jax.tree.map(lambda u, p, d: u - rate * p.reshape(u.shape) if d else u, updates, params, decays)
        return with_statistics(updates, all_grads), AdamState(age, mu, nu)

    return optax.chain(optax.GradientTransformationExtraArgs(init, update), project())


def scale_by_rate() -> optax.GradientTransformationExtraArgs:
    """Return the last link of a chain of one's own: updates times −(learning rate of the knobs · factor of the stage).

    >>> optimizer = optax.chain(optax.scale_by_lion(), scale_by_rate())     # Recipe(optimizer=optimizer)
    """

    def update(updates: PyTree, state: Any, params: PyTree = None, *, learning_rate: Any, **_: Any) -> tuple[PyTree, Any]:
        return jax.tree.map(lambda u: -learning_rate * u, updates), state

    return optax.GradientTransformationExtraArgs(lambda params: optax.EmptyState(), update)


@lru_cache
def for_models(optimizer: optax.GradientTransformation) -> optax.GradientTransformationExtraArgs:
    """Return a chain that takes a whole model: the optimizer sees its trainable arrays, and gates stay in [0, 1]."""
    chain = optax.chain(optax.with_extra_args_support(optimizer), project())

    def update(grads: PyTree, state: PyTree, model: PyTree, *, learning_rate: Any) -> tuple[PyTree, PyTree]:
        own, params = (eqx.filter(tree, trainable(model)) for tree in (grads, model))
        updates, state = chain.update(own, state, params, learning_rate=learning_rate, full_model=model)
        return with_statistics(updates, grads), state

    return optax.GradientTransformationExtraArgs(lambda model: chain.init(eqx.filter(model, trainable(model))), update)
