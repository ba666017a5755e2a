"""Coverage of intervals and sets on real tables, beside quantiles of gradient boosting and of linear regression.

    python benchmarks/coverage.py --data tables.npz --out results/coverage.json [--tables reg.airfoil,…] [--splits 10]
        [--search default] [--refit one] [--processes 16] [--limit 450]

A split is 75 : 25 of at most 2,000 rows, on a single thread of one process. A short search has one penalty and l2, width 32,
depth 2, 60 epochs; a default one is that of the estimator, with a bag of networks or refit="one". Boosting fits the two
quantiles of the interval, and so does linear quantile regression of standardized inputs, where there are ten rows to learn from
for each (its solver fails otherwise). The file is written after each table,
and tables that are in it already are not run again: after --limit seconds it ends, and the same command goes on.
Of classes, `accuracy` is the least possible coverage, since no set is empty; `exact_coverage` is that of sets that may be. The
standard error is that of the mean over splits.
"""

import argparse
import json
import os
import sys
import time
import warnings
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import QuantileRegressor
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tabular import pin

ROWS = 2000
QUICK: dict[str, Any] = {"penalties": [3e-4], "input_dropouts": [0.0], "max_width": 32, "depth": 2, "max_epochs": 60}
QUICK |= {"learning_rate": 0.01, "batch_size": 64}
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu"}
ONE_THREAD["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


def one_split(file: Path, name: str, seed: int, coverage: float, search: str, refit: str) -> dict[str, float]:
    """Coverage and mean width, or size, of one split; widths are relative to the standard deviation of y."""
    import meristem

    warnings.simplefilter("ignore")
    with np.load(file) as data:
        X, y, is_number = data[f"{name}.X"], data[f"{name}.y"], name.startswith("reg.")
    rows = np.random.default_rng(seed).permutation(len(X))[:ROWS]
    train, test, y_train, y_test = train_test_split(X[rows], y[rows], random_state=seed)
    kind = meristem.TunnelRegressorCV if is_number else meristem.TunnelClassifierCV
    settings = {} if search == "default" else QUICK | {"l2s": [0.3 / len(train)]}
    begun = time.process_time()
    model = kind(**settings, refit=refit, random_state=seed).fit(train, y_train)
    record: dict[str, float] = {"rows": len(rows), "cpu_seconds": time.process_time() - begun}
    if not is_number:
        members, smaller = (model.predict_set(test, coverage, allow_empty=allowed) for allowed in (False, True))
        is_true = y_test[:, None] == model.classes_
        record |= {"coverage": (members & is_true).any(1).mean(), "size": members.sum(1).mean()}
        record |= {"exact_coverage": (smaller & is_true).any(1).mean(), "empty": (~smaller.any(1)).mean()}
        return record | {"accuracy": model.score(test, y_test)}
    unit, levels = y_train.std(), [(1 - coverage) / 2, (1 + coverage) / 2]
    boosted = [
        HistGradientBoostingRegressor(loss="quantile", quantile=level, max_iter=50, random_state=seed) for level in levels
    ]
    linear = [make_pipeline(StandardScaler(), QuantileRegressor(quantile=level, alpha=0)) for level in levels]
    bounds = {"": model.predict_interval(test, coverage)}
    for prefix, peers in (("boosting_", boosted), ("linear_", linear if len(train) >= 10 * X.shape[1] else [])):
        if not peers:
            continue
        bounds[prefix] = np.stack([peer.fit(train, y_train).predict(test) for peer in peers], 1)
    for prefix, (low, high) in ((prefix, own.T) for prefix, own in bounds.items()):
        record[f"{prefix}coverage"] = ((low <= y_test) & (y_test <= high)).mean()
        record[f"{prefix}width"] = np.maximum(high - low, 0).mean() / unit
    return record


def mean_row(runs: list[dict[str, float]]) -> dict[str, float]:
    """The means over the splits of a table, and the standard errors of its coverages."""
    row = {key: round(float(np.mean([run[key] for run in runs])), 4) for key in runs[0]}
    for key, name in (("coverage", "standard_error"), ("exact_coverage", "exact_standard_error")):
        if key in row and len(runs) > 1:
            row[name] = round(float(np.std([run[key] for run in runs], ddof=1) / np.sqrt(len(runs))), 4)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("results/coverage.json"))
    parser.add_argument("--tables", help="names, separated by commas (default: all)")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--coverage", type=float, default=0.9)
    parser.add_argument("--search", choices=["short", "default"], default="short")
    parser.add_argument("--refit", choices=["auto", "one"], default="auto")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--limit", type=float, help="seconds after which it ends; whole tables are kept")
    args = parser.parse_args()
    with np.load(args.data) as data:
        every = {key.removesuffix(".X"): data[key].shape for key in data.files if key.endswith(".X")}
    names = args.tables.split(",") if args.tables else list(every)
    command = " ".join(["python benchmarks/coverage.py", *sys.argv[1:]]).replace(str(args.data), args.data.name)
    facts = {"coverage": args.coverage, "splits": args.splits, "search": args.search, "refit": args.refit}
    before = json.loads(args.out.read_text()) if args.out.exists() else facts | {"tables": {}}
    if {key: before.get(key) for key in facts} != facts:
        parser.error(f"--out {args.out} holds runs with other settings; name another file.")
    tables: dict[str, dict[str, float]] = before["tables"]
    left = sorted((name for name in names if name not in tables), key=lambda name: -min(every[name][0], ROWS) * every[name][1])
    runs: dict[str, list[dict[str, float]]] = defaultdict(list)
    os.environ |= ONE_THREAD  # of the processes below: libraries of linear algebra read it when they are imported
    context = get_context("spawn")
    with ProcessPoolExecutor(args.processes, context, pin, (context.Value("i", 0),)) as pool:
        shared = (args.coverage, args.search, args.refit)
        jobs = [(name, seed) for name in left for seed in range(args.splits)]
        futures = {pool.submit(one_split, args.data, name, seed, *shared): name for name, seed in jobs}
        try:
            for future in as_completed(futures, timeout=args.limit):
                runs[name := futures[future]].append(future.result())
                if len(runs[name]) < args.splits:
                    continue
                tables[name] = mean_row(runs[name])
                print(name, json.dumps(tables[name]), flush=True)
                ordered = {own: tables[own] for own in every if own in tables}
                args.out.write_text(json.dumps({"command": command, **facts, "tables": ordered}, indent=1) + "\n")
        except TimeoutError:
            print(f"{args.limit:.0f} s are over; the same command goes on", flush=True)
            for process in list(pool._processes.values()):
                process.kill()


if __name__ == "__main__":
    main()
