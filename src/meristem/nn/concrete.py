"""Whether a network is one, with values in it: what looks at gates needs them.

    check_concrete("compact()", network)        ValueError of one line for a population, a traced network, or something else
    on_host(weight, *others)                    arrays of one body, in double precision

Imports nothing of meristem; bodies, networks, compaction and pictures import it.
"""

from typing import Any

import jax
import numpy as np


def check_concrete(what: str, network: Any) -> None:
    """One network with values in it, or a ValueError of one line."""
    if not hasattr(network, "input_shape"):
        raise ValueError(f"{what} takes a Network, got a {type(network).__name__}; make one with Network.create(…).")
    check_values(what, network)
    if network.members:
        raise ValueError(
            f"{what} takes one network, got a population of {network.members[0]}; "
            "pick one: jax.tree.map(lambda a: a[0], networks)."
        )


def check_values(what: str, model: Any) -> None:
    """Arrays with values in them, or a ValueError of one line."""
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(model)):
        raise ValueError(f"{what} looks at the values of the gates, which jit, vmap and grad hide; call it outside of them.")


def check_one(weight: Any) -> None:
    """One body, or a ValueError of one line; its weights are [layers, width, width]."""
    if weight.ndim != 3:
        raise ValueError(
            f"compact() takes one body, got a population of {weight.shape[0]}; pick one: jax.tree.map(lambda a: a[0], bodies)."
        )


def on_host(weight: Any, *others: Any) -> list[np.ndarray]:
    """Arrays of one body in double precision; the first is [layers, width, width]."""
    check_one(weight)
    return [np.asarray(array, np.float64) for array in (weight, *others)]
