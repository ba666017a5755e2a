"""Scores and sizes of the estimators on many tables, several settings side by side.

    python benchmarks/sizes_tables.py --data tables.npz --out DIR --seeds 2 --processes 16 \
        'before={"settle": false}' 'auto={"width": "auto"}'

Each setting is a name and parameters of the estimators. A split is 75 : 25, with at most 2,500 rows.
Writes tables.json: score (accuracy or R²), n_parameters_ and seconds of every fit; prints medians and mean ranks.
"""

import argparse
import json
import os
import statistics
import time
import warnings
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

ROWS = 2500
KINDS = ("Tunnel", "Budding")


def one(job: tuple[str, str, str, str, dict[str, Any], int]) -> dict[str, Any]:
    """A fit and its score."""
    file, table, kind, name, parameters, seed = job
    os.environ |= {"JAX_PLATFORMS": "cpu", "OMP_NUM_THREADS": "1"}
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    import numpy as np
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    import meristem

    warnings.simplefilter("ignore")
    if table == "digits":
        X, y = load_digits(return_X_y=True)
    else:
        with np.load(file) as data:
            X, y = data[f"{table}.X"], data[f"{table}.y"]
    is_classes = not table.startswith("reg.")
    rows = np.random.default_rng(seed).permutation(len(X))[:ROWS]
    A, B, a, b = train_test_split(X[rows], y[rows], random_state=seed)
    model = getattr(meristem, f"{kind}{'Classifier' if is_classes else 'Regressor'}")(random_state=seed, **parameters)
    begin = time.perf_counter()
    model.fit(A, a)
    seconds = time.perf_counter() - begin
    return {
        "table": table,
        "kind": kind,
        "setting": name,
        "seed": seed,
        "score": float(model.score(B, b)),
        "n_parameters": int(model.n_parameters_),
        "epochs": int(model.n_iter_),
        "seconds": round(seconds, 2),
    }


def ranks(scores: dict[str, float]) -> dict[str, float]:
    """1 is best; ties share."""
    return {
        name: 1 + sum(other > score for other in scores.values()) + (sum(o == score for o in scores.values()) - 1) / 2
        for name, score in scores.items()
    }


def table(results: list[dict[str, Any]]) -> str:
    """Medians of size and time, mean score and mean rank of each setting, by kind of network."""
    lines = [f"{'kind':8} {'setting':28} {'rank':>5} {'score':>7} {'parameters':>10} {'seconds':>7} {'epochs':>6}"]
    for kind in KINDS:
        mine = [one for one in results if one["kind"] == kind]
        cells = defaultdict(list)
        for result in mine:
            cells[result["setting"], result["table"]].append(result)
        names = list(dict.fromkeys(one["setting"] for one in mine))
        tables = sorted({one["table"] for one in mine})
        tables = [t for t in tables if all((name, t) in cells for name in names)]
        mean = {key: statistics.mean(max(one["score"], -1) for one in found) for key, found in cells.items()}
        placed = [ranks({name: mean[name, t] for name in names}) for t in tables]
        for name in names:
            found = [one for one in mine if one["setting"] == name]
            size = statistics.median(statistics.mean(one["n_parameters"] for one in cells[name, t]) for t in tables)
            lines.append(
                f"{kind:8} {name:28} {statistics.mean(p[name] for p in placed):5.2f} "
                f"{statistics.mean(mean[name, t] for t in tables):7.4f} {size:10,.0f} "
                f"{statistics.median(one['seconds'] for one in found):7.1f} "
                f"{statistics.median(one['epochs'] for one in found):6.0f}"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--digits", action="store_true", help="scikit-learn's digits in place of the tables")
    parser.add_argument("--limit", type=float, default=1e9, help="seconds after which what is not begun is left out")
    parser.add_argument("settings", nargs="+", metavar="NAME={…}")
    given = parser.parse_args()
    settings = {name: json.loads(text) for name, _, text in (setting.partition("=") for setting in given.settings)}
    import numpy as np

    with np.load(given.data) as data:
        tables = [name.removesuffix(".X") for name in data.files if name.endswith(".X")]
        size = {name: data[f"{name}.X"].shape for name in tables}
    if given.digits:
        tables, size = ["digits"], {"digits": (1797, 64)}
    tables.sort(key=lambda name: -min(size[name][0], ROWS) * size[name][1])  # long ones first
    jobs = [
        (str(given.data), name, kind, setting, parameters, seed)
        for seed in range(given.first_seed, given.first_seed + given.seeds)
        for name in tables
        for setting, parameters in settings.items()
        for kind in given.kinds.split(",")
    ]
    results, begin = [], time.perf_counter()
    with ProcessPoolExecutor(given.processes, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(one, job) for job in jobs]
        for future in futures:
            left = given.limit - (time.perf_counter() - begin)
            try:
                results.append(future.result(timeout=max(left, 0.01)))
            except TimeoutError:
                future.cancel()
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "tables.json").write_text(json.dumps({"settings": settings, "runs": results}, indent=1) + "\n")
    print(f"{len(results)} of {len(jobs)} fits in {time.perf_counter() - begin:.0f} s")
    print(table(results))


if __name__ == "__main__":
    main()
