"""Text for a terminal or a file: a network's layers, open units and parameters; settings of a study; tables of any width."""

import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from meristem.check import many
from meristem.compact import compact
from meristem.nn import Network
from meristem.nn.axes import n_places
from meristem.nn.compaction import check_concrete
from meristem.nn.structure import Gates, Nodes
from meristem.show.network_structure import nodes_of, stages_of

SETTINGS = {
    "standardized": "{} standardized",
    "input_dropout": "dropout {:g}",
    "learning_rate": "rate {:g}",
    "penalty": "penalty {:g}",
}
NEW_NAMES = {"standardised": "standardized"}  # of settings in files written before they were renamed


def describe(network: Network) -> tuple[list[str], list[str], list[list[str]]]:
    """Return lines of text, then the columns and the rows of a table."""
    check_concrete("describe()", network)
    stages, axes, shape = stages_of(network), network.axes(), network.input_shape
    name = type(network.body).__name__.lower()
    inputs = many(*shape, "input") if len(shape) == 1 else f"inputs of {' × '.join(map(str, shape))}"
    widths = " → ".join(f"width {n_places(network, axes, trunk)}" for trunk in axes.trunks)
    lines = [f"{name} network: {inputs} → {widths} → {many(network.n_out, 'output')}"]
    for stage in stages:
        title = f"{stage.title}, " if stage.title else ""
        lines += [f"{title}{row.name}: {row.n_open} of {len(row.gates)} open" for row in stage.above if row.can_close]
    trained = sum(np.size(leaf) for leaf in jax.tree.leaves(network) if np.asarray(leaf).dtype.kind == "f")
    try:
        small = compact(network)
        kinds = ", ".join(type(layer).__name__ for layer in small.layers)
        lines.append(f"{small.n_parameters:,} parameters in its compact form ({kinds}); {trained:,} while it is trained")
    except ValueError:  # a user's own body without a compact form
        lines.append(f"{trained:,} parameters; it has no compact form")
    tables = [_structure_table(stage.structure) for stage in stages]
    columns, rows = tables[0]
    if len(tables) > 1:  # the rows of several stages follow each other, with the columns of the first
        rows = [[f"{number}.{row[0]}", *row[1:]] for number, (_, own) in enumerate(tables, start=1) for row in own]
        rows = [(row + ["–"] * len(columns))[: len(columns)] for row in rows]
    return lines, columns, rows


def _structure_table(gates: Gates | Nodes) -> tuple[list[str], list[list[str]]]:
    """Return columns and rows: a row per layer; of a tree a row per node in order, after the identity root if there is one."""
    if isinstance(gates, Nodes):
        rows = [] if gates.identity is None else [["above the root", "identity", "–", f"{gates.identity:.3f}"]]
        for node in nodes_of(gates):
            kind, place = ("inner", f"node {node.place // 2 + 1}") if node.children else ("leaf", f"layer {node.layer + 1}")
            rows.append([place, f"{'  ' * node.depth}{kind}", str(node.depth), f"{node.gamma:.3f}"])
        return ["place", "kind", "depth", "leafness γ"], rows
    layers = [(str(layer), row) for layer, row in enumerate(gates.values, 1)]
    if gates.source == "fixed":
        return ["layer", "units"], [[name, str((row > 0).sum())] for name, row in layers]
    if gates.source == "parameters":
        return ["layer", "open units", "soft size", "widest gate"], [
            [name, f"{(values > 0).sum()} of {values.size}", f"{values.sum():.2f}", f"{values.max():.2f}"]
            for name, values in [*layers, ("all", gates.values)]
        ]
    positive = [(name, row[row > 0]) for name, row in layers]
    means = [[name, str(len(row)), f"{row.mean() if len(row) else 0:.2f}"] for name, row in positive]
    return ["layer", "units", "mean gate" if gates.source == "inputs" else "mean gate at input 0"], means


def describe_settings(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return each setting in text, by what differs between them: ["rate 0.001", "rate 0.003"]."""
    settings = [{NEW_NAMES.get(name, name): value for name, value in setting.items()} for setting in settings]
    varied = [name for name in SETTINGS if len({setting.get(name) for setting in settings}) > 1]
    return [", ".join(SETTINGS[name].format(setting.get(name)) for name in varied) for setting in settings]


def penalty_of(estimator: Any) -> float:
    """Return the penalty that a fitted estimator was trained with, whether given or 'auto'."""
    return float(estimator.penalty_ if isinstance(estimator.penalty, str) else estimator.penalty)


def print_table(columns: list[str], rows: list[list[str]], title: str) -> None:
    """Print a table; columns that do not fit the terminal follow below, each time after the first two."""
    available = shutil.get_terminal_size((160, 24)).columns if sys.stdout.isatty() else 160
    widths = [max(len(line[i]) for line in [columns, *rows]) for i in range(len(columns))]
    print(title)
    for page in _pages(widths, available):
        for line in [columns, ["-" * width for width in widths], *rows]:
            print("  ".join(line[i].ljust(widths[i]) for i in page).rstrip())


def without_empty(columns: list[str], rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """Leave out columns that have "–" in every row.

    >>> without_empty(["model", "paper", "ours"], [["tunnel", "–", "3"], ["budding", "–", "–"]])
    (['model', 'ours'], [['tunnel', '3'], ['budding', '–']])
    """
    filled = [place for place in range(len(columns)) if not rows or any(row[place] != "–" for row in rows)]
    return [columns[place] for place in filled], [[row[place] for place in filled] for row in rows]


def _pages(widths: list[int], available: int) -> list[list[int]]:
    """Split columns into pages that fit, the first two on every page.

    >>> _pages([5, 5, 10, 10, 10], 40)
    [[0, 1, 2, 3], [0, 1, 4]]
    """
    pages = [[0, 1]]
    for column in range(2, len(widths)):
        if sum(widths[i] + 2 for i in [*pages[-1], column]) - 2 > available and len(pages[-1]) > 2:
            pages.append([0, 1])
        pages[-1].append(column)
    return pages
