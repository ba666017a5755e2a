"""`meristem fit TABLE --target COLUMN`: train a model on a table, or on pictures, score it on held-out rows, write its files.

Problems of the table or the options are reported before the folder of the run, --out, is made; summary.json is written last.
"""

import argparse
import importlib.util
import pkgutil
import shlex
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from meristem.commands.entry import on_shutdown
from meristem.commands.parsing import as_options, check_out, command_line
from meristem.export.c import c_text
from meristem.export.c_file import COptions
from meristem.export.endings import ending_of
from meristem.files.atomic_write import OutputError, check_disk_space
from meristem.files.file_kinds import packed_file
from meristem.folders.checkpoints import Checkpoints
from meristem.folders.run_folder import RunFolder
from meristem.folders.run_record import SUMMARY
from meristem.report import from_table, render_page
from meristem.report.formatting import interval_text, limits_text, score_text
from meristem.report.task_metrics import METRICS
from meristem.show.describe import print_table
from meristem.show.elements import shorten
from meristem.tables.encoding import codes
from meristem.tables.evaluation import onnx_agreement
from meristem.tables.fitting import check_options, fit_planned, plan_fit
from meristem.tables.reading import read_table
from meristem.tables.split import TableSplit
from meristem.train.placement import check_executor, on_workers

CLASS_WARNINGS = "The (number of unique classes|least populated class)"  # scikit-learn's; tables/split.py says the same
FILES = ["model.safetensors", "model.onnx", "report.html", "model.c", "model.h"]


@dataclass(frozen=True)
class Job:
    """What is fitted: a table, or files of pictures (fit_images.py); errors of options are raised before there is one."""

    settings: dict[str, Any]  # and options of the data, as a run records them
    data: dict[str, Any]  # digests
    names: tuple[str, ...]  # of the settings, as options
    n_bytes: int  # of its files
    estimator: Any  # not fitted
    fit: Callable[[float], Any]  # the model, given when the command began
    onnx: Callable[[Any], bytes | None]
    page: Callable[[Any], str]
    c: Callable[[Any], list[bytes]] | None = None  # with a budget of flash: the C file of the model, and its header
    report_source: str = ""  # what a report of a model from a file needs, too


def run(args: argparse.Namespace) -> int:
    """Read the data, plan the search, make the folder, search, and write the files; return the exit status."""
    begin = args.started_at
    if args.test is not None and args.test_file is not None:
        raise ValueError(f"--test={args.test} and --test-file={args.test_file!r} exclude each other; give one.")
    if args.resume and args.seconds is not None:
        raise ValueError("--resume and --seconds exclude each other: a time limit saves no checkpoints; leave one out.")
    if args.table == "-" and args.test_file == "-":
        raise ValueError("TABLE and --test-file are both standard input; give the path of one.")
    make = "fit_images:image_job" if args.images is not None or Path(args.table).is_dir() else "fit:table_job"
    job: Job = pkgutil.resolve_name(f"meristem.commands.{make}")(args)
    if args.seconds is not None and time.monotonic() - begin >= args.seconds:
        raise ValueError(f"--seconds={args.seconds:g} had passed when the data were read; give more.")
    check_disk_space(args.out, job.n_bytes)
    with ExitStack() as undo, _removing_new_folder(args.out) as keep_folder, RunFolder.take(check_out(args.out)) as folder:
        record: dict[str, Any] = {"settings": job.settings, "data": job.data}
        resumes = {"resume": args.resume, "how": "--resume" if args.seconds is None else None, "replaces": True}
        for line in folder.begin(record, command_line(), may_write=[*FILES, SUMMARY], **resumes):
            print_error(line)
        if args.resume and folder.is_finished:
            return 0
        checkpoints = folder.checkpoints(say=print_error)
        undo.enter_context(on_shutdown(lambda: _last_call(folder, checkpoints if args.seconds is None else None)))
        if args.seconds is None:
            undo.enter_context(checkpoints.keeping("search"))
        with as_options(*job.names, "executor", "address"), warnings.catch_warnings():
            warnings.filterwarnings("ignore", CLASS_WARNINGS, UserWarning)
            warnings.showwarning = lambda message, *_: print(f"warning: {message}", file=sys.stderr, flush=True)
            job.estimator.set_params(callbacks=folder.epochs.watcher("search"))
            with on_workers(args.executor, args.address):
                model = job.fit(begin)
        keep_folder()
        checkpoints.close()
        folder.epochs.tidy()
        files, failures = _files(model, job, args.out)
        model.facts["seconds"]["all"] = round(time.monotonic() - begin, 3)
        written = _publish(folder, model, files, failures)
    _show(model.facts)
    if written:
        print(f"\nIn {args.out}: {', '.join(path.name for path in sorted(written))}")
    for line in failures:
        print_error(f"meristem: {line}")
    return 1 if failures else 0


