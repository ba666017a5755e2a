"""The measures of a network on a set of samples, without dropout: mean loss, mean error, and for labels the macro-F1.

    F1 of a label = 2 tp / (2 tp + fp + fn);   macro-F1 = the mean over the labels that occur in the set

A label is predicted at a probability above 1/2. Errors are wrong decisions per instance (a fraction where there is one
decision, summed over labels where there are many). A large set goes through the network in pieces, smaller ones where there
are many outputs, so that memory is bounded.

A network that trains on becomes overconfident long before it makes more errors: its held-out loss rises while its error still
falls. So a calibrated loss is that at the best temperature, which shows what the network has learned:

    E_T = Σ_x w_x E(outputs(x) / T, t) + (log T)² / 2 σ²        least over T; the prior keeps T near 1 where rows are few

The sums at a few temperatures are enough: a parabola through the best three gives the minimum, and sums add up over blocks.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num

from meristem.nn.body import with_price
from meristem.nn.network import Network
from meristem.train.hyperparameters import Recipe
from meristem.train.objectives import Objective
from meristem.train.training_data import to_float

PIECE, MOST_OUTPUTS = 2048, 2**20  # samples at once, and numbers in their outputs, at most
STEP = 0.5 * math.log(2)
LOGS = STEP * np.arange(-3, 7)  # of the temperatures that are tried, 0.35 to 8
SPREAD = 0.5  # σ of the prior on log T
Samples = Num[Array | np.ndarray, "n in ..."]
Targets = Num[Array | np.ndarray, "n ..."]


class Measures(NamedTuple):
    """The measures of one network on one set; `macro_f1` is None where there are no labels."""

    loss: Float[Array, ""]
    error: Float[Array, ""]
    macro_f1: Float[Array, ""] | None
    price: Float[Array, ""] | None = None  # of the units, if requested
    temperature: Float[Array, ""] | None = None  # at which the loss is measured, if calibrated


class Sums(NamedTuple):
    """Sums over samples; the sums of two sets add up to those of both."""

    weight: Float[Array, ""]
    loss: Float[Array, ""]
    error: Float[Array, ""]
    labels: Float[Array, "3 labels"] | None  # per label: true positives, predicted, actual
    price: Float[Array, ""] | None = None
    tempered: Float[Array, " tried"] | None = None  # the loss at each temperature


def sum_up(
    network: Network, x: Samples, y: Targets, recipe: Recipe, weight: Any = None, *, calibrated: bool = False
) -> tuple[Sums, Float[Array, "n width ..."]]:
    """Return the sums over a set, and what reached the body; `calibrated` adds losses by temperature."""
    objective = recipe.task

    def measure_sample(sample: tuple[Any, Any]) -> tuple[Any, ...]:
        hidden = network.embedded(to_float(sample[0]))
        h, body_price = network.body.priced(hidden)
        price = with_price(network.features, body_price) if recipe.select == "cost" else None
        outputs, target, tried = network.read_out(h), sample[1], None
        if calibrated:
            sharpness = jnp.asarray(np.exp(-LOGS), outputs.dtype)
            tried = jax.vmap(lambda factor: objective.loss(factor * outputs, target))(sharpness)
        measures = objective.loss(outputs, target), objective.error(outputs, target), price, tried
        return *measures, outputs > 0 if objective.outputs_are_labels else None, hidden

    piece = piece_of(network, x)
    if x.shape[0] <= piece:
        loss, *others, decided, hidden = jax.vmap(measure_sample)((x, y))
    else:
        loss, *others, decided, hidden = jax.lax.map(measure_sample, (x, y), batch_size=piece)
    labels = None
    if decided is not None:  # macro-F1 counts samples of weight above 0, all alike
        counts = (jnp.ones(len(loss), bool) if weight is None else jnp.asarray(weight) > 0)[:, None]
        predicted, actual = decided & counts, (jnp.asarray(y) > 0) & counts
        labels = jnp.stack([flags.sum(0) for flags in (predicted & actual, predicted, actual)]).astype(jnp.result_type(float))

    def total(values: Any) -> Any:
        if values is None or weight is None:
            return None if values is None else values.sum(0)
        return (weight * values).sum() if values.ndim == 1 else jnp.asarray(weight) @ values

    count = jnp.asarray(len(loss), loss.dtype) if weight is None else jnp.asarray(weight).sum()
    error, price, tried = map(total, others)
    return Sums(count, total(loss), error, labels, price, tried), hidden


def piece_of(network: Network, x: Samples) -> int:
    """Return how many of these samples go through a network at once."""
    outputs = jax.eval_shape(lambda sample: network(to_float(sample)), jax.ShapeDtypeStruct(x.shape[1:], x.dtype))
    return max(1, min(PIECE, MOST_OUTPUTS // outputs.size))


def measures_of(sums: Sums) -> Measures:
    """Return the measures of these sums; a macro-F1 of 0 where no label occurs."""
    f1, loss, temperature = None, sums.loss / sums.weight, None
    if sums.labels is not None:
        hits, claims, positives = sums.labels
        occurs = positives > 0
        f1 = jnp.where(occurs, 2 * hits / jnp.maximum(claims + positives, 1), 0).sum() / jnp.maximum(occurs.sum(), 1)
    if sums.tempered is not None:
        dtype = sums.tempered.dtype
        totals = sums.tempered + jnp.asarray(LOGS**2 / (2 * SPREAD**2), dtype)
        middle = jnp.clip(jnp.argmin(totals), 1, len(LOGS) - 2)
        below, at, above = (totals[middle + shift] for shift in (-1, 0, 1))
        curve = jnp.maximum(above - 2 * at + below, 1e-12)
        shift = jnp.clip((below - above) / (2 * curve), -1, 1)
        loss = (at + shift * (above - below) / 2 + shift**2 * curve / 2) / sums.weight
        temperature = jnp.exp(jnp.asarray(LOGS, dtype)[middle] + STEP * shift)
    price = None if sums.price is None else sums.price / sums.weight
    return Measures(loss, sums.error / sums.weight, f1, price, temperature)


_measures = jax.jit(lambda network, x, y, recipe: measures_of(sum_up(network, x, y, recipe)[0]), static_argnames="recipe")


def evaluate(network: Network, x: Samples, y: Targets, objective: Objective) -> Measures:
    """Return the measures of one trained network, as numbers on the host."""
    return jax.device_get(_measures(network, x, y, recipe=Recipe(objective=objective)))
