"""The compiled programs of training: for one network, and `vmap`ped for a population.

Compiled once per shape and recipe, at module level, so that a second fit compiles nothing. A population's arrays have a
leading axis of members; the data are shared. What an epoch says of itself comes packed (packing.py).
"""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, NamedTuple

import equinox as eqx
import jax

from meristem.complexity import body_sizes
from meristem.train import epoch, schedule, state
from meristem.train.measure import sum_up
from meristem.train.packing import pack
from meristem.train.recipe import Recipe
from meristem.train.settle import close_least


class Programs(NamedTuple):
    start: Callable[..., Any]  # (network, key, recipe) → state
    settle: Callable[..., Any]  # (state, data, knobs, recipe) → state
    epoch: Callable[..., Any]  # (state, data, knobs, recipe) → state, packed info
    descend: Callable[..., Any]  # (state, growth, data, knobs, part, recipe, parts) → state, growth
    finish: Callable[..., Any]  # (before, state, growth, data, knobs, recipe) → state, packed info
    average: Callable[..., Any]  # (before, state, growth, recipe) → state
    tally: Callable[..., Any]  # (network, x, y, weight, recipe) → sums, layer sizes times the weight
    conclude: Callable[..., Any]  # (before, state, growth, train, dev, sizes, knobs, recipe, has_dev) → state, packed info


def _start(network: Any, key: Any, recipe: Recipe) -> Any:
    return state.start(network, recipe, key=key)


def _settle(before: Any, data: Any, knobs: Any, recipe: Recipe) -> Any:
    """Of a member whose rate has shrunk, what is not worth its price closes."""
    key = jax.random.fold_in(jax.random.fold_in(before.key, before.epoch), 1)
    holds = schedule.holds(before.plateau, len(recipe.scales))
    network = close_least(before.network, data, knobs, recipe, key, holds)
    goes_on = ~schedule.stopped(before.plateau, len(recipe.scales)) & ~before.diverged
    chosen = state.select(schedule.closes(before.plateau) & goes_on, network, before.network)
    return eqx.tree_at(lambda s: s.network, before, chosen)


def _tally(network: Any, x: Any, y: Any, weight: Any, recipe: Recipe) -> Any:
    sums, hidden = sum_up(network, x, y, recipe.task, weight, priced=recipe.select == "cost", calibrated=recipe.calibrate)
    return sums, body_sizes(network.body, hidden, weight) * sums.weight


def _each(function: Callable[..., Any], axes: tuple[int | None, ...]) -> Callable[..., Any]:
    """The function for every member; `axes` are those of the arguments in front, the recipe and the like follow."""

    @wraps(function)
    def population(*args: Any, **static: Any) -> Any:
        return jax.vmap(lambda *one: function(*one, **static), in_axes=axes)(*args)

    return population


def _packed(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which returns a state and an info, with the info packed."""

    @wraps(function)
    def one(*args: Any, **static: Any) -> Any:
        state, info = function(*args, **static)
        return state, pack(info)

    return one


_recipe = partial(jax.jit, static_argnames="recipe")
_parts = partial(jax.jit, static_argnames=("recipe", "parts"))
_end = partial(jax.jit, static_argnames=("recipe", "has_dev"))

ALONE = Programs(
    _recipe(_start),
    _recipe(_settle),
    _recipe(_packed(epoch.epoch)),
    _parts(epoch.descend),
    _recipe(_packed(epoch.finish)),
    _recipe(epoch.with_average),
    _recipe(_tally),
    _end(_packed(epoch.conclude)),
)
TOGETHER = Programs(
    _recipe(_each(_start, (0, 0))),
    _recipe(_each(_settle, (0, None, 0))),
    _recipe(_packed(_each(epoch.epoch, (0, None, 0)))),
    _parts(_each(epoch.descend, (0, 0, None, 0, None))),
    _recipe(_packed(_each(epoch.finish, (0, 0, 0, None, 0)))),
    _recipe(_each(epoch.with_average, (0, 0, 0))),
    _recipe(_each(_tally, (0, None, None, 0))),
    _end(_packed(_each(epoch.conclude, (0, 0, 0, 0, 0, 0, 0)))),
)
