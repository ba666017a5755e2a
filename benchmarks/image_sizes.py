"""Sizes found on images: errors within budgets, a size chosen by hand, and the size found trained from scratch.

    python benchmarks/image_sizes.py run --data DIR [--jobs cifar10:100000,fashion:free,…] [--seeds 3 --epochs 60]
        [--out results/images.jsonl --processes 3 --limit 560]
    python benchmarks/image_sizes.py show --out results/images.jsonl

A job is SET:BUDGET (found within so many parameters, then that size trained from scratch), SET:free (found at the price of the
studies) or SET:WIDTHxWIDTHxWIDTH (channels chosen by hand; nothing closes). All have the recipe of the studies
(experiments/image_study.py): the epoch is chosen on validation images, test images are seen once, without augmentation. "From
scratch" begins with new weights, and what was closed in the end is closed from the start. Each job is a process, and each
training a line of OUT once its job has ended. What is there is not trained again; after --limit seconds nothing begins and what
runs is ended: the same command goes on.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

JOBS = {
    "cifar10": ("62698", "100000", "272474", "15x30x60", "free"),
    "fashion": ("50000", "free"),
    "mnist-images": ("30000", "free"),
}
Line = dict[str, Any]


def train(job: Line) -> list[Line]:
    """Train the networks of a job, and return a line for each."""
    import jax
    import optax

    import meristem
    from meristem.cache import keep_programs
    from meristem.compact import compact
    from meristem.experiments import STUDIES
    from meristem.experiments.image_study import B2, PENALTY, RATE, WEIGHT_DECAY, ImageOptions, images_network
    from meristem.gate import is_confined, map_gates
    from meristem.nn import Network
    from meristem.nn.convolution import GATE
    from meristem.train.loop import seed_keys
    from meristem.train.metrics import evaluate
    from meristem.train.optimizer import decay_mask, scale_by_rate

    keep_programs()  # budgets and seeds share them
    options = ImageOptions(data=Path(job["data"]), max_epochs=job["epochs"], images=job["images"], width=job["width"])
    (task,) = STUDIES[job["set"]].plan(options).tasks
    recipe, key, start = task.recipe, seed_keys([job["seed"]], 1)[0], seed_keys([job["seed"]], 0)[0]
    if job["width"]:
        task = replace(task, width=job["width"])
    lines = []

    def trained(kind: str, network: Any, recipe: Any, **price: Any) -> Any:
        times = [time.perf_counter()]

        def watch(info: Any) -> None:
            times.append(time.perf_counter())

        settings = {"learning_rate": RATE, "l2": 0.0, "key": key, "recipe": recipe, "max_epochs": job["epochs"], "watch": watch}
        run = meristem.fit(network, task.data, **price, **settings)
        test, small = evaluate(run.best, task.test.x, task.test.y, recipe.task), compact(run.best)
        line = {name: job[name] for name in ("set", "size", "seed", "body", "epochs", "images", "width")} | {"kind": kind}
        line |= {"test_error": float(test.error), "parameters": small.n_parameters, "channels": list(small.units)}
        line |= {"dev_error": float(run.history["dev_error"][run.best_epoch - 1]), "best_epoch": int(run.best_epoch)}
        line |= {"train_error": float(run.history["error"][run.best_epoch - 1]), "device": jax.devices()[0].device_kind}
        gaps = np.diff(times)
        lines.append(line | {"first_epoch": float(gaps[0]), "epoch": float(np.median(gaps[1:])), "all": float(gaps.sum())})
        return run.best

    plain = replace(recipe, price="units", settle=False)
    if "x" in job["size"]:
        widths = tuple(map(int, job["size"].split("x")))
        shape, depth = task.data.x.shape[1:], task.depth
        network = Network.create(
            job["body"], input_shape=shape, n_out=task.n_out, width=widths, depth=depth, normalize=True, key=start
        )
        trained("by hand", network, plain, penalty=0.0)
        return lines
    price = {"penalty": PENALTY} if job["size"] == "free" else {"budget": float(job["size"])}
    network = images_network(task, job["body"], key=start)
    found = trained("found", network, recipe, **price)
    if job["size"] == "free":
        return lines

    def keep_closed(updates: Any, state: Any, params: Any = None) -> Any:
        def kept(update: Any, own: Any) -> Any:
            return own.at(jax.numpy.where(own.is_open, update.value, 0)) if is_confined(own) else update

        return jax.tree.map(kept, updates, params, is_leaf=is_confined), state

    links = [optax.scale_by_adam(b2=B2), optax.add_decayed_weights(WEIGHT_DECAY, decay_mask)]
    own = optax.GradientTransformation(lambda params: optax.EmptyState(), keep_closed)
    gates = [node for node in jax.tree.leaves(found, is_leaf=is_confined) if is_confined(node)]
    trunks = {id(gate) for gate in gates if gate.value.ndim == 1}  # a trunk's gates begin open, a unit's nearly closed
    again = images_network(task, job["body"], key=jax.random.fold_in(start, 1))
    values = iter([np.where(np.asarray(g.value) > 0, 1.0 if id(g) in trunks else GATE, 0.0) for g in gates])
    again = map_gates(lambda gate: gate.at(jax.numpy.asarray(next(values), gate.value.dtype)), again)
    chain = optax.chain(*links, scale_by_rate(), own)
    trained("from scratch", again, replace(plain, weight_decay=0.0, optimizer=chain), penalty=0.0)
    return lines


def run(args: argparse.Namespace) -> None:
    begun, args.out = time.monotonic(), Path(args.out)
    lines = [json.loads(line) for line in args.out.read_text().splitlines()] if args.out.exists() else []
    done = {(line["set"], line["size"], line["seed"]) for line in lines}
    shared = {"data": args.data, "epochs": args.epochs, "images": args.images, "body": args.body, "width": args.width}
    jobs = [dict(zip(("set", "size"), job.split(":"), strict=True)) for job in args.jobs.split(",")]
    order = sorted(jobs, key=lambda job: [own["set"] for own in jobs[: jobs.index(job)]].count(job["set"]))  # sets in turns
    waiting = [shared | job | {"seed": seed} for seed in range(args.seeds) for job in order]
    waiting = [job for job in waiting if (job["set"], job["size"], job["seed"]) not in done]
    running: list[subprocess.Popen[str]] = []
    environment = os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    while waiting or running:
        is_over = time.monotonic() - begun > args.limit
        while waiting and len(running) < args.processes and not is_over:
            command = [sys.executable, __file__, "job", json.dumps(waiting.pop(0))]
            running.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True))
        if is_over:
            for process in running:
                process.kill()
            return
        for process in [process for process in running if process.poll() is not None]:
            running.remove(process)
            assert process.stdout is not None
            with args.out.open("a") as file:
                file.write(process.stdout.read())
        time.sleep(0.5)


def show(out: Path) -> None:
    groups = defaultdict(list)
    for line in map(json.loads, out.read_text().splitlines()):
        groups[line["set"], line["size"], line["kind"]].append(line)
    print(
        f"{'set':14}{'size':>12}  {'kind':13}{'seeds':>5}{'test error, %':>22}{'parameters':>12}{'epoch, s':>10}{'all, s':>8}"
    )
    for (name, size, kind), own in sorted(groups.items()):
        errors = [100 * line["test_error"] for line in own]
        spread = np.std(errors, ddof=1) if len(own) > 1 else math.nan
        middle = [np.median([line[field] for line in own]) for field in ("parameters", "epoch", "all")]
        print(f"{name:14}{size:>12}  {kind:13}{len(own):5}{np.mean(errors):15.2f} ± {spread:4.2f}", end="")
        print(f"{middle[0]:12,.0f}{middle[1]:10.2f}{middle[2]:8.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "show", "job"])
    parser.add_argument("job", nargs="?", help="of a process that `run` begins")
    parser.add_argument("--data", help="a folder with the sets, as `meristem reproduce` takes it")
    parser.add_argument("--out", default="results/images.jsonl")
    parser.add_argument("--jobs", default=",".join(f"{name}:{size}" for name, sizes in JOBS.items() for size in sizes))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--body", default="conv-inverted")
    parser.add_argument("--images", type=int, help="of the set; all")
    parser.add_argument("--width", type=int, help="channels of the first stage, at most")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--limit", type=float, default=math.inf)
    args = parser.parse_args()
    if args.what == "job":
        print("".join(json.dumps(line) + "\n" for line in train(json.loads(args.job))), end="")
    elif args.what == "show":
        show(Path(args.out))
    else:
        run(args)


if __name__ == "__main__":
    main()
