"""What do the estimators cost? Time and memory of the defaults, against `MLPClassifier()` and against promises, in one run.

    first fit    what one waits for at the very first `fit` on the digits: compilation and training; a fresh process each
    programs     how many programs a second fit of the same shape compiles: none
    fit          a fit on the digits when everything is compiled, over that of `MLPClassifier()`; in turns, in one process
    predict      10,000 rows of digits, over `MLPClassifier.predict`; in turns
    memory       the peak of a fresh process that fits 100,000 × 100 doubles

Prints a table. Status 1 if a requirement is missed. Progress goes to standard error.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # both sides' small matrices: more threads only wait for one another

import argparse
import json
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Any

import report
from report import Block, Result, compare

HERE = Path(__file__).parent
OURS = ["TunnelClassifier", "BuddingClassifier"]
RIVAL = "MLPClassifier"
ROWS = 10_000  # to predict
# The most that is allowed: seconds, programs, and ratios.
REQUIRED: dict[str, float] = {"first fit": 12, "programs": 0, "fit": 5, "predict": 2}


@dataclass(frozen=True)
class Count(Result):
    """A number of which there should be none has no percentage to be missed by."""

    @property
    def verdict(self) -> str:
        return "ok" if self.met else "MISSED"


def main() -> int:
    options = _options()
    load = report.load()
    # The first of all: a child's peak counts from its parent's size.
    results = [_memory(options.fresh), *(result for name in OURS for result in _first(name, options.fresh))]
    timed, notes = _race(options.repeats)
    results += timed
    environment = {name: version(name) for name in ("numpy", "scikit-learn")}
    environment |= {"OMP_NUM_THREADS": os.environ["OMP_NUM_THREADS"], "date": time.strftime("%Y-%m-%d")}
    said = f"{options.repeats} fits of each side, in turns, a seed each; {options.fresh} fresh processes each; medians count"
    return report.tell(results, BLOCKS, report.machine(load) | environment, [said, *notes], options.out)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Times the estimators on scikit-learn's digits. Takes some two minutes.",
        epilog="example: python benchmarks/estimator_speed.py --out results/estimator-speed.json",
    )
    parser.add_argument("--repeats", type=int, default=7, metavar="N", help="fits of each side; medians count (default 7)")
    parser.add_argument("--fresh", type=int, default=3, metavar="N", help="fresh processes for each first fit (default 3)")
    parser.add_argument("--out", type=Path, metavar="FILE.json", help="write every timing here")
    options = parser.parse_args()
    for name in ("repeats", "fresh"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} {getattr(options, name)} must be at least 1")
    if options.out and not options.out.resolve().parent.is_dir():
        parser.error(f"--out {options.out}: there is no folder {options.out.resolve().parent}")
    return options


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _child(data: str, name: str) -> dict[str, Any]:
    child = subprocess.run(
        [sys.executable, HERE / "estimator_fit.py", data, name], stdout=subprocess.PIPE, check=True, text=True
    )
    told = json.loads(child.stdout)
    seconds, (_, peak) = told["seconds"], told["mebibytes"]
    _say(f"{name}, {data}, a fresh process: first fit {seconds[0]:.1f} s, second {seconds[1]:.1f} s, peak {peak:.0f} MiB")
    return told


def _memory(repeats: int) -> Result:
    told = [_child("large", OURS[0]) for _ in range(repeats)]
    data, peaks = told[0]["data"], zip(*(one["mebibytes"] for one in told), strict=True)
    sides = dict(zip(["with the data", "after fit"], map(list, peaks), strict=True))
    what, value = f"{OURS[0]}, {data:.0f} MiB of data", statistics.median(sides["after fit"])
    return Result("memory", what, {}, value, int(3 * data + 500), is_least=False, unit=" MiB", mebibytes=sides)


def _first(name: str, repeats: int) -> list[Result]:
    told = [_child("digits", name) for _ in range(repeats)]
    seconds = {side: [one["seconds"][i] for one in told] for i, side in enumerate(["first", "second"])}
    first = statistics.median(seconds["first"])
    again = max(len(one["programs"][1]) for one in told)
    return [
        Result("first fit", name, seconds, first, REQUIRED["first fit"], is_least=False, unit=" s"),
        Count("programs", name, {}, again, REQUIRED["programs"], is_least=False, unit=""),
    ]


def _race(repeats: int) -> tuple[list[Result], list[str]]:
    """Fits and predictions in turns, and how many epochs a fit took."""
    import numpy as np
    from sklearn.datasets import load_digits
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier
    from sklearn.preprocessing import StandardScaler

    import meristem
    from estimator_fit import clock, programs
    from fair import in_turns

    for category in (meristem.GrowthWarning, ConvergenceWarning):
        warnings.simplefilter("ignore", category)
    X, y = load_digits(return_X_y=True)
    scaled = StandardScaler().fit_transform(X)
    kinds = {RIVAL: MLPClassifier} | {name: getattr(meristem, name) for name in OURS}
    rows = {name: scaled if name == RIVAL else X for name in kinds}
    fitted: dict[str, Any] = {}
    epochs: dict[str, list[int]] = {name: [] for name in kinds}

    def fit(name: str) -> Callable[[], float]:
        seeds = count()

        def run() -> float:
            seed = next(seeds)
            while True:
                fitted[name] = kinds[name](random_state=seed)
                with programs() as compiled:
                    seconds = clock(lambda: fitted[name].fit(rows[name], y))
                if not compiled:  # else a tree of this seed grew larger than those before it: once more
                    break
            epochs[name].append(fitted[name].n_iter_)
            _say(f"{name}, seed {seed}: {seconds:.2f} s, {fitted[name].n_iter_} epochs")
            return seconds

        return run

    fits = in_turns({name: fit(name) for name in kinds}, repeats)
    asked = {name: np.resize(part, (ROWS, part.shape[1])) for name, part in rows.items()}
    predictions = in_turns({name: lambda n=name: clock(lambda: fitted[n].predict(asked[n])) for name in kinds}, 5 * repeats)
    results = [
        compare(block, name, {RIVAL: times[RIVAL], "ours": times[name]}, REQUIRED[block], is_least=False)
        for block, times in (("fit", fits), ("predict", predictions))
        for name in OURS
    ]
    per_epoch = {n: 1e3 * statistics.median(t / e for t, e in zip(fits[n], epochs[n][1:], strict=True)) for n in kinds}
    return results, [f"{n}: {statistics.median(epochs[n][1:]):g} epochs of {per_epoch[n]:.1f} ms" for n in kinds]


BLOCKS = {
    "first fit": Block(
        """\
The first fit on the digits (1,797 × 64), default parameters: seconds, median. A fresh process, compilation included and its
cache off; importing the library is not counted. Beside it a second fit in the same process.""",
        value="first",
        shown_in="s",
    ),
    "programs": Block("Programs that the second fit compiles, at most.", value="programs"),
    "fit": Block(
        """\
A fit on the digits when all programs are compiled: seconds, median. MLPClassifier() gets standardized rows, ours standardize by
themselves. The ratio says how many times as long ours take.""",
        shown_in="s",
    ),
    "predict": Block("""\
Predictions for 10,000 rows of digits: µs, median ± half the interquartile range. The network alone for MLPClassifier, scaling
included for ours. The ratio says how many times as long ours take."""),
    "memory": Block(
        """\
Peak memory of a fresh process that fits 100,000 × 100 doubles, two epochs: MiB, median. Compilation included. Three times the
data and 500 MiB are allowed.""",
        value="peak",
        shown_in="MiB",
    ),
}


if __name__ == "__main__":
    sys.exit(main())
