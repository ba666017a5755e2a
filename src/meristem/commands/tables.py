"""`meristem fit TABLE --target COLUMN`: a table in, a small network out, and what it says; predict.py is what follows.

`fit` writes into --out, which is the folder of a run (folders/), model.safetensors (columns included), model.onnx, which
onnxruntime has been asked about, report.html and, last, summary.json. What is wrong with the table or the options is said
before the folder is made. What is trained is kept there, and --resume goes on with it, to the same bits.
"""

import argparse
import importlib.util
import shlex
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from meristem.commands.clock import began
from meristem.commands.ending import ends_with
from meristem.commands.parsing import add_command, as_options
from meristem.experiments import summary
from meristem.experiments.summary import check_out
from meristem.files.kinds import packed_file
from meristem.files.whole import OutputError
from meristem.folders.checkpoints import Checkpoints
from meristem.folders.folder import RunFolder
from meristem.folders.owned import SUMMARY
from meristem.folders.room import check_room
from meristem.show.text_table import print_table

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
    fit.add_argument("--encoding", metavar="NAME", help="of a CSV file that is not UTF-8, such as cp1252 (default: utf-8)")
    fit.add_argument("--seed", type=int, default=0, metavar="N", help="what is drawn at random (default: %(default)s)")
    fit.add_argument("--max-epochs", type=int, metavar="N", help="an end of each training in any case (default: as rows are)")
    fit.add_argument("--out", type=Path, default=Path("out/fit"), metavar="DIR", help="where results go (default: %(default)s)")
    fit.add_argument("--resume", action="store_true", help="go on with the run that was interrupted there; not with --seconds")


