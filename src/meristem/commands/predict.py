"""`meristem predict MODEL TABLE`: what a model of `meristem fit` says of each row of a table, as CSV.

    rich,rich=no,rich=yes                   of classes with their probabilities; of numbers the number alone
    patient_id,rich,rich=no,rich=yes        with --keep patient_id: columns of the table first, as it has them
    rich,rich (predicted),rich=no,rich=yes  with --keep rich, the target itself

All is computed before anything is written: whole or not at all where it goes to a file. What of the table the model had never
seen is said on standard error; where more than half of its columns are not there, nothing is predicted.
"""

import argparse
import csv
import io
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from meristem.check import cut
from meristem.commands.parsing import add_command, as_options
from meristem.files.whole import write_whole

BLOCK = 65_536  # rows that are written at a time


def add(commands: Any) -> None:
    """The command and its options."""
    predict = add_command(
        commands,
        "predict",
        run=run,
        help="what a model says of a table",
        description="Write what a model of `meristem fit` says of each row of a table, as CSV: the target's own labels with "
        "their probabilities, or numbers. Further columns are ignored; what is missing or was never seen is said.",
        example="meristem predict out/people/model.safetensors new.csv --out predictions.csv",
    )
    predict.add_argument("model", type=Path, metavar="MODEL", help="the model.safetensors that `meristem fit` wrote")
    predict.add_argument("table", metavar="TABLE", help="a table as `meristem fit` takes it")
    predict.add_argument("--out", type=Path, metavar="FILE", help="where predictions go (default: standard output)")
    predict.add_argument(
        "--keep",
        action="append",
        default=[],
        metavar="COLUMN[,…]",
        help="columns of TABLE to write first, such as an id; may be given several times, also with a name that holds a comma. "
        "Of a target that is kept, what is predicted is called 'TARGET (predicted)'",
    )
    predict.add_argument("--sep", metavar="CHAR", help="what separates the columns of TABLE (default: as its header is)")


def run(args: argparse.Namespace) -> None:
    """All is computed before anything is written."""
    from meristem.files import load
    from meristem.tables.model import TableModel
    from meristem.tables.reading import read_table

    model = load(args.model)
    if not isinstance(model, TableModel):
        raise ValueError(
            f"{str(args.model)!r} holds no model of a table; give the model.safetensors that `meristem fit` wrote."
        )
    with as_options("keep", "sep"):
        table = read_table(args.table, model.encoding.known, args.sep, args.keep)
    doubts, absent, all_of = model.encoding.doubts(table), model.encoding.absent(table), len(model.encoding.columns)
    if 2 * len(absent) > all_of:
        named = cut(", ".join(map(repr, absent)), 200)
        raise ValueError(
            f"{table.source} lacks {len(absent)} of the model's {all_of} columns: {named}; give a table that has them."
        )
    for line in doubts:
        print(f"meristem: {line}", file=sys.stderr)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of columns that are not there: it has just been said
        said = model.predict(table)
        chances = model.predict_proba(table) if model.task == "class" else None
    parts = _csv(model, table.texts, said, chances)
    if args.out is None:
        for part in parts:
            sys.stdout.write(part)
        return
    write_whole(args.out, "".join(parts).encode())


def _csv(model: Any, kept: dict[str, list[str]], said: np.ndarray, chances: np.ndarray | None) -> Iterator[str]:
    """Lines, some at a time: what is kept of the table, what is predicted, and of each class how likely it is."""
    target = model.target
    names = [target] + ([] if chances is None else [f"{target}={label}" for label in model.classes.tolist()])
    while names[0] in kept:
        names[0] += " (predicted)"
    for begin in range(0, len(said), BLOCK):
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if not begin:
            writer.writerow([*kept, *names])
        rows = slice(begin, begin + BLOCK)
        labels = said[rows].tolist()
        if chances is None:
            found: list[list[Any]] = [[repr(label)] for label in labels]
        else:
            shares = ([f"{share:.6g}" for share in row] for row in chances[rows].tolist())
            found = [[label, *each] for label, each in zip(labels, shares, strict=True)]
        for place, each in enumerate(found, begin):
            writer.writerow([*(texts[place] for texts in kept.values()), *each])
        yield text.getvalue()
