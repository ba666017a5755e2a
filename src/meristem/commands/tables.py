"""`meristem fit TABLE --target COLUMN` and `meristem predict MODEL TABLE`: a table in, a small network out, and what it says.

`fit` writes into --out model.safetensors (columns included), report.html and, last, summary.json. What is wrong with the table
or the options is said before the folder is made. `predict` writes a CSV of predictions, of classes with their probabilities,
whole or not at all where it goes to a file; what of the table the model had never seen is said on standard error.
"""

import argparse
import csv
import io
import json
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from meristem.commands.parsing import add_command
from meristem.experiments.summary import check_out
from meristem.files.whole import write_whole
from meristem.show.table import print_table

BLOCK = 65_536  # rows that are written at a time


def add(commands: Any) -> None:
    """Both commands and their options."""
    fit = add_command(
        commands,
        "fit",
        run=run_fit,
        help="a model from a table: CSV, gzipped CSV or Parquet",
        description="Find a small network that predicts a column of a table from the others, at a price found by "
        "cross-validation, and say how good it is on rows that were held out.",
        example="meristem fit people.csv --target income --out out/people",
        more="\nwrites model.safetensors, report.html and summary.json into --out; `meristem predict` takes the model.\n",
    )
    fit.add_argument("table", metavar="TABLE", help="a CSV file (also gzipped), a Parquet file, or - for CSV on standard input")
    fit.add_argument("--target", required=True, metavar="COLUMN", help="the column to predict")
    fit.add_argument("--task", metavar="TASK", help="class or number (default: as the column is)")
    fit.add_argument("--body", default="tunnel", metavar="BODY", help="tunnel or budding (default: %(default)s)")
    fit.add_argument("--budget", type=int, metavar="N", help="the most parameters of the model, in place of a price")
    fit.add_argument("--rule", default="min", metavar="RULE", help="min: the best price; 1se: the highest that is as good")
    fit.add_argument("--seconds", type=float, metavar="S", help="a limit on the whole (default: none)")
    fit.add_argument("--test", type=float, metavar="SHARE", help="the share of rows that is held out (default: 0.2)")
    fit.add_argument("--test-file", metavar="TABLE", help="a table of its own to test on, in place of --test")
    fit.add_argument("--seed", type=int, default=0, metavar="N", help="what is drawn at random (default: %(default)s)")
    fit.add_argument("--max-epochs", type=int, metavar="N", help="an end of each training in any case (default: as rows are)")
    fit.add_argument("--out", type=Path, default=Path("out/fit"), metavar="DIR", help="where results go (default: %(default)s)")

    predict = add_command(
        commands,
        "predict",
        run=run_predict,
        help="what a model says of a table",
        description="Write what a model of `meristem fit` says of each row of a table, as CSV: the target's own labels with "
        "their probabilities, or numbers. Further columns are ignored; what is missing or was never seen is said.",
        example="meristem predict out/people/model.safetensors new.csv --out predictions.csv",
    )
    predict.add_argument("model", type=Path, metavar="MODEL", help="the model.safetensors that `meristem fit` wrote")
    predict.add_argument("table", metavar="TABLE", help="a table as `meristem fit` takes it")
    predict.add_argument("--out", type=Path, metavar="FILE", help="where predictions go (default: standard output)")


def run_fit(args: argparse.Namespace) -> None:
    """The table is read and understood, then the folder is made, then the search begins."""
    from meristem.tables.fitting import check_fit, fit_table  # it needs scikit-learn
    from meristem.tables.reading import read_table

    begun = time.monotonic() - time.process_time()  # what it took to start, as far as that can be told
    if args.test is not None and args.test_file is not None:
        raise ValueError(f"--test={args.test} and --test-file={args.test_file!r} exclude each other; give one.")
    if args.table == "-" and args.test_file == "-":
        raise ValueError("TABLE and --test-file are both standard input; give the path of one.")
    given: dict[str, Any] = {name: getattr(args, name) for name in ("target", "task", "body", "budget", "rule", "seconds")}
    given |= {"test": 0.2 if args.test is None else args.test, "random_state": args.seed}
    given |= {} if args.max_epochs is None else {"max_epochs": args.max_epochs}
    check_fit(**{name: value for name, value in given.items() if name not in ("target", "task")})
    table = read_table(args.table)
    given["test"] = given["test"] if args.test_file is None else read_table(args.test_file)
    check_fit(table, **given)
    out = check_out(args.out)
    if args.seconds is not None:
        given["seconds"] = args.seconds - (time.monotonic() - begun)
        if given["seconds"] <= 0:
            raise ValueError(f"--seconds={args.seconds:g} was over when the table had been read; give more.")
    model = fit_table(table, **given, verbose=True)
    model.facts["seconds"] |= {"limit": args.seconds, "all": round(time.monotonic() - begun, 3)}
    model.save(out / "model.safetensors")
    model.report(
        out / "report.html", seconds=3.0 if args.seconds is None else max(0.2, args.seconds - time.monotonic() + begun)
    )
    facts = {"command": shlex.join(["meristem", *sys.argv[1:]]), **model.facts}
    write_whole(out / "summary.json", json.dumps(facts, indent=1, ensure_ascii=False).encode() + b"\n")
    scores = {"found": facts["score"], **facts["baselines"]}
    sizes = {"found": f"{facts['n_parameters']:,}"}
    rows = [
        [name, f"{score['value']:.3f}", f"{score['low']:.3f} to {score['high']:.3f}", sizes.get(name, "–")]
        for name, score in scores.items()
    ]
    measure = facts["score"]["measure"]
    print_table(["model", measure, "95 %", "parameters"], rows, f"{facts['target']}, {facts['rows']['test']:,} rows held out")
    print(f"\nIn {out}: model.safetensors, report.html, summary.json")


def run_predict(args: argparse.Namespace) -> None:
    """All is computed before anything is written."""
    from meristem.files import load
    from meristem.tables.model import TableModel

    model = load(args.model)
    if not isinstance(model, TableModel):
        raise ValueError(
            f"{str(args.model)!r} holds no model of a table; give the model.safetensors that `meristem fit` wrote."
        )
    table = model.table(args.table)
    for line in model.encoding.doubts(table):
        print(f"meristem: {line}", file=sys.stderr)
    said = model.predict(table)
    chances = model.predict_proba(table) if model.task == "class" else None
    parts = _csv(model, said, chances)
    if args.out is None:
        for part in parts:
            sys.stdout.write(part)
        return
    write_whole(args.out, "".join(parts).encode())


def _csv(model: Any, said: np.ndarray, chances: np.ndarray | None) -> Iterator[str]:
    """Lines, some at a time: what is predicted, and of each class how likely it is."""
    names = [model.target] + ([] if chances is None else [f"{model.target}={label}" for label in model.classes.tolist()])
    for begin in range(0, len(said), BLOCK):
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if not begin:
            writer.writerow(names)
        rows = slice(begin, begin + BLOCK)
        labels = said[rows].tolist()
        if chances is None:
            writer.writerows([repr(label)] for label in labels)
        else:
            shares = ([f"{share:.6g}" for share in row] for row in chances[rows].tolist())
            writer.writerows([label, *each] for label, each in zip(labels, shares, strict=True))
        yield text.getvalue()
