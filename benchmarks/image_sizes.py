"""Sizes found on images: errors within budgets, a size chosen by hand, and the size found trained from scratch.

    python benchmarks/image_sizes.py run --data DIR [--jobs cifar10:100000,fashion:free,…] [--seeds 3 --epochs 50]
        [--out results/images.jsonl --state .cache/images --processes 2 --limit 560]
    python benchmarks/image_sizes.py show --out results/images.jsonl

A job trains the networks of all seeds, one after the other by one program, with the recipe of the studies
(experiments/image_study.py): the epoch is chosen on validation images, test images are seen once, as they are.

    SET:NUMBER                within so many parameters
    SET:free                  at the price of the studies, no budget
    SET:WIDTHxWIDTHxWIDTH     channels chosen by hand, without gates of the trunk, and no price
    SET:again-NUMBER          the sizes that SET:NUMBER found, from new weights: what was closed in the end is closed from the
                              start; the program is that of the budgets

Each job is a process, with a line for each epoch in STATE/JOB.log. The line of a seed is in OUT as soon as it ends, and it is
not trained again; what is interrupted (by --limit, Ctrl-C, the machine) goes on from STATE/JOB-SEED.safetensors, written every
20 seconds. So the same command, repeated, finishes all. A job that fails is named, with the last line of its log, and the
others go on. docs/images.md has the commands for a GPU.
"""

import argparse
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

JOBS = (
    "cifar10:100000,fashion:free,cifar10:free,mnist-images:free,cifar10:again-100000,cifar10:62698,cifar10:272474,"
    "fashion:50000,mnist-images:30000,cifar10:15x30x60"
)
HAND, AGAIN, FREE, NO_LIMIT = "by hand", "from scratch", "free", 1e9
Line = dict[str, Any]


