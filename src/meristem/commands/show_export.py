"""`meristem show MODEL` and `meristem export MODEL`: print or draw what a model file holds, or write it as ONNX or C.

A file may hold a network, a fitted estimator, a training run (its best network counts) or a table's model (its estimator
counts). `--member` selects one network of a population, or of the ensemble of a cross-validated estimator.
"""

import argparse
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from meristem import export
from meristem.check import many
from meristem.compact import compact, n_parameters
from meristem.files.atomic_write import write_whole
from meristem.inputs.schema import inputs_in_words
from meristem.nn import Network
from meristem.persistence import load
from meristem.pictures.figure_style import require_matplotlib
from meristem.pictures.image_files import check_png_path, png
from meristem.show.describe import describe, penalty_of, print_table
from meristem.train.run import Run

ROUNDING = re.compile(
    rb"\d+ bits: in [\d,]+ rows? that [ -~]+(?:float|deviation)(?:; then all rows set them)?"
)  # in files of both kinds: what integers cost
PRODUCER = b"\x12\x08meristem"  # at the start of our ONNX files: the field with the producer's name
C_MARK, MARKED = b": a trained neural network, in C99", 400  # at the start of our C files; so many bytes are looked at


def run_show(args: argparse.Namespace) -> None:
    """Print the structure of a model, and draw it with --png; print a table of members for a population."""
    path = args.png
    if path is not None:
        require_matplotlib()
        name = args.model.name if args.model.suffix == ".png" else args.model.stem
        path = check_png_path("--png", path / f"{name}.png" if path.is_dir() else path)
    loaded, model, members = _load(args.model, args.member)
    if hasattr(loaded, "schema"):
        inputs = inputs_in_words(len(loaded.schema.features), len(loaded.inputs.gaps))
        print(f"Table model: {loaded.task} {loaded.target!r} from {inputs}; its estimator follows.")
    elif loaded is not model and hasattr(loaded, "estimator"):
        print(f"{loaded!r}; its estimator follows.")
    if members:
        which = f"--member 0 … {len(members) - 1}"
        if path is not None:
            raise ValueError(f"--png draws one network and {args.model} holds {len(members)}; add {which}.")
        line = f"A population of {len(members)}"
        if hasattr(model, "estimators_"):
            size = f"penalty {model.penalty_:g}, {model.n_parameters_:,} parameters"
            line = f"{type(model).__name__}: an ensemble of {len(members)} networks, {size}"
        print(f"{line}; {which} shows one of them.")
        print_table(*_members_table(members), title="")
        return
    network = _network(model)
    if model is not network:
        print(_training_line(model))
    lines, columns, rows = describe(network)
    print("\n".join(lines))
    print_table(columns, rows, title="")
    if isinstance(model, Run):
        print(f"\nThe last network: {describe(model.last)[0][1]}")
    if path is not None:
        import matplotlib

        matplotlib.use("agg")
        from meristem.pictures import plot_structure

        figure = plot_structure(network if isinstance(model, Run) else model).figure
        write_whole(path, png(figure, dpi=150, bbox_inches="tight"))
        print(f"\nDrawn: {path}")


def run_export(args: argparse.Namespace) -> None:
    if args.onnx is None and args.c is None:
        raise ValueError("Nothing to write: give --onnx FILE or --c FILE.")
    of_c = {name: getattr(args, name) for name in ("numbers", "budget", "pixels", "class_names")}
    of_c = {name: value for name, value in of_c.items() if value}
    if args.c is None and of_c:
        raise ValueError(f"--{next(iter(of_c)).replace('_', '-')} is for --c FILE; leave it out.")
    loaded, model, members = _load(args.model, args.member)
    is_ensemble = hasattr(model, "estimators_")
    if members and not is_ensemble:
        which = f"choose one with --member 0 … {len(members) - 1}"
        raise ValueError(f"{args.model} holds a population of {len(members)}; {which}.")
    for flag, path, mark in (("--onnx", args.onnx, PRODUCER), ("--c", args.c, C_MARK)):
        if path is not None and path.is_file():
            with path.open("rb") as file:
                is_export = mark in file.read(MARKED)
            if not is_export:  # such as the model itself
                problem = f"exists and is no {flag.strip('-').upper()} file of meristem's; move it, or give another name"
                raise ValueError(f"{flag}={str(path)!r} {problem}.")
    is_estimator, rows = hasattr(model, "network_") or is_ensemble, args.rows
    if is_of_files := hasattr(loaded, "estimator"):  # a table's model, or that of pictures
        model = replace(loaded, estimator=model)
    if rows is not None and (not is_of_files or rows.suffix == ".npy"):
        rows = _numbers(rows)
    options = {"bits": args.bits, "X": rows} | of_c
    if args.onnx is not None and args.bits is not None and hasattr(getattr(model, "estimator", model), "image_shape_"):
        raise ValueError(f"--bits={args.bits} of a model on images is for --c; write the ONNX file without it.")
    short = {} if args.bits is None else {"bits": args.bits, "X": rows}
    for path, name, own in ((args.onnx, "onnx", short), (args.c, "c", options)):
        if path is None:
            continue
        if is_of_files or is_estimator:
            written = getattr(model, f"to_{name}")(path, **own)
        else:
            written = getattr(export, f"to_{name}")(path, compact(_network(model)), **own)
        print(f"{written}: {written.stat().st_size:,} bytes")
        if args.bits is not None and (cost := ROUNDING.search(written.read_bytes())) is not None:
            print(f"  {cost[0].decode()}")


