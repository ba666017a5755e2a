"""`meristem reproduce STUDY`: the paper's studies, each as one entry of a table: its options, what runs it, what it shows.

A study's options are the fields of its `Study`; what they may be is checked there, so that a mistake is one line.
"""

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from meristem import figures
from meristem.commands.parsing import Parser, add_command, names, numbers
from meristem.cpu import fuse_small_loops
from meristem.experiments import mirflickr, mnist, summary, tagging, two_spirals
from meristem.experiments.runs import MODELS, Result, device
from meristem.show.progress import Progress
from meristem.show.table import print_table, without_empty

AFTERWARDS = """
writes summary.json, history.npz and the figures into --out; `meristem figures OUT` redraws the figures from the files.
"""
Add = Callable[[argparse.ArgumentParser, Any], None]  # options of a study, with its defaults
Table = tuple[list[str], list[list[str]]]


class Kind(NamedTuple):
    """A study as the command line knows it."""

    study: Callable[..., Any]  # the options, checked
    defaults: Any
    run: Callable[[Any, Progress], Result]
    paper: Callable[[Any], dict[str, dict[str, float]]]  # its values, to stand beside ours
    table: Callable[[list[summary.Record], Any], Table]
    title: Callable[[Any], str]  # of the table, before the number of seeds
    shown: str  # and after it: what the numbers are
    options: tuple[Add, ...]
    help: str
    description: str
    example: str
    first: Callable[[], Any] = lambda: None  # before JAX computes anything


# options --------------------------------------------------------------------------------------------------------------------


def _data(what: str) -> Add:
    def add(study: argparse.ArgumentParser, default: Any) -> None:
        where = "(default: $MERISTEM_DATA, else the user's cache)"
        study.add_argument("--data", type=Path, metavar="DIR", help=f"the folder with {what} {where}")

    return add


def _knobs(best: str) -> Add:
    """What may be tried out; `best`: what the choice goes by."""

    def add(study: argparse.ArgumentParser, default: Any) -> None:
        what = {"rate": "the learning rate", "penalty": "the price of complexity λ, relative to the mean loss"}
        for option, meaning in what.items():
            (usual,) = getattr(default, option)
            study.add_argument(
                f"--{option}",
                type=numbers,
                default=(usual,),
                help=f"{meaning}; of several with commas each model keeps one (default: {usual}, the paper's)",
            )
        study.add_argument(
            "--choose",
            default=default.choose,
            metavar="HOW",
            help=f"which of several settings a model keeps: the best, by {best}, or the smallest network within one standard "
            "error of it (default: %(default)s)",
        )

    return add


def _inputs(study: argparse.ArgumentParser, default: Any) -> None:
    (share,), (columns,) = default.input_dropout, default.standardise
    study.add_argument(
        "--input-dropout",
        type=numbers,
        default=(share,),
        metavar="SHARE",
        help=f"inputs set to 0 in each step, one share or several with commas (default: {share}, the paper's)",
    )
    study.add_argument(
        "--standardise",
        type=names,
        default=(columns,),
        metavar="COLUMNS",
        help="which features get mean 0 and sd 1: numbers, those that hold more than 0 and 1, or all; or both with a comma "
        f"(default: {columns})",
    )


def _spirals(study: argparse.ArgumentParser, default: Any) -> None:
    tasks = f"with commas, of {', '.join(two_spirals.TASKS)} (default: all but classic)"
    study.add_argument("--tasks", type=names, default=default.tasks, help=tasks)
    study.add_argument("--equal-rates", action="store_true", help="the same rate in all layers, the paper's ablation")
    study.add_argument(
        "--select-rate", action="store_true", help="try the paper's four rates, keep the smallest that solves every task"
    )
    study.add_argument(
        "--penalty",
        type=float,
        default=default.penalty,
        help="the price of complexity λ, relative to the mean loss (default: %(default)s, the paper's)",
    )


def _digits(study: argparse.ArgumentParser, default: Any) -> None:
    study.add_argument("--task", type=names, default=default.task, help="ten, two, or both with a comma (default: ten)")


def _photographs(study: argparse.ArgumentParser, default: Any) -> None:
    study.add_argument("--features", default=default.features, help="images, the paper's, or tags (default: %(default)s)")
    study.add_argument(
        "--task",
        type=names,
        default=(),
        help="how many labels, with commas, of 38, 24 and 10 (default: 10,38 for images, 10,24 for tags)",
    )
    study.add_argument("--split", type=int, default=default.split, metavar="1…5", help="which split (default: %(default)s)")


def _own_files(study: argparse.ArgumentParser, default: Any) -> None:
    study.add_argument("--data", type=Path, nargs="+", required=True, metavar="FILE", help="one or more .npz files")
    study.add_argument(
        "--split",
        type=int,
        default=default.split,
        metavar="SEED",
        help="which fifth of the training part is for validation (default: %(default)s)",
    )


def _common(study: argparse.ArgumentParser, default: Any) -> None:
    """The options of every study."""
    models = f"with commas, of {', '.join(MODELS)} (default: {','.join(default.models)})"
    study.add_argument("--models", type=names, default=default.models, help=models)
    study.add_argument("--seeds", type=int, default=default.seeds, metavar="N", help="seeds 0 … N−1 (default: %(default)s)")
    study.add_argument(
        "--max-epochs",
        type=int,
        default=default.max_epochs,
        metavar="N",
        help="stop there at the latest (default: %(default)s)",
    )


