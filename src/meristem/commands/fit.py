"""`meristem fit TABLE --target COLUMN`: train a model on a table, evaluate it on held-out rows, and write its files.

--out is the folder of a run (folders/): model.safetensors (with its columns), model.onnx (compared with onnxruntime),
report.html and, last, summary.json. Problems of the table or the options are reported before the folder is made. Training is
checkpointed; --resume continues it with identical results.
"""

import argparse
import importlib.util
import math
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

from meristem.commands.entry import started_at
from meristem.commands.parsing import add_command, add_table_arguments, as_options
from meristem.commands.shutdown import on_shutdown
from meristem.experiments import summary
from meristem.experiments.summary import check_out
from meristem.files.atomic_write import OutputError, check_disk_space
from meristem.files.file_kinds import packed_file
from meristem.folders.checkpoints import Checkpoints
from meristem.folders.ownership import SUMMARY
from meristem.folders.run_folder import RunFolder
from meristem.show.text_table import print_table

FILES = ["model.safetensors", "model.onnx", "report.html"]
IMPORTANCE_SECONDS, LEAST_IMPORTANCE_SECONDS = 3.0, 0.2  # for the importance of each column in the report


def add(commands: Any) -> None:
    """Add the command and its options."""
    command = add_command(
        commands,
        "fit",
        run=run,
        help="train a model on a table: CSV, gzipped CSV or Parquet",
        description="Train a small network that predicts a column of a table from the others. Its penalty on size is chosen by "
        "cross-validation, and its score is measured on held-out rows.",
        example="meristem fit people.csv --target income --out out/people",
        more="\nwrites model.safetensors (for `meristem predict`), model.onnx, report.html and summary.json into --out.\n"
        "--resume continues an interrupted run with identical results.\n",
    )
    option = command.add_argument
    option("--target", required=True, metavar="COLUMN", help="the column to predict")
    option("--task", metavar="TASK", help="class or number (default: inferred from the column)")
    option("--body", default="tunnel", metavar="BODY", help="tunnel or budding (default: %(default)s)")
    option("--budget", type=int, metavar="N", help="maximum number of parameters, instead of a search for the penalty")
    option("--rule", default="min", metavar="RULE", help="min: the best penalty; 1se: the highest within one standard error")
    option("--seconds", type=float, metavar="S", help="time limit in seconds (default: none)")
    option("--test", type=float, metavar="SHARE", help="share of the rows to hold out (default: 0.2)")
    option("--test-file", metavar="TABLE", help="a table of held-out rows, instead of --test")
    add_table_arguments(command)
    option("--seed", type=int, default=0, metavar="N", help="random seed (default: %(default)s)")
    option("--max-epochs", type=int, metavar="N", help="maximum epochs of each training (default: by the number of rows)")
    option("--out", type=Path, default=Path("out/fit"), metavar="DIR", help="folder for the results (default: %(default)s)")
    option("--resume", action="store_true", help="continue the interrupted run in --out; not with --seconds")


def run(args: argparse.Namespace) -> int:
    """Read the table, plan the search, make the folder, search, and write the files; return the exit status."""
    from meristem.report.baselines import table_baseline_sizes
    from meristem.tables.fitting import check_options, fit_planned, plan_fit  # it needs scikit-learn
    from meristem.tables.reading import read_table
    from meristem.tables.split import TableSplit

    begin = started_at()
    if args.test is not None and args.test_file is not None:
        raise ValueError(f"--test={args.test} and --test-file={args.test_file!r} exclude each other; give one.")
    if args.resume and args.seconds is not None:
        raise ValueError("--resume and --seconds exclude each other: a time limit saves no checkpoints; leave one out.")
    if args.table == "-" and args.test_file == "-":
        raise ValueError("TABLE and --test-file are both standard input; give the path of one.")
    settings: dict[str, Any] = {name: getattr(args, name) for name in ("body", "budget", "rule", "seconds")}
    settings |= {"random_state": args.seed} | ({} if args.max_epochs is None else {"max_epochs": args.max_epochs})
    test = args.test_file or (0.2 if args.test is None else args.test)
    reading = {"sep": args.sep, "encoding": args.encoding}
    with as_options("sep", "encoding", "target", "task", "test", *settings, random_state="seed"), _quiet():
        check_options(test=test, **settings)
        table = read_table(args.table, **reading)
        split = TableSplit.of(table, target=args.target, task=args.task, test=test, seed=args.seed, reading=reading)
        plan = plan_fit(split, verbose=True, **settings)
    if args.seconds is not None and time.monotonic() - begin >= args.seconds:
        raise ValueError(f"--seconds={args.seconds:g} had passed when the table was read; give more.")
    check_disk_space(args.out, plan.n_bytes)
    with ExitStack() as undo, _removing_new_folder(args.out) as keep_folder, RunFolder.take(check_out(args.out)) as folder:
        options = {"target": args.target, "task": split.target.task, "test": test, **reading}
        record: dict[str, Any] = {"settings": settings | options}
        record["data"] = {"table": table.digest, "test": split.test_table.digest}
        resumes = {"resume": args.resume, "how": "--resume" if args.seconds is None else None, "replaces": True}
        for line in folder.begin(record, summary.command(), may_write=[*FILES, SUMMARY], **resumes):
            _print_error(line)
        if args.resume and folder.is_finished:
            return 0
        checkpoints = undo.enter_context(_checkpointing(folder, is_saved=args.seconds is None))
        with as_options(*settings), _quiet():
            plan.estimator.set_params(callbacks=folder.epochs.watcher("search"))
            model = fit_planned(plan, begun=begin)
        keep_folder()
        checkpoints.close()
        folder.epochs.tidy()
        left = math.inf if args.seconds is None else max(LEAST_IMPORTANCE_SECONDS, args.seconds - time.monotonic() + begin)
        files, failures = _files(model, split, args.out, min(IMPORTANCE_SECONDS, left))
        model.facts["seconds"]["all"] = round(time.monotonic() - begin, 3)
        written = _publish(folder, model, files, failures)
    _show(model.facts, table_baseline_sizes(model.estimator, model.facts))
    if written:
        print(f"\nIn {args.out}: {', '.join(path.name for path in sorted(written))}")
    for line in failures:
        _print_error(f"meristem: {line}")
    return 1 if failures else 0


