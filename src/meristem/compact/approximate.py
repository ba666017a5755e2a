"""Compaction that moves the outputs: gates that are almost closed are closed. Never by default, never without its measure.

gates       |g − closed| < gates_below   → closed    of any body, every confined parameter: 0 closes a gate, 1 closes leafness
budding     γ > 1 − gates_below          → 1         of every node, and γ₀ of a root that may copy
"""

from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from meristem.check import check_number
from meristem.compact.model import compact
from meristem.compact.samples import check_samples, outputs
from meristem.gate import Confined, is_confined
from meristem.layers.network import CompactNetwork
from meristem.nn import Body, Budding, Network
from meristem.nn.concrete import check_concrete
from meristem.nn.tree import in_order, living


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
    gates = [node for node in jax.tree.leaves(body, is_leaf=is_confined) if is_confined(node)]
    if not gates:
        raise ValueError(f"A {type(body).__name__} has no gates that could be closed for all inputs; use compact(network).")

    def nearly_closed(gate: Confined) -> Bool[Array, "*shape"]:
        return jnp.abs(gate.value - gate.closed) < gates_below

    def close(node: Any) -> Any:
        return node.at(jnp.where(nearly_closed(node), node.closed, node.value)) if is_confined(node) else node

    count = sum(int((gate.is_open & nearly_closed(gate)).sum()) for gate in gates)
    return jax.tree.map(close, body, is_leaf=is_confined), count


@_close.register
def _(body: Budding, gates_below: float) -> tuple[Budding, int]:
    alive = living(body.depth)
    leafness, count = _nearly_one(body.leafness.value, in_order(alive, alive), gates_below)
    closed = eqx.tree_at(lambda b: b.leafness.value, body, leafness)
    if body.identity is None:
        return closed, count
    copied, one = _nearly_one(body.identity.value, jnp.array(True), gates_below)
    return eqx.tree_at(lambda b: b.identity.value, closed, copied), count + one


def _nearly_one(gamma: Array, counts: Array, gates_below: float) -> tuple[Array, int]:
    """Those γ that count and are almost 1 made 1, and how many there were."""
    large = counts & (gamma < 1) & (gamma > 1 - gates_below)
    return jnp.where(large, 1, gamma), int(large.sum())


def _decisions(outputs: np.ndarray) -> np.ndarray:
    return outputs[:, 0] > 0 if outputs.shape[1] == 1 else outputs.argmax(1)
