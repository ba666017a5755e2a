"""How far the estimates of the time left are off after the first third of a search, on five real tables.

    python benchmarks/eta.py --data tables.npz [--out results/eta.json]

Each table is searched by a CV estimator at its defaults with refit="one", in this process, so the first one also compiles what
the others share. After every epoch the estimate is compared with the time that was really left; a ratio of 1 is right, the
requirement is between 1/1.5 and 1.5. Estimates of less than two seconds do not count: nobody waits for them.
"""

import argparse
import io
import json
import os
import shlex
import statistics
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import jax
import numpy as np

from meristem import TunnelClassifierCV, TunnelRegressorCV
from meristem.show.measures import LOSS
from meristem.show.progress import GroupWatcher, Progress

TABLES = ("bin.pima", "reg.airfoil", "multi.vowel", "multi.balance", "bin.page_blocks0")
FACTOR, LEAST_SECONDS = 1.5, 2.0


class Recorder(GroupWatcher):
    """A display that records the estimate after each epoch."""

    def __init__(self, progress: Progress, epochs: float):
        super().__init__(progress, ("search", "fit"), epochs, LOSS, 0)
        self.progress, self.estimates = progress, list[tuple[float, float | None]]()

    def epoch(self, member: int, info: Any) -> bool:
        ends = super().epoch(member, info)
        self.estimates.append((self.progress.clock(), self.progress.seconds_left()))
        return ends


def measured(name: str, X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Search one table, and return the ratios of estimated to real time left after the first third, with the lines shown."""
    estimator = (TunnelRegressorCV if name.startswith("reg.") else TunnelClassifierCV)(random_state=0, refit="one")
    lines, begun = io.StringIO(), time.monotonic()
    with Progress(lines, live=False) as progress:
        recorder = progress._group = Recorder(progress, 35 * 60)
        estimator.set_params(callbacks=[recorder]).fit(X, y)
    seconds = time.monotonic() - begun
    late = [(begun + seconds - now, left) for now, left in recorder.estimates if now - begun > seconds / 3]
    ratios = [left / real for real, left in late if left is not None and max(left, real) > LEAST_SECONDS]
    within = float(np.mean([1 / FACTOR <= ratio <= FACTOR for ratio in ratios])) if ratios else None
    quantiles = np.quantile(ratios, [0.05, 0.5, 0.95]).round(2).tolist() if ratios else None
    shown = lines.getvalue().splitlines()
    return {
        **{"table": name, "rows": len(y), "seconds": round(seconds, 1), "estimates": len(ratios)},
        **{"within": within and round(within, 3), "ratio_05_50_95": quantiles, "lines": shown},
    } | {"unknown": sum(left is None for _, left in late)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--tables", nargs="+", default=TABLES)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    results = []
    with np.load(options.data) as data:
        for name in options.tables:
            results.append(measured(name, data[f"{name}.X"], data[f"{name}.y"]))
            print(json.dumps({**results[-1], "lines": len(results[-1]["lines"])}), flush=True)
    within = statistics.mean(result["within"] for result in results if result["within"] is not None)
    print(f"mean share within a factor of {FACTOR}: {within:.0%}")
    if options.out is not None:
        command = shlex.join(["python", "benchmarks/eta.py", "--data", options.data.name, "--out", "results/eta.json"])
        facts = {"command": command, "device": jax.default_backend(), "cores": len(os.sched_getaffinity(0))}
        facts |= {"load_before": round(os.getloadavg()[0], 1), "factor": FACTOR, "share_within": round(within, 3)}
        options.out.write_text(json.dumps({**facts, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