def train(job: Line) -> None:
    """Train the networks of a job, and add a line for each to the results."""
    import jax
    import jax.numpy as jnp

    import meristem
    from meristem import Knobs
    from meristem.cache import keep_programs
    from meristem.compact import compact
    from meristem.experiments import STUDIES
    from meristem.experiments.image_study import PENALTY, RATE, ImageOptions, images_network
    from meristem.nn import Network
    from meristem.train.loop import seed_keys
    from meristem.train.metrics import evaluate
    from meristem.train.run import Run, at_stage, begin

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # `fit` saves first
    keep_programs()  # budgets share them
    sizes = {name: job[name] for name in ("images", "width", "depth")}
    options = ImageOptions(data=Path(job["data"]), max_epochs=job["epochs"], **sizes)
    (task,) = STUDIES[job["set"]].plan(options).tasks
    task = replace(task, **{name: job[name] for name in ("width", "depth") if job[name]})
    size, state = job["size"], Path(job["state"])
    price: Any = {"penalty": PENALTY} if size == FREE else {"penalty": 0.0, "budget": NO_LIMIT}
    kind = HAND if "x" in size else AGAIN if size.startswith("again-") else "found"
    if kind != HAND and size != FREE:
        price["budget"] = float(size.removeprefix("again-"))

    def create(key: Any) -> Network:
        if kind != HAND:
            return images_network(task, job["body"], key=key)
        sizes: Any = {"width": tuple(map(int, size.split("x"))), "depth": task.depth, "normalize": True}
        return Network.create(job["body"], input_shape=task.data.x.shape[1:], n_out=task.n_out, **sizes, key=key)

    def begun(seed: int) -> Run:
        (key,), (training_key,) = (seed_keys([seed], use) for use in (0, 1))
        network = create(key if kind != AGAIN else jax.random.fold_in(key, 1))
        if kind == AGAIN:
            network = with_openness(network, found_openness(job, seed))
        run = begin(network, task.recipe, Knobs(RATE, **price, l2=0.0, epochs=float(job["epochs"])), training_key)
        return at_stage(run, 1) if kind == AGAIN else run  # from the start, what is closed stays closed

    for seed in range(job["seeds"]):
        if any(line["seed"] == seed for line in lines_of(job["out"], name_of(job))):
            continue
        path = state / f"{name_of(job)}-{seed}.safetensors"
        run: Run = meristem.load(path) if path.is_file() else begun(seed)
        times, before = [time.perf_counter()], int(run.epochs)

        def watch(info: Any, times: list[float] = times, seed: int = seed) -> None:
            times.append(time.perf_counter())
            news = (
                f"epoch {int(info.epoch)}, validation error {100 * float(info.dev_error):.2f} %, {float(info.hard_cost):,.0f}"
            )
            print(f"seed {seed}, {news}, {times[-1] - times[-2]:.2f} s", file=sys.stderr, flush=True)

        run = meristem.fit(
            run, task.data, max_epochs=job["epochs"], watch=watch, save=partial(meristem.save, path), save_seconds=20.0
        )
        after = times[len(times) // 2 :]  # the first epochs compile
        test, small = evaluate(run.best, jnp.asarray(task.test.x), task.test.y, task.recipe.task), compact(run.best)
        line = {name: job[name] for name in ("set", "size", "body", "epochs", "images", "width", "depth")}
        line |= {"kind": kind, "seed": seed, "device": jax.devices()[0].device_kind, "jax": jax.__version__}
        line |= {"batch_size": task.recipe.batch_size, "resumed_at": before, "seconds": times[-1] - times[0]}
        line |= {"seconds_per_epoch": (after[-1] - after[0]) / max(len(after) - 1, 1)}
        line |= {"test_error": float(test.error), "test_loss": float(test.loss)}
        line |= {"parameters": small.n_parameters, "channels": list(small.units), "best_epoch": int(run.best_epoch)}
        line |= {name: float(run.history[name][int(run.best_epoch) - 1]) for name in ("error", "dev_error")}
        line |= {"hard_cost": [round(float(cost)) for cost in run.history["hard_cost"]], "open": openness(run.best)}
        with open(job["out"], "a") as file:
            file.write(json.dumps(line) + "\n")
        path.unlink(missing_ok=True)


def gates_of(network: Any) -> list[Any]:
    import jax

    from meristem.gate import is_confined

    return [node.value for node in jax.tree.leaves(network, is_leaf=is_confined) if is_confined(node)]


def openness(network: Any) -> list[str]:
    """Return which gates are open, each array of them as digits of 0 and 1."""
    return ["".join(str(int(flag)) for flag in np.ravel(np.asarray(gates) > 0)) for gates in gates_of(network)]


def found_openness(job: Line, seed: int) -> list[str]:
    """Return which gates the network of this seed had open that the budget found."""
    found = [line for line in lines_of(job["out"], needs(job)) if line["seed"] == seed]
    if not found:
        raise SystemExit(f"Seed {seed} of {needs(job)} was not found yet: train it first.")
    return list(found[0]["open"])


def with_openness(network: Any, flags: list[str]) -> Any:
    """Return the network with the gates closed that are not open in these."""
    from meristem.gate import map_gates

    of_gate = [np.array([int(digit) for digit in digits]) for digits in flags]
    each = iter([np.asarray(gates) * own.reshape(gates.shape) for gates, own in zip(gates_of(network), of_gate, strict=True)])
    return map_gates(lambda gate: gate.at(np.asarray(next(each), gate.value.dtype)), network)


def lines_of(out: Any, name: str | None = None) -> list[Line]:
    """Return the results, of one job or of all."""
    lines = [json.loads(line) for line in Path(out).read_text().splitlines()] if Path(out).is_file() else []
    return [line for line in lines if name in (None, name_of(line))]


def name_of(job: Line) -> str:
    return f"{job['set']}-{job['size']}"


def run(args: argparse.Namespace) -> int:
    begun, running, failed = time.monotonic(), dict[str, Any](), set[str]()
    for folder in (Path(args.state), Path(args.out).parent):
        folder.mkdir(parents=True, exist_ok=True)
    jobs = [dict(zip(("set", "size"), job.split(":"), strict=True)) for job in args.jobs.split(",")]
    waiting = [vars(args) | job for job in jobs]
    environment = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "TF_CPP_MIN_LOG_LEVEL": "2"} | os.environ
    while waiting or running:
        seeds = Counter(name_of(line) for line in lines_of(args.out))
        done = {name for name, count in seeds.items() if count >= args.seeds}
        waiting = [job for job in waiting if name_of(job) not in done]
        ready = [job for job in waiting if needs(job) is None or needs(job) in done]
        is_over = time.monotonic() - begun > args.limit
        if is_over or not (ready or running):
            break
        while ready and len(running) < args.processes:
            job = ready.pop(0)
            waiting.remove(job)
            command, log = [sys.executable, __file__, "job", json.dumps(job)], Path(args.state, f"{name_of(job)}.log")
            running[name_of(job)] = subprocess.Popen(command, env=environment, stderr=log.open("w"))
        time.sleep(0.5)
        for name, process in list(running.items()):
            if process.poll() is not None:
                del running[name]
                failed |= {name} if process.returncode else set()
                news = Path(args.state, f"{name}.log").read_text().splitlines()
                end = "; ".join(news[-1:]) if process.returncode else "done"
                print(f"{time.monotonic() - begun:5.0f} s  {name}: {end}", flush=True)
    for process in running.values():
        process.terminate()
    for name, process in running.items():
        with suppress(subprocess.TimeoutExpired):  # a compiler does not listen
            process.wait(20)
        process.kill()
        print(f"{time.monotonic() - begun:5.0f} s  {name}: interrupted, goes on next time", flush=True)
    for job in waiting:
        print(f"{time.monotonic() - begun:5.0f} s  {name_of(job)}: waits", flush=True)
    return 1 if failed else 0


