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
from meristem.train.objective import objective
from meristem.train.samples import to_float

PIECE = 2048  # samples


class Measures(NamedTuple):
    """Of one network on one set; `macro_f1` is None where there are no labels."""

    loss: Float[Array, ""]
    error: Float[Array, ""]
    macro_f1: Float[Array, ""] | None


def measure(
    network: Network,
    x: Num[Array | np.ndarray, "n in"],
    y: Num[Array | np.ndarray, "n ..."],
    kind: str,
    weight: Float[Array | np.ndarray, " n"] | None = None,
) -> tuple[Measures, Float[Array, "n width"]]:
    """The measures for an objective `kind`, samples by their weight, and what reached the body.

    >>> network = Network.create("tunnel", 2, 3, depth=2, key=jax.random.key(0))
    >>> measures, hidden = measure(network, jnp.zeros((4, 2)), jnp.zeros((4, 3)), "multilabel")
    >>> measures.error.item(), measures.macro_f1.item(), hidden.shape
    (0.0, 0.0, (4, 10))
    """
    task = objective(kind)

    def one(sample: tuple[Any, Any]) -> tuple[Array, Array, Array, Array | None]:
        hidden = network.embed(to_float(sample[0]))
        outputs = network.head(network.body(hidden))
        decided = outputs > 0 if kind == "multilabel" else None
        return task.loss(outputs, sample[1]), task.error(outputs, sample[1]), hidden, decided

    if x.shape[0] <= PIECE:
        loss, error, hidden, decided = jax.vmap(one)((x, y))
    else:
        loss, error, hidden, decided = jax.lax.map(one, (x, y), batch_size=PIECE)
    actual = jnp.asarray(y) > 0
    if weight is None:
        means = loss.mean(), error.mean()
    else:
        means = (weight * loss).sum() / weight.sum(), (weight * error).sum() / weight.sum()
        if decided is not None:  # macro-F1 counts whoever is there
            decided, actual = (flags & (weight > 0)[:, None] for flags in (decided, actual))
    return Measures(*means, None if decided is None else macro_f1(decided, actual)), hidden


def macro_f1(predicted: Bool[Array, "n labels"], actual: Bool[Array, "n labels"]) -> Float[Array, ""]:
    """The mean F1 of the labels with a positive in the set; 0 where there is none.

    >>> predicted = jnp.array([[True, True, True], [False, True, False]])
    >>> actual = jnp.array([[True, False, False], [True, True, False]])
    >>> round(macro_f1(predicted, actual).item(), 3)  # both labels that occur have 2 · 1 / (2 · 1 + 1)
    0.667
    """
    hits, claims, positives = (flags.sum(0).astype(jnp.result_type(float)) for flags in (predicted & actual, predicted, actual))
    occurs = positives > 0
    return jnp.where(occurs, 2 * hits / jnp.maximum(claims + positives, 1), 0).sum() / jnp.maximum(occurs.sum(), 1)


_measure = jax.jit(measure, static_argnames="kind")


def evaluate(network: Network, x: Num[Array | np.ndarray, "n in"], y: Num[Array | np.ndarray, "n ..."], kind: str) -> Measures:
    """The measures of one trained network, as numbers on the host."""
    return jax.device_get(_measure(network, x, y, kind=kind)[0])
