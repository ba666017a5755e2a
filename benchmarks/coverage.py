"""Coverage of intervals and sets on real tables, beside gradient boosting of quantiles.

    python benchmarks/coverage.py --data tables.npz --out results/coverage.json [--tables reg.airfoil,…] [--splits 10]

A split is 75 : 25 of at most 2,000 rows. Searches are short: one penalty and l2, width 32, depth 2, 60 epochs. Boosting fits
the two quantiles of the interval. The file is written after each table. Of classes, `accuracy` is the least possible coverage,
since no set is empty. The standard error is that of the mean over splits.
"""

import argparse
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split

import meristem

ROWS = 2000
QUICK: dict[str, Any] = {"penalties": [3e-4], "input_dropouts": [0.0], "max_width": 32, "depth": 2, "max_epochs": 60}
QUICK |= {"learning_rate": 0.01, "batch_size": 64}


def one_split(X: Any, y: Any, seed: int, coverage: float, is_number: bool) -> dict[str, float]:
    """Coverage and mean width, or size, of one split; widths are relative to the standard deviation of y."""
    rows = np.random.default_rng(seed).permutation(len(X))[:ROWS]
    train, test, y_train, y_test = train_test_split(X[rows], y[rows], random_state=seed)
    kind = meristem.TunnelRegressorCV if is_number else meristem.TunnelClassifierCV
    begun = time.perf_counter()
    model = kind(**QUICK, l2s=[0.3 / len(train)], random_state=seed).fit(train, y_train)
    record: dict[str, float] = {"rows": len(rows), "seconds": time.perf_counter() - begun}
    if not is_number:
        members = model.predict_set(test, coverage)
        is_right = (members & (y_test[:, None] == model.classes_)).any(1)
        return record | {"coverage": is_right.mean(), "size": members.sum(1).mean(), "accuracy": model.score(test, y_test)}
    unit, levels = y_train.std(), [(1 - coverage) / 2, (1 + coverage) / 2]
    boosted = [
        HistGradientBoostingRegressor(loss="quantile", quantile=level, max_iter=50, random_state=seed) for level in levels
    ]
    bounds = {"": model.predict_interval(test, coverage)}
    bounds["boosting_"] = np.stack([other.fit(train, y_train).predict(test) for other in boosted], 1)
    for name, (low, high) in ((name, own.T) for name, own in bounds.items()):
        record[f"{name}coverage"] = ((low <= y_test) & (y_test <= high)).mean()
        record[f"{name}width"] = np.maximum(high - low, 0).mean() / unit
    return record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("results/coverage.json"))
    parser.add_argument("--tables", help="names, separated by commas (default: all)")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--coverage", type=float, default=0.9)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    data = np.load(args.data)
    names = args.tables.split(",") if args.tables else [name.removesuffix(".X") for name in data.files if name.endswith(".X")]
    tables: dict[str, dict[str, float]] = {}
    for name in names:
        X, y, is_number = data[f"{name}.X"], data[f"{name}.y"], name.startswith("reg.")
        runs = [one_split(X, y, seed, args.coverage, is_number) for seed in range(args.splits)]
        row = {key: round(float(np.mean([run[key] for run in runs])), 4) for key in runs[0]}
        error = np.std([run["coverage"] for run in runs], ddof=1) / np.sqrt(len(runs))
        tables[name] = row | {"standard_error": round(float(error), 4)}
        print(name, json.dumps(tables[name]), flush=True)
        command = " ".join(["python benchmarks/coverage.py", *sys.argv[1:]]).replace(str(args.data), args.data.name)
        record = {"command": command, "coverage": args.coverage, "splits": args.splits, "tables": tables}
        args.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
