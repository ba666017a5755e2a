"""Compaction that moves the outputs: gates that are almost closed are closed. Never by default, never without its measure.

|g − closed| < gates_below   → closed          of every gate of any body: 0 closes a tunnel's unit, 1 a tree's node
"""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from meristem.check import check_number
from meristem.compact.report import check_samples, outputs
from meristem.gate import is_confined
from meristem.layers.compact_network import CompactNetwork
from meristem.nn import Body, Network
from meristem.nn.axes import is_entry
from meristem.nn.axis_counts import open_mask
from meristem.nn.compaction import check_concrete, compact


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


def approximate(network: Network, x: Float[Array | np.ndarray, "n in ..."], *, gates_below: float) -> Approximation:
    """The compact form after closing what is almost closed, and how much that moved the outputs of the samples x [n, in].

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
    old, new = (values[:, 0] > 0 if values.shape[1] == 1 else values.argmax(1) for values in (before, after))
    moved, largest = float(np.abs(after - before).max()), float(np.abs(before).max())
    return Approximation(small, count, moved, largest, changed=float((old != new).mean()))


def _close(body: Body, gates_below: float) -> tuple[Body, int]:
    """The body with its almost closed gates closed, and how many there were."""
    declared, counts = body.axes(), []

    def close(entry: Any, node: Any) -> Any:
        if not is_confined(node):
            return node
        nearly = node.is_open & (jnp.abs(node.value - node.closed) < gates_below)
        is_there = open_mask(declared, entry.value, node.value.ndim)  # of a tree with free places, those that are taken
        counts.append(int((nearly if is_there is None else nearly & is_there).sum()))
        return node.at(jnp.where(nearly, node.closed, node.value))

    closed = jax.tree.map(close, declared.arrays, body, is_leaf=lambda node: is_confined(node) or is_entry(node))
    if not counts:
        raise ValueError(f"A {type(body).__name__} has no gates that could be closed for all inputs; use compact(network).")
    return closed, sum(counts)
