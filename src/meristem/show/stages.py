"""What is drawn and described of a network: its stages, and around each the gates that belong to no layer.

    stages_of(network)  → [Stage(Gates(…), above=(Strip("inputs", …), Strip("trunk", …)), below=(Strip("outputs", …),))]
    summary(stage.structure)  → "soft size 3.4, 5 of 18 units open"

A stage is plain data: a stack of layers (`Gates`) or a tree of layers (`Nodes`), from nn/structure.py. Imports nn; layout.py,
describe.py and whoever draws or counts a network import it.
"""

from typing import Any, NamedTuple

import numpy as np

from meristem.nn.compaction import trunk_gates
from meristem.nn.network import Network
from meristem.nn.structure import Gates, Nodes, structures
from meristem.show.nodes import tree_size


class Strip(NamedTuple):
    """A row of gates beside the layers: inputs, trunk or outputs."""

    name: str
    gates: np.ndarray  # [n], 0 … 1
    can_close: bool = True

    @property
    def n_open(self) -> int:
        return int((self.gates > 0).sum())


class Stage(NamedTuple):
    """A part of a network with a trunk of its own; most networks are a single stage."""

    structure: Gates | Nodes
    above: tuple[Strip, ...] = ()
    below: tuple[Strip, ...] = ()
    title: str = ""  # a line above it, where there are several


def stages_of(model: Any, inputs: Any = None) -> list[Stage]:
    """Return the stages of a Network, or of a body alone; gates that depend on the input are averaged over inputs [n, width].

    >>> import jax
    >>> network = Network.create("tunnel", 2, 1, width="auto", max_width=8, depth=3, key=jax.random.key(0))
    >>> [strip.name for strip in stages_of(network)[0].above]
    ['inputs', 'trunk']
    """
    body = model.body if isinstance(model, Network) else model
    declared, parts = body.axes(), structures(body, inputs)
    gates = trunk_gates(declared)
    has_trunks = len(parts) == len(declared.trunks)  # a trunk for each stage; if not, all stand above the first
    stages = []
    for number, part in enumerate(parts):
        names = declared.trunks[number : number + 1] if has_trunks else declared.trunks * (number == 0)
        trunks = tuple(Strip("trunk", gates[name]) for name in names if name in gates)
        stages.append(Stage(part, trunks, title=f"stage {number + 1}" if len(parts) > 1 else ""))
    if isinstance(model, Network):
        inputs_gate = model.features
        values = np.ones(model.input_shape[0]) if inputs_gate is None else np.asarray(inputs_gate.value)
        stages[0] = stages[0]._replace(above=(Strip("inputs", values, inputs_gate is not None), *stages[0].above))
        stages[-1] = stages[-1]._replace(below=(Strip("outputs", np.ones(model.n_out), can_close=False),))
    return stages


def summary(structure: Gates | Nodes) -> str:
    """Return the sizes of a stage in a clause.

    >>> summary(Gates(np.array([[1.0, 0.5], [0.0, 0.0]]), "parameters"))
    'soft size 1.5, 2 of 4 units open'
    """
    if isinstance(structure, Nodes):
        soft, leaves = tree_size(structure), structure.n_leaves
        if structure.identity == 1:
            return "a copy of its input, soft size 0, hard size 0"
        layers = "a single layer" if leaves == 1 else f"{leaves} layers"
        return f"{layers}, soft size {1 if soft == 1 else format(soft, '.2f')}, hard size {2 * leaves - 1}"
    values, n_open = structure.values, int((structure.values > 0).sum())
    words = {
        "parameters": f"soft size {values.sum():.1f}, {n_open} of {values.size} units open" if n_open else "no unit is open",
        "inputs": f"soft size {values.sum():.1f} of {n_open} units",
        "biases": f"{n_open} units, gates of the biases alone",
        "fixed": f"{len(values)} × {(values > 0).sum(1).max()} units",
    }[structure.source]
    separator = " " if structure.source == "fixed" else ", "
    return words + (separator + structure.remark) * bool(structure.remark)


def key(structure: Gates | Nodes) -> str:
    """Return how a drawing of it is read, in sentences; nothing where it explains itself."""
    if isinstance(structure, Nodes):
        identity = "Top circle: γ₀; the output is γ₀ · x + (1 − γ₀) · tree(x)." * (structure.identity is not None)
        return (NODES_KEY * (structure.n_leaves > 1) + identity).strip()
    gate = {
        "parameters": "gate is: 0 copies its input, 1 transforms it. Grey: closed, exactly 0.",
        "inputs": "mean gate over X is: 0 copies its input, 1 transforms it.",
        "biases": "gate without an input is: 0 copies, 1 transforms. plot_structure(model, X=X) draws mean gates.",
        "fixed": "",
    }[structure.source]
    return f"A cell is a unit, its color the stronger the more open its {gate}" * bool(gate)


NODES_KEY = (
    "Square: a layer σ(W x + b). Circle: a node and its γ; its output is γ · σ(W x + b) + (1 − γ) · right(left(x)). "
    "One color: one layer’s weights, shared. Thicker lines: smaller γ. "
)
