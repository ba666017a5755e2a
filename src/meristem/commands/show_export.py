"""`meristem show MODEL` and `meristem export MODEL`: print or draw what a model file holds, or write it as ONNX.

A file may hold a network, a fitted estimator, a training run (its best network counts) or a table's model (its estimator
counts). `--member` selects one network of a population, or of the ensemble of a cross-validated estimator.
"""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from meristem.check import many
from meristem.commands.parsing import add_command
from meristem.compact import compact, n_parameters
from meristem.nn import Network
from meristem.pictures.figure_style import require_matplotlib
from meristem.pictures.image_files import check_png_path, write_png
from meristem.show.describe import describe, penalty_of
from meristem.show.text_table import print_table
from meristem.train.run import Run

PRODUCER = b"\x12\x08meristem"  # at the start of our ONNX files: the field with the producer's name


def add(commands: Any) -> None:
    """Add both commands and their options."""
    show = add_command(
        commands,
        "show",
        run=run_show,
        help="show what a model file holds: layers, open units, sizes, parameters",
        description="Print the structure of a model, or of the best network of a training run, and draw it with --png.",
        example="meristem show digits.safetensors --png digits.png",
    )
    export = add_command(
        commands,
        "export",
        run=run_export,
        help="export a model to ONNX",
        description="Write the compact form of a model as an ONNX file: an estimator with its preprocessing and probabilities, "
        "a table's model with its columns, a training run as its best network.",
        example="meristem export digits.safetensors --onnx digits.onnx",
    )
    for command in (show, export):
        command.add_argument("model", type=Path, metavar="MODEL", help="a file written by save()")
        command.add_argument("--member", type=int, metavar="M", help="the network of a population, counted from 0")
    show.add_argument("--png", type=Path, metavar="FILE", help="draw the network into this file or folder")
    export.add_argument("--onnx", type=Path, required=True, metavar="FILE", help="the ONNX file to write")


def run_show(args: argparse.Namespace) -> None:
    """Print the structure of a model, and draw it with --png; print a table of members for a population."""
    from meristem.inputs.schema import inputs_in_words
    from meristem.persistence import load

    path = None if args.png is None else _png_path(args.model, args.png)
    loaded = load(args.model)
    if _is_table_model(loaded):
        inputs = inputs_in_words(len(loaded.schema.features), len(loaded.inputs.gaps))
        print(f"Table model: {loaded.task} {loaded.target!r} from {inputs}; its estimator follows.")
    model = _estimator(loaded)
    if args.member is None and (n_members := _n_members(model)):
        members = f"--member 0 … {n_members - 1}"
        if path is not None:
            raise ValueError(f"--png draws one network and {args.model} holds {n_members}; add {members}.")
        print(f"{_ensemble_line(model, n_members)}; {members} shows one of them.")
        print_table(*_members_table(model, n_members), title="")
        return
    model = _select_member(model, args.member, args.model)
    network = _network(model)
    if model is not network:
        print(_training_line(model))
    lines, columns, rows = describe(network)
    print("\n".join(lines))
    print_table(columns, rows, title="")
    if isinstance(model, Run):
        print(f"\nThe last network: {describe(model.last).lines[1]}")
    if path is not None:
        import matplotlib

        matplotlib.use("agg")
        from meristem.pictures import plot_structure

        figure = plot_structure(network if isinstance(model, Run) else model).figure
        write_png(path, figure, dpi=150, bbox_inches="tight")
        print(f"\nDrawn: {path}")


def run_export(args: argparse.Namespace) -> None:
    """Write the ONNX file and print its size."""
    from meristem import export
    from meristem.persistence import load

    loaded = load(args.model)
    model = _estimator(loaded)
    n_members = _n_members(model)
    if n_members and args.member is None and not _is_ensemble(model):
        raise ValueError(f"{args.model} holds a population of {n_members}; choose one with --member 0 … {n_members - 1}.")
    model = _select_member(model, args.member, args.model)
    _check_replaceable(args.onnx)
    if _is_table_model(loaded):
        path = replace(loaded, estimator=model).to_onnx(args.onnx)
    elif hasattr(model, "network_") or _is_ensemble(model):
        path = export.onnx_of(model, args.onnx)
    else:
        path = export.to_onnx(args.onnx, compact(_network(model)))
    print(f"{path}: {path.stat().st_size:,} bytes")


