"""This commit beside another one: seconds of an epoch, measured in turns, epoch by epoch, on one machine.

    python benchmarks/beside.py OTHER_SRC [EPOCHS] [MEMBERS] [CASES]

OTHER_SRC is the src folder of the other commit. MEMBERS are sizes of populations, separated by commas; the default is 1,16 on a
GPU and 1 elsewhere. CASES are names of `CASES` below, separated by commas; the default is all. Ratios of medians are printed.

Both commits have a process of their own, without a cache of compiled programs. While one of them trains an epoch the other
waits, so that whatever slows the machine slows both. The data are random: what an epoch takes does not depend on them.
"""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent / "src"
CASES = {
    "tunnel": ("tunnel", {"width": 100, "depth": 10}, "plain"),
    "tunnel-parameters": ("tunnel", {"width": "auto", "max_width": 100, "depth": 4}, "priced"),
    "budding": ("budding", {"width": 50}, "plain"),
    "highway": ("highway", {"width": 50, "depth": 4}, "plain"),
}
TRAIN = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import jax, numpy as np
from meristem import Data, Knobs, Recipe, advance, begin
from meristem.nn import Network

cases, sizes, epochs = json.loads(sys.argv[1])
rng, on_gpu = np.random.default_rng(0), jax.default_backend() == "gpu"
rows = 4_000 if on_gpu else 2_000
data = Data(rng.integers(0, 255, (rows, 784), np.uint8), rng.integers(0, 10, rows))
recipes = {"plain": Recipe(objective="multiclass"), "priced": Recipe(objective="multiclass", price="parameters", settle=True)}
for name, (body, options, recipe) in cases.items():
    for members in sizes or ((1, 16) if on_gpu else (1,)):
        keys = jax.random.split(jax.random.key(0), members)
        make = lambda key: Network.create(body, 784, 10, key=key, **options)
        networks = make(keys[0]) if members == 1 else jax.vmap(make)(keys)
        run = begin(networks, recipes[recipe], Knobs(1e-3, 1e-4, l2=1e-5), keys[0] if members == 1 else keys)
        for _ in range(1 + epochs):
            sys.stdin.readline()  # this process's turn
            started = time.perf_counter()
            run, info = advance(run, data)
            jax.block_until_ready(jax.tree.leaves(run))
            print(json.dumps([f"{name}, {members}", time.perf_counter() - started]), flush=True)
"""


def process_of(source: Path, task: str) -> "subprocess.Popen[str]":
    paths = os.pathsep.join([str(source), os.environ.get("PYTHONPATH", "")])
    own = {"PYTHONPATH": paths, "MERISTEM_CACHE": "off", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    command = [sys.executable, "-c", TRAIN, task]
    return subprocess.Popen(command, env=os.environ | own, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def next_time(process: "subprocess.Popen[str]") -> tuple[str, float] | None:
    """Let a process train an epoch; None where it has ended."""
    assert process.stdin is not None and process.stdout is not None
    try:
        process.stdin.write("\n")
        process.stdin.flush()
    except BrokenPipeError:
        return None
    line = process.stdout.readline()
    return tuple(json.loads(line)) if line else None


def main(other: Path, epochs: int, sizes: list[int], names: list[str]) -> None:
    task = json.dumps([{name: CASES[name] for name in names}, sizes, epochs])
    processes = [process_of(source, task) for source in (other, HERE)]
    times: dict[str, list[list[float]]] = {}
    while all(answers := [next_time(process) for process in processes]):
        for commit, (name, seconds) in enumerate(answer for answer in answers if answer):
            times.setdefault(name, [[], []])[commit].append(1000 * seconds)
        if len(times[name][1]) == 1 + epochs:
            (first, *epochs_before), (first_here, *epochs_here) = times[name]
            before, here = statistics.median(epochs_before), statistics.median(epochs_here)
            print(f"{name:24} {before:9.1f} ms {here:9.1f} ms × {here / before:.3f}", end="   ")
            print(f"first {first:9.1f} ms {first_here:9.1f} ms × {first_here / first:.3f}", flush=True)
    if any(process.wait() for process in processes):
        raise SystemExit("a process failed; what it said stands above")
    print(json.dumps(times))


if __name__ == "__main__":
    choices = dict(enumerate(sys.argv[1:]))
    sizes = [int(size) for size in choices.get(2, "").split(",") if size]
    main(Path(sys.argv[1]).resolve(), int(choices.get(1, 9)), sizes, choices.get(3, ",".join(CASES)).split(","))
