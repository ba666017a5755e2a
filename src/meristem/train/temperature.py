"""How sharp logits should be: the loss on held-out rows at the best temperature, and a network whose logits are so.

    E_T = Σ_x w_x E(outputs(x) / T, t) + (log T)² / 2 σ²        least over T; the second term: a few rows alone say little

A network that goes on learning becomes too sure of itself long before it is wrong more often: its held-out loss rises while its
error still falls. At its best temperature the loss says what the network has learned; how sure it should be is one number that
is set at the end (refine, then calibrate). The sums of a few temperatures are enough, a parabola through the best three does
the rest, and sums may be taken over blocks of rows.

    of_temperatures(loss, outputs, target) → [temperatures]             of one sample
    at_best(sums [temperatures], weight) → mean loss, temperature
    tempered(network, T)                                                the network with its outputs divided by T
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from meristem.nn.ends import divide_outputs
from meristem.nn.network import Network

STEP = 0.5 * math.log(2)
LOGS = STEP * np.arange(-3, 7)  # of T, from 0.35 to 8
SPREAD = 0.5  # σ: what is expected of log T before any row has spoken


def of_temperatures(loss: Callable[[Any, Any], Any], outputs: Float[Array, " out"], target: Array) -> Float[Array, " tried"]:
    """The loss of a sample at each temperature."""
    return jax.vmap(lambda sharpness: loss(sharpness * outputs, target))(jnp.asarray(np.exp(-LOGS), outputs.dtype))


def at_best(sums: Float[Array, " tried"], weight: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The mean loss at the best temperature, and that temperature.

    >>> loss, temperature = at_best(jnp.asarray((LOGS - 0.6) ** 2 * 1000 + 5), jnp.asarray(10.0))
    >>> round(float(jnp.log(temperature)), 2)
    0.6
    """
    total = sums + jnp.asarray(LOGS**2 / (2 * SPREAD**2), sums.dtype)
    middle = jnp.clip(jnp.argmin(total), 1, len(LOGS) - 2)
    below, at, above = (total[middle + shift] for shift in (-1, 0, 1))
    curve = jnp.maximum(above - 2 * at + below, 1e-12)
    shift = jnp.clip((below - above) / (2 * curve), -1, 1)
    least = at + shift * (above - below) / 2 + shift**2 * curve / 2
    return least / weight, jnp.exp(jnp.asarray(LOGS, sums.dtype)[middle] + STEP * shift)


def tempered(network: Network, temperature: float) -> Network:
    """The network with its outputs divided by a temperature. A host function.

    >>> network = Network.create("tunnel", 2, 1, width=3, depth=2, key=jax.random.key(0))
    >>> x = jnp.ones(2)
    >>> bool(jnp.allclose(tempered(network, 2.0)(x), network(x) / 2))
    True
    """
    return network if temperature == 1 else divide_outputs(network, temperature)