def _check_replaceable(path: Path) -> None:
    """Raise ValueError where a file exists that is not an ONNX file of meristem's, such as the model itself."""
    if path.is_file():
        with path.open("rb") as file:
            is_export = PRODUCER in file.read(64)
        if not is_export:
            raise ValueError(f"--onnx={str(path)!r} exists and is no ONNX file of meristem's; move it, or give another name.")


def _is_table_model(model: Any) -> bool:
    return hasattr(model, "schema")


def _is_ensemble(model: Any) -> bool:
    """Return whether it is a cross-validated estimator, with a network per fold."""
    return hasattr(model, "estimators_")


def _estimator(model: Any) -> Any:
    """Return the estimator of a table's model, and the only one of an ensemble of one; other models as they are."""
    model = model.estimator if _is_table_model(model) else model
    return model.estimators_[0] if _is_ensemble(model) and len(model.estimators_) == 1 else model


def _network(model: Any) -> Network:
    """Return the network of an estimator, or the best one of a run."""
    return model.best if isinstance(model, Run) else getattr(model, "network_", model)


def _n_members(model: Any) -> int:
    """Return the number of networks of a population or an ensemble; 0 for a single network."""
    return len(model.estimators_) if _is_ensemble(model) else sum(_network(model).members)


def _select_member(model: Any, member: int | None, path: Path) -> Any:
    """Return a member of a population; the model itself where `member` is None."""
    if member is None:
        return model
    n_members = _n_members(model)
    if not n_members:
        raise ValueError(f"{path} holds one network, no population; leave out --member.")
    if not 0 <= member < n_members:
        raise ValueError(f"--member={member} must be one of 0 … {n_members - 1}: {path} holds {n_members} networks.")
    if _is_ensemble(model):
        return model.estimators_[member]
    return model.member(member) if isinstance(model, Run) else jax.tree.map(lambda leaf: leaf[member], model)


def _members_table(model: Any, n_members: int) -> tuple[list[str], list[list[str]]]:
    members = [_select_member(model, m, Path()) for m in range(n_members)]
    sizes = [f"{n_parameters(_network(member)):,}" for member in members]
    if not isinstance(model, Run):
        return ["member", "parameters"], [[str(m), size] for m, size in enumerate(sizes)]
    names = ["member", "rate", "penalty", "epochs", "best epoch", "parameters", "state"]
    rows = []
    for m, run in enumerate(members):
        knobs = [f"{float(run.knobs.learning_rate):g}", f"{float(run.knobs.penalty):g}"]
        rows.append([str(m), *knobs, str(int(run.epochs)), str(int(run.best_epoch)), sizes[m], _run_state(run)])
    return names, rows


def _ensemble_line(model: Any, n_members: int) -> str:
    if not _is_ensemble(model):
        return f"A population of {n_members}"
    size = f"{model.n_parameters_:,} parameters"
    return f"{type(model).__name__}: an ensemble of {n_members} networks, penalty {model.penalty_:g}, {size}"


def _training_line(model: Any) -> str:
    """Return how an estimator or a run was trained."""
    if not isinstance(model, Run):
        epochs = f"{many(model.n_iter_, 'epoch')}, best epoch {model.best_epoch_}"
        return f"{type(model).__name__}: {epochs}, penalty {penalty_of(model):g}"
    best = f"best epoch {int(model.best_epoch)}" if model.best_epoch else "none of them finite"
    numbers = {name: value for name, value in model.knobs._asdict().items() if value is not None and np.ndim(value) == 0}
    knobs = ", ".join(f"{name.replace('_', ' ')} {float(value):g}" for name, value in numbers.items())
    return f"Run: {many(int(model.epochs), 'epoch')}, {best}, {_run_state(model)}; {knobs}"


def _run_state(run: Run) -> str:
    return "diverged" if run.diverged else "stopped" if run.stopped else "unfinished"


def _png_path(model: Path, png: Path) -> Path:
    """Return the file to draw into; in a folder, it is named as the model."""
    require_matplotlib()
    name = f"{model.stem if model.suffix != '.png' else model.name}.png"
    return check_png_path("--png", png / name if png.is_dir() else png)