def table_job(args: argparse.Namespace) -> Job:
    """Read the table and plan the search."""
    if args.image_size is not None:
        raise ValueError(f"--image-size={args.image_size} is for pictures; of a list of files also give --images COLUMN.")
    if args.target is None:
        raise ValueError("--target COLUMN is missing: the column to predict.")
    body = "budding" if args.body is None else args.body
    settings: dict[str, Any] = {"body": body} | {name: getattr(args, name) for name in ("budget", "rule", "refit", "seconds")}
    settings |= {"bits": args.bits} if isinstance(args.budget, str) else {}
    settings |= {"metric": args.metric} | ({} if args.threshold is None else {"threshold": _number_or_rule(args.threshold)})
    settings |= {"random_state": args.seed} | ({} if args.max_epochs is None else {"max_epochs": args.max_epochs})
    test = args.test_file or (0.2 if args.test is None else args.test)
    reading = {"sep": args.sep, "encoding": args.encoding}
    division = {name: getattr(args, name) for name in ("time_column", "group_column", "drop_duplicates")}
    names = ["sep", "encoding", "executor", "address", "target", "task", "test", *division, *settings]
    with as_options(*names, random_state="seed", keep="group_column"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", CLASS_WARNINGS, UserWarning)
        check_executor(args.executor, args.address)
        check_options(test=test, **settings)
        table = read_table(args.table, keep=[] if args.group_column is None else [args.group_column], **reading)
        options = {"target": args.target, "task": args.task, "test": test}
        split = TableSplit.of(table, seed=args.seed, reading=reading, **options, **division)
        plan = plan_fit(split, verbose=True, **settings)
    divided = {name: value for name, value in division.items() if value}  # absent in records of earlier versions
    options |= {"task": split.target.task, **reading, **divided}

    def onnx(model: Any) -> bytes | None:
        data: bytes = model.onnx_bytes()
        model.facts["onnx"] = onnx_agreement(data, model, split.test_table, split.test_rows, model.evaluation.outputs)
        return data

    digests = {"table": table.digest, "test": split.test_table.digest}
    own = (settings | options, digests, tuple(settings), plan.n_bytes, plan.estimator)

    def c(model: Any) -> list[bytes]:
        return c_files(model, codes(model.schema, split.table, split.train_rows), scaling=model.inputs)

    last = c if isinstance(args.budget, str) else None
    return Job(*own, lambda begun: fit_planned(plan, begun=begun), onnx, lambda model: render_page(from_table(model)), last)


def _last_call(folder: RunFolder, checkpoints: Checkpoints | None) -> str:
    """Write a last checkpoint and return how to continue."""
    if checkpoints is None:
        return "no model was written; a run with --seconds saves no checkpoints"
    checkpoints.now()
    return f"no model was written yet; continue with: {folder.command.removesuffix(' --resume')} --resume"


def print_error(line: str) -> None:
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


def _files(model: Any, job: Job, out: Path) -> tuple[dict[str, Any], list[str]]:
    """Return the ONNX file and the report, and a line for each that failed: the trained model is saved in any case."""
    model_path, onnx_path, report_path = (str(out / name) for name in FILES[:3])
    export = f"with: meristem export {shlex.quote(model_path)} --onnx {shlex.quote(onnx_path)}"
    report = f"in Python: meristem.load({model_path!r}).report({report_path!r}{job.report_source})"
    files, failures = {}, []
    for name, content, remedy in (
        (FILES[1], lambda: _onnx_file(model, job), export),
        (FILES[2], lambda: job.page(model).encode(), report),
    ):
        try:
            files[name] = content()
        except Exception as error:
            failures.append(f"{name} was not written: {_sentence(error)} The model is saved; try again {remedy}")
    if job.c is not None:
        try:
            files |= dict(zip(FILES[3:], job.c(model), strict=True))
        except Exception as error:
            failures.append(f"{FILES[3]} was not written: {_sentence(error)} The model is saved; docs/devices.md says how.")
    return {name: content for name, content in files.items() if content is not None}, failures


def c_files(model: Any, rows: Any, *, scaling: Any = None, pixels: str | None = None) -> list[bytes]:
    """Return the C file of the model in the bits of its budget, and the header."""
    own = model.estimator
    options = COptions("model", bits=own.bits, X=rows, budget=own.budget, pixels=pixels)
    texts = c_text(own.compact(), options, scaling=scaling, ending=ending_of(own._targets_))
    return [text.encode() for text in texts]


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


def _onnx_file(model: Any, job: Job) -> bytes | None:
    """Return the ONNX file, compared with the model on held-out rows if onnxruntime is installed; None without onnx."""
    if importlib.util.find_spec("onnx") is None:
        print_error("No model.onnx: onnx is not installed (pip install 'meristem-nn[onnx]').")
        return None
    data = job.onnx(model)
    if model.facts["onnx"] is None:
        print_error("model.onnx was not compared with the model: onnxruntime is not installed (pip install onnxruntime).")
    return data


def _number_or_rule(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _show(facts: dict[str, Any]) -> None:
    """Print the scores of the model and the baselines, and all metrics of the model, as the report has them."""
    rows, measure = [], facts["score"]["measure"]
    for name, score in {"found": facts["score"] | {"n_parameters": facts["n_parameters"]}, **facts["baselines"]}.items():
        texts = score_text(score["value"], measure), interval_text(score["low"], score["high"], measure)
        rows.append([name, *texts, "–" if (size := score["n_parameters"]) is None else f"{size:,}"])
    print_table(["model", measure, "95 %", "parameters"], rows, f"{facts['target']}, {facts['rows']['test']:,} rows held out")
    metrics = []
    for name, (low, high) in facts["test_intervals"].items():
        label = METRICS[name].label
        metrics.append([label, score_text(facts["test"][name], label), limits_text(low, high, label)])
    threshold = "" if facts["threshold"] is None else f" at the threshold {facts['threshold']:.3g}"
    positive = "" if facts["positive_class"] is None else f" of {shorten(facts['positive_class'], 40)!r}{threshold}"
    print_table(["metric", "value", "95 %"], metrics, f"all metrics{positive}")
