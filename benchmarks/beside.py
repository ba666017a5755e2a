"""This commit beside another one: seconds of an epoch and of compiling it, both in turns on one machine.

    python benchmarks/beside.py OTHER_SRC [REPEATS] [MEMBERS]

OTHER_SRC is the src folder of the other commit. MEMBERS are sizes of populations, separated by commas; the default is 1,16 on a
GPU and 1 elsewhere. Ratios of medians are printed after every turn.

Each measurement is a process of its own, without a cache of compiled programs; first one commit, then the other, and again.
The data are random: what an epoch takes does not depend on them.
"""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent / "src"
MEASURE = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import jax, numpy as np
from meristem import Data, Knobs, Recipe, advance, begin
from meristem.nn import Network

rng, on_gpu = np.random.default_rng(0), jax.default_backend() == "gpu"
rows = 4_000 if on_gpu else 2_000
data = Data(rng.integers(0, 255, (rows, 784), np.uint8), rng.integers(0, 10, rows))
plain, priced = Recipe(objective="multiclass"), Recipe(objective="multiclass", price="parameters", settle=True)
cases = {
    "tunnel": ("tunnel", {"width": 100, "depth": 10}, plain),
    "tunnel, parameters": ("tunnel", {"width": "auto", "max_width": 100, "depth": 4}, priced),
    "budding": ("budding", {"width": 50}, plain),
    "highway": ("highway", {"width": 50, "depth": 4}, plain),
}
found = {}
for name, (body, options, recipe) in cases.items():
    for members in map(int, sys.argv[1].split(",")) if len(sys.argv) > 1 else (1, 16) if on_gpu else (1,):
        keys = jax.random.split(jax.random.key(0), members)
        make = lambda key: Network.create(body, 784, 10, key=key, **options)
        networks = make(keys[0]) if members == 1 else jax.vmap(make)(keys)
        run = begin(networks, recipe, Knobs(1e-3, 1e-4, l2=1e-5), keys[0] if members == 1 else keys)
        times = []
        for _ in range(3):
            started = time.perf_counter()
            run, info = advance(run, data)
            jax.block_until_ready(jax.tree.leaves(run))
            times.append(time.perf_counter() - started)
        found[f"{name}, {members}: epoch"] = min(times[1:])
        found[f"{name}, {members}: first"] = times[0]
print(json.dumps(found))
"""


def measured(source: Path) -> dict[str, float]:
    environment = os.environ | {"PYTHONPATH": str(source), "MERISTEM_CACHE": "off"}
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *sys.argv[3:]], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    times: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return times


def main(other: Path, repeats: int) -> None:
    runs: dict[Path, list[dict[str, float]]] = {other: [], HERE: []}
    for turn in range(repeats):
        for source, times in runs.items():
            times.append(measured(source))
        print(f"after {turn + 1} of {repeats} turns")
        for name in runs[HERE][0]:
            before, after = (statistics.median(times[name] for times in runs[source]) for source in (other, HERE))
            print(f"{name:34} {1000 * before:9.1f} ms {1000 * after:9.1f} ms   × {after / before:.3f}", flush=True)
    print(json.dumps({"before": runs[other], "after": runs[HERE]}))  # so that turns of several calls can be put together


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 5)
