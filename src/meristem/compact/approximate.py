"""Compaction that moves the outputs: gates that are almost closed are closed. Never by default, never without its measure.

tunnel      g < gates_below       → 0
budding     γ > 1 − gates_below   → 1
"""

from dataclasses import dataclass
from functools import singledispatch
from typing import TypeVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from meristem.check import check_number
from meristem.compact.lower import check_concrete, compact
from meristem.compact.network import CompactNetwork
from meristem.compact.samples import check_samples, outputs
from meristem.nn import Body, Budding, Network, Tunnel
from meristem.nn.tree import in_order, living

B = TypeVar("B", bound=Body)


@dataclass(frozen=True)
class Approximation:
    """A compact network that is not the same, and how much it is not, over the samples it was measured on."""

    network: CompactNetwork
    closed: int  # how many gates or nodes were closed
    moved: float  # the largest change of an output
    largest: float  # the largest output there was
    changed: float  # the share of samples with another decision: the highest output, or the sign of a single one

    def __str__(self) -> str:
        return (
            f"{self.closed} closed; outputs moved by at most {self.moved:.2g}, the largest is {self.largest:.2g}; "
            f"{100 * self.changed:.2g} % of the decisions changed"
        )


def approximate(network: Network, x: Float[Array | np.ndarray, "n in"], *, gates_below: float) -> Approximation:
    """The compact form after closing what is almost closed, and how much that moved the outputs of the samples x [n, in].

    >>> import equinox as eqx, jax, jax.numpy as jnp
    >>> from meristem.nn import Network
    >>> network = Network.create("tunnel", n_in=2, n_out=1, width=3, depth=2, key=jax.random.key(0))
    >>> gates = jnp.array([[0.5, 0.0, 0.001], [0.002, 0.0, 0.0]])
    >>> network = eqx.tree_at(lambda n: n.body.gate.value, network, gates)
    >>> x = jax.random.normal(jax.random.key(1), (100, 2))
    >>> result = approximate(network, x, gates_below=0.01)
    >>> result.closed, result.network.layers[0].units, 0 < result.moved < 0.02
    (2, (1,), True)
    """
    check_concrete("approximate()", network)
    check_number("gates_below", gates_below, "above 0 and below 1", lambda value: 0 < value < 1)
    samples = check_samples(x, network)
    body, count = _close(network.body, gates_below)
    small = compact(eqx.tree_at(lambda n: n.body, network, body))
    before, after = outputs(network, samples), outputs(small, samples)
    return Approximation(
        network=small,
        closed=count,
        moved=float(np.abs(after - before).max()),
        largest=float(np.abs(before).max()),
        changed=float((_decisions(after) != _decisions(before)).mean()),
    )


@singledispatch
def _close(body: Body, gates_below: float) -> tuple[Body, int]:
    """The body with its almost closed gates closed, and how many there were."""
    raise ValueError(f"A {type(body).__name__} has no gates that could be closed for all inputs; use compact(network).")


@_close.register
def _(body: Tunnel, gates_below: float) -> tuple[Tunnel, int]:
    gate = body.gate.value
    small = (gate > 0) & (gate < gates_below)
    return eqx.tree_at(lambda b: b.gate.value, body, jnp.where(small, 0, gate)), int(small.sum())


@_close.register
def _(body: Budding, gates_below: float) -> tuple[Budding, int]:
    gamma, alive = body.leafness.value, living(body.depth)
    large = in_order(alive, alive) & (gamma < 1) & (gamma > 1 - gates_below)
    return eqx.tree_at(lambda b: b.leafness.value, body, jnp.where(large, 1, gamma)), int(large.sum())


def _decisions(outputs: np.ndarray) -> np.ndarray:
    return outputs[:, 0] > 0 if outputs.shape[1] == 1 else outputs.argmax(1)
