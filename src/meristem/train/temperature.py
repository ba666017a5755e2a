"""Temperature scaling: the loss on held-out rows at the best temperature, and a network with that temperature.

    E_T = Σ_x w_x E(outputs(x) / T, t) + (log T)² / 2 σ²        least over T; the prior keeps T near 1 where rows are few

A network that trains on becomes overconfident long before it makes more errors: its held-out loss rises while its error still
falls. At the best temperature the loss shows what the network has learned; confidence is one number, set at the end. The sums
at a few temperatures are enough: a parabola through the best three gives the minimum, and sums add up over blocks of rows.
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
SPREAD = 0.5  # σ of the prior on log T


def of_temperatures(loss: Callable[[Any, Any], Any], outputs: Float[Array, " out"], target: Array) -> Float[Array, " tried"]:
    """Return the loss of a sample at each temperature."""
    return jax.vmap(lambda sharpness: loss(sharpness * outputs, target))(jnp.asarray(np.exp(-LOGS), outputs.dtype))


def at_best(sums: Float[Array, " tried"], weight: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Return the mean loss at the best temperature, and that temperature."""
    total = sums + jnp.asarray(LOGS**2 / (2 * SPREAD**2), sums.dtype)
    middle = jnp.clip(jnp.argmin(total), 1, len(LOGS) - 2)
    below, at, above = (total[middle + shift] for shift in (-1, 0, 1))
    curve = jnp.maximum(above - 2 * at + below, 1e-12)
    shift = jnp.clip((below - above) / (2 * curve), -1, 1)
    least = at + shift * (above - below) / 2 + shift**2 * curve / 2
    return least / weight, jnp.exp(jnp.asarray(LOGS, sums.dtype)[middle] + STEP * shift)


def tempered(network: Network, temperature: float) -> Network:
    """Return the network with its outputs divided by a temperature."""
    return network if temperature == 1 else divide_outputs(network, temperature)
