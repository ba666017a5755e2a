"""`meristem show MODEL` and `meristem export MODEL`: what a model file holds, and the same for other programs.

A file may hold a network, a fitted estimator, a training run, of which the best network counts, or a table's model, whose
estimator counts. Of a population, and of the bag of an estimator that found its price, `--member` says which network.
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
from meristem.pictures.png import check_place, write_png
from meristem.pictures.sheet import require_matplotlib
from meristem.show.describe import describe, penalty_of
from meristem.show.text_table import print_table
from meristem.train.run import Run

PRODUCER = b"\x12\x08meristem"  # as an ONNX file begins: the field of its producer's name


def add(commands: Any) -> None:
    """Both commands and their options."""
    show = add_command(
        commands,
        "show",
        run=run_show,
        help="what a model file holds: layers, open units, sizes, parameters",
        description="Print the structure of a model, or of a training run's best network, and draw it where that is asked for.",
        example="meristem show digits.safetensors --png digits.png",
    )
    export = add_command(
        commands,
        "export",
        run=run_export,
        help="a model file for other programs",
        description="Write the compact form of a model for other programs: of an estimator with standardization and "
        "probabilities, of a table's model with its columns, of a training run its best network.",
        example="meristem export digits.safetensors --onnx digits.onnx",
    )
    for command in (show, export):
        command.add_argument("model", type=Path, metavar="MODEL", help="a file that save() wrote")
        command.add_argument("--member", type=int, metavar="M", help="which network of a population, counted from 0")
    show.add_argument(
        "--png", type=Path, metavar="FILE", help="draw it, too: into this file, or into this folder by the name of MODEL"
    )
    export.add_argument("--onnx", type=Path, required=True, metavar="FILE", help="the ONNX file to write")


def run_show(args: argparse.Namespace) -> None:
    """Words and a table, and a picture where one is asked for; of a population without a member a table of its members."""
    path = None if args.png is None else _picture(args.model, args.png)
    held = _load(args.model)
    if args.member is None and (members := _members(held)):
        if path is not None:
            raise ValueError(f"--png draws one network and {args.model} holds {members}; add --member 0 … {members - 1}.")
        print(f"{_many_words(held, members)}; --member 0 … {members - 1} shows one of them.")
        print_table(*_members_table(held, members), title="")
        return
    held = _member(held, args.member, args.model)
    network = _network(held)
    if held is not network:
        print(_history_words(held))
    lines, columns, rows = describe(network)
    print("\n".join(lines))
    print_table(columns, rows, title="")
    if isinstance(held, Run):
        print(f"\nThe last network: {describe(held.last).lines[1]}")
    if path is not None:
        _draw_structure(network if isinstance(held, Run) else held, path)
        print(f"\nDrawn: {path}")


def run_export(args: argparse.Namespace) -> None:
    """The file, and how large it is; of a table's model with what encodes its columns."""
    from meristem.persistence import load

    whole = load(args.model)
    held = _shown(whole)
    members = _members(held)
    if members and args.member is None and not _is_bag(held):
        raise ValueError(f"{args.model} holds a population of {members}; choose one with --member 0 … {members - 1}.")
    held = _member(held, args.member, args.model)
    from meristem import export

    _check_onnx(args.onnx)
    if _is_table(whole):
        path = replace(whole, estimator=held).to_onnx(args.onnx)
    elif hasattr(held, "network_") or _is_bag(held):
        path = export.onnx_of(held, args.onnx)
    else:
        path = export.to_onnx(args.onnx, compact(_network(held)))
    print(f"{path}: {path.stat().st_size:,} bytes")


def _check_onnx(path: Path) -> None:
    """That no file is there that is not an export of ours, such as the model itself."""
    if path.is_file():
        with path.open("rb") as file:
            is_ours = PRODUCER in file.read(64)
        if not is_ours:
            raise ValueError(f"--onnx={str(path)!r} is there and no ONNX file of meristem's; move it away, or give another.")


