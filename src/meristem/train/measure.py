"""How good a network is on a set of samples, dropout off: mean loss, mean error, and for labels the macro-F1.

    F1 of a label = 2 tp / (2 tp + fp + fn);   macro-F1 = the mean over the labels that occur in the set

A label is predicted at a probability above 1/2. Errors are wrong decisions per instance (a fraction where there is one
decision, summed over labels where there are many). A large set goes through the network in pieces.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Num

from meristem.nn.network import Network
from meristem.train.objectives import Objective
from meristem.train.samples import to_float

PIECE = 2048  # samples


class Measures(NamedTuple):
    """Of one network on one set; `macro_f1` is None where there are no labels."""

    loss: Float[Array, ""]
    error: Float[Array, ""]
    macro_f1: Float[Array, ""] | None
    price: Float[Array, ""] | None = None  # of the units, where it is asked for


class Sums(NamedTuple):
    """What measures are made of; those of two sets, added, are those of both."""

    weight: Float[Array, ""]
    loss: Float[Array, ""]
    error: Float[Array, ""]
    labels: Float[Array, "3 labels"] | None  # per label: rightly predicted, predicted, there
    price: Float[Array, ""] | None = None


def measure(
    network: Network,
    x: Num[Array | np.ndarray, "n in"],
    y: Num[Array | np.ndarray, "n ..."],
    objective: Objective,
    weight: Float[Array | np.ndarray, " n"] | None = None,
    *,
    priced: bool = False,
) -> tuple[Measures, Float[Array, "n width"]]:
    """The measures for an objective, samples by their weight, and what reached the body; the price where it is asked for.

    >>> from meristem.train.objectives import Multilabel
    >>> network = Network.create("tunnel", 2, 3, width=5, depth=2, key=jax.random.key(0))
    >>> measures, hidden = measure(network, jnp.zeros((4, 2)), jnp.zeros((4, 3)), Multilabel())
    >>> measures.error.item(), measures.macro_f1.item(), hidden.shape
    (0.0, 0.0, (4, 5))
    """
    sums, hidden = sum_up(network, x, y, objective, weight, priced=priced)
    return measures_of(sums), hidden


def sum_up(
    network: Network,
    x: Num[Array | np.ndarray, "n in"],
    y: Num[Array | np.ndarray, "n ..."],
    objective: Objective,
    weight: Float[Array | np.ndarray, " n"] | None = None,
    *,
    priced: bool = False,
) -> tuple[Sums, Float[Array, "n width"]]:
    """The sums over a set, and what reached the body."""

    def one(sample: tuple[Any, Any]) -> tuple[Array, Array, Array, Array | None, Array | None]:
        hidden = network.embedded(to_float(sample[0]))
        h, price = network.body.priced(hidden)
        outputs = network.head(h)
        decided = outputs > 0 if objective.outputs_are_labels else None
        loss, error = objective.loss(outputs, sample[1]), objective.error(outputs, sample[1])
        return loss, error, hidden, decided, price if priced else None

    if x.shape[0] <= PIECE:
        loss, error, hidden, decided, price = jax.vmap(one)((x, y))
    else:
        loss, error, hidden, decided, price = jax.lax.map(one, (x, y), batch_size=PIECE)
    labels = None
    if decided is not None:  # macro-F1 counts whoever is there, not by weight
        here = jnp.ones(len(loss), bool) if weight is None else jnp.asarray(weight) > 0
        labels = _count(decided & here[:, None], (jnp.asarray(y) > 0) & here[:, None])
    if weight is None:
        total = None if price is None else price.sum()
        return Sums(jnp.asarray(len(loss), loss.dtype), loss.sum(), error.sum(), labels, total), hidden
    total = None if price is None else (weight * price).sum()
    return Sums(jnp.asarray(weight).sum(), (weight * loss).sum(), (weight * error).sum(), labels, total), hidden


def measures_of(sums: Sums) -> Measures:
    """The measures that sums amount to."""
    f1 = None if sums.labels is None else _macro_f1(sums.labels)
    price = None if sums.price is None else sums.price / sums.weight
    return Measures(sums.loss / sums.weight, sums.error / sums.weight, f1, price)


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
    network: Network, x: Num[Array | np.ndarray, "n in"], y: Num[Array | np.ndarray, "n ..."], objective: Objective
) -> Measures:
    """The measures of one trained network, as numbers on the host."""
    return jax.device_get(_measure(network, x, y, objective=objective)[0])
