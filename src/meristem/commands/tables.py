"""`meristem fit TABLE --target COLUMN`: a table in, a small network out, and what it says; predict.py is what follows.

`fit` writes into --out, which is the folder of a run (folders/), model.safetensors (columns included), model.onnx, which
onnxruntime has been asked about, report.html and, last, summary.json. What is wrong with the table or the options is said
before the folder is made. What is trained is kept there, and --resume goes on with it, to the same bits.
"""

import argparse
import importlib.util
import os
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from meristem.commands.clock import began
from meristem.commands.ending import ends_with
from meristem.commands.parsing import add_command, as_options
from meristem.experiments import summary
from meristem.experiments.summary import check_out
from meristem.files.whole import OutputError, leftover
from meristem.folders.checkpoints import Checkpoints
from meristem.folders.folder import RunFolder
from meristem.folders.owned import SUMMARY
from meristem.show.table import print_table

FILES = ["model.safetensors", "model.onnx", "report.html"]
LOOK, LEAST_LOOK = 3.0, 0.2  # seconds, for finding out how much each column matters


def add(commands: Any) -> None:
    """The command and its options."""
    fit = add_command(
        commands,
        "fit",
        run=run,
        help="a model from a table: CSV, gzipped CSV or Parquet",
        description="Find a small network that predicts a column of a table from the others, at a price found by "
        "cross-validation, and say how good it is on rows that were held out.",
        example="meristem fit people.csv --target income --out out/people",
        more="\nwrites model.safetensors, model.onnx, report.html and summary.json into --out; for `meristem predict`. "
        "What was interrupted\ngoes on with --resume, to the same bits.\n",
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
    fit.add_argument("--sep", metavar="CHAR", help="what separates the columns of a CSV file (default: as its header is)")
    fit.add_argument("--seed", type=int, default=0, metavar="N", help="what is drawn at random (default: %(default)s)")
    fit.add_argument("--max-epochs", type=int, metavar="N", help="an end of each training in any case (default: as rows are)")
    fit.add_argument("--out", type=Path, default=Path("out/fit"), metavar="DIR", help="where results go (default: %(default)s)")
    fit.add_argument("--resume", action="store_true", help="go on with the run that was interrupted there; not with --seconds")


def run(args: argparse.Namespace) -> None:
    """The table is read and understood, then the folder is made, then the search begins; files are written at the end."""
    from meristem.report import table_page
    from meristem.report.beside import sizes_beside
    from meristem.tables.fitting import check_budget, check_options, fit_understood  # it needs scikit-learn
    from meristem.tables.reading import read_table
    from meristem.tables.understanding import Understood

    begun = began()
    if args.test is not None and args.test_file is not None:
        raise ValueError(f"--test={args.test} and --test-file={args.test_file!r} exclude each other; give one.")
    if args.resume and args.seconds is not None:
        raise ValueError("--resume and --seconds exclude each other: what fits into a time is measured anew; leave one out.")
    if args.table == "-" and args.test_file == "-":
        raise ValueError("TABLE and --test-file are both standard input; give the path of one.")
    how: dict[str, Any] = {name: getattr(args, name) for name in ("body", "budget", "rule", "seconds")}
    how |= {"random_state": args.seed} | ({} if args.max_epochs is None else {"max_epochs": args.max_epochs})
    test = 0.2 if args.test is None else args.test
    with as_options("sep", "target", "task", "test", *how, random_state="seed"), _quiet():
        check_options(test=test, **how)
        table = read_table(args.table, sep=args.sep)
        test = test if args.test_file is None else read_table(args.test_file, sep=args.sep)
        known = Understood.of(table, target=args.target, task=args.task, test=test, seed=args.seed)
        check_budget(known, **how)
    if args.seconds is not None and time.monotonic() - begun >= args.seconds:
        raise ValueError(f"--seconds={args.seconds:g} was over when the table had been read; give more.")
    out = check_out(args.out)
    with RunFolder.take(out) as folder:
        given = {"target": args.target, "task": known.goal.task, "test": args.test_file or test, "sep": args.sep}
        about: dict[str, Any] = {"settings": how | given}
        about["data"] = {"table": table.digest, "test": known.apart.digest}
        resumes = {"resume": args.resume, "how": "--resume" if args.seconds is None else None, "replaces": True}
        for line in folder.begin(about, summary.command(), may_write=[*FILES, SUMMARY], **resumes):
            _tell(line)
        if args.resume and folder.is_finished:
            return
        with as_options(*how), _quiet(), _keeping(folder, is_kept=args.seconds is None) as checkpoints:
            model = fit_understood(known, begun=begun, verbose=True, callbacks=folder.epochs.watcher("search"), **how)
            checkpoints.close()
            folder.epochs.tidy()
            files = _graph(model, known)
            left = None if args.seconds is None else max(LEAST_LOOK, args.seconds - time.monotonic() + begun)
            model.facts["seconds"]["all"] = round(time.monotonic() - begun, 3)
            files["report.html"] = table_page(model, seconds=LOOK if left is None else min(LOOK, left))
            files["model.safetensors"] = _saved(model, folder)
            written = folder.publish(files, {"command": folder.command, **model.facts})
    _show(model.facts, sizes_beside(model.estimator, model.facts))
    print(f"\nIn {out}: {', '.join(path.name for path in sorted(written))}")


@contextmanager
def _keeping(folder: RunFolder, *, is_kept: bool) -> Iterator[Checkpoints]:
    """Inside, what is trained is kept for --resume, and who is told to end says how to go on; else that nothing is there."""
    checkpoints = folder.checkpoints(say=_tell)

    def last_words() -> str:
        if not is_kept:
            return "no model was written, and of a search with --seconds nothing is kept"
        checkpoints.now()
        return f"no model was written yet; go on with: {folder.command.removesuffix(' --resume')} --resume"

    with ends_with(last_words), checkpoints.keeping("search") if is_kept else nullcontext():
        yield checkpoints


@contextmanager
def _quiet() -> Iterator[None]:
    """Without scikit-learn's doubts about classes: there are our own (tables/understanding.py)."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        yield


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _graph(model: Any, known: Any) -> dict[str, bytes]:
    """The ONNX file, after onnxruntime has said the same as the model of rows that were held out; none without onnx."""
    from meristem.tables.graph import compared, onnx_bytes

    if importlib.util.find_spec("onnx") is None:
        print("No model.onnx: onnx is not installed (pip install 'meristem-nn[onnx]').", file=sys.stderr)
        return {}
    data = onnx_bytes(model)
    model.facts["onnx"] = compared(data, model, known.apart, known.held)
    if model.facts["onnx"] is None:
        print("model.onnx was not checked: onnxruntime is not installed (pip install onnxruntime).", file=sys.stderr)
    return {"model.onnx": data}


def _saved(model: Any, folder: RunFolder) -> bytes:
    """The model's file, as `save` writes it and has looked at it."""
    beside = leftover(folder.own)
    try:
        model.save(beside)
        return beside.read_bytes()
    except OutputError as error:
        reason = os.strerror(error.__cause__.errno or 0) if isinstance(error.__cause__, OSError) else "no room"
        raise OutputError(f"{str(folder.out / FILES[0])!r} cannot be written ({reason}); choose another place.") from error
    finally:
        beside.unlink(missing_ok=True)


def _show(facts: dict[str, Any], beside: dict[str, int]) -> None:
    scores = {"found": facts["score"], **facts["baselines"]}
    sizes = {"found": facts["n_parameters"], **beside}
    rows = [
        [name, f"{score['value']:z.3f}", f"{score['low']:z.3f} to {score['high']:z.3f}", f"{sizes[name]:,}"]
        for name, score in scores.items()
    ]
    measure = facts["score"]["measure"]
    print_table(["model", measure, "95 %", "parameters"], rows, f"{facts['target']}, {facts['rows']['test']:,} rows held out")
