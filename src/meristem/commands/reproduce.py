"""`meristem reproduce STUDY`: the studies of `meristem.experiments`, each by what its record says: options, table, pictures.

The options are the fields of the study's options class; what they may be is checked there, so that a mistake is one line.
"""

import argparse
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import MISSING, Field, fields
from pathlib import Path
from types import FrameType
from typing import Any

from meristem.commands.parsing import Parser, add_command
from meristem.experiments import STUDIES, summary
from meristem.experiments.columns import table
from meristem.experiments.option import Option, flag, option_of
from meristem.experiments.options import Options
from meristem.experiments.runs import device
from meristem.experiments.study import Study, run as run_study
from meristem.pictures.studies import draw, have_matplotlib
from meristem.show.progress import Progress
from meristem.show.table import print_table

DIVERGED = 3  # the exit status where a run had no good epoch
AFTERWARDS = """
writes summary.json, history.npz and the figures into --out; `meristem figures OUT` redraws the figures from the files.
"""


def add(commands: Any) -> None:
    """The command, its studies and their options."""
    reproduce = commands.add_parser("reproduce", help="run a study of the paper", description="Run a study of the paper.")
    studies = reproduce.add_subparsers(dest="study", required=True, metavar="STUDY", parser_class=Parser)
    for name, study in STUDIES.items():
        example = f"meristem reproduce {name} {study.example}"
        parser = add_command(
            studies, name, run=run, example=example, more=AFTERWARDS, help=study.help, description=study.description
        )
        for field, option in _options(study):
            _add_option(parser, field, option)
        out = Path("out") / name
        parser.add_argument("--out", type=Path, default=out, metavar="DIR", help="where results go (default: %(default)s)")


def _options(study: Study[Any]) -> list[tuple[Field[Any], Option]]:
    """The study's own, then those that all studies take."""
    common = [field.name for field in fields(Options)]
    given = [(field, option) for field in fields(study.options) if (option := option_of(field))]
    return sorted(given, key=lambda pair: pair[0].name in common)


def _add_option(parser: argparse.ArgumentParser, field: Field[Any], option: Option) -> None:
    text = f"{option.help} (default: {option.usual})" if option.usual else option.help
    how: dict[str, Any] = {"dest": field.name, "help": text.replace("%", "%%")}
    if option.read is None:
        how |= {"action": "store_true"}
    else:
        how |= {"type": option.read, "metavar": option.metavar, "nargs": "+" if option.takes_many else None}
    is_required = field.default is MISSING
    parser.add_argument(flag(field.name), **how, **({"required": True} if is_required else {"default": field.default}))
    for spelling in option.older:
        parser.add_argument(spelling, **how | {"help": argparse.SUPPRESS, "default": argparse.SUPPRESS})


def run(args: argparse.Namespace) -> int:
    """Run a study, write its files, show its table, draw its figures; the exit status: 3 where a run had no good epoch."""
    study = STUDIES[args.study]
    given = {field.name: getattr(args, field.name) for field, _ in _options(study)}
    options = study.options(**{name: tuple(value) if isinstance(value, list) else value for name, value in given.items()})
    study.before()
    out = summary.check_out(args.out)
    seeds = "1 seed" if options.seeds == 1 else f"{options.seeds} seeds"
    begin = time.perf_counter()
    with Progress() as progress, _ends_at_once(progress):
        progress.say(f"{args.study} on {device()}, {seeds}")
        plan = study.plan(options)
        result = run_study(study, options, plan, progress)
    paper = study.paper_of(plan)
    head = summary.header(study.name, plan.title, paper, time.perf_counter() - begin, result.runs)
    head |= plan.known | {"pictures": study.pictures_of(plan).as_json()} | result.more
    written = summary.write(out, head, result.history)
    beside = ", beside the paper" if paper else ""
    print_table(*table(study.columns, result.runs, paper), f"{plan.title}, {seeds}: {study.averages}{beside}")
    written += _draw(out) if any(one["best_epoch"] for one in result.runs) else []
    print(f"\nIn {out}: {', '.join(path.name for path in sorted(written))}")
    return _failures(result.runs)


def _failures(runs: list[summary.Record]) -> int:
    """Says how many runs had no good epoch; the exit status."""
    failed = [one for one in runs if not one["best_epoch"]]
    if not failed:
        return 0
    first = failed[0]
    print(
        f"meristem: {len(failed)} of {len(runs)} runs diverged without a good epoch, {first['model']} on {first['task']} with "
        f"seed {first['seed']} for one; lower --rate={first['learning_rate']:g}.",
        file=sys.stderr,
    )
    return DIVERGED


def _draw(out: Path) -> list[Path]:
    if have_matplotlib():
        return draw(out)
    print(
        "Figures skipped: matplotlib is not installed (pip install 'meristem-nn[cli]', then: meristem figures DIR).",
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
