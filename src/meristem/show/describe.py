"""What a network is made of, in words and a table: layers, open units, sizes, parameters; a tree's nodes with their γ.

describe(network) → Description(lines, columns, rows)

What is told is what the body shows of itself (`nn/structure.py`), whatever body it is.
"""

from typing import NamedTuple

import jax
import numpy as np

from meristem.compact import compact
from meristem.nn import Network
from meristem.nn.axes import n_places
from meristem.nn.compaction import trunk_gates
from meristem.nn.concrete import check_concrete
from meristem.nn.structure import Gates, Nodes, structures
from meristem.nn.tree import leaf_depth

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
    3 parameters in its compact form (Affine); 391 while it is trained
    """
    check_concrete("describe()", network)
    body = network.body
    (n_in, *positions), n_out = network.input_shape, network.n_out
    inputs = " × ".join([_many(n_in, "input"), *map(str, positions)])
    declared = network.axes()
    widths = " → ".join(f"width {n_places(network, declared, name)}" for name in declared.trunks)
    lines = [
        f"{type(body).__name__.lower()} network: {inputs} → {widths} → {_many(n_out, 'output')}",
        *open_parts(network),
        _parameters(network),
    ]
    parts = structures(body)
    return Description(lines, *_tables(parts))


def open_parts(network: Network) -> list[str]:
    """What is open of trunk and inputs, where they have gates.

    >>> network = Network.create("tunnel", 2, 1, width="auto", max_width=8, depth=3, feature_gates=True, key=jax.random.key(0))
    >>> open_parts(network)
    ['trunk: 8 of 8 dimensions open', 'inputs: 2 of 2 open']
    """
    trunks = list(trunk_gates(network.body.axes()).values())
    names = ["trunk"] if len(trunks) == 1 else [f"trunk {k}" for k in range(1, len(trunks) + 1)]
    lines = [f"{name}: {(gates > 0).sum()} of {gates.size} dimensions open" for name, gates in zip(names, trunks, strict=True)]
    if (inputs := network.features) is not None:
        lines.append(f"inputs: {int(inputs.is_open.sum())} of {inputs.value.size} open")
    return lines


def _parameters(network: Network) -> str:
    """How many numbers there are: of what is shipped, and of what training holds (closed, dormant and free ones too)."""
    trained = sum(np.size(leaf) for leaf in jax.tree.leaves(network) if np.asarray(leaf).dtype.kind == "f")
    try:
        small = compact(network)
    except ValueError:  # a body of one's own that says nothing of a compact form
        return f"{trained:,} parameters; it has no compact form"
    kinds = ", ".join(type(layer).__name__ for layer in small.layers)
    return f"{small.n_parameters:,} parameters in its compact form ({kinds}); {trained:,} while it is trained"


def _many(n: int, what: str) -> str:
    return f"{n} {what}{'s' * (n != 1)}"


def _tables(parts: list[Gates | Nodes]) -> Rows:
    """One table; where there are several stages of gates, one below the other."""
    tables = [_nodes(part) if isinstance(part, Nodes) else _gates(part) for part in parts]
    if len(tables) == 1:
        return tables[0]
    columns = max((columns for columns, _ in tables), key=len)
    rows = [[f"{stage}.{row[0]}", *row[1:]] for stage, (_, rows) in enumerate(tables, start=1) for row in rows]
    return columns, [row + ["–"] * (len(columns) - len(row)) for row in rows]


def _gates(gates: Gates) -> Rows:
    """A row per layer; where 0 is exact, also all layers together."""
    if gates.source == "fixed":
        return ["layer", "units"], [[str(layer + 1), str((row > 0).sum())] for layer, row in enumerate(gates.values)]
    if gates.source == "parameters":
        layers = [(str(layer + 1), row) for layer, row in enumerate(gates.values)]
        return ["layer", "open units", "soft size", "widest gate"], [
            [name, f"{(values > 0).sum()} of {values.size}", f"{values.sum():.2f}", f"{values.max():.2f}"]
            for name, values in [*layers, ("all", gates.values)]
        ]
    there = [row[row > 0] for row in gates.values]
    means = [[str(layer + 1), str(len(row)), f"{row.mean() if len(row) else 0:.2f}"] for layer, row in enumerate(there)]
    return ["layer", "units", "mean gate" if gates.source == "inputs" else "mean gate at input 0"], means


def _nodes(nodes: Nodes) -> Rows:
    """In the tree's order: leaf, inner node, leaf, …; above them the root that may copy, where there is one."""
    depth, leaves = nodes.depth, np.asarray(leaf_depth(jax.numpy.asarray(nodes.depth)))
    rows = [] if nodes.identity is None else [["above the root", "identity", "–", f"{nodes.identity:.3f}"]]
    for j in range(nodes.n_leaves):
        if j > 0:
            rows.append([f"node {j}", f"{'  ' * depth[j]}inner", str(depth[j]), f"{nodes.leafness[2 * j - 1]:.3f}"])
        rows.append([f"layer {j + 1}", f"{'  ' * leaves[j]}leaf", str(leaves[j]), f"{nodes.leafness[2 * j]:.3f}"])
    return ["place", "kind", "depth", "leafness γ"], rows