def run(args: argparse.Namespace) -> int:
    """Read the table, plan the search, make the folder, search, and write the files."""
    from meristem.report.baselines import table_baseline_sizes
    from meristem.tables.fitting import check_options, fit_planned, plan_fit  # it needs scikit-learn
    from meristem.tables.reading import read_table
    from meristem.tables.split import TableSplit

    begun = began()
    if args.test is not None and args.test_file is not None:
        raise ValueError(f"--test={args.test} and --test-file={args.test_file!r} exclude each other; give one.")
    if args.resume and args.seconds is not None:
        raise ValueError("--resume and --seconds exclude each other: what fits into a time is measured anew; leave one out.")
    if args.table == "-" and args.test_file == "-":
        raise ValueError("TABLE and --test-file are both standard input; give the path of one.")
    how: dict[str, Any] = {name: getattr(args, name) for name in ("body", "budget", "rule", "seconds")}
    how |= {"random_state": args.seed} | ({} if args.max_epochs is None else {"max_epochs": args.max_epochs})
    test = args.test_file or (0.2 if args.test is None else args.test)
    reading = {"sep": args.sep, "encoding": args.encoding}
    with as_options("sep", "encoding", "target", "task", "test", *how, random_state="seed"), _quiet():
        check_options(test=test, **how)
        table = read_table(args.table, **reading)
        split = TableSplit.of(table, target=args.target, task=args.task, test=test, seed=args.seed, reading=reading)
        plan = plan_fit(split, verbose=True, **how)
    if args.seconds is not None and time.monotonic() - begun >= args.seconds:
        raise ValueError(f"--seconds={args.seconds:g} was over when the table had been read; give more.")
    check_room(args.out, plan.n_bytes)
    with ExitStack() as undo, _removing_if_refused(args.out) as keep_folder, RunFolder.take(check_out(args.out)) as folder:
        options = {"target": args.target, "task": split.target.task, "test": test, **reading}
        about: dict[str, Any] = {"settings": how | options}
        about["data"] = {"table": table.digest, "test": split.test_table.digest}
        resumes = {"resume": args.resume, "how": "--resume" if args.seconds is None else None, "replaces": True}
        for line in folder.begin(about, summary.command(), may_write=[*FILES, SUMMARY], **resumes):
            _tell(line)
        if args.resume and folder.is_finished:
            return 0
        checkpoints = undo.enter_context(_keeping(folder, is_kept=args.seconds is None))
        with as_options(*how), _quiet():
            plan.estimator.set_params(callbacks=folder.epochs.watcher("search"))
            model = fit_planned(plan, begun=begun)
        keep_folder()
        checkpoints.close()
        folder.epochs.tidy()
        left = None if args.seconds is None else max(LEAST_LOOK, args.seconds - time.monotonic() + begun)
        files, failures = _files(model, split, args.out, LOOK if left is None else min(LOOK, left))
        model.facts["seconds"]["all"] = round(time.monotonic() - begun, 3)
        written = _published(folder, model, files, failures)
    _show(model.facts, table_baseline_sizes(model.estimator, model.facts))
    if written:
        print(f"\nIn {args.out}: {', '.join(path.name for path in sorted(written))}")
    for line in failures:
        _tell(f"meristem: {line}")
    return 1 if failures else 0


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
    """Without scikit-learn's doubts about classes: there are our own (tables/split.py)."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        yield


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


@contextmanager
def _removing_if_refused(out: Path) -> Iterator[Callable[[], None]]:
    """Inside, bad input that is found late leaves no folder that was not there before; a folder with checkpoints stays.

    Yields what is called as soon as there is a model: from then on nothing is removed.
    """
    made = [place for place in (out, *out.parents) if not place.exists()]
    try:
        yield made.clear
    except ValueError as error:
        if made and not isinstance(error, OutputError) and not any(out.rglob("*.safetensors")):
            shutil.rmtree(out, ignore_errors=True)
            for place in made[1:]:
                with suppress(OSError):
                    place.rmdir()
        raise


def _files(model: Any, split: Any, out: Path, seconds: float) -> tuple[dict[str, Any], list[str]]:
    """The files of a model that was trained, and a line for each that could not be made: what failed takes no other with it."""
    from meristem.report import table_page

    files: dict[str, Any] = {}
    failures = []
    try:
        files |= _graph(model, split)
    except Exception as error:  # whatever it is, the model has been trained
        again = f"meristem export {shlex.quote(str(out / FILES[0]))} --onnx {shlex.quote(str(out / FILES[1]))}"
        failures.append(f"model.onnx was not written: {_line(error)} The model is saved; try again with: {again}")
    try:
        files["report.html"] = table_page(model, seconds=seconds)
    except Exception as error:
        again = f"meristem.load({str(out / FILES[0])!r}).report({str(out / FILES[2])!r})"
        failures.append(f"report.html was not written: {_line(error)} The model is saved; try again in Python with: {again}")
    return files, failures


def _published(folder: RunFolder, model: Any, files: dict[str, Any], failures: list[str]) -> list[Path]:
    """The files written; where the folder takes none of them, the model goes to another place, which is said."""
    try:
        packed = {FILES[0]: packed_file(folder.out / FILES[0], model)} | files
        return folder.publish(packed, {"command": folder.command, **model.facts})
    except (ValueError, OSError) as error:
        place = Path(tempfile.gettempdir()) / f"meristem-{folder.id}.safetensors"
        with suppress(ValueError, OSError):
            model.save(place)
            failures.append(f"{_line(error)} The model is saved in {str(place)!r}: move it where there is room.")
            return []
        raise


def _line(error: Exception) -> str:
    """What went wrong, in one line that ends as a sentence does."""
    text = (str(error).splitlines() or [type(error).__name__])[0]
    return text if text.endswith(".") else f"{text}."


def _graph(model: Any, split: Any) -> dict[str, bytes]:
    """The ONNX file, after onnxruntime has said the same as the model of rows that were held out; none without onnx."""
    from meristem.tables.agreement import agreement

    if importlib.util.find_spec("onnx") is None:
        print("No model.onnx: onnx is not installed (pip install 'meristem-nn[onnx]').", file=sys.stderr)
        return {}
    data = model.onnx_bytes()
    model.facts["onnx"] = agreement(data, model, split.test_table, split.test_rows, model.evaluation.outputs)
    if model.facts["onnx"] is None:
        print("model.onnx was not checked: onnxruntime is not installed (pip install onnxruntime).", file=sys.stderr)
    return {"model.onnx": data}


def _show(facts: dict[str, Any], beside: dict[str, int]) -> None:
    scores = {"found": facts["score"], **facts["baselines"]}
    sizes = {"found": facts["n_parameters"], **beside}
    rows = [
        [name, f"{score['value']:z.3f}", f"{score['low']:z.3f} to {score['high']:z.3f}", f"{sizes[name]:,}"]
        for name, score in scores.items()
    ]
    measure = facts["score"]["measure"]
    print_table(["model", measure, "95 %", "parameters"], rows, f"{facts['target']}, {facts['rows']['test']:,} rows held out")