def _numbers(path: Path) -> np.ndarray:
    """Return the rows or images of a file of NumPy's; raise ValueError where it is none."""
    try:
        rows = np.load(path, allow_pickle=False) if path.suffix == ".npy" else None
    except (ValueError, EOFError):
        rows = None
    if rows is None:
        problem = "is no .npy file of numbers; write one with numpy.save (a table is for a table's model)"
        raise ValueError(f"--rows={str(path)!r} {problem}.")
    return rows


def _load(path: Path, member: int | None) -> tuple[Any, Any, list[Any]]:
    """Return what a file holds, its model or the selected member, and the members of that model; [] of a single network."""
    loaded = load(path)
    model = getattr(loaded, "estimator", loaded)  # of a table, or of pictures
    if hasattr(model, "estimators_"):
        members = list(model.estimators_)
        if len(members) == 1:
            model, members = members[0], []
    else:
        take = model.member if isinstance(model, Run) else lambda place: jax.tree.map(lambda leaf: leaf[place], model)
        members = [take(place) for place in range(sum(_network(model).members))]
    if member is None:
        return loaded, model, members
    if not members:
        raise ValueError(f"{path} holds one network, no population; leave out --member.")
    if not 0 <= member < len(members):
        raise ValueError(f"--member={member} must be one of 0 … {len(members) - 1}: {path} holds {len(members)} networks.")
    return loaded, members[member], []


def _network(model: Any) -> Network:
    """Return the network of an estimator, or the best one of a run."""
    return model.best if isinstance(model, Run) else getattr(model, "network_", model)


def _members_table(members: list[Any]) -> tuple[list[str], list[list[str]]]:
    names, rows = ["member", "rate", "penalty", "epochs", "best epoch", "parameters", "state"], []
    for place, member in enumerate(members):
        size = f"{n_parameters(_network(member)):,}"
        if isinstance(member, Run):
            knobs = [f"{float(member.knobs.learning_rate):g}", f"{float(member.knobs.penalty):g}"]
            rows.append([str(place), *knobs, str(int(member.epochs)), str(int(member.best_epoch)), size, _run_state(member)])
        else:
            names = ["member", "parameters"]
            rows.append([str(place), size])
    return names, rows


def _training_line(model: Any) -> str:
    if not isinstance(model, Run):
        best = f", best epoch {model.best_epoch_}" if hasattr(model, "best_epoch_") else ""
        is_default = model.penalty == "auto" and not hasattr(model, "penalty_")
        penalty = "the default penalty" if is_default else f"penalty {penalty_of(model):g}"
        return f"{type(model).__name__}: {many(model.n_iter_, 'epoch')}{best}, {penalty}"
    best = f"best epoch {int(model.best_epoch)}" if model.best_epoch else "none of them finite"
    numbers = {name: value for name, value in model.knobs._asdict().items() if value is not None and np.ndim(value) == 0}
    knobs = ", ".join(f"{name.replace('_', ' ')} {float(value):g}" for name, value in numbers.items())
    return f"Run: {many(int(model.epochs), 'epoch')}, {best}, {_run_state(model)}; {knobs}"


def _run_state(run: Run) -> str:
    return "diverged" if run.diverged else "stopped" if run.stopped else "unfinished"
