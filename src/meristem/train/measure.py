"""How good a network is on a set of samples, dropout off: mean loss, mean error, and for labels the macro-F1.

    F1 of a label = 2 tp / (2 tp + fp + fn);   macro-F1 = the mean over the labels that occur in the set

A label is predicted at a probability above 1/2. Errors are wrong decisions per instance (a fraction where there is one
decision, summed over labels where there are many). A large set goes through the network in pieces, smaller ones where there
are many outputs: those of a set are never there as a whole.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Num

from meristem.nn.network import Network
from meristem.train.objectives import Objective
from meristem.train.samples import to_float
from meristem.train.temperature import at_best, of_temperatures

PIECE, ROOM = 2048, 2**20  # samples, and numbers that their outputs may be


class Measures(NamedTuple):
    """Of one network on one set; `macro_f1` is None where there are no labels."""

    loss: Float[Array, ""]
    error: Float[Array, ""]
    macro_f1: Float[Array, ""] | None
    price: Float[Array, ""] | None = None  # of the units, where it is asked for
    temperature: Float[Array, ""] | None = None  # at which the loss is measured, where the best is asked for


class Sums(NamedTuple):
    """What measures are made of; those of two sets, added, are those of both."""

    weight: Float[Array, ""]
    loss: Float[Array, ""]
    error: Float[Array, ""]
    labels: Float[Array, "3 labels"] | None  # per label: rightly predicted, predicted, there
    price: Float[Array, ""] | None = None
    tempered: Float[Array, " tried"] | None = None  # the loss at some temperatures


def measure(
    network: Network,
    x: Num[Array | np.ndarray, "n in ..."],
    y: Num[Array | np.ndarray, "n ..."],
    objective: Objective,
    weight: Float[Array | np.ndarray, " n"] | None = None,
    *,
    priced: bool = False,
    calibrated: bool = False,
) -> tuple[Measures, Float[Array, "n width ..."]]:
    """The measures for an objective, samples by their weight, and what reached the body; the price, and the loss at the best
    temperature, where they are asked for.

    >>> from meristem.train.objectives import Multilabel
    >>> network = Network.create("tunnel", 2, 3, width=5, depth=2, key=jax.random.key(0))
    >>> measures, hidden = measure(network, jnp.zeros((4, 2)), jnp.zeros((4, 3)), Multilabel())
    >>> measures.error.item(), measures.macro_f1.item(), hidden.shape
    (0.0, 0.0, (4, 5))
    """
    sums, hidden = sum_up(network, x, y, objective, weight, priced=priced, calibrated=calibrated)
    return measures_of(sums), hidden


def sum_up(
    network: Network,
    x: Num[Array | np.ndarray, "n in ..."],
    y: Num[Array | np.ndarray, "n ..."],
    objective: Objective,
    weight: Float[Array | np.ndarray, " n"] | None = None,
    *,
    priced: bool = False,
    calibrated: bool = False,
) -> tuple[Sums, Float[Array, "n width ..."]]:
    """The sums over a set, and what reached the body."""

    def one(sample: tuple[Any, Any]) -> tuple[Array, Array, Array, Array | None, Array | None, Array | None]:
        hidden = network.embedded(to_float(sample[0]))
        h, price = network.body.priced(hidden)
        if network.features is not None:  # as network.priced has it
            price = price + network.features.value.sum()
        outputs = network.read_out(h)
        decided = outputs > 0 if objective.outputs_are_labels else None
        loss, error = objective.loss(outputs, sample[1]), objective.error(outputs, sample[1])
        tried = of_temperatures(objective.loss, outputs, sample[1]) if calibrated else None
        return loss, error, hidden, decided, price if priced else None, tried

    piece = piece_of(network, x)
    if x.shape[0] <= piece:
        loss, error, hidden, decided, price, tried = jax.vmap(one)((x, y))
    else:
        loss, error, hidden, decided, price, tried = jax.lax.map(one, (x, y), batch_size=piece)
    labels = None
    if decided is not None:  # macro-F1 counts whoever is there, not by weight
        here = jnp.ones(len(loss), bool) if weight is None else jnp.asarray(weight) > 0
        labels = _count(decided & here[:, None], (jnp.asarray(y) > 0) & here[:, None])

    def total(values: Array) -> Array:
        if weight is None:
            return values.sum(0)
        return (weight * values).sum() if values.ndim == 1 else jnp.asarray(weight) @ values

    count = jnp.asarray(len(loss), loss.dtype) if weight is None else jnp.asarray(weight).sum()
    of_price, of_tried = (None if values is None else total(values) for values in (price, tried))
    return Sums(count, total(loss), total(error), labels, of_price, of_tried), hidden


def piece_of(network: Network, x: Num[Array | np.ndarray, "n in ..."]) -> int:
    """How many of these samples go through a network at once.

    >>> piece_of(Network.create("tunnel", 2, 10_000, width=5, depth=2, key=jax.random.key(0)), jnp.zeros((800, 2)))
    104
    """
    outputs = jax.eval_shape(lambda sample: network(to_float(sample)), jax.ShapeDtypeStruct(x.shape[1:], x.dtype))
    return max(1, min(PIECE, ROOM // outputs.size))


def measures_of(sums: Sums) -> Measures:
    """The measures that sums amount to."""
    f1 = None if sums.labels is None else _macro_f1(sums.labels)
    price = None if sums.price is None else sums.price / sums.weight
    loss, temperature = (sums.loss / sums.weight, None) if sums.tempered is None else at_best(sums.tempered, sums.weight)
    return Measures(loss, sums.error / sums.weight, f1, price, temperature)


def macro_f1(predicted: Bool[Array, "n labels"], actual: Bool[Array, "n labels"]) -> Float[Array, ""]:
    """The mean F1 of the labels with a positive in the set; 0 where there is none.

    >>> predicted = jnp.array([[True, True, True], [False, True, False]])
    >>> actual = jnp.array([[True, False, False], [True, True, False]])
    >>> round(macro_f1(predicted, actual).item(), 3)  # both labels that occur have 2 · 1 / (2 · 1 + 1)
    0.667
    """
    return _macro_f1(_count(predicted, actual))


def _count(predicted: Bool[Array, "n labels"], actual: Bool[Array, "n labels"]) -> Float[Array, "3 labels"]:
    return jnp.stack([flags.sum(0) for flags in (predicted & actual, predicted, actual)]).astype(jnp.result_type(float))


def _macro_f1(labels: Float[Array, "3 labels"]) -> Float[Array, ""]:
    hits, claims, positives = labels
    occurs = positives > 0
    return jnp.where(occurs, 2 * hits / jnp.maximum(claims + positives, 1), 0).sum() / jnp.maximum(occurs.sum(), 1)


_measure = jax.jit(measure, static_argnames="objective")


def evaluate(
    network: Network, x: Num[Array | np.ndarray, "n in ..."], y: Num[Array | np.ndarray, "n ..."], objective: Objective
) -> Measures:
    """The measures of one trained network, as numbers on the host."""
    return jax.device_get(_measure(network, x, y, objective=objective)[0])
