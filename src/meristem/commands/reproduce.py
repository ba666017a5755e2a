"""`meristem reproduce STUDY` runs a study of `meristem.experiments`; `meristem figures OUT` redraws its figures from its files.

The options of a study are the fields of its options class, which validates them.
"""

import argparse
import io
import json
import sys
import time

import jax
import numpy as np

from meristem.check import is_installed, many
from meristem.commands.entry import on_shutdown
from meristem.commands.parsing import as_options, check_out, command_line
from meristem.experiments import STUDIES
from meristem.experiments.study import table
from meristem.experiments.study_training import Trainer, expected_epochs, group_name, run as run_study, study_config
from meristem.folders.run_folder import RunFolder
from meristem.pictures.studies import draw, draw_study, have_matplotlib
from meristem.pictures.studies.study_figures import FIGURES, validate_study
from meristem.show.describe import print_table
from meristem.show.progress import Progress
from meristem.train.placement import check_executor, on_workers

DIVERGED = 3  # exit status where a run had no finite epoch


def run(args: argparse.Namespace) -> int:
    """Run or resume a study, write its files and figures, print its table, and return the exit status."""
    study = STUDIES[args.study]
    values = {name: getattr(args, name) for name in study.options.arguments()}
    options = study.options(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})
    if not 0 <= args.checkpoint_every < float("inf"):
        raise ValueError(f"--checkpoint-every={args.checkpoint_every:g} must be a finite number of seconds of at least 0.")
    with as_options("executor", "address"):
        check_executor(args.executor, args.address)
    study.setup()
    out, seeds, begin = check_out(args.out), many(options.seeds, "seed"), time.perf_counter()
    with Progress() as progress, on_shutdown(progress.close), RunFolder.take(out) as folder:
        progress.say(f"{args.study} on {jax.devices()[0].device_kind}, {seeds}")
        plan = study.plan(options)
        tasks = [task.resized(options) for task in plan.tasks]
        may_write = ["summary.json", "history.npz", *(f"{name}.png" for name in (*options.models, *FIGURES))]
        for line in folder.begin(study_config(options, tasks), command_line(), resume=args.resume, may_write=may_write):
            progress.say(line)
        if args.resume and folder.is_finished:
            return 0
        folder.plan({group_name(*which): epochs for which, epochs in expected_epochs(options, tasks).items()})
        trainer = Trainer(progress)
        if is_installed("safetensors"):
            trainer = Trainer(progress, folder, folder.checkpoints(seconds=args.checkpoint_every, say=progress.say))
        else:
            progress.say("No checkpoints: safetensors is not installed (pip install 'meristem-nn[cli]').")
        with on_shutdown(trainer.last_call):
            with as_options("executor", "address"), on_workers(args.executor, args.address):
                result = run_study(study, options, plan, trainer)
            summary = result.summary(study, plan, time.perf_counter() - begin, folder.command)
            history = io.BytesIO()
            np.savez_compressed(history, **result.history)  # type: ignore[arg-type]
            files, failed = {"history.npz": history.getvalue()}, [record for record in result.runs if not record["best_epoch"]]
            if len(failed) < len(result.runs) and have_matplotlib():
                files |= draw_study(validate_study(json.loads(json.dumps(summary)), result.history, out))
            elif len(failed) < len(result.runs):
                install = "pip install 'meristem-nn[cli]', then: meristem figures DIR"
                print(f"Figures skipped: matplotlib is not installed ({install}).", file=sys.stderr)
            written = folder.publish(files, summary)
    comparison = ", beside the paper" if summary["paper"] else ""
    columns, rows = table(study.columns, result.runs, summary["paper"], study.average)
    print_table(columns, rows, f"{plan.title}, {seeds}: {study.averages}{comparison}")
    print(f"\nIn {out}: {', '.join(path.name for path in sorted(written))}")
    if not failed:
        return 0
    model, task, seed, rate = (failed[0][name] for name in ("model", "task", "seed", "learning_rate"))
    example = f"such as {model} on {task} with seed {seed}; lower --rate={rate:g}"
    print(f"meristem: {len(failed)} of {len(result.runs)} runs diverged in their first epoch, {example}.", file=sys.stderr)
    return DIVERGED


def run_figures(args: argparse.Namespace) -> None:
    print("\n".join(str(path) for path in draw(args.out)))
