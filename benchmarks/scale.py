"""What workers cost: a thousand tasks of made-up lengths with failures and stragglers; memory; two workers and two threads.

    python benchmarks/scale.py simulated [--tasks 1000 --workers 16]      threads as workers; a tenth of the tasks fail once
    python benchmarks/scale.py memory [--members 1000 --epochs 5]         two-spirals as 50 tasks; peaks of driver and workers
    python benchmarks/scale.py overhead [--executor ray --rows 36000 --rounds 2]    a search on two nodes of one core each
    python benchmarks/scale.py cores --workers 16 --members 160 --epochs 3000    members and a search, on so many cores

`overhead` begins a cluster of two nodes, and compares a search there with one by this process and its two threads, on a
machine of two cores without other work: some four minutes a round, of which the first does not count.
`cores` is run with --workers 1, this process on one core, and with more, each a process: the ratio of both lines is the
speed-up. What a machine can give at most is the time of as many processes that have nothing to do with each other and train a
share each ("independent"): cores of a virtual machine may be shared. --record FILE.jsonl appends a line. `simulated` has real
messages of real runs, but trains nothing: it shows what the driver does; workers are threads.
"""

import argparse
import json
import multiprocessing
import os
import random
import resource
import time
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import jax
import numpy as np
from sklearn.datasets import load_breast_cancer, make_friedman1

import meristem
from meristem.data.spirals import two_spirals
from meristem.nn import Network
from meristem.train.loop import seed_keys
from meristem.workers.connection import Client
from meristem.workers.executors import connected
from meristem.workers.worker import begin_process

SEARCH = {"penalties": np.geomspace(1e-5, 1e-2, 10), "l2s": [1e-6, 1e-5, 1e-4], "cv": 5, "random_state": 0}


def population(members: int, epochs: int, **options: Any) -> meristem.Run:
    create = jax.vmap(lambda key: Network.create("tunnel", 2, 1, width=10, depth=10, key=key))
    knobs = {"learning_rate": 3e-3, "penalty": np.geomspace(1e-4, 1e-2, members), "key": seed_keys(range(members), 1)}
    recipe = meristem.Recipe(batch_size=32, compile_fast=True)
    networks = create(seed_keys(range(members), 0))
    return meristem.fit(networks, two_spirals("difficult"), **knobs, recipe=recipe, max_epochs=epochs, **options)


