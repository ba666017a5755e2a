"""The commands and their arguments, as data; errors in one line, options by their full names, an example below every help."""

import argparse
import pkgutil
import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import meristem
from meristem.experiments import STUDIES
from meristem.experiments.options import flag
from meristem.files.atomic_write import not_written
from meristem.train.saving import SECONDS


class Parser(argparse.ArgumentParser):
    """A parser with errors in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


# What runs a command, where it is not `run` in the module of its name.
RUNS = {"study": "reproduce:run", "figures": "reproduce:run_figures"}
RUNS |= {"show": "show_export:run_show", "export": "show_export:run_export"}
COMMANDS = {  # name → help, description, example
    "fit": (
        "train a model on a table (CSV, gzipped CSV or Parquet), or on a folder or a list of pictures",
        "Train a small network that predicts a column of a table from the others, or the class of pictures. Its penalty on "
        "size is chosen by cross-validation, and its score is measured on held-out rows.",
        "meristem fit people.csv --target income --out out/people\n  meristem fit flowers --out out/flowers",
    ),
    "predict": (
        "predict the rows of a table, or pictures",
        "Write the predictions of a model of `meristem fit` for each row of a table, as CSV: the class with "
        "probabilities, or a number. Unused columns are ignored; missing columns and unseen categories are reported. Of a "
        "model of pictures, TABLE is a folder of them, or a list of files: the file comes first.",
        "meristem predict out/people/model.safetensors new.csv --out predictions.csv",
    ),
    "reproduce": (
        "run a study of the paper",
        "Run a study of the paper, and compare its results with the paper's.",
        "meristem reproduce two-spirals --seeds 3",
    ),
    "figures": (
        "redraw the figures of a study",
        "Redraw the figures of a study from its files, and print their paths.",
        "meristem figures out/two-spirals",
    ),
    "watch": (
        "watch a run in the terminal or in a browser",
        "Show the progress of a run: learning curves, layers that open and close, networks of a population. Only "
        "the run's files are read: it may run in another process, and may have ended.",
        "meristem watch out/two-spirals --serve",
    ),
    "show": (
        "show what a model file holds: layers, open units, sizes, parameters",
        "Print the structure of a model, or of the best network of a training run, and draw it with --png.",
        "meristem show digits.safetensors --png digits.png",
    ),
    "export": (
        "export a model to ONNX or C",
        "Write the compact form of a model as an ONNX file or a C file: an estimator with its preprocessing and probabilities, "
        "a table's model with its columns, a training run as its best network.",
        "meristem export digits.safetensors --onnx digits.onnx",
    ),
}
OLD_SPELLINGS = {"task": "--tasks", "standardize": "--standardise"}  # of options of studies: accepted, not shown
AFTERWARDS = {
    "fit": """
writes model.safetensors (for `meristem predict`), model.onnx, report.html and summary.json into --out.
--resume continues an interrupted run with identical results.
""",
    "study": """
