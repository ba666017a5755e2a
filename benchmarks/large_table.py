"""A large table through `meristem fit`: how long it takes, what memory at its peak, and how good what it finds is.

    python benchmarks/large_table.py --rows 1000000 --columns 50 [--seconds 300]
    python benchmarks/large_table.py --rows 10000 --record results/large-table.jsonl      one point of the learning curve
    python benchmarks/large_table.py --draw docs/large-table.png                          the curve, from that record

The table is made first, by a seed: two thirds of the columns numbers, a quarter categories, the others dates, with holes; the
held-out rows are a table of their own, the same for every number of rows. The command is a process of its own, on two cores,
and its memory and CPU seconds are the account of the system (`resource.getrusage`). Times of baselines are those that
`meristem fit` reports.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

RECORD = Path(__file__).resolve().parent.parent / "results" / "large-table.jsonl"
BLOCK = 20_000  # rows that are made at a time
HOLES = 0.02
TEST_ROWS = 20_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=None)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--record", type=Path, help="a file of JSON lines; the result replaces that of the same table")
    parser.add_argument("--draw", type=Path, help="draw what is recorded instead")
    args = parser.parse_args()
    if args.draw:
        draw(args.record or RECORD, args.draw)
        return
    point = fit(args.rows, args.columns, args.seconds, args.cores)
    print(json.dumps(point, indent=1))
    if args.record:
        record(args.record, point)


def fit(rows: int, columns: int, seconds: float | None, n_cores: int) -> dict[str, Any]:
    """Run the command on a table of `rows` rows, and return what it took and found."""
    with tempfile.TemporaryDirectory() as folder:
        table, test, out = (Path(folder) / name for name in ("table.csv", "test.csv", "out"))
        make(test, TEST_ROWS, columns, seed=1)
        make(table, rows, columns)
        command = [sys.executable, "-m", "meristem", "fit", table, "--target", "y", "--test-file", test, "--out", out]
        command += [] if seconds is None else ["--seconds", seconds]
        cores = sorted(os.sched_getaffinity(0))[:n_cores]
        begun = time.monotonic()
        subprocess.run([*map(str, command)], check=True, preexec_fn=lambda: os.sched_setaffinity(0, cores))
        took = time.monotonic() - begun
        facts = json.loads((out / "summary.json").read_text())
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "rows": rows,
        "columns": columns,
        "command": " ".join(map(str, ["meristem", "fit", "table.csv", *command[5:]])).replace(folder, "."),
        "limit": seconds,
        "seconds": {"all": round(took, 1)} | {name: facts["seconds"][name] for name in ("reading", "baselines", "search")},
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "gibibytes": round(usage.ru_maxrss / 2**20, 2),
        "learned_from": facts["rows"]["learned_from"],
        "searched_with": facts["rows"]["searched_with"],
        "n_parameters": facts["n_parameters"],
        "test": facts["test"],
        "baselines": facts["baselines"],
        "cores": len(cores),
        "machine": platform.machine(),
        "versions": facts["versions"],
    }


def record(path: Path, point: dict[str, Any]) -> None:
    """Put a point into a file of them, sorted by rows, in place of that of the same rows, columns and time limit."""
    points = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    same = ("rows", "columns", "limit")
    points = [other for other in points if any(other[name] != point[name] for name in same)]
    points = sorted([*points, point], key=lambda own: [own[name] or 0 for name in same])
    path.write_text("".join(json.dumps(own) + "\n" for own in points))


def draw(recorded: Path, path: Path) -> None:
    """Draw error and time against the number of rows, ours beside the baselines."""
    import matplotlib.pyplot as plt

    points = sorted((json.loads(line) for line in recorded.read_text().splitlines()), key=lambda point: point["rows"])
    rows = [point["rows"] for point in points]
    figure, (errors, times) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    names = {"boosting": "gradient boosting", "mlp": "MLP", "linear": "logistic regression"}
    errors.plot(rows, [1 - point["test"]["accuracy"] for point in points], "o-", color="C0", label="meristem", zorder=3)
    times.plot(rows, [point["seconds"]["search"] for point in points], "o-", color="C0", label="meristem", zorder=3)
    for color, (name, label) in zip(("C1", "C2", "0.5"), names.items(), strict=True):
        shown = [(point["rows"], point["baselines"][name]) for point in points if name in point["baselines"]]
        at = [each for each, _ in shown]
        errors.plot(at, [1 - baseline["value"] for _, baseline in shown], "o--", color=color, label=label, markersize=4)
        times.plot(at, [baseline["seconds"] for _, baseline in shown], "o--", color=color, label=label, markersize=4)
    errors.set(xscale="log", xlabel="rows to learn from", ylabel="error on 20,000 held-out rows")
    times.set(xscale="log", yscale="log", xlabel="rows to learn from", ylabel="seconds to fit, two cores")
    times.legend(frameon=False)
    figure.savefig(path, dpi=120)


def make(path: Path, rows: int, columns: int, seed: int = 0) -> None:
    """Write a table with a class y, which follows from some of the columns in the same way for every seed."""
    rng = np.random.default_rng(0)
    kinds = ["number" if k % 12 < 8 else "category" if k % 12 < 11 else "date" for k in range(columns)]
    slopes = rng.normal(size=columns) * (rng.random(columns) < 0.4)
    rng = rng if seed == 0 else np.random.default_rng(seed)
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
