"""A path of 8 penalties × 5 folds on digits, timed: as `meristem.path`, or as an older version's `fit_each` in threads.

    python benchmarks/path_time.py --repeats 3 [--halving]        prints the seconds of each repeat after a first that compiles
    PYTHONPATH=OLD/src python benchmarks/path_time.py              the same members by a version that has `fit_each` (455775e)

The same networks, rows, schedule and epochs; run both in turns on the same cores and compare medians.
"""

import argparse
import statistics
import time
from typing import Any

import jax
import numpy as np
from sklearn.datasets import load_digits

import meristem
from meristem import Data, Recipe
from meristem.nn import Network

PENALTIES = np.geomspace(1e-5, 1e-2, 8)
FOLDS = 5


def folds(rows: int) -> list[tuple[np.ndarray, np.ndarray]]:
    parts = np.array_split(np.random.default_rng(0).permutation(rows), FOLDS)
    return [(np.sort(np.concatenate(parts[:k] + parts[k + 1 :])), np.sort(parts[k])) for k in range(FOLDS)]


def network(key: Any) -> Any:
    return Network.create("tunnel", 64, 10, width=32, depth=5, key=key)


def in_threads(x: np.ndarray, y: np.ndarray, recipe: Any, max_epochs: int) -> None:
    for learn, held in folds(len(x)):
        keys = jax.random.split(jax.random.key(0), len(PENALTIES))
        data = Data(x[learn], y[learn], x[held], y[held])
        options = {"learning_rate": 3e-3, "recipe": recipe, "max_epochs": max_epochs, "together": False}
        meristem.fit_each(jax.vmap(network)(keys), data, penalty=PENALTIES, keys=keys, **options)


def as_path(x: np.ndarray, y: np.ndarray, recipe: Any, max_epochs: int, *, halving: bool) -> None:
    options = {"recipe": recipe, "max_epochs": max_epochs, "halving": halving, "together": False}
    found = meristem.path(
        network, Data(x, y), penalties=PENALTIES, learning_rates=[3e-3], cv=folds(len(x)), key=jax.random.key(0), **options
    )
    assert len(found.table["loss"]) == FOLDS * len(PENALTIES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--max-epochs", type=int, default=60)
    parser.add_argument("--halving", action="store_true")
    given = parser.parse_args()
    x, y = load_digits(return_X_y=True)
    x = (x / 16).astype(np.float32)
    recipe = Recipe(objective="multiclass", batch_size=32, patience=10, watch="loss", select="loss")
    seconds = []
    for _ in range(1 + given.repeats):
        begin = time.perf_counter()
        if hasattr(meristem, "fit_each"):
            in_threads(x, y, recipe, given.max_epochs)
        else:
            as_path(x, y, recipe, given.max_epochs, halving=given.halving)
        seconds.append(time.perf_counter() - begin)
    print(", ".join(f"{one:.2f}" for one in seconds[1:]), f"s; median {statistics.median(seconds[1:]):.2f} s", flush=True)


if __name__ == "__main__":
    main()
