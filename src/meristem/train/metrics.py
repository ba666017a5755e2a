"""The measures of a network on a set of samples, without dropout: mean loss, mean error, and for labels the macro-F1.

    F1 of a label = 2 tp / (2 tp + fp + fn);   macro-F1 = the mean over the labels that occur in the set

A label is predicted at a probability above 1/2. Errors are wrong decisions per instance (a fraction where there is one
decision, summed over labels where there are many). A large set goes through the network in pieces, smaller ones where there
are many outputs, so that memory is bounded.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Num

from meristem.nn.network import Network
from meristem.train.objectives import Objective
from meristem.train.temperature import at_best, of_temperatures
from meristem.train.training_data import to_float

PIECE, MOST_OUTPUTS = 2048, 2**20  # samples at once, and numbers in their outputs, at most
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


def measure(
    network: Network, x: Samples, y: Targets, objective: Objective, weight: Any = None, **options: bool
) -> tuple[Measures, Float[Array, "n width ..."]]:
    """Return the measures, and what reached the body; arguments as of `sum_up`."""
    sums, hidden = sum_up(network, x, y, objective, weight, **options)
    return measures_of(sums), hidden


def sum_up(
    network: Network,
    x: Samples,
    y: Targets,
    objective: Objective,
    weight: Float[Array | np.ndarray, " n"] | None = None,
    *,
    priced: bool = False,
    calibrated: bool = False,
) -> tuple[Sums, Float[Array, "n width ..."]]:
    """Return the sums over a set, and what reached the body; `priced` adds the price, `calibrated` losses by temperature."""

    def measure_sample(sample: tuple[Any, Any]) -> tuple[Array, Array, Array, Array | None, Array | None, Array | None]:
        hidden = network.embedded(to_float(sample[0]))
        h, price = network.body.priced(hidden)
        if network.features is not None:  # as in network.priced
            price = price + network.features.value.sum()
        outputs = network.read_out(h)
        decided = outputs > 0 if objective.outputs_are_labels else None
        loss, error = objective.loss(outputs, sample[1]), objective.error(outputs, sample[1])
        tried = of_temperatures(objective.loss, outputs, sample[1]) if calibrated else None
        return loss, error, hidden, decided, price if priced else None, tried

    piece = piece_of(network, x)
    if x.shape[0] <= piece:
        loss, error, hidden, decided, price, tried = jax.vmap(measure_sample)((x, y))
    else:
        loss, error, hidden, decided, price, tried = jax.lax.map(measure_sample, (x, y), batch_size=piece)
    labels = None
    if decided is not None:  # macro-F1 counts samples of weight above 0, all alike
        counts = jnp.ones(len(loss), bool) if weight is None else jnp.asarray(weight) > 0
        labels = _count(decided & counts[:, None], (jnp.asarray(y) > 0) & counts[:, None])

    def total(values: Array) -> Array:
        if weight is None:
            return values.sum(0)
        return (weight * values).sum() if values.ndim == 1 else jnp.asarray(weight) @ values

    count = jnp.asarray(len(loss), loss.dtype) if weight is None else jnp.asarray(weight).sum()
    of_price, of_tried = (None if values is None else total(values) for values in (price, tried))
    return Sums(count, total(loss), total(error), labels, of_price, of_tried), hidden


def piece_of(network: Network, x: Samples) -> int:
    """Return how many of these samples go through a network at once."""
    outputs = jax.eval_shape(lambda sample: network(to_float(sample)), jax.ShapeDtypeStruct(x.shape[1:], x.dtype))
    return max(1, min(PIECE, MOST_OUTPUTS // outputs.size))


def measures_of(sums: Sums) -> Measures:
    """Return the measures of these sums."""
    f1 = None if sums.labels is None else _macro_f1(sums.labels)
    price = None if sums.price is None else sums.price / sums.weight
    loss, temperature = (sums.loss / sums.weight, None) if sums.tempered is None else at_best(sums.tempered, sums.weight)
    return Measures(loss, sums.error / sums.weight, f1, price, temperature)


def macro_f1(predicted: Bool[Array, "n labels"], actual: Bool[Array, "n labels"]) -> Float[Array, ""]:
    """Return the mean F1 of the labels with a positive in the set; 0 where there is none."""
    return _macro_f1(_count(predicted, actual))


def _count(predicted: Bool[Array, "n labels"], actual: Bool[Array, "n labels"]) -> Float[Array, "3 labels"]:
    return jnp.stack([flags.sum(0) for flags in (predicted & actual, predicted, actual)]).astype(jnp.result_type(float))


def _macro_f1(labels: Float[Array, "3 labels"]) -> Float[Array, ""]:
    hits, claims, positives = labels
    occurs = positives > 0
    return jnp.where(occurs, 2 * hits / jnp.maximum(claims + positives, 1), 0).sum() / jnp.maximum(occurs.sum(), 1)


_measure = jax.jit(measure, static_argnames="objective")


def evaluate(network: Network, x: Samples, y: Targets, objective: Objective) -> Measures:
    """Return the measures of one trained network, as numbers on the host."""
    return jax.device_get(_measure(network, x, y, objective=objective)[0])