class Simulated:
    """Workers that sleep in place of training, and return what they took."""

    def __init__(self, workers: int, tasks: int, mean: float):
        self._max_workers, self._chance, self._mean = -(-tasks // 16), random.Random(0), mean
        self.failures = self.slept = 0
        self._failed: set[int] = set()
        self._queue: list[Any] = []
        self._threads = [Thread(target=self._run, daemon=True) for _ in range(workers)]

    def submit(self, function: Any, address: Any, key: bytes, task: int, classes: Any) -> Future[None]:
        self._queue.append((address, key, task, future := Future[None]()))
        for thread in self._threads:
            if not thread.is_alive() and thread.ident is None:
                thread.start()
        return future

    def _run(self) -> None:
        client, idle = None, 0
        while idle < 200:
            try:
                address, key, task, future = self._queue.pop(0)
            except IndexError:
                idle += 1
                time.sleep(0.01)
                continue
            idle, client = 0, client or Client(address, key)
            order = client.ask("take", {"task": task})
            seconds = self._mean * self._chance.expovariate(1.0) * (10 if self._chance.random() < 0.01 else 1)
            self.slept += seconds
            time.sleep(seconds)
            if self._chance.random() < 0.1 and task not in self._failed:
                self._failed.add(task)
                self.failures += 1
                client._connection.close()  # as a process that died
                client = None
                continue
            if order.kind == "task":
                client.ask("done", {"task": task, "runs": order.header["runs"]}, order.arrays)
                future.set_result(None)


def peak(who: int) -> float:
    return resource.getrusage(who).ru_maxrss / 1024


def simulated(tasks: int, workers: int) -> dict[str, Any]:
    mean, executor = 0.5, Simulated(workers, tasks, 0.5)
    begin, cpu = time.monotonic(), time.process_time()
    run = population(tasks, 1, executor=executor)
    wall = time.monotonic() - begin
    own = {"tasks": tasks, "workers": workers, "mean_seconds": mean, "failures": executor.failures, "wall_seconds": wall}
    ideal = executor.slept / workers
    assert run.members == (tasks,)
    return own | {"ideal_seconds": ideal, "driver_cpu_ms_per_task": 1000 * (time.process_time() - cpu) / tasks}


def memory(members: int, epochs: int) -> dict[str, Any]:
    before = peak(resource.RUSAGE_SELF)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, context) as pool, connected(pool) as trainer:
        trainer._members_per_task = lambda count, together: -(-count // 50)  # type: ignore[method-assign]
        run = population(members, epochs)
    sizes = {"driver_before": before, "driver": peak(resource.RUSAGE_SELF), "worker": peak(resource.RUSAGE_CHILDREN)}
    return {"members": run.members[0], "tasks": 50, "epochs": epochs, "peak_mebibytes": sizes}


@contextmanager
def two_workers(executor: str) -> Iterator[Any]:
    """An executor of two workers of one core each; those of Ray are two nodes of a cluster on this machine."""
    if executor == "processes":
        with ProcessPoolExecutor(2, multiprocessing.get_context("spawn"), begin_process) as pool:
            yield pool
        return
    from ray.cluster_utils import Cluster

    from meristem.workers.ray_executor import RayExecutor

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.add_node(num_cpus=1)
    own = RayExecutor(cluster.address)
    try:
        yield own
    finally:
        own.shutdown()
        cluster.shutdown()


def overhead(executor: str, rows: int, rounds: int) -> dict[str, Any]:
    """Seconds of a search on two workers and in two threads, in turns; the first round compiles and does not count."""
    X, y = make_friedman1(rows, 8, noise=1.0, random_state=0)
    seconds: dict[str, list[float]] = {executor: [], "threads": []}
    scores = set()
    with two_workers(executor) as workers:
        for _ in range(rounds):
            for name, own in ((executor, workers), ("threads", None)):
                begin = time.monotonic()
                model = meristem.TunnelRegressorCV(**SEARCH, executor=own).fit(X, y)
                seconds[name].append(time.monotonic() - begin)
                scores.add(round(float(model.score(X, y)), 6))
                print(f"{name}: {seconds[name][-1]:.1f} s", flush=True)
    middle = {name: float(np.median(each[1:] or each)) for name, each in seconds.items()}
    own = {"rows": rows, "seconds": seconds, "ratio": middle[executor] / middle["threads"], "scores": sorted(scores)}
    return {"executor": executor, "cores": len(os.sched_getaffinity(0)), **own}


def train_share(start: Any, seconds: Any, members: int, epochs: int) -> None:
    """What a process does that has nothing to do with others."""
    population(members, 20)
    start.wait()
    begin = time.monotonic()
    population(members, epochs)
    seconds.put(time.monotonic() - begin)


def independent(processes: int, members: int, epochs: int) -> list[float]:
    """Seconds of each of so many processes that train a share of the members, all at the same time."""
    context = multiprocessing.get_context("spawn")
    os.environ["NPROC"] = "1"  # as workers have it
    start, seconds = context.Barrier(processes), context.Queue()
    each = [context.Process(target=train_share, args=(start, seconds, members // processes, epochs)) for _ in range(processes)]
    for process in each:
        process.start()
    times = [seconds.get() for _ in each]
    for process in each:
        process.join()
    return sorted(times)


def on_cores(workers: int, members: int, epochs: int) -> dict[str, Any]:
    """Seconds of a population of two-spirals, and of a search on a table; workers have started and compiled before."""
    X, y = load_breast_cancer(return_X_y=True)
    if workers == 1:
        os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[-1]})
        pool = None
    else:
        pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), begin_process)

    def search() -> None:
        meristem.TunnelClassifierCV(random_state=0, executor=pool).fit(X, y)

    sides: dict[str, Any] = {"population": lambda: population(members, epochs, executor=pool), "search": search}
    population(16 * workers, 20, executor=pool)
    search()
    seconds: dict[str, list[float]] = {}
    for name, run in sides.items():
        for _ in range(1 if workers == 1 else 3):
            begin = time.monotonic()
            run()
            seconds.setdefault(name, []).append(time.monotonic() - begin)
    if workers > 1:
        seconds["independent"] = independent(workers, members, epochs)
    return {"workers": workers, "members": members, "epochs": epochs, "cores": os.cpu_count(), "seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["simulated", "memory", "overhead", "cores"])
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--members", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--executor", choices=["processes", "ray"], default="ray")
    parser.add_argument("--rows", type=int, default=36_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--record", type=Path, help="append the line to this file, too")
    args = parser.parse_args()
    results = {
        "simulated": lambda: simulated(args.tasks, args.workers),
        "memory": lambda: memory(args.members, args.epochs),
        "overhead": lambda: overhead(args.executor, args.rows, args.rounds),
        "cores": lambda: on_cores(args.workers, args.members, args.epochs),
    }[args.what]()
    line = json.dumps({"what": args.what, "load": os.getloadavg()[0], **results})
    print(line)
    if args.record:
        with args.record.open("a") as file:
            file.write(line + "\n")


if __name__ == "__main__":
    main()
