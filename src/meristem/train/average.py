"""The average over the last stage: what is measured and kept of a network that settles.

    a ← a + share · (p − a)         share = max(1 / epochs of the stage so far, 0.15), after every epoch

Steps do not end where the loss is least but dance around it, by the rate; their mean is nearer. In the last stage what is open
can only close, so the mean has the structure of the last network: a gate is closed in it where it is closed there. Before that
stage, and in the first epoch after a tree has moved its rows, the average is the network itself.

Imports gate and nn; train.state and train.epoch import it.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from meristem.gate import closed_as
from meristem.nn.network import Network

SHARE = 0.15  # of the newest epoch, at least


class Average(eqx.Module):
    """The mean network, and over how many epochs; 0 outside the last stage."""

    network: Network
    epochs: Int[Array, ""]


def started(network: Network) -> Average:
    """Before the first epoch."""
    return Average(network, jnp.zeros((), jnp.int32))


def averaged(average: Average, network: Network, holds: Bool[Array, ""], moved: Bool[Array, ""]) -> Average:
    """One epoch later; `holds`: it was one of the last stage, `moved`: one in which a tree opened or closed nodes.

    >>> from meristem.nn import Network
    >>> network = Network.create("tunnel", 2, 1, width=3, depth=2, key=jax.random.key(0))
    >>> mean = averaged(started(network), network, jnp.array(True), jnp.array(False))
    >>> int(mean.epochs)
    1
    """
    epochs = jnp.where(holds, jnp.where(moved, 0, average.epochs) + 1, 0)
    share = jnp.maximum(1 / jnp.maximum(epochs, 1), SHARE)

    def mixed(old: Any, new: Any) -> Any:
        if not eqx.is_inexact_array(new):
            return new
        return jnp.where(epochs > 1, old + share.astype(new.dtype) * (new - old), new)

    mean = closed_as(network, jax.tree.map(mixed, average.network, network))
    return Average(mean, epochs.astype(jnp.int32))
