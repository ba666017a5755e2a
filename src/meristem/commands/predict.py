"""`meristem predict MODEL TABLE`: write the predictions of a model of `meristem fit` for each row of a table, as CSV.

    rich,rich=no,rich=yes                   class and probabilities; for a number the number alone
    patient_id,rich,rich=no,rich=yes        with --keep patient_id: columns of the table come first, unchanged
    rich,rich (predicted),rich=no,rich=yes  with --keep rich, the target itself
    rent,lower,upper                        with --coverage 0.9; for a class a column set: "no | yes", empty if unsure

    file,class,class=cat,class=dog          of pictures

Everything is computed before anything is written.
"""

import argparse
import csv
import io
import sys
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from meristem.check import cut, many
from meristem.commands.parsing import as_options
from meristem.files.atomic_write import write_whole
from meristem.images import ImageModel
from meristem.persistence import load
from meristem.tables import TableModel
from meristem.tables.encoding import absent, differences
from meristem.tables.reading import read_table


def run(args: argparse.Namespace) -> None:
    model = load(args.model)
    if isinstance(model, ImageModel):
        _predict_images(model, args)
        return
    if not isinstance(model, TableModel):
        raise ValueError(f"{str(args.model)!r} holds no model of `meristem fit`; give its model.safetensors.")
    if args.images is not None:
        raise ValueError(f"--images={args.images} is for a model of pictures, and this is one of a table; leave it out.")
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
        with as_options("coverage"):
            more = {} if args.coverage is None else _covering(model, table, args.coverage)
    _write(args.out, lambda stream: _write_csv(stream, model, table.texts, predicted, probabilities, more))


def _write(out: Path | None, write: Callable[[Any], None]) -> None:
    """Write to a file, in place of an old one, or to standard output."""
    stream: Any = sys.stdout if out is None else io.StringIO()
    write(stream)
    if out is not None:
        write_whole(out, stream.getvalue().encode())


def _predict_images(model: ImageModel, args: argparse.Namespace) -> None:
    """Write a row for each picture that can be read; what cannot is named in one line."""
    if args.coverage is not None:
        raise ValueError(f"--coverage={args.coverage:g} is for a model of a table; leave it out.")
    with as_options("images", "keep", "sep", "encoding"):
        keep = [name for entry in args.keep for name in entry.split(",")]
        files = model.files(args.table, images=args.images, keep=keep, sep=args.sep, encoding=args.encoding)
    for line in files.remarks:
        print(f"meristem: {line}", file=sys.stderr)
    read, probabilities = model.predictions(files.paths)
    if read.words is not None:
        print(f"meristem: {read.words}", file=sys.stderr)
    files, predicted = files.rows(read.rows), model.classes[probabilities.argmax(1)]
    copied = {name: column.tolist() for name, column in files.copied.items()}
    copied = {model.images or "file": list(files.names)} | copied
    _write(args.out, lambda stream: _write_csv(stream, model, copied, predicted, probabilities, {}))
    if files.labels is not None and np.isin(files.labels, model.classes).all():
        right, of = int((files.labels == predicted).sum()), many(len(predicted), "picture")
        print(f"meristem: {right:,} of {of}, those learned from included, are of the class of their folder", file=sys.stderr)


def _covering(model: TableModel, table: Any, coverage: float) -> dict[str, Iterable[Any]]:
    """Return the columns of intervals, or of sets of classes."""
    if model.task == "class":
        labels = np.array([str(label) for label in model.classes.tolist()], dtype=object)
        return {"set": [" | ".join(labels[members]) for members in model.predict_set(table, coverage)]}
    bounds = model.predict_interval(table, coverage).T
    return {name: map(repr, map(float, numbers)) for name, numbers in zip(("lower", "upper"), bounds, strict=True)}


def _write_csv(
    stream: Any,
    model: Any,
    copied: dict[str, list[str]],
    predicted: np.ndarray,
    probabilities: np.ndarray | None,
    more: dict[str, Iterable[Any]],
) -> None:
    """Write copied columns, predictions, the probability of each class, and more columns, row by row."""
    columns: list[Iterable[Any]] = list(copied.values())
    if probabilities is not None:
        names = [model.target, *(f"{model.target}={label}" for label in model.classes.tolist())]
        columns += [predicted.tolist(), *(map("{:.6g}".format, shares) for shares in probabilities.T)]
    else:
        names = [f"{model.target} ({level:g})" for level in model.levels] if predicted.ndim == 2 else [model.target]
        columns += [map(repr, map(float, numbers)) for numbers in predicted.reshape(-1, len(names)).T]
    names, columns = [*names, *more], [*columns, *more.values()]
    for place, name in enumerate(names):
        while name in {*copied, *names[:place]}:
            name += " (predicted)"
        names[place] = name
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([*copied, *names])
    writer.writerows(zip(*columns, strict=True))
