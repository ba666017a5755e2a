"""What compaction saves: parameters, multiply-adds and latency, of the full network, of the compact one, and of a plain one.

`approximate` saves more and moves the outputs: gates that are almost closed are closed. Never by default, never without its
measure.

parameters      the numbers that are stored: weights, biases, gates, shares; of the full network also the closed and dormant
multiply-adds   those of matrix products and convolutions, for one sample, counted in the program itself
latency         of a compiled call for a batch; a call of each in turn, the medians of many
plain           the perceptrons one would have built had one known: live layer for live layer as many units as are open
gates_below     |g − closed| < gates_below → closed, of every gate of any body: 0 closes a tunnel's unit, 1 a tree's node
"""

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from meristem.check import check_number, check_size
from meristem.gate import is_confined
from meristem.layers.compact_network import CompactNetwork, n_floats
from meristem.layers.layer import Affine, Perceptron
from meristem.layers.ops.jax import DEPTHWISE
from meristem.layers.ops.loop_convolution import NAME as LOOP_CONVOLUTION
from meristem.nn import Body, Network
from meristem.nn.axes import is_entry
from meristem.nn.axis_counts import open_mask
from meristem.nn.compaction import check_concrete, compact

BATCH = 1000


@dataclass(frozen=True)
class Cost:
    parameters: int
    multiply_adds: int  # for one sample
    seconds: float  # for the batch, median


