"""How long a person waits for a first model: `fit` on scikit-learn's wine, in new processes.

    python benchmarks/first_fit.py --out results/first-fit.json [--repeats 5]

For each estimator, the median over new processes of three fits: without cached programs ("cold"), with the programs that an
earlier process cached ("cached"), and a second fit in that process ("again"). Beside them, in the same run, an MLPClassifier
and a grid of nine, on standardized inputs. Imports take the same for all and are reported apart.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

OURS = ("TunnelClassifier", "TunnelClassifierCV", "BuddingClassifier", "BuddingClassifierCV")
PEERS = ("mlp", "mlp-grid")


def model(name: str) -> Any:
    if name in OURS:
        import meristem

        return getattr(meristem, name)(random_state=0)
    from sklearn.model_selection import GridSearchCV
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    plain = Pipeline([("scale", StandardScaler()), ("mlp", MLPClassifier(random_state=0))])
    grid = {"mlp__hidden_layer_sizes": [(10,), (100,), (100, 100)], "mlp__alpha": [1e-4, 1e-2, 1.0]}
    return plain if name == "mlp" else GridSearchCV(plain, grid, cv=3)


def child(name: str) -> None:
    """Fit twice in this process; prints the seconds of the imports and of both fits."""
    import warnings

    begin = time.perf_counter()
    from sklearn.datasets import load_wine

    unfitted = model(name)
    X, y = load_wine(return_X_y=True)
    times = [time.perf_counter() - begin]
    warnings.simplefilter("ignore")
    for _ in range(2):
        begin = time.perf_counter()
        unfitted.fit(X, y)
        times.append(time.perf_counter() - begin)
    print(json.dumps(times))


def measured(name: str, cache: str) -> list[float]:
    """Return the seconds of imports, first and second fit in a new process."""
    command = [sys.executable, __file__, "--child", name]
    done = subprocess.run(command, env=os.environ | {"MERISTEM_CACHE": cache}, check=True, capture_output=True, text=True)
    return list(json.loads(done.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--child", choices=[*OURS, *PEERS])
    given = parser.parse_args()
    if given.child:
        child(given.child)
        return
    seconds: dict[str, dict[str, list[float]]] = {}
    for _ in range(given.repeats):
        for name in (*OURS, *PEERS):
            own = seconds.setdefault(name, {"import": [], "cold": [], "cached": [], "again": []})
            with tempfile.TemporaryDirectory() as cache:
                kinds = ("cold", "cached") if name in OURS else ("cached",)
                for kind in kinds:
                    imports, first, again = measured(name, cache)
                    own[kind].append(first)
                own["import"].append(imports)
                own["again"].append(again)
    record = {
        name: {kind: round(statistics.median(values), 3) for kind, values in own.items() if values}
        for name, own in seconds.items()
    }
    for name, own in record.items():
        print(f"{name:20}", "  ".join(f"{kind} {value:.2f} s" for kind, value in own.items()))
    if given.out:
        given.out.write_text(json.dumps({"repeats": given.repeats, "data": "wine", "median seconds": record}, indent=1) + "\n")


if __name__ == "__main__":
    main()
