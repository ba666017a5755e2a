"""Shapes that many data sets share: rows, features and outputs are filled up to the next of few sizes.

    rows      256, 512, …, 2048, then four sizes between one power of two and the next
    features  32, 64, 128, 256, 320, 384, 448, 512, 640, …
    outputs   8, 16, 32, 64, 80, …
    objective two classes are trained as one label, which is the same

A compiled program belongs to a shape; neighboring shapes become one. Small shapes cost nothing, so there are few of them;
of a large one at most a fifth is filling. Nothing changes but the shape: rows get weight 0, features are 0 in every sample,
and outputs that nobody asked for always say what costs nothing (the objective's `unused_output`).
"""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from meristem.nn import Network
from meristem.train.objectives import Binary, Multilabel, Objective
from meristem.train.recipe import Recipe
from meristem.train.state import TrainState, start

ROWS, FEATURES, OUTPUTS = 256, 32, 8  # the smallest


def bucket(n: int, least: int) -> int:
    """The next size.

    >>> [bucket(n, 32) for n in (1, 32, 33, 100, 300, 784)]
    [32, 32, 64, 128, 320, 896]
    """
    power = max(least, 1 << (n - 1).bit_length())
    step = power if power <= 8 * least else power // 8
    return -(-n // step) * step


def shared(objective: Objective) -> Objective:
    """The objective that does the same with a shape that others share."""
    return Multilabel() if objective == Binary() else objective


def filled(array: np.ndarray, *shape: int) -> np.ndarray:
    """The array at the front of zeros.

    >>> filled(np.array([1, 2]), 4).tolist()
    [1, 2, 0, 0]
    """
    whole = np.zeros(shape, array.dtype)
    whole[tuple(slice(n) for n in array.shape)] = array
    return whole


def begin(
    body: str, n_in: int, n_out: int, *, size: dict[str, Any], options: dict[str, Any], objective: Objective, seed: int
) -> TrainState:
    """The state before the first epoch of a network with room for more inputs and outputs than it has.

    `size` are arguments of `Network.create`, `options` those of the body.
    """
    return _begin(
        np.uint32(seed),
        np.int32(n_in),
        np.int32(n_out),
        np.float32(objective.unused_output),
        body=body,
        n_in=bucket(n_in, FEATURES),
        n_out=bucket(n_out, OUTPUTS),
        options=tuple(sorted((size | options).items())),
    )


@partial(jax.jit, static_argnames=("body", "n_in", "n_out", "options"))
def _begin(
    seed: Any,
    used_in: Any,
    used_out: Any,
    unused_output: Any,
    *,
    body: str,
    n_in: int,
    n_out: int,
    options: tuple[Any, ...],
) -> TrainState:
    keys = jax.random.split(jax.random.key(seed))
    network = Network.create(body, n_in, n_out, key=keys[0], **dict(options))
    # What the state holds at first is the same for every recipe.
    return start(partly_used(network, used_in, used_out, unused_output), Recipe(), key=keys[1])


def partly_used(
    network: Network, used_in: Int[Array, ""] | int, used_out: Int[Array, ""] | int, unused_output: Float[Array, ""] | float
) -> Network:
    """A fresh network that uses the first of its inputs and outputs; other inputs do nothing, other outputs never change.

    Its weights are as large as if there were no others: uniform on ±√(6 / (fan_in + fan_out)).

    >>> network = partly_used(Network.create("tunnel", 4, 3, depth=2, key=jax.random.key(0)), 2, 1, -9.0)
    >>> network(jnp.array([0.0, 0.0, 5.0, 5.0])).tolist()
    [0.0, -9.0, -9.0]
    """
    (width, n_in), n_out = network.embed.weight.shape, network.head.weight.shape[0]
    bias = network.head.bias
    assert bias is not None
    reads, says = jnp.arange(n_in) < used_in, jnp.arange(n_out) < used_out
    embed_scale, head_scale = (jnp.sqrt((n + width) / (used + width)) for n, used in ((n_in, used_in), (n_out, used_out)))
    if network.features is not None:
        network = eqx.tree_at(lambda n: n.features, network, network.features.at(reads.astype(bias.dtype)))
    return eqx.tree_at(
        lambda n: (n.embed.weight, n.head.weight, n.head.bias),
        network,
        (
            jnp.where(reads[None, :], embed_scale * network.embed.weight, 0),
            jnp.where(says[:, None], head_scale * network.head.weight, 0),
            jnp.where(says, bias, unused_output),
        ),
    )


def narrow(network: Network, n_in: int, n_out: int) -> Network:
    """The network with the inputs and outputs that it uses, and no others."""
    network = jax.device_get(network)  # cutting on the device would compile a program for each shape
    assert network.head.bias is not None
    small = eqx.tree_at(
        lambda n: (n.embed.weight, n.head.weight, n.head.bias),
        network,
        (network.embed.weight[:, :n_in], network.head.weight[:n_out], network.head.bias[:n_out]),
    )
    if small.features is not None:
        small = eqx.tree_at(lambda n: n.features.value, small, small.features.value[:n_in])
    return jax.device_put(small)
