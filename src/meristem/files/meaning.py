"""What numbers must be for a thing to work: finite, gates in [0, 1], trees that are trees, ages that are none below 0.

    check_network(network)      check_state(state, recipe)      check_model(model)

of NumPy arrays, before anything is made of them: `load` asks it of what it read, `save` of what it reads back. What a body must
be it says itself (`Body.fault`). What a real training may leave behind passes:

    best so far             +∞ before the first good epoch
    Adam's second moment    +∞ where the square of a gradient overflowed; the weight then stays as it is
    an optimizer of one's own keeps what it keeps, but for NaN

Everything else is finite also in a run that diverged: its state is that before the epoch in which the loss was not (epoch.py).
A model of one's own is asked for its gates and bodies alone: other arrays of it may hold infinities for good reason.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from meristem.files.arrays import path_name
from meristem.gate import is_confined
from meristem.nn.body import is_body
from meristem.nn.network import Network
from meristem.train.hyperparameters import Recipe
from meristem.train.optimizer import AdamState
from meristem.train.train_state import TrainState

MOST = 2**30  # of what is counted: one more is still a number


def check_network(network: Network, name: str = "") -> None:
    """Raise ValueError of one line unless the network can be computed.

    >>> network = jax.tree.map(np.asarray, Network.create("tunnel", 2, 1, width=3, depth=2, key=jax.random.key(0)))
    >>> check_network(eqx.tree_at(lambda n: n.body.gate.value, network, np.full((2, 3), 1.5)))
    Traceback (most recent call last):
    ValueError: 'body.gate.value' holds 1.5; it must be in [0, 1].
    """
    check_model(network, name)
    for part in ("embed", "head"):
        _each(getattr(network, part), f"{name}{part}.", _finite)


def check_model(model: PyTree, name: str = "") -> None:
    """Raise ValueError of one line unless its gates and its bodies can be computed with."""
    for path, node in jax.tree_util.tree_flatten_with_path(model, is_leaf=is_confined)[0]:
        if is_confined(node):
            _within(f"{name}{path_name(path)}.value", node.value, 0, 1, "in [0, 1]")
    for path, body in jax.tree_util.tree_flatten_with_path(model, is_leaf=is_body)[0]:
        wrong = body.fault() if is_body(body) else None
        if wrong is not None:
            place = name + path_name(path)
            raise ValueError(f"its body {place!r} cannot be: {wrong}" if place else f"it cannot be: {wrong}")


def check_state(state: TrainState, recipe: Recipe) -> None:
    """Raise ValueError of one line unless training can go on from it."""
    check_network(state.network, "network.")
    if state.average is not None:
        check_network(state.average.network, "average.network.")
        _within("average.epochs", state.average.epochs, 0, MOST, "a number of epochs")
    for path, node in jax.tree_util.tree_flatten_with_path(state.opt_state, is_leaf=lambda n: isinstance(n, AdamState))[0]:
        name = f"opt_state.{path_name(path)}"
        if isinstance(node, AdamState):
            _each(node.age, f"{name}.age.", lambda name, age: _within(name, age, 0, MOST, "an age"))
            _each(node.mu, f"{name}.mu.", _finite)
            _each(node.nu, f"{name}.nu.", lambda name, nu: _within(name, nu, 0, np.inf, "a mean of squares"))
        elif eqx.is_inexact_array(node):
            _within(name, node, -np.inf, np.inf, "a number")
    for name, best in (("plateau.best", state.plateau.best), ("best.0", state.best[0]), ("best.1", state.best[1])):
        if not (np.asarray(best) > -np.inf).all():
            raise ValueError(f"{name!r} holds {_worst(best)}; it must be a number, or +∞ before the first good epoch.")
    _within("plateau.since", state.plateau.since, 0, MOST, "a number of epochs")
    _within("plateau.stage", state.plateau.stage, 0, len(recipe.scales), f"a stage of the {len(recipe.scales)}")
    _within("epoch", state.epoch, 0, MOST, "a number of epochs")
    _check_types(state)


def _check_types(state: TrainState) -> None:
    """A compiled epoch gives what it took: of one precision."""
    moments = [node for node in jax.tree.leaves(state.opt_state, is_leaf=_is_adam) if _is_adam(node)]
    average = None if state.average is None else state.average.network
    floats = [leaf.dtype for leaf in jax.tree.leaves((state.network, average, moments)) if eqx.is_inexact_array(leaf)]
    measures = [np.asarray(value).dtype for value in (state.plateau.best, *state.best)]
    if len(set(floats)) > 1 or len(set(measures)) > 1 or measures[0].itemsize < 4:
        found = ", ".join(sorted({str(dtype) for dtype in floats + measures}))
        raise ValueError(f"its numbers are of several types: {found}; what is trained is of one.")


def _is_adam(node: Any) -> bool:
    return isinstance(node, AdamState)


def _each(tree: PyTree, name: str, check: Any) -> None:
    for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
        check(name + path_name(path), leaf)


def _finite(name: str, array: Any) -> None:
    if not is_finite(array):
        raise ValueError(f"{name!r} holds {_worst(array)}; it must be finite.")


def _within(name: str, array: Any, least: float, most: float, wanted: str) -> None:
    found = np.asarray(array)
    if found.size and not (found.min() >= least and found.max() <= most):
        raise ValueError(f"{name!r} holds {_worst(found, least, most)}; it must be {wanted}.")


def is_finite(array: Any) -> bool:
    """Whether all numbers of an array are; its least and its largest tell, without another array of the same length.

    >>> is_finite(np.ones(3)), is_finite(np.array([1.0, np.nan])), is_finite(np.zeros(0))
    (True, False, True)
    """
    found = np.asarray(array)
    if not found.size or not jnp.issubdtype(found.dtype, jnp.inexact):
        return True
    return bool(np.isfinite(found.min()) and np.isfinite(found.max()))


def _worst(array: Any, least: float = -np.inf, most: float = np.inf) -> str:
    """The first number that is wrong."""
    found = np.asarray(array).astype(float).reshape(-1)
    wrong = ~((found >= least) & (found <= most)) | (np.isinf(found) & (np.isinf(least) | np.isinf(most)))
    return f"{found[wrong][0]:g}" if wrong.any() else "others"