@contextmanager
def _checkpointing(folder: RunFolder, *, is_saved: bool) -> Iterator[Checkpoints]:
    """Inside, training is checkpointed if `is_saved`, and a shutdown prints how to continue."""
    checkpoints = folder.checkpoints(say=_print_error)

    def last_call() -> str:
        if not is_saved:
            return "no model was written; a run with --seconds saves no checkpoints"
        checkpoints.now()
        return f"no model was written yet; continue with: {folder.command.removesuffix(' --resume')} --resume"

    with on_shutdown(last_call), checkpoints.keeping("search") if is_saved else nullcontext():
        yield checkpoints


@contextmanager
def _quiet() -> Iterator[None]:
    """Inside, scikit-learn does not warn about classes: tables/split.py does."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        yield


def _print_error(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


@contextmanager
def _removing_new_folder(out: Path) -> Iterator[Callable[[], None]]:
    """Inside, a ValueError removes the folders that did not exist before, unless they hold checkpoints.

    Yields a function to call as soon as there is a model: from then on nothing is removed.
    """
    made = [path for path in (out, *out.parents) if not path.exists()]
    try:
        yield made.clear
    except ValueError as error:
        if made and not isinstance(error, OutputError) and not any(out.rglob("*.safetensors")):
            shutil.rmtree(out, ignore_errors=True)
            for path in made[1:]:
                with suppress(OSError):
                    path.rmdir()
        raise


def _files(model: Any, split: Any, out: Path, seconds: float) -> tuple[dict[str, Any], list[str]]:
    """Return the ONNX file and the report, and a line for each that failed: the trained model is saved in any case."""
    from meristem.report import table_page

    files: dict[str, Any] = {}
    failures = []
    try:
        files |= _onnx_file(model, split)
    except Exception as error:
        command = f"meristem export {shlex.quote(str(out / FILES[0]))} --onnx {shlex.quote(str(out / FILES[1]))}"
        failures.append(f"model.onnx was not written: {_sentence(error)} The model is saved; try again with: {command}")
    try:
        files["report.html"] = table_page(model, seconds=seconds)
    except Exception as error:
        code = f"meristem.load({str(out / FILES[0])!r}).report({str(out / FILES[2])!r})"
        failures.append(f"report.html was not written: {_sentence(error)} The model is saved; try again in Python: {code}")
    return files, failures


def _publish(folder: RunFolder, model: Any, files: dict[str, Any], failures: list[str]) -> list[Path]:
    """Write the files and return their paths; where that fails, save the model in the temporary folder and report it."""
    try:
        packed = {FILES[0]: packed_file(folder.out / FILES[0], model)} | files
        return folder.publish(packed, {"command": folder.command, **model.facts})
    except (ValueError, OSError) as error:
        path = Path(tempfile.gettempdir()) / f"meristem-{folder.id}.safetensors"
        with suppress(ValueError, OSError):
            model.save(path)
            failures.append(f"{_sentence(error)} The model is saved in {str(path)!r}: move it where there is room.")
            return []
        raise


def _sentence(error: Exception) -> str:
    """Return the first line of an error's message, with a full stop."""
    text = (str(error).splitlines() or [type(error).__name__])[0]
    return text if text.endswith(".") else f"{text}."


def _onnx_file(model: Any, split: Any) -> dict[str, bytes]:
    """Return the ONNX file, compared with the model on held-out rows if onnxruntime is installed; {} without onnx."""
    from meristem.tables.evaluation import onnx_agreement

    if importlib.util.find_spec("onnx") is None:
        _print_error("No model.onnx: onnx is not installed (pip install 'meristem-nn[onnx]').")
        return {}
    data = model.onnx_bytes()
    model.facts["onnx"] = onnx_agreement(data, model, split.test_table, split.test_rows, model.evaluation.outputs)
    if model.facts["onnx"] is None:
        _print_error("model.onnx was not compared with the model: onnxruntime is not installed (pip install onnxruntime).")
    return {"model.onnx": data}


def _show(facts: dict[str, Any], baseline_sizes: dict[str, int]) -> None:
    scores = {"found": facts["score"], **facts["baselines"]}
    sizes = {"found": facts["n_parameters"], **baseline_sizes}
    rows = [
        [name, f"{score['value']:z.3f}", f"{score['low']:z.3f} to {score['high']:z.3f}", f"{sizes[name]:,}"]
        for name, score in scores.items()
    ]
    measure = facts["score"]["measure"]
    print_table(["model", measure, "95 %", "parameters"], rows, f"{facts['target']}, {facts['rows']['test']:,} rows held out")
