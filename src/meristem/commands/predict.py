"""`meristem predict MODEL TABLE`: write the predictions of a model of `meristem fit` for each row of a table, as CSV.

    rich,rich=no,rich=yes                   class and probabilities; for a number the number alone
    patient_id,rich,rich=no,rich=yes        with --keep patient_id: columns of the table come first, unchanged
    rich,rich (predicted),rich=no,rich=yes  with --keep rich, the target itself

Everything is computed before anything is written.
"""

import argparse
import csv
import io
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from meristem.check import cut
from meristem.commands.parsing import as_options
from meristem.files.atomic_write import write_whole
from meristem.persistence import load
from meristem.tables import TableModel
from meristem.tables.encoding import absent, differences
from meristem.tables.reading import read_table

BLOCK = 65_536  # rows written at a time


def run(args: argparse.Namespace) -> None:
    """Predict all rows, then write them."""
    model = load(args.model)
    if not isinstance(model, TableModel):
        raise ValueError(f"{str(args.model)!r} holds no model of a table; give a model.safetensors of `meristem fit`.")
    with as_options("keep", "sep", "encoding"):
        table = read_table(args.table, model.schema.texts, args.sep, args.keep, encoding=args.encoding)
    lines, missing, n_columns = differences(model.schema, table), absent(model.schema, table), len(model.schema.fields)
    if 2 * len(missing) > n_columns:
        lacks = f"{len(missing)} of the model's {n_columns} columns: {cut(', '.join(map(repr, missing)), 200)}"
        raise ValueError(f"{table.source} lacks {lacks}; give a table that has them.")
    for line in lines:
        print(f"meristem: {line}", file=sys.stderr)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about the differences: they were just printed
        predicted = model.predict(table)
        probabilities = model.predict_proba(table) if model.task == "class" else None
    parts = _csv(model, table.texts, predicted, probabilities)
    if args.out is None:
        for part in parts:
            sys.stdout.write(part)
    else:
        write_whole(args.out, "".join(parts).encode())


def _csv(model: Any, copied: dict[str, list[str]], predicted: np.ndarray, probabilities: np.ndarray | None) -> Iterator[str]:
    """Yield the lines in blocks: copied columns, predictions, and the probability of each class."""
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
        columns: list[list[Any]] = [texts[rows] for texts in copied.values()]
        if probabilities is None:
            columns += [[*map(repr, numbers)] for numbers in predicted[rows].reshape(-1, len(names)).T.tolist()]
        else:
            shares = [[f"{share:.6g}" for share in shares] for shares in probabilities[rows].T.tolist()]
            columns += [predicted[rows].tolist(), *shares]
        writer.writerows(zip(*columns, strict=True))
        yield text.getvalue()
