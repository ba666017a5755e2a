"""What a network is made of, in words and a table: layers, open units, sizes, parameters; a tree's nodes with their γ.

describe(network) → Description(lines, columns, rows)
"""

from functools import singledispatch
from typing import Any, NamedTuple

import jax
import numpy as np

from meristem.compact import compact
from meristem.complexity import hard_size
from meristem.nn import Budding, Highway, Network, Tunnel
from meristem.nn.tree import leaf_depth, living

Rows = tuple[list[str], list[list[str]]]


class Description(NamedTuple):
    """Lines to read, then a table."""

    lines: list[str]
    columns: list[str]
    rows: list[list[str]]


def describe(network: Network) -> Description:
    """A network of any body.

    >>> network = Network.create("tunnel", n_in=2, n_out=1, depth=3, key=jax.random.key(0))
    >>> print("\\n".join(describe(network).lines))
    tunnel network: 2 inputs → width 10 → 1 output
    391 parameters, 31 of them live; compact form: 3 (Affine)
    """
    body: Any = network.body
    (n_out, width), n_in = network.head.weight.shape, network.embed.weight.shape[1]
    whole, ends = _count(network), _count((network.embed, network.head))
    small = compact(network)
    kinds = ", ".join(type(layer).__name__ for layer in small.layers)
    lines = [
        f"{type(body).__name__.lower()} network: {_many(n_in, 'input')} → width {width} → {_many(n_out, 'output')}",
        f"{whole:,} parameters, {int(body.live_parameters()) + ends:,} of them live; compact form: {_count(small):,} ({kinds})",
    ]
    return Description(lines, *_table(body))


def _count(tree: Any) -> int:
    return sum(np.size(leaf) for leaf in jax.tree.leaves(tree) if np.asarray(leaf).dtype.kind == "f")


def _many(n: int, what: str) -> str:
    return f"{n} {what}{'s' * (n != 1)}"


@singledispatch
def _table(body: Any) -> Rows:
    return ["layer", "units"], [[str(layer + 1), str(len(bias))] for layer, bias in enumerate(np.asarray(body.bias))]


@_table.register
def _(body: Tunnel) -> Rows:
    rows = [
        [str(layer + 1), f"{(gate > 0).sum()} of {len(gate)}", f"{gate.sum():.2f}", f"{gate.max():.2f}"]
        for layer, gate in enumerate(np.asarray(body.gate.value))
    ]
    total = np.asarray(body.gate.value)
    return ["layer", "open units", "soft size", "widest gate"], [
        *rows,
        ["all", f"{int(hard_size(body))} of {total.size}", f"{total.sum():.2f}", f"{total.max():.2f}"],
    ]


@_table.register
def _(body: Highway) -> Rows:
    gates = 1 / (1 + np.exp(-np.asarray(body.gate_bias)))
    rows = [[str(layer + 1), str(len(gate)), f"{gate.mean():.2f}"] for layer, gate in enumerate(gates)]
    return ["layer", "units", "mean gate at input 0"], rows


@_table.register
def _(body: Budding) -> Rows:
    """In the tree's order: leaf, inner node, leaf, …"""
    alive, depth = np.asarray(living(body.depth)), np.asarray(body.depth)
    gamma, leaves = np.asarray(body.leafness.value), np.asarray(leaf_depth(body.depth))
    rows = []
    for j in np.flatnonzero(alive):
        if j > 0:
            rows.append([f"node {j}", f"{'  ' * depth[j]}inner", str(depth[j]), f"{gamma[2 * j - 1]:.3f}"])
        rows.append([f"layer {j + 1}", f"{'  ' * leaves[j]}leaf", str(leaves[j]), f"{gamma[2 * j]:.3f}"])
    return ["place", "kind", "depth", "leafness γ"], rows
