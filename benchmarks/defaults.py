"""Whether the size follows the difficulty at the estimators' defaults: three spirals, and real classes that were shuffled.

    python benchmarks/defaults.py --out DIR --seeds 3

Prints and writes, for each estimator, the training accuracy and the parameters on the easy, medium and difficult spirals, and
the parameters on data sets with their own labels and with the same labels in another order. Writes defaults.json.
"""

import argparse
import json
import statistics
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

import meristem
from meristem.data.spirals import two_spirals

KINDS = ("TunnelClassifier", "BuddingClassifier")
SETS = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer}


def fitted(kind: str, X: np.ndarray, y: np.ndarray, seed: int) -> dict[str, Any]:
    model = getattr(meristem, kind)(random_state=seed).fit(X, y)
    return {"seed": seed, "accuracy": float(model.score(X, y)), "n_parameters": int(model.n_parameters_)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    data = {f"{task} spirals": tuple(map(np.asarray, two_spirals(task))) for task in ("easy", "medium", "difficult")}
    for name, load in SETS.items():
        X, y = load(return_X_y=True)
        data |= {name: (X, y), f"{name}, shuffled": (X, np.random.default_rng(0).permutation(y))}
    found: dict[str, dict[str, list[dict[str, Any]]]] = {kind: {} for kind in KINDS}
    for name, (X, y) in data.items():
        for kind in KINDS:
            runs = found[kind][name] = [fitted(kind, X, y, seed) for seed in range(given.seeds)]
            solved = statistics.mean(run["accuracy"] for run in runs)
            sizes = ", ".join(f"{run['n_parameters']:,}" for run in runs)
            print(f"{kind:18} {name:24} training accuracy {solved:.3f}, parameters {sizes}", flush=True)
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "defaults.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
