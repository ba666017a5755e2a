"""The structure of a network as data, for drawings and descriptions: its stages, the gates around them, the nodes of a tree.

A stage is a stack of layers (`Gates`) or a tree of layers (`Nodes`), both of nn/structure.py.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from meristem.nn.axes import INPUT, n_places
from meristem.nn.compaction import trunk_gates
from meristem.nn.network import Network
from meristem.nn.structure import Gates, Nodes, structures


class GateRow(NamedTuple):
    """A row of gates: those of a layer, of the inputs, of the trunk, or of the outputs."""

    name: str
    gates: np.ndarray  # [n], 0 … 1
    can_close: bool = True
    is_layer: bool = False

    @property
    def n_open(self) -> int:
        return int((self.gates > 0).sum())

    @property
    def open_count(self) -> str:
        return f"{self.n_open:,} of {len(self.gates):,}" if self.can_close else f"{self.n_open:,}"


class Stage(NamedTuple):
    """A part of a network with its own trunk; most networks have a single stage."""

    structure: Gates | Nodes
    above: tuple[GateRow, ...] = ()
    below: tuple[GateRow, ...] = ()
    title: str = ""  # empty for a single stage

    @property
    def layers(self) -> tuple[GateRow, ...]:
        """A row for each layer of a stack; none for a tree."""
        if isinstance(self.structure, Nodes):
            return ()
        can_close = self.structure.source == "parameters"
        return tuple(GateRow(f"layer {n}", gates, can_close, True) for n, gates in enumerate(self.structure.values, 1))


class Node(NamedTuple):
    """A leaf, or an inner node with two children. It shares its layer with its left child."""

    place: int  # in order (leaf, inner node, leaf, …): with place as x and depth as y, no branches cross
    depth: int
    layer: int  # whose weights it has, from 0
    gamma: float
    children: tuple[int, ...]  # places of the left and the right child; empty for a leaf


def stages_of(model: Any, inputs: Any = None) -> list[Stage]:
    """Return the stages of a Network, or of a body; gates that depend on the input are averaged over inputs [n, width]."""
    body = model.body if isinstance(model, Network) else model
    axes, parts = body.axes(), structures(body, inputs)
    gates = trunk_gates(axes)
    has_trunks = len(parts) == len(axes.trunks)  # one trunk per stage; otherwise all trunks are shown above the first
    stages = []
    for number, part in enumerate(parts):
        names = axes.trunks[number : number + 1] if has_trunks else axes.trunks * (number == 0)
        trunks = tuple(GateRow("trunk", gates[name]) for name in names if name in gates)
        stages.append(Stage(part, trunks, title=f"stage {number + 1}" if len(parts) > 1 else ""))
    if isinstance(model, Network):
        input_gate = model.features
        values = np.ones(n_places(model, model.axes(), INPUT)) if input_gate is None else np.asarray(input_gate.value)
        stages[0] = stages[0]._replace(above=(GateRow("inputs", values, input_gate is not None), *stages[0].above))
        stages[-1] = stages[-1]._replace(below=(GateRow("outputs", np.ones(model.n_out), can_close=False),))
    return stages


def stack_arrays(stages: Sequence[Stage]) -> dict[str, np.ndarray]:
    """Return stages that are stacks of layers as arrays by name, for a file; `stages_from` returns the inverse."""
    arrays: dict[str, np.ndarray] = {}
    for number, stage in enumerate(stages):
        assert isinstance(stage.structure, Gates)
        arrays[f"{number}/layers"] = np.asarray(stage.structure.values, np.float32)
        rows = [("above", row) for row in stage.above] + [("below", row) for row in stage.below]
        arrays |= {f"{number}/{side}/{row.name}": np.asarray(row.gates, np.float32) for side, row in rows}
    return arrays


def stages_from(arrays: Mapping[str, np.ndarray]) -> list[Stage]:
    """Return the stages of these arrays; inputs and outputs, unlike the trunk, cannot close."""
    stages = []
    for number in range(sum(name.endswith("/layers") for name in arrays)):
        above, below = (
            tuple(
                GateRow(name.rpartition("/")[2], gates, name.endswith("/trunk"))
                for name, gates in arrays.items()
                if name.startswith(f"{number}/{side}/")
            )
            for side in ("above", "below")
        )
        stages.append(Stage(Gates(arrays[f"{number}/layers"], "parameters"), above, below, title=f"stage {number + 1}"))
    return stages if len(stages) > 1 else [stage._replace(title="") for stage in stages]


def nodes_of(tree: Nodes) -> list[Node]:
    """Return the nodes of a tree, ordered by place."""
    nodes: list[Node] = []

    def add(first: int, last: int, depth: int) -> int:
        """Add the subtree over the leaves first … last, and return the place of its root: the shallowest inner node."""
        place, children = 2 * first, tuple[int, ...]()
        if first < last:
            middle = first + 1 + int(tree.depth[first + 1 : last + 1].argmin())
            place, children = 2 * middle - 1, (add(first, middle - 1, depth + 1), add(middle, last, depth + 1))
        nodes.append(Node(place, depth, first, float(tree.leafness[place]), children))
        return place

    add(0, tree.n_leaves - 1, 0)
    return sorted(nodes)


def tree_size(tree: Nodes) -> float:
    """Return the soft size, equation 8: 1 for a leaf, 1 + (1 − γ) · size of the children for an inner node."""
    nodes = nodes_of(tree)

    def size(node: Node) -> float:
        return 1 + (1 - node.gamma) * sum(size(nodes[child]) for child in node.children)

    return (1 - (tree.identity or 0)) * next(size(node) for node in nodes if node.depth == 0)


def structure_summary(structure: Gates | Nodes) -> str:
    """Return the sizes of a stage in a clause: "soft size 1.5, 2 of 4 units open"."""
    if isinstance(structure, Nodes):
        soft, leaves = tree_size(structure), structure.n_leaves
        if structure.identity == 1:
            return "a copy of its input, soft size 0, hard size 0"
        layers = "a single layer" if leaves == 1 else f"{leaves} layers"
        return f"{layers}, soft size {1 if soft == 1 else format(soft, '.2f')}, hard size {2 * leaves - 1}"
    values, n_open = structure.values, int((structure.values > 0).sum())
    sizes = {
        "parameters": f"soft size {values.sum():.1f}, {n_open} of {values.size} units open" if n_open else "no unit is open",
        "inputs": f"soft size {values.sum():.1f} of {n_open} units",
        "biases": f"{n_open} units, gates of the biases alone",
        "fixed": f"{len(values)} × {(values > 0).sum(1).max()} units",
    }[structure.source]
    separator = " " if structure.source == "fixed" else ", "
    return sizes + (separator + structure.remark) * bool(structure.remark)


def structure_legend(structure: Gates | Nodes) -> str:
    """Return how to read a drawing of it, in sentences; empty if no legend is needed."""
    if isinstance(structure, Nodes):
        nodes = (
            "Square: a layer σ(W x + b). Circle: a node and its γ; its output is γ · σ(W x + b) + (1 − γ) · right(left(x)). "
            "Same color: same layer, shared weights. Thicker lines: smaller γ. "
        )
        identity = "Top circle: γ₀; the output is γ₀ · x + (1 − γ₀) · tree(x)."
        return (nodes * (structure.n_leaves > 1) + identity * (structure.identity is not None)).strip()
    gate = {
        "parameters": "gate: 0 copies its input, 1 transforms it. Grey: closed, exactly 0.",
        "inputs": "mean gate over X: 0 copies its input, 1 transforms it.",
        "biases": "gate at input 0: 0 copies, 1 transforms. plot_structure(model, X=X) draws mean gates.",
        "fixed": "",
    }[structure.source]
    return f"Each cell is a unit; the stronger its color, the more open its {gate}" * bool(gate)
