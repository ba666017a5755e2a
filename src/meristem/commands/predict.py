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
    predict.add_argument("--encoding", metavar="NAME", help="of a TABLE that is not UTF-8, such as cp1252 (default: utf-8)")


def run(args: argparse.Namespace) -> None:
    """All is computed before anything is written."""
    from meristem.persistence import load
    from meristem.tables.encoding import absent, differences
    from meristem.tables.reading import read_table
    from meristem.tables.table_model import TableModel

    model = load(args.model)
    if not isinstance(model, TableModel):
        raise ValueError(
            f"{str(args.model)!r} holds no model of a table; give the model.safetensors that `meristem fit` wrote."
        )
    with as_options("keep", "sep", "encoding"):
        table = read_table(args.table, model.schema.texts, args.sep, args.keep, encoding=args.encoding)
    lines, missing, n_columns = differences(model.schema, table), absent(model.schema, table), len(model.schema.fields)
    if 2 * len(missing) > n_columns:
        names = cut(", ".join(map(repr, missing)), 200)
        raise ValueError(
            f"{table.source} lacks {len(missing)} of the model's {n_columns} columns: {names}; give a table that has them."
        )
    for line in lines:
        print(f"meristem: {line}", file=sys.stderr)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of what is unlike: it has just been said
        predicted = model.predict(table)
        probabilities = model.predict_proba(table) if model.task == "class" else None
    parts = _csv(model, table.texts, predicted, probabilities)
    if args.out is None:
        for part in parts:
            sys.stdout.write(part)
        return
    write_whole(args.out, "".join(parts).encode())


def _csv(model: Any, copied: dict[str, list[str]], predicted: np.ndarray, probabilities: np.ndarray | None) -> Iterator[str]:
    """Lines, some at a time: copied columns of the table, what is predicted, and of each class how likely it is."""
    target = model.target
    if predicted.ndim == 2:
        names = [f"{target} ({level:g})" for level in model.levels]
    else:
        names = [target] + ([] if probabilities is None else [f"{target}={label}" for label in model.classes.tolist()])
    while names[0] in copied:
        names[0] += " (predicted)"
    for begin in range(0, len(predicted), BLOCK):
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if not begin:
            writer.writerow([*copied, *names])
        rows = slice(begin, begin + BLOCK)
        values: list[list[Any]]
        if probabilities is None:
            values = [[repr(number) for number in row] for row in predicted[rows].reshape(-1, len(names)).tolist()]
        else:
            shares = ([f"{share:.6g}" for share in row] for row in probabilities[rows].tolist())
            values = [[label, *each] for label, each in zip(predicted[rows].tolist(), shares, strict=True)]
        for place, row in enumerate(values, begin):
            writer.writerow([*(texts[place] for texts in copied.values()), *row])
        yield text.getvalue()
