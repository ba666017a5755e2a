"""A large table through `meristem fit`: how long it takes, what memory at its peak, and how good what it finds is.

    python benchmarks/large_table.py --rows 1000000 --columns 50 [--seconds 300]

The table is made first, by a seed: two thirds of the columns numbers, a quarter categories, the others dates, with holes. The
command is a process of its own, on two cores, and its memory is the system's account of it (`resource.getrusage`).
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

BLOCK = 20_000  # rows that are made at a time
HOLES = 0.02


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=None)
    parser.add_argument("--cores", type=int, default=2)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table, out = Path(folder) / "table.csv", Path(folder) / "out"
        make(table, args.rows, args.columns)
        print(f"{args.rows:,} rows × {args.columns} columns, {table.stat().st_size / 2**20:.0f} MiB")
        begun = time.monotonic()
        command = [sys.executable, "-m", "meristem", "fit", table, "--target", "y", "--out", out]
        command += [] if args.seconds is None else ["--seconds", args.seconds]
        cores = sorted(os.sched_getaffinity(0))[: args.cores]
        subprocess.run([*map(str, command)], check=True, preexec_fn=lambda: os.sched_setaffinity(0, cores))
        took, memory = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
        facts = json.loads((out / "summary.json").read_text())
    limit = "" if args.seconds is None else f" of {args.seconds:.0f}"
    print(f"{took:.0f} s{limit}, {memory:.2f} GiB at the peak; {facts['rows']}, {facts['seconds']}")


def make(path: Path, rows: int, columns: int) -> None:
    """A class y, which follows from some of the columns."""
    rng = np.random.default_rng(0)
    kinds = ["number" if k % 12 < 8 else "category" if k % 12 < 11 else "date" for k in range(columns)]
    slopes = rng.normal(size=columns) * (rng.random(columns) < 0.4)
    with path.open("w") as file:
        file.write(",".join([*(f"{kind}_{k}" for k, kind in enumerate(kinds)), "y"]) + "\n")
        for begin in range(0, rows, BLOCK):
            values = rng.normal(size=(min(BLOCK, rows - begin), columns))
            score = values @ slopes + values[:, 0] * values[:, 1] + rng.normal(size=len(values))
            holes = rng.random(values.shape) < HOLES
            texts = [_texts(kind, values[:, k], holes[:, k]) for k, kind in enumerate(kinds)]
            texts.append(np.where(score > 1, "high", np.where(score < -1, "low", "middle")).tolist())
            file.write("\n".join(map(",".join, zip(*texts, strict=True))) + "\n")


def _texts(kind: str, values: np.ndarray, holes: np.ndarray) -> list[str]:
    if kind == "number":
        texts = [f"{value:.5g}" for value in values.tolist()]
    elif kind == "category":
        texts = [f"kind {int(3 * value)}" for value in values.tolist()]
    else:
        texts = (np.datetime64("2020-01-01") + (300 * values).astype(int)).astype(str).tolist()
    return ["" if hole else text for hole, text in zip(holes.tolist(), texts, strict=True)]


if __name__ == "__main__":
    main()