@dataclass(frozen=True)
class Report:
    """Before, after, and what a plain network with as many units in as many layers would cost. Prints as a table."""

    full: Cost
    compact: Cost
    plain: Cost | None  # of a network on vectors
    units: tuple[int, ...]  # of each live layer
    samples: int  # in the batch
    difference: float  # between the outputs before and after, relative to the largest
    device: str

    speedup = property(lambda self: self.full.seconds / self.compact.seconds)  # how many times faster the compact network is

    def __str__(self) -> str:
        rows = [["network", "parameters", "multiply-adds", f"{self.samples:,} samples", "of the compact time"]]
        is_even = len(self.units) > 1 and len(set(self.units)) == 1
        units = f"{len(self.units)} × {self.units[0]}" if is_even else " + ".join(map(str, self.units))
        plain = [] if self.plain is None else [(f"plain, {units} units" if self.units else "plain, affine", self.plain)]
        for name, cost in [("full", self.full), ("compact", self.compact), *plain]:
            times = f"{1e6 * cost.seconds:,.0f} µs", f"{cost.seconds / self.compact.seconds:.2g} ×"
            rows.append([name, f"{cost.parameters:,}", f"{cost.multiply_adds:,}", *times])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        title = (
            f"{self.compact.parameters:,} parameters in place of {self.full.parameters:,}; full and compact outputs differ by "
            f"{self.difference:.0e} of the largest ({self.device})"
        )
        return "\n".join([title, *("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)])


def report(network: Network, x: Float[Array | np.ndarray, "n in ..."] | None = None, *, repeats: int = 30) -> Report:
    """What compaction saves, measured on the batch x [n, in]; without one, on 1,000 random samples.

    >>> network = Network.create("tunnel", n_in=2, n_out=1, width=10, depth=10, key=jax.random.key(0))
    >>> saved = report(network, repeats=3)
    >>> saved.full.parameters, saved.compact.parameters, saved.full.multiply_adds, saved.compact.multiply_adds
    (1231, 3, 1030, 2)
    """
    check_concrete("report()", network)
    check_size("repeats", repeats)
    if x is None:
        x = np.random.default_rng(0).normal(size=(BATCH, *network.input_shape))
    samples = check_samples(x, network)
    small = compact(network)
    sides: dict[str, Any] = {"full": network, "compact": small}
    if len(network.input_shape) == 1:
        sides["plain"] = plain_of(network)
    seconds = in_turns({name: compiled(side, samples) for name, side in sides.items()}, repeats)
    counts = {name: (n_floats(side), multiply_adds(side, samples[0])) for name, side in sides.items()}
    costs = {name: Cost(*counts[name], statistics.median(seconds[name])) for name in sides}
    before, after = outputs(network, samples), outputs(small, samples)
    largest = max(np.abs(before).max(), np.finfo(before.dtype).tiny)
    difference, device = float(np.abs(after - before).max() / largest), jax.devices()[0].device_kind
    return Report(costs["full"], costs["compact"], costs.get("plain"), small.units, len(samples), difference, device)


def check_samples(x: Any, network: Network) -> Float[Array, "n in ..."]:
    """Return the samples x as the network takes them; ValueError where their shape is another."""
    sample, shape = network.input_shape, np.shape(x)
    if shape[1:] != sample or not len(shape) or shape[0] == 0:
        features = ", ".join(map(str, sample))
        raise ValueError(f"x has shape {shape}; it must be [samples, {features}] with at least one sample.")
    return jnp.asarray(x, network.dtype)


def outputs(network: Any, x: Float[Array, "n in ..."]) -> np.ndarray:
    """Return the outputs of all samples in full precision: by default a GPU rounds factors to 10 bits."""
    with jax.default_matmul_precision("highest"):
        return np.asarray(jax.jit(jax.vmap(network))(x))


def plain_of(network: Network) -> CompactNetwork:
    """Perceptron layers with as many units as are open in each live layer, and random weights: only its cost is of interest."""
    (n_in,), activation, dtype = network.input_shape, getattr(network.body, "activation", "relu"), network.dtype
    rng = np.random.default_rng(0)
    pairs = [
        (jnp.asarray(rng.normal(size=(out, n)) / np.sqrt(n), dtype), jnp.zeros(out, dtype))
        for n, out in pairwise((n_in, *compact(network).units, network.n_out))
    ]
    return CompactNetwork((*(Perceptron(*pair, activation) for pair in pairs[:-1]), Affine(*pairs[-1])))


def multiply_adds(network: Any, x: Float[Array, "in ..."]) -> int:
    """Those of all matrix products and convolutions in the program for one sample."""
    return _products(jax.make_jaxpr(lambda x: network(x))(x).jaxpr)


def _products(jaxpr: Any) -> int:
    count = 0
    for equation in jaxpr.eqns:
        shapes, parameters = [value.aval.shape for value in equation.invars], equation.params
        if equation.primitive.name == "dot_general":
            (contracted, _), _ = parameters["dimension_numbers"]
            count += equation.outvars[0].aval.size * math.prod(shapes[0][axis] for axis in contracted)
        if equation.primitive.name == "conv_general_dilated":
            n_out = shapes[1][parameters["dimension_numbers"].rhs_spec[0]]
            count += equation.outvars[0].aval.size * math.prod(shapes[1]) // n_out
        if equation.primitive.name == LOOP_CONVOLUTION:
            count += equation.outvars[0].aval.size * math.prod(shapes[1][:-1])
        if parameters.get("name") == DEPTHWISE:
            count += equation.outvars[0].aval.size * math.prod(shapes[0][1:])
        for value in parameters.values():
            inner = getattr(value, "jaxpr", value)
            count += _products(inner) if hasattr(inner, "eqns") else 0
    return count


def compiled(network: Any, x: Float[Array, "n in ..."]) -> Callable[[], Array]:
    """A call of the network for a batch, as one would deploy it; the weights are arguments, not constants to compute with."""
    leaves, structure = jax.tree.flatten(network)
    program = jax.jit(lambda leaves, x: jax.vmap(jax.tree.unflatten(structure, leaves))(x)).lower(leaves, x).compile()
    return lambda: program(leaves, x)


def in_turns(calls: dict[str, Callable[[], Array]], repeats: int) -> dict[str, list[float]]:
    """The seconds of every call, `repeats` times, one after the other: a slow moment of the machine hits all."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for repeat in range(repeats + 1):
        for name, call in calls.items():
            begin = time.perf_counter()
            jax.block_until_ready(call())
            if repeat:  # the first does not count
                seconds[name].append(time.perf_counter() - begin)
    return seconds


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
