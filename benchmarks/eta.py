"""How far the estimates of the time left are off after the first third of a search, on real tables.

    python benchmarks/eta.py --data tables.npz [--out results/eta.json] [--wall]

Each table is searched by a CV estimator at its defaults with refit="one", in this process, so the first one of each body also
compiles what the others share. The estimate that is shown is compared with the time that was really left, every tenth of a
second; a ratio of 1 is right, the requirement is between 1/1.5 and 1.5. Estimates of less than two seconds do not count: nobody
waits for them. Time is that of the process's CPU on one core, which other work on the machine does not disturb, or with --wall
that of the clock on all cores.
"""

import argparse
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

import meristem
from meristem.show.measures import LOSS
from meristem.show.progress import GroupWatcher, Progress

TABLES = ("bin.pima", "reg.airfoil", "multi.vowel", "multi.balance", "bin.page_blocks0")
FACTOR, LEAST_SECONDS, GRID = 1.5, 2.0, 0.1


class Recorder(GroupWatcher):
    """A display that records the estimate after each epoch, and when a stage began."""

    def __init__(self, progress: Progress, epochs: float):
        super().__init__(progress, ("search", "fit"), epochs, LOSS, 0)
        self.progress, self.estimates = progress, list[tuple[float, float | None]]()

    def _begin(self, settings: Any) -> None:
        super()._begin(settings)
        self.estimates.append((self.progress.clock(), self.progress.seconds_left()))

    def epoch(self, member: int, info: Any) -> bool:
        ends = super().epoch(member, info)
        self.estimates.append((self.progress.clock(), self.progress.seconds_left()))
        return ends


def measured(body: str, name: str, X: np.ndarray, y: np.ndarray, clock: Any) -> dict[str, Any]:
    """Search one table, and return the ratios of estimated to real time left after the first third, with the lines shown."""
    kind = getattr(meristem, f"{body.capitalize()}{'Regressor' if name.startswith('reg.') else 'Classifier'}CV")
    estimator, begun, lines = kind(random_state=0, refit="one"), clock(), []
    progress = Progress(sys.stderr, live=False, clock=clock)
    progress._write = lambda line: (lines.append(line), setattr(progress, "_last_line", clock()))  # type: ignore[method-assign]
    recorder = progress._group = Recorder(progress, 30 * 90)
    estimator.set_params(callbacks=[recorder]).fit(X, y)
    ends = clock()
    times, shown = np.array([at for at, _ in recorder.estimates]), [left for _, left in recorder.estimates]
    ratios, unknown, n = [], 0, 0
    for at in np.arange(begun + (ends - begun) / 3, ends, GRID):
        place = int(np.searchsorted(times, at, "right")) - 1
        left, real = (shown[place] if place >= 0 else None), ends - at
        left = None if left is None else max(left - (at - times[place]), 0.1 * left)  # as seconds_left counts down
        if max(real, left or 0.0) > LEAST_SECONDS:
            n, unknown = n + 1, unknown + (left is None)
            ratios += [] if left is None else [left / real]
    within = float(np.mean([1 / FACTOR <= ratio <= FACTOR for ratio in ratios])) if ratios else None
    quantiles = np.quantile(ratios, [0.05, 0.5, 0.95]).round(2).tolist() if ratios else None
    return {
        **{"table": name, "body": body, "rows": len(y), "seconds": round(ends - begun, 1), "estimates": len(ratios)},
        **{"within": within and round(within, 3), "ratio_05_50_95": quantiles, "unknown": round(unknown / max(1, n), 3)},
        **{"lines": lines},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--tables", nargs="+", default=TABLES)
    parser.add_argument("--bodies", nargs="+", default=["tunnel", "budding"])
    parser.add_argument("--wall", action="store_true", help="time of the clock, on all cores")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if not options.wall:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    results, clock = [], time.monotonic if options.wall else time.process_time
    arguments = ["--data", options.data.name, *sys.argv[3:]]
    facts: dict[str, Any] = {"command": shlex.join(["python", "benchmarks/eta.py", *arguments])}
    facts |= {"device": jax.default_backend(), "clock": clock.__name__, "cores": len(os.sched_getaffinity(0))}
    facts |= {"load_before": round(os.getloadavg()[0], 1), "factor": FACTOR}
    with np.load(options.data) as data:
        for body in options.bodies:
            for name in options.tables:
                results.append(measured(body, name, data[f"{name}.X"], data[f"{name}.y"], clock))
                print(json.dumps({**results[-1], "lines": len(results[-1]["lines"])}), flush=True)
                known = [result["within"] for result in results if result["within"] is not None]
                facts["share_within"] = round(statistics.mean(known), 3) if known else None
                if options.out is not None:
                    options.out.write_text(json.dumps({**facts, "results": results}, indent=1) + "\n")
    print(f"mean share within a factor of {FACTOR}: {facts['share_within']}")


if __name__ == "__main__":
    sys.exit(main())
