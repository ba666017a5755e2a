"""How long a model takes to read its inputs: `predict` of 10,000 rows, and `fit` of the README's example.

    .venv/bin/python benchmarks/inputs.py [REPEATS]        medians in milliseconds, as one line of JSON

Compared with another commit: run both in turns, with PYTHONPATH set to each src (results/log/2026-11-18-inputs-and-axes.md).
"""

import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
import pandas
from sklearn.datasets import load_wine

import meristem

ROWS = 10_000


def median(repeats: int, call: Callable[[], object]) -> float:
    times = []
    for _ in range(repeats):
        begun = time.perf_counter()
        call()
        times.append(time.perf_counter() - begun)
    return round(1000 * statistics.median(times), 2)


def main(repeats: int) -> None:
    warnings.simplefilter("ignore")
    X, y = load_wine(return_X_y=True)
    many = X[np.random.default_rng(0).integers(len(X), size=ROWS)]
    plain = meristem.TunnelClassifier(random_state=0).fit(X, y)
    search = meristem.TunnelClassifierCV(random_state=0)
    search.fit(X, y)
    frame = pandas.DataFrame(many, columns=[f"c{k}" for k in range(X.shape[1])]).assign(
        kind=np.tile(["red", "white"], ROWS // 2)
    )
    quick = {"cv": 2, "penalties": [1e-3], "max_epochs": 20, "random_state": 0}
    table = meristem.fit_table(frame[:500].assign(y=np.arange(500) % 3), target="y", task="class", **quick)
    print(
        json.dumps(
            {
                "predict, one network": median(repeats, lambda: plain.predict(many)),
                "predict_proba, bag": median(repeats, lambda: search.predict_proba(many)),
                "predict, one row": median(10 * repeats, lambda: search.predict(many[:1])),
                "predict, frame of a table": median(repeats, lambda: table.predict(frame)),
                "fit, README's example, again in the process": median(3, lambda: search.fit(X, y)),
            }
        )
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
