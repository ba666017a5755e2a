"""How far the estimates of the time left are off after the first third of a search, on real tables.

    python benchmarks/eta.py --data tables.npz [--out results/eta.json] [--tables bin.pima …] [--seed 0] [--wall]

Each table is searched by a CV estimator at its defaults with refit="one", verbose=True, in a process of its own. What is shown
is compared with the time that was really left, every tenth of a second after the first third; a ratio of 1 is right, the
requirement is between 1/1.5 and 1.5. Moments where both times are below two seconds do not count: nobody waits for them.

    right     share of the moments with an estimate at which what is shown is right: a number within 1.5, a range that holds the
              time really left, or misses it by a quarter at most
    single    share of these with a number, and single_right: how many of them are right
    range_right, range_width   how many of the ranges are right, and the median of how far their ends are apart, as a ratio
    within    share where the number, or the middle of the range, is within 1.5
    unknown   share of the moments without an estimate: the first program still compiles

Time is that of the process's CPU on one core, which other work on the machine disturbs little, or with --wall that of the clock
on all cores.
"""

import argparse
import json
import os
import shlex
import statistics
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

TABLES = ("bin.pima", "reg.airfoil", "multi.vowel", "multi.balance", "bin.page_blocks0")
FACTOR, MISSED, LEAST_SECONDS, GRID = 1.5, 1.25, 2.0, 0.1
KEYS = ("right", "single", "single_right", "range_right", "range_width", "within", "unknown")
Estimate = tuple[float, tuple[float, float] | None]  # when, and the range of the seconds left


def searched(file: Path, body: str, name: str, seed: int, is_wall: bool) -> dict[str, Any]:
    """Search one table, and return when it began and ended, the estimates after each epoch, and the lines that were shown."""
    import meristem
    from meristem.paths import penalty_path
    from meristem.show.progress import GroupWatcher, Progress

    warnings.simplefilter("ignore")
    if not is_wall:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    clock = time.monotonic if is_wall else time.process_time
    estimates, lines = list[Estimate](), list[str]()

    class Recorded(Progress):
        """A display of plain lines that keeps them, and on this clock."""

        def __init__(self) -> None:
            super().__init__(sys.stderr, live=False, clock=clock)

        def _write(self, line: str) -> None:
            lines.append(line)
            self._last_line = self.clock()

    def record(method: Any) -> Any:
        def called(self: GroupWatcher, *arguments: Any) -> Any:
            result = method(self, *arguments)
            estimates.append((clock(), self._progress.range_left()))
            return result

        return called

    GroupWatcher._begin, GroupWatcher._update = record(GroupWatcher._begin), record(GroupWatcher._update)  # type: ignore[method-assign]
    penalty_path.Progress = Recorded  # type: ignore[misc, assignment]
    with np.load(file) as data:
        X, y = data[f"{name}.X"], data[f"{name}.y"]
    kind = getattr(meristem, f"{body.capitalize()}{'Regressor' if name.startswith('reg.') else 'Classifier'}CV")
    begun = clock()
    kind(random_state=seed, refit="one", verbose=True).fit(X, y)
    return {"rows": len(y), "begun": begun, "ends": clock(), "estimates": estimates, "lines": lines}


def judged(begun: float, ends: float, estimates: list[Estimate]) -> dict[str, Any]:
    """Return how many estimates after the first third are right, by time."""
    from meristem.show.time_left import CLOSE, middle

    times = np.array([at for at, _ in estimates])
    n, unknown, moments = 0, 0, []
    for at in np.arange(begun + (ends - begun) / 3, ends, GRID):
        place, real = int(np.searchsorted(times, at, "right")) - 1, ends - at
        both = estimates[place][1] if place >= 0 else None
        low, high = (np.nan, np.nan) if both is None else (max(end - (at - times[place]), 0.1 * end) for end in both)
        if max(real, 0.0 if both is None else high) <= LEAST_SECONDS:
            continue
        n, unknown = n + 1, unknown + (both is None)
        if both is not None:
            ratio = middle(low, high) / real
            is_within, is_held = 1 / FACTOR <= ratio <= FACTOR, low / MISSED <= real <= high * MISSED
            moments.append((ratio, is_within, high <= CLOSE * low, is_held, high / low))
    facts = {"seconds": round(ends - begun, 1), "moments": n, "unknown": round(unknown / max(1, n), 3)}
    if not moments:
        return facts | {key: None for key in KEYS if key != "unknown"}
    ratio, within, single, held, width = (np.array(values) for values in zip(*moments, strict=True))
    shares = {"right": np.where(single, within, held).mean(), "single": single.mean(), "within": within.mean()}
    shares["single_right"] = within[single].mean() if single.any() else None
    shares |= {"range_right": None if single.all() else held[~single].mean()}
    shares |= {"range_width": None if single.all() else np.median(width[~single])}
    facts |= {key: None if share is None else round(float(share), 3) for key, share in shares.items()}
    return facts | {"ratio_05_50_95": np.quantile(ratio, [0.05, 0.5, 0.95]).round(2).tolist()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--tables", nargs="+", default=TABLES)
    parser.add_argument("--bodies", nargs="+", default=["tunnel", "budding"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--wall", action="store_true", help="time of the clock, on all cores")
    options = parser.parse_args()
    arguments = ["--data", options.data.name, *sys.argv[3:]]
    facts: dict[str, Any] = {"command": shlex.join(["python", "benchmarks/eta.py", *arguments])}
    facts |= {"clock": "monotonic" if options.wall else "process_time", "load_before": round(os.getloadavg()[0], 1)}
    results: list[dict[str, Any]] = []
    for body in options.bodies:
        for name in options.tables:
            with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                search = pool.submit(searched, options.data, body, name, options.seed, options.wall).result()
            own = {"table": name, "body": body, "rows": search["rows"]}
            own |= judged(search["begun"], search["ends"], search["estimates"])
            print(json.dumps(own), flush=True)
            results.append(own | {"lines": search["lines"]})
            for key in KEYS:
                known = [result[key] for result in results if result[key] is not None]
                facts[key] = round(statistics.mean(known), 3) if known else None
            if options.out is not None:
                options.out.write_text(json.dumps({**facts, "results": results}, indent=1) + "\n")
    print({key: facts[key] for key in KEYS})


if __name__ == "__main__":
    main()
