"""What a network is made of, in words and a table: layers, open units, sizes, parameters; a tree's nodes with their γ.

describe(network) → Description(lines, columns, rows)

The table follows from the body's structure (stages.py), whatever body it is. The command line imports it.
"""

from typing import NamedTuple

import jax
import numpy as np

from meristem.check import many
from meristem.compact import compact
from meristem.nn import Network
from meristem.nn.axes import n_places
from meristem.nn.concrete import check_concrete
from meristem.nn.structure import Gates, Nodes
from meristem.show.nodes import nodes_of
from meristem.show.stages import Stage, stages_of

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
    stages, declared, (n_in, *positions) = stages_of(network), network.axes(), network.input_shape
    name, inputs = type(network.body).__name__.lower(), " × ".join([many(n_in, "input"), *map(str, positions)])
    widths = " → ".join(f"width {n_places(network, declared, trunk)}" for trunk in declared.trunks)
    lines = [
        f"{name} network: {inputs} → {widths} → {many(network.n_out, 'output')}",
        *(line for stage in stages for line in open_parts(stage)),
        _parameters(network),
    ]
    return Description(lines, *_table([stage.structure for stage in stages]))


def open_parts(stage: Stage) -> list[str]:
    """What is open of inputs and trunk of a stage, where they have gates.

    >>> network = Network.create("tunnel", 2, 1, width="auto", max_width=8, depth=3, feature_gates=True, key=jax.random.key(0))
    >>> open_parts(*stages_of(network))
    ['inputs: 2 of 2 open', 'trunk: 8 of 8 open']
    """
    strips, title = [strip for strip in stage.above if strip.can_close], f"{stage.title}, " if stage.title else ""
    return [f"{title}{strip.name}: {strip.n_open} of {len(strip.gates)} open" for strip in strips]


def _parameters(network: Network) -> str:
    """How many numbers there are: of what is shipped, and of what training holds (closed, dormant and free ones too)."""
    trained = sum(np.size(leaf) for leaf in jax.tree.leaves(network) if np.asarray(leaf).dtype.kind == "f")
    try:
        small = compact(network)
    except ValueError:  # a body of one's own that says nothing of a compact form
        return f"{trained:,} parameters; it has no compact form"
    kinds = ", ".join(type(layer).__name__ for layer in small.layers)
    return f"{small.n_parameters:,} parameters in its compact form ({kinds}); {trained:,} while it is trained"


def _table(structures: list[Gates | Nodes]) -> Rows:
    """One table; several stages one below the other, with the columns of the first."""
    tables = [_nodes(part) if isinstance(part, Nodes) else _gates(part) for part in structures]
    if len(tables) == 1:
        return tables[0]
    columns = tables[0][0]
    rows = [[f"{stage}.{row[0]}", *row[1:]] for stage, (_, rows) in enumerate(tables, start=1) for row in rows]
    return columns, [(row + ["–"] * len(columns))[: len(columns)] for row in rows]


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
    rows = [] if nodes.identity is None else [["above the root", "identity", "–", f"{nodes.identity:.3f}"]]
    for node in nodes_of(nodes):
        kind, place = ("inner", f"node {node.place // 2 + 1}") if node.children else ("leaf", f"layer {node.layer + 1}")
        rows.append([place, f"{'  ' * node.depth}{kind}", str(node.depth), f"{node.gamma:.3f}"])
    return ["place", "kind", "depth", "leafness γ"], rows
