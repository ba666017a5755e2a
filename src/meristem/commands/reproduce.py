"""`meristem reproduce STUDY` runs a study of `meristem.experiments`; `meristem figures OUT` redraws its figures from its files.

The options of a study are the fields of its options class, which validates them.
"""

import argparse
import json
import sys
import time
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from meristem.check import many
from meristem.commands.parsing import Parser, add_command
from meristem.commands.shutdown import on_shutdown
from meristem.experiments import STUDIES, summary
from meristem.experiments.options import Option, flag
from meristem.experiments.study import table
from meristem.experiments.study_checkpoints import StudyCheckpoints, group_name, study_config
from meristem.experiments.study_training import expected_epochs, run as run_study, summarize, train_directly
from meristem.folders.run_folder import RunFolder
from meristem.pictures.studies import draw, draw_study, have_matplotlib
from meristem.pictures.studies.study_figures import FIGURES, validate_study
from meristem.show.progress import Progress
from meristem.show.text_table import print_table
from meristem.train.saving import SECONDS

DIVERGED = 3  # exit status where a run had no finite epoch
AFTERWARDS = """
writes summary.json, history.npz, the figures and the trained networks into --out. `meristem figures OUT` redraws the figures
from the files, `meristem show OUT/networks/…` shows a network. --resume continues an interrupted run with identical results.
"""


def add(commands: Any) -> None:
    """Add both commands and the options of each study."""
    reproduce = add_command(
        commands,
        "reproduce",
        run=run,
        help="run a study of the paper",
        description="Run a study of the paper, and compare its results with the paper's.",
        example="meristem reproduce two-spirals --seeds 3",
    )
    studies = reproduce.add_subparsers(dest="study", required=True, metavar="STUDY", parser_class=Parser)
    for name, study in STUDIES.items():
        example = f"meristem reproduce {name} {study.example}"
        parser = add_command(
            studies, name, run=run, example=example, more=AFTERWARDS, help=study.help, description=study.description
        )
        defaults = {field.name: field.default for field in fields(study.options)}
        for field, study_option in study.options.described().items():
            _add_option(parser, field, defaults[field], study_option)
        option = parser.add_argument
        option("--out", type=Path, default=Path("out") / name, metavar="DIR", help="folder for results (default: %(default)s)")
        option("--resume", action="store_true", help="continue the interrupted run in --out")
        often = "seconds between checkpoints, which take at most 5 %% of the time (default: %(default)g)"
        option("--checkpoint-every", type=float, default=SECONDS, metavar="SECONDS", help=often)
    figures = add_command(
        commands,
        "figures",
        run=run_figures,
        help="redraw the figures of a study",
        description="Redraw the figures of a study from its files, and print their paths.",
        example="meristem figures out/two-spirals",
    )
    figures.add_argument("out", type=Path, metavar="OUT", help="the --out of a study")


def _add_option(parser: argparse.ArgumentParser, name: str, default: Any, option: Option) -> None:
    text = f"{option.help} (default: {option.default_text})" if option.default_text else option.help
    settings: dict[str, Any] = {"dest": name, "help": text.replace("%", "%%")}
    if option.read is None:
        settings |= {"action": "store_true"}
    else:
        settings |= {"type": option.read, "metavar": option.metavar, "nargs": "+" if option.takes_many else None}
    parser.add_argument(flag(name), **settings, **({"required": True} if default is MISSING else {"default": default}))
    for spelling in option.old_spellings:
        parser.add_argument(spelling, **settings | {"help": argparse.SUPPRESS, "default": argparse.SUPPRESS})


def run(args: argparse.Namespace) -> int:
    """Run or resume a study, write its files and figures, print its table, and return the exit status."""
    study = STUDIES[args.study]
    values = {name: getattr(args, name) for name in study.options.described()}
    options = study.options(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})
    if not 0 <= args.checkpoint_every < float("inf"):
        raise ValueError(f"--checkpoint-every={args.checkpoint_every:g} must be a finite number of seconds of at least 0.")
    study.setup()
    out = summary.check_out(args.out)
    seeds = many(options.seeds, "seed")
    begin = time.perf_counter()
    with Progress() as progress, on_shutdown(progress.close), RunFolder.take(out) as folder:
        progress.say(f"{args.study} on {summary.device()}, {seeds}")
        plan = study.plan(options)
        tasks = [task.resized(options) for task in plan.tasks]
        record = study_config(options, tasks)
        may_write = ["summary.json", "history.npz", *(f"{name}.png" for name in (*options.models, *FIGURES))]
        for line in folder.begin(record, summary.command(), resume=args.resume, may_write=may_write):
            progress.say(line)
        if args.resume and folder.is_finished:
            return 0
        folder.plan({group_name(*which): epochs for which, epochs in expected_epochs(options, tasks).items()})
        checkpoints = _checkpoints(folder, args.checkpoint_every, progress)
        with on_shutdown(lambda: _last_call(folder, checkpoints)):
            result = run_study(study, options, plan, progress, train_directly if checkpoints is None else checkpoints.train)
            head = summarize(study, plan, result, time.perf_counter() - begin, folder.command)
            files = {"history.npz": summary.history_bytes(result.history)}
            if any(record["best_epoch"] for record in result.runs):
                files |= _figures(head, result.history, out)
            written = folder.publish(files, head)
    paper = head["paper"]
    comparison = ", beside the paper" if paper else ""
    print_table(*table(study.columns, result.runs, paper), f"{plan.title}, {seeds}: {study.averages}{comparison}")
    print(f"\nIn {out}: {', '.join(path.name for path in sorted(written))}")
    return _failures(result.runs)


def run_figures(args: argparse.Namespace) -> None:
    """Draw the figures and print their paths."""
    print("\n".join(str(path) for path in draw(args.out)))


def _failures(runs: list[summary.Record]) -> int:
    """Report how many runs had no finite epoch, and return the exit status."""
    failed = [record for record in runs if not record["best_epoch"]]
    if not failed:
        return 0
    first = failed[0]
    print(
        f"meristem: {len(failed)} of {len(runs)} runs diverged in their first epoch, such as {first['model']} on "
        f"{first['task']} with seed {first['seed']}; lower --rate={first['learning_rate']:g}.",
        file=sys.stderr,
    )
    return DIVERGED


def _checkpoints(folder: RunFolder, seconds: float, progress: Progress) -> StudyCheckpoints | None:
    """Return what checkpoints the trainings; None, which is reported, without safetensors."""
    try:
        import safetensors  # noqa: F401
    except ImportError:
        progress.say("No checkpoints: safetensors is not installed (pip install 'meristem-nn[cli]').")
        return None
    return StudyCheckpoints(folder, folder.checkpoints(seconds=seconds, say=progress.say))


def _last_call(folder: RunFolder, checkpoints: StudyCheckpoints | None) -> str:
    """Save a last checkpoint and return how to continue."""
    if checkpoints is None:
        return "no results were written"
    checkpoints.save_now()
    return f"continue with: {folder.command.removesuffix(' --resume')} --resume"


def _figures(head: dict[str, Any], history: dict[str, Any], out: Path) -> dict[str, bytes]:
    """Return the figures of the results; {}, which is reported, without matplotlib."""
    if have_matplotlib():
        return draw_study(validate_study(json.loads(json.dumps(head)), history, out))
    install = "pip install 'meristem-nn[cli]', then: meristem figures DIR"
    print(f"Figures skipped: matplotlib is not installed ({install}).", file=sys.stderr)
    return {}