def needs(job: Line) -> str | None:
    """Return the job that another begins from."""
    return f"{job['set']}-{job['size'][6:]}" if job["size"].startswith("again-") else None


def show(out: Path) -> None:
    groups = defaultdict(list)
    for line in lines_of(out):
        groups[line["set"], line["size"], line["kind"]].append(line)
    print(f"{'set':14}{'size':>13}  {'kind':13}{'seeds':>5}{'test error, %':>15}{'each':>22}{'parameters':>24}{'epoch, s':>10}")
    for (name, size, kind), own in sorted(groups.items()):
        errors, sizes = [100 * line["test_error"] for line in own], [line["parameters"] for line in own]
        spread = np.std(errors, ddof=1) if len(own) > 1 else math.nan
        each = ", ".join(f"{error:.2f}" for error in errors)
        print(f"{name:14}{size:>13}  {kind:13}{len(own):5}{np.mean(errors):8.2f} ± {spread:4.2f}{each:>22}", end="")
        print(f"{min(sizes):13,} – {max(sizes):8,}{own[0]['seconds_per_epoch']:10.2f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "show", "job"])
    parser.add_argument("job", nargs="?", help="of a process that `run` begins")
    parser.add_argument("--data", help="a folder with the sets, as `meristem reproduce` takes it")
    parser.add_argument("--out", default="results/images.jsonl")
    parser.add_argument("--state", default=".cache/images", help="where interrupted jobs are, and what each process says")
    parser.add_argument("--jobs", default=JOBS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--body", default="conv-inverted")
    parser.add_argument("--images", type=int, help="of the set; all")
    parser.add_argument("--width", type=int, help="channels of the first stage, at most")
    parser.add_argument("--depth", type=int, help="blocks of each stage")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--limit", type=float, default=math.inf)
    args = parser.parse_args()
    if args.what == "job":
        train(json.loads(args.job))
    elif args.what == "show":
        show(Path(args.out))
    else:
        return run(args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