# studies --------------------------------------------------------------------------------------------------------------------

STUDIES = {
    "two-spirals": Kind(
        study=two_spirals.Study,
        defaults=two_spirals.Study(),
        run=two_spirals.run,
        paper=lambda study: two_spirals.PAPER,
        table=lambda runs, paper: two_spirals.table(runs),
        title=lambda study: "Two spirals",
        shown="median (range), beside the paper",
        options=(_spirals,),
        help="two spirals, easy to difficult, with one set of hyper-parameters",
        description="Train networks that size themselves on two spirals; show what came out beside the paper's results.",
        example="--seeds 10 --models tunnel,budding,highway,highway-penalized --out out/all",
        first=fuse_small_loops,
    ),
    "mnist": Kind(
        study=mnist.Study,
        defaults=mnist.Study(),
        run=mnist.run,
        paper=lambda study: mnist.PAPER,
        table=lambda runs, paper: mnist.table(runs),
        title=lambda study: "MNIST",
        shown="mean ± sd, beside the paper",
        options=(_digits, _data("the four gzipped IDX files"), _knobs("lowest validation error")),
        help="handwritten digits: ten classes, or 0 versus 1",
        description="Train on MNIST; show test errors and sizes beside the paper's. An epoch takes about two seconds on two "
        "cores, a run of ten classes some 150 epochs; a GPU trains all seeds of a model in about a minute.",
        example="--task two --models tunnel,budding --seeds 2 --data DIR",
    ),
    "mirflickr": Kind(
        study=mirflickr.Study,
        defaults=mirflickr.Study(),
        run=mirflickr.run,
        paper=lambda study: mirflickr.papers(study.features),
        table=tagging.table,
        title=lambda study: f"MIRFLICKR, {study.features}, split {study.split}",
        shown="mean ± sd, macro-F1 in %",
        options=(
            _photographs,
            _data("the unpacked archive, or the tags' file"),
            _inputs,
            _knobs("highest validation macro-F1"),
        ),
        help="photographs with several labels each",
        description="Train on MIRFLICKR-25k, on the paper's image features or on the users' tags; show macro-F1, errors per "
        "instance and sizes.",
        example="--features tags --task 10,24 --seeds 2 --data DIR",
    ),
    "tagging": Kind(
        study=lambda data, **options: tagging.Study(tuple(data), **options),
        defaults=tagging.Study(data=()),
        run=tagging.run,
        paper=lambda study: {},
        table=tagging.table,
        title=lambda study: "Tagging",
        shown="mean ± sd, macro-F1 in %",
        options=(_own_files, _inputs, _knobs("highest validation macro-F1")),
        help="the same study on multi-label data of your own",
        description="Train on .npz files with X_train, Y_train, X_test, Y_test (labels as 0 and 1) and labels (their names), "
        "at the paper's settings for MIRFLICKR.",
        example="--data scene.npz corel5k.npz --seeds 2",
    ),
}


def add(commands: Any) -> None:
    """The command, its studies and their options."""
    reproduce = commands.add_parser("reproduce", help="run a study of the paper", description="Run a study of the paper.")
    studies = reproduce.add_subparsers(dest="study", required=True, metavar="STUDY", parser_class=Parser)
    for name, kind in STUDIES.items():
        example = f"meristem reproduce {name} {kind.example}"
        study = add_command(
            studies, name, run=run, example=example, more=AFTERWARDS, help=kind.help, description=kind.description
        )
        for options in (*kind.options, _common):
            options(study, kind.defaults)
        out = Path("out") / name
        study.add_argument("--out", type=Path, default=out, metavar="DIR", help="where results go (default: %(default)s)")


def run(args: argparse.Namespace) -> None:
    """Run a study, write its files, show its table, draw its figures."""
    kind = STUDIES[args.study]
    study = kind.study(**{field.name: getattr(args, field.name) for field in fields(kind.defaults)})
    kind.first()
    out, paper = summary.check_out(args.out), kind.paper(study)
    seeds = "1 seed" if study.seeds == 1 else f"{study.seeds} seeds"
    begin = time.perf_counter()
    with Progress() as progress, _ends_at_once(progress):
        progress.say(f"{args.study} on {device()}, {seeds}")
        result = kind.run(study, progress)
    head = summary.header(args.study, paper, time.perf_counter() - begin, result.runs) | result.more
    written = summary.write(out, head, result.history)
    columns, rows = without_empty(*kind.table(result.runs, paper))
    print_table(columns, rows, f"{kind.title(study)}, {seeds}: {kind.shown}")
    written += _draw(out)
    print(f"\nIn {out}: {', '.join(path.name for path in sorted(written))}")


def _draw(out: Path) -> list[Path]:
    if figures.have_matplotlib():
        return figures.draw(out)
    print(
        "Figures skipped: matplotlib is not installed (pip install 'meristem[cli]', then: meristem figures DIR).",
        file=sys.stderr,
    )
    return []


@contextmanager
def _ends_at_once(progress: Progress) -> Iterator[None]:
    """Ctrl-C ends the process itself: an exception can get lost inside JAX, and leaving Python while XLA computes can crash."""

    def end(number: int, frame: FrameType | None) -> None:
        progress.close()
        print("\nmeristem: interrupted; no results were written", file=sys.stderr, flush=True)
        os._exit(130)

    before = signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
