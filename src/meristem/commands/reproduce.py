"""`meristem reproduce STUDY`: the studies of `meristem.experiments`, each by what its record says: options, table, pictures.

The options are the fields of the study's options class; what they may be is checked there, so that a mistake is one line.
"""

import argparse
import json
import sys
import time
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

from meristem.commands.ending import ends_with
from meristem.commands.parsing import Parser, add_command
from meristem.experiments import STUDIES, summary
from meristem.experiments.columns import table
from meristem.experiments.kept import Kept, described, group_name
from meristem.experiments.option import Option, flag, option_of
from meristem.experiments.options import Options
from meristem.experiments.runs import at_once, device
from meristem.experiments.study import Study, run as run_study, usual_epochs
from meristem.folders.folder import RunFolder
from meristem.pictures.studies import drawn, have_matplotlib
from meristem.pictures.studies.drawing import OTHERS as PICTURES
from meristem.pictures.studies.files import checked
from meristem.show.progress import Progress
from meristem.show.text_table import print_table
from meristem.train.saving import SECONDS

DIVERGED = 3  # the exit status where a run had no good epoch
AFTERWARDS = """
writes summary.json, history.npz, the figures and the trained networks into --out; `meristem figures OUT` redraws the figures
from the files, `meristem show OUT/networks/…` shows a network. What was interrupted goes on with --resume, to the same bits.
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
        parser.add_argument("--resume", action="store_true", help="go on with the run that was interrupted there")
        parser.add_argument(
            "--checkpoint-every",
            type=float,
            default=SECONDS,
            metavar="SECONDS",
            help="how often what is being trained is saved, for at most 5 %% of the time (default: %(default)g)",
        )


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
    """Run a study or go on with it, draw its figures, write its files, show its table; 3 where a run had no good epoch."""
    study = STUDIES[args.study]
    given = {field.name: getattr(args, field.name) for field, _ in _options(study)}
    options = study.options(**{name: tuple(value) if isinstance(value, list) else value for name, value in given.items()})
    every = check_seconds(args.checkpoint_every)
    study.before()
    out = summary.check_out(args.out)
    seeds = "1 seed" if options.seeds == 1 else f"{options.seeds} seeds"
    begin = time.perf_counter()
    with Progress() as progress, ends_with(progress.close), RunFolder.take(out) as folder:
        progress.say(f"{args.study} on {device()}, {seeds}")
        plan = study.plan(options)
        tasks = [options.sized(task) for task in plan.tasks]
        about = described(options, tasks)
        may_write = ["summary.json", "history.npz", *(f"{name}.png" for name in (*options.models, *PICTURES))]
        for line in folder.begin(about, summary.command(), resume=args.resume, may_write=may_write):
            progress.say(line)
        if args.resume and folder.is_finished:
            return 0
        folder.plan({group_name(*which): epochs for which, epochs in usual_epochs(options, tasks).items()})
        kept = _kept(folder, every, progress)
        with ends_with(lambda: _last_words(folder, kept)):
            result = run_study(study, options, plan, progress, at_once if kept is None else kept.train)
            paper = study.paper_of(plan)
            head = summary.header(study.name, plan.title, paper, time.perf_counter() - begin, result.runs, folder.command)
            head |= plan.known | {"pictures": study.pictures_of(plan).as_json()} | result.more
            files = {"history.npz": summary.history_bytes(result.history)}
            if any(one["best_epoch"] for one in result.runs):
                files |= _drawn(head, result.history, out)
            written = folder.publish(files, head)
    beside = ", beside the paper" if paper else ""
    print_table(*table(study.columns, result.runs, paper), f"{plan.title}, {seeds}: {study.averages}{beside}")
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


def check_seconds(value: float) -> float:
    """That a time between checkpoints is one."""
    if not 0 <= value < float("inf"):
        raise ValueError(f"--checkpoint-every={value:g} must be a number of seconds of at least 0.")
    return value


def _kept(folder: RunFolder, every: float, progress: Progress) -> Kept | None:
    """What keeps the trainings; None, which is said, where files of runs cannot be written."""
    try:
        import safetensors  # noqa: F401
    except ImportError:
        progress.say("No checkpoints: safetensors is not installed (pip install 'meristem-nn[cli]').")
        return None
    return Kept(folder, folder.checkpoints(seconds=every, say=progress.say))


def _last_words(folder: RunFolder, kept: Kept | None) -> str:
    """When the process is told to end: a last checkpoint, and the command that goes on."""
    if kept is None:
        return "no results were written"
    kept.now()
    return f"go on with: {folder.command.removesuffix(' --resume')} --resume"


def _drawn(head: dict[str, Any], history: dict[str, Any], out: Path) -> dict[str, bytes]:
    """The figures, as the files that are about to be written give them."""
    if have_matplotlib():
        return drawn(checked(json.loads(json.dumps(head)), history, out))
    print(
        "Figures skipped: matplotlib is not installed (pip install 'meristem-nn[cli]', then: meristem figures DIR).",
        file=sys.stderr,
    )
    return {}