writes summary.json, history.npz, the figures and the trained networks into --out. `meristem figures OUT` redraws the figures
from the files, `meristem show OUT/networks/…` shows a network. --resume continues an interrupted run with identical results.
""",
}
KEEP = (
    "columns of TABLE to copy in front of the predictions, such as an id; may be repeated, and a name may hold a comma. "
    "If the target is copied, its prediction is called 'TARGET (predicted)'"
)
TABLE = (
    "a CSV file (may be gzipped), a Parquet file, or - for CSV on standard input; or a folder with a folder of pictures (PNG, "
    "JPEG and others) for each class"
)
IMAGES = "the column of TABLE that names files of pictures, relative to it (predict: default as in the fit)"
SIZE = (
    "32 or 24x48, the height and width that every picture is scaled to (default: the medians of the files, with at most 64 on "
    "the longer side)"
)
BODY = "budding (default) or tunnel; of pictures conv-branch (default), conv-inverted or conv-tunnel"
BY_TIME = "test on the latest rows by this column (dates, numbers or ISO texts), and search with folds that go forward in time"
BY_GROUP = (
    "hold out whole groups, such as patients, in the test and in folds; the column is no input; with --time-column, a group "
    "on both sides of a time is drawn to one"
)
REFIT = (
    "distill: a network that learns what the bag answers; bag: the average of the folds' networks; one: a network that learns "
    "from all rows; auto (default): distill, one with --budget, --time-column, very many rows or images, bag with --seconds"
)
COVERAGE = (
    "also write an interval (columns lower, upper) or a set of classes (column set, joined by ' | ') that holds the true value "
    "with this probability, such as 0.9"
)
METRIC = (
    "what the model is judged by and the search chooses by: accuracy, balanced_accuracy, roc_auc, average_precision, log_loss, "
    "f1, recall, precision; of numbers r2, rmse, mae, median_absolute_error (default: judged by what fits the task, chosen by "
    "the held-out loss)"
)
THRESHOLD = (
    "of two classes: best-f1, cost=FP:FN (such as cost=1:20) or recall=0.9, chosen on out-of-fold predictions, or a number; "
    "the rarer class is the positive one if it has less than a tenth of the rows, else the second (default: 0.5)"
)
BUDGET = (
    "maximum number of parameters, instead of a search for the penalty; or the flash that the model's C file, which is then "
    "written, too, may take: '2 KB', in so many --bits"
)
EVERY = "seconds between checkpoints, which take at most 5 %% of the time (default: %(default)g)"
EXECUTOR = (
    "train networks on other processes or machines: processes (one for each core of this machine) or ray (a cluster, see "
    "--address); the results are the same (default: in this process)"
)


def budget_of(text: str) -> int | str:
    """Return a number of parameters, or a text that is no number, such as "2 KB"."""
    return int(text) if text.strip().lstrip("+-").isdecimal() else text


ARGUMENTS: list[tuple[str, str, Any, Any, str | None, str]] = [
    # commands, name, type (bool: a flag; list: may be repeated), default (...: required), what its value is called, help
    ("fit", "--target", str, None, "COLUMN", "the column to predict; of a folder of pictures there is none"),
    ("fit predict", "--images", str, None, "COLUMN", IMAGES),
    ("fit", "--image-size", str, None, "SIZE", SIZE),
    ("fit", "--task", str, None, "TASK", "class or number (default: inferred from the column)"),
    ("fit", "--body", str, None, "BODY", BODY),
    ("fit", "--budget", budget_of, None, "N", BUDGET),
    ("fit", "--bits", int, 8, "N", "with --budget in bytes: of the C file, 8 or 16 (default: %(default)s)"),
    ("fit", "--rule", str, "1se", "RULE", "1se (default): the highest penalty within one standard error; min: the best"),
    ("fit", "--refit", str, "auto", "MODEL", REFIT),
    ("fit", "--metric", str, None, "NAME", METRIC),
    ("fit", "--threshold", str, None, "RULE", THRESHOLD),
    ("fit", "--seconds", float, None, "S", "time limit in seconds (default: none)"),
    ("fit", "--test", float, None, "SHARE", "share of the rows to hold out (default: 0.2)"),
    ("fit", "--test-file", str, None, "TABLE", "a table of held-out rows, instead of --test"),
    ("fit", "--time-column", str, None, "COLUMN", BY_TIME),
    ("fit", "--group-column", str, None, "COLUMN", BY_GROUP),
    ("fit", "--drop-duplicates", bool, False, None, "use rows that are identical in inputs and target once"),
    ("predict", "model", Path, ..., "MODEL", "the model.safetensors written by `meristem fit`"),
    ("fit predict", "table", str, ..., "TABLE", TABLE),
    ("fit predict", "--sep", str, None, "CHAR", "column separator of a CSV file (default: detected from its header)"),
    ("fit predict", "--encoding", str, None, "NAME", "encoding of a CSV file, such as cp1252 (default: utf-8)"),
    ("fit", "--seed", int, 0, "N", "random seed (default: %(default)s)"),
    ("fit", "--max-epochs", int, None, "N", "maximum epochs of each training (default: by the number of rows)"),
    ("fit", "--out", Path, "out/fit", "DIR", "folder for the results (default: %(default)s)"),
    ("fit", "--resume", bool, False, None, "continue the interrupted run in --out; not with --seconds"),
    ("predict", "--out", Path, None, "FILE", "file for the predictions (default: standard output)"),
    ("predict", "--coverage", float, None, "SHARE", COVERAGE),
    ("predict", "--keep", list, [], "COLUMN[,…]", KEEP),
    ("study", "--out", Path, "out/{study}", "DIR", "folder for results (default: %(default)s)"),
    ("study", "--resume", bool, False, None, "continue the interrupted run in --out"),
    ("study", "--checkpoint-every", float, SECONDS, "SECONDS", EVERY),
    ("fit study", "--executor", str, None, "NAME", EXECUTOR),
    ("fit study", "--address", str, None, "HOST:PORT", "the Ray cluster; auto: that of this machine (default: $RAY_ADDRESS)"),
    ("figures", "out", Path, ..., "OUT", "the --out of a study"),
    ("watch", "out", Path, ..., "OUT", "the folder of the run: its --out or checkpoint_dir"),
    ("watch", "--serve", bool, False, None, "show a page to browsers on this machine, until Ctrl-C"),
    ("watch", "--port", int, None, "N", "the port of the page (default: any free port)"),
    ("watch", "--once", bool, False, None, "print the current state and exit"),
    ("show export", "model", Path, ..., "MODEL", "a file written by save()"),
    ("show export", "--member", int, None, "M", "the network of a population, counted from 0"),
    ("show", "--png", Path, None, "FILE", "draw the network into this file or folder"),
    ("export", "--onnx", Path, None, "FILE", "the ONNX file to write"),
    ("export", "--c", Path, None, "FILE", "the C file to write, and its header beside it"),
    ("export", "--bits", int, None, "N", "weights and values of 8 bits, or with --c also of 16; needs --rows"),
    (
        "export",
        "--rows",
        Path,
        None,
        "FILE",
        "with --bits: the training table, or rows or images (.npy), which show the ranges",
    ),
    ("export", "--budget", str, None, "BYTES", "with --c: the flash that the file may take, such as '2 KB'"),
    ("export", "--pixels", str, None, "TYPE", "with --c: uint8 or uint8/255 where x holds bytes, of models on images"),
    ("export", "--numbers", str, None, "TYPE", "with --c: the type of its numbers, float, double or int (default: float)"),
    ("export", "--class-names", bool, False, None, "with --c: the names of the classes are a constant, too"),
]


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; `args.run` is called with them."""
    main = Parser(prog="meristem", description="Neural networks that find their own size.", allow_abbrev=False)
    main.add_argument("--version", action="version", version=f"meristem {meristem.__version__}")
    commands = main.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)
    parsers = {name: _add_command(commands, name, name, *texts) for name, texts in COMMANDS.items()}
    studies = parsers["reproduce"].add_subparsers(dest="study", required=True, metavar="STUDY", parser_class=Parser)
    for name, study in STUDIES.items():
        texts = study.help, study.description, f"meristem reproduce {name} {study.example}"
        _add_command(studies, name, "study", *texts, study.options)
    return main