def _load(path: Path) -> Any:
    from meristem.inputs.schema import inputs_in_words
    from meristem.persistence import load  # only these commands need it

    held = load(path)
    if _is_table(held):
        inputs = inputs_in_words(len(held.schema.features), len(held.inputs.gaps))
        print(f"A table's model: {held.task} {held.target!r} from {inputs}; they are what is shown.")
    return _shown(held)


def _is_table(held: Any) -> bool:
    """Whether it is a table's model."""
    return hasattr(held, "schema")


def _shown(held: Any) -> Any:
    """What has networks: of a table's model its estimator, of a bag of one the one."""
    held = held.estimator if _is_table(held) else held
    return held.estimators_[0] if _is_bag(held) and len(held.estimators_) == 1 else held


def _is_bag(held: Any) -> bool:
    """Whether it is an estimator that found its price, with the networks of its folds."""
    return hasattr(held, "estimators_")


def _many_words(held: Any, members: int) -> str:
    if not _is_bag(held):
        return f"A population of {members}"
    return f"{type(held).__name__}: a bag of {members} networks at penalty {held.penalty_:g}, {held.n_parameters_:,} parameters"


def _network(held: Any) -> Network:
    """The network that counts."""
    return held.best if isinstance(held, Run) else getattr(held, "network_", held)


def _members(held: Any) -> int:
    """How many networks a population or a bag has; 0: there is only one network."""
    if _is_bag(held):
        return len(held.estimators_)
    return sum(_network(held).members)


def _member(held: Any, member: int | None, path: Path) -> Any:
    """One of a population, or what is not one as it is."""
    members = _members(held)
    if member is None:
        return held
    if not members:
        raise ValueError(f"{path} holds one network, no population; leave out --member.")
    if not 0 <= member < members:
        raise ValueError(f"--member={member} must be one of 0 … {members - 1}: {path} holds {members} networks.")
    if _is_bag(held):
        return held.estimators_[member]
    return held.member(member) if isinstance(held, Run) else jax.tree.map(lambda leaf: leaf[member], held)


def _members_table(held: Any, members: int) -> tuple[list[str], list[list[str]]]:
    each = [_member(held, m, Path()) for m in range(members)]
    sizes = [f"{n_parameters(_network(one)):,}" for one in each]
    if not isinstance(held, Run):
        return ["member", "parameters"], [[str(m), size] for m, size in enumerate(sizes)]
    names = ["member", "rate", "penalty", "epochs", "best epoch", "parameters", "state"]
    return names, [
        [
            str(m),
            f"{float(run.knobs.learning_rate):g}",
            f"{float(run.knobs.penalty):g}",
            str(int(run.epochs)),
            str(int(run.best_epoch)),
            sizes[m],
            _state(run),
        ]
        for m, run in enumerate(each)
    ]


def _history_words(held: Any) -> str:
    """How an estimator or a run was trained."""
    if not isinstance(held, Run):
        epochs = f"{many(held.n_iter_, 'epoch')}, the best one {held.best_epoch_}"
        return f"{type(held).__name__}: {epochs}, penalty {penalty_of(held):g}"
    best = f"the best one {int(held.best_epoch)}" if held.best_epoch else "none of them finite"
    numbers = {name: value for name, value in held.knobs._asdict().items() if value is not None and np.ndim(value) == 0}
    words = ", ".join(f"{name.replace('_', ' ')} {float(value):g}" for name, value in numbers.items())
    return f"Run: {many(int(held.epochs), 'epoch')}, {best}, {_state(held)}; {words}"


def _state(run: Run) -> str:
    return "diverged" if run.diverged else "stopped" if run.stopped else "not over"


def _picture(model: Path, given: Path) -> Path:
    """Where the picture goes: the file that is given, or one of the model's name in the folder that is given."""
    require_matplotlib()
    name = f"{model.stem if model.suffix != '.png' else model.name}.png"
    return check_place("--png", given / name if given.is_dir() else given)


def _draw_structure(model: Any, path: Path) -> None:
    import matplotlib

    matplotlib.use("agg")
    from meristem.pictures import plot_structure

    write_png(path, plot_structure(model).figure, dpi=150, bbox_inches="tight")