def _add_command(commands: Any, name: str, kind: str, help: str, description: str, example: str, options: Any = None) -> Any:
    """Add a parser with the arguments of this kind of command, after the options of a study."""
    texts = {"help": help, "description": description, "epilog": f"example:\n  {example}\n{AFTERWARDS.get(kind, '')}"}
    plain = argparse.RawDescriptionHelpFormatter
    command = commands.add_parser(name, **texts, formatter_class=plain, allow_abbrev=False)  # --seed is not --seeds
    run = RUNS.get(kind, f"{kind}:run")
    command.set_defaults(run=lambda args: pkgutil.resolve_name(f"meristem.commands.{run}")(args))
    for field, argument in options.arguments().items() if options else ():
        command.add_argument(flag(field), **argument)
        if field in OLD_SPELLINGS:
            command.add_argument(OLD_SPELLINGS[field], **argument | {"help": argparse.SUPPRESS, "default": argparse.SUPPRESS})
    for kinds, spelling, read, default, metavar, text in ARGUMENTS:
        settings: dict[str, Any] = {"type": read, "metavar": metavar}
        if read is bool:
            settings = {"action": "store_true"}
        elif read is list:
            settings = {"action": "append", "metavar": metavar, "default": default}
        elif default is not ...:
            settings["default"] = default.format(study=name) if isinstance(default, str) else default
        elif spelling.startswith("-"):
            settings["required"] = True
        if kind in kinds.split():
            command.add_argument(spelling, help=text, **settings)
    return command


def command_line() -> str:
    return shlex.join(["meristem", *sys.argv[1:]])


def check_out(out: Path) -> Path:
    """Return a folder that can be written to, created if needed; raise ValueError for any other."""
    if str(out) in ("", "."):
        raise ValueError("--out names no folder of its own; give one, such as out/two-spirals.")
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out={str(out)!r} is a file, not a folder; choose another folder.")
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            return out
    except OSError as error:
        text = f"--out={str(out)!r} cannot be written to ({error.strerror}); choose another folder."
        raise not_written(text, error) from error


@contextmanager
def as_options(*names: str, **others: str) -> Iterator[None]:
    """Inside, rewrite errors that begin with one of these argument names to name the option instead.

    >>> with as_options(random_state="seed"):
    ...     raise ValueError("random_state=-1 must be an integer of at least 0.")
    Traceback (most recent call last):
    ValueError: --seed=-1 must be an integer of at least 0.
    """
    try:
        yield
    except ValueError as error:
        name, equals, rest = str(error).partition("=")
        options = {name: name for name in names} | others
        if not equals or name not in options:
            raise
        raise ValueError(f"--{options[name].replace('_', '-')}={rest}") from error
