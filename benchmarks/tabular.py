"""Real tables: our estimators beside MLPs, gradient boosting, RealMLP, TabM and linear models, on the same splits.

    python benchmarks/tabular.py run --data tables.npz --out DIR --splits 3 --processes 2 [--models tunnel,mlp,…] [--limit 600]
    python benchmarks/tabular.py show --out DIR

A split is 75 : 25 of at most 6,000 rows. All models of one table and split are fitted back to back by one process, on one core,
and each is a line of OUT/runs.jsonl at once; what is there is not fitted again. `show` prints mean ranks (1 is best;
by accuracy or R², and by log-loss), what is shipped, times relative to the grid of MLPs, and on how many tables a default is
clearly behind the better of a default MLP and a linear model, and writes OUT/summary.json.

Targets of the MLPs and of ridge regression are standardized, inputs of all but boosting are. RealMLP and TabM (pytabkit) are
left out where they are not installed; in an environment of their own the same command adds them to the same file. With
`--device cuda` they are trained there, which their lines say: such times are compared with nobody's.
"""

import argparse
import json
import os
import statistics
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

ROWS = 6000
GRIDS: dict[str, dict[str, list[Any]]] = {
    "mlp-grid": {"hidden_layer_sizes": [(10,), (100,), (100, 100)], "alpha": [1e-4, 1e-2, 1.0]},
    "boosting-grid": {"learning_rate": [0.03, 0.1, 0.3], "max_leaf_nodes": [7, 15, 31]},
}
CHOICES = {"mlp-grid": 2, "boosting-grid": 2}  # settings of which a person had to say what to try; of all others none
OURS = (
    "tunnel",
    "budding",
    "tunnel-cv",
    "budding-cv",
    "tunnel-cv-one",
    "budding-cv-one",
    "tunnel-cv-distill",
    "budding-cv-distill",
)
PEERS = ("linear", "mlp", "mlp-grid", "boosting", "boosting-grid", "realmlp", "tabm")
PYTABKIT = {"realmlp": "RealMLP_TD", "tabm": "TabM_D"}
SINGLE = ("tunnel", "budding", "mlp", "boosting", "linear", "realmlp", "tabm")  # one model at its defaults


def peer(name: str, is_classes: bool, seed: int, device: str) -> Any:
    """A model that is not ours, ready to be fitted."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.model_selection import GridSearchCV
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    if name in PYTABKIT:
        import pytabkit

        kind = getattr(pytabkit, f"{PYTABKIT[name]}_{'Classifier' if is_classes else 'Regressor'}")
        return kind(random_state=seed, device=device, n_threads=1)
    if name.startswith("boosting"):
        model: Any = (HistGradientBoostingClassifier if is_classes else HistGradientBoostingRegressor)(random_state=seed)
        return GridSearchCV(model, GRIDS[name], cv=3) if name in GRIDS else model
    if name == "linear":
        model = LogisticRegression(max_iter=1000) if is_classes else Ridge()
    else:
        model = (MLPClassifier if is_classes else MLPRegressor)(random_state=seed)
    model = Pipeline([("scale", StandardScaler()), ("model", model)])
    if name in GRIDS:
        model = GridSearchCV(model, {f"model__{key}": values for key, values in GRIDS[name].items()}, cv=3)
    return model if is_classes else TransformedTargetRegressor(model, transformer=StandardScaler())


def fits(names: list[str], is_classes: bool, seed: int, A: Any, a: Any, device: str) -> Any:
    """Each model after the other: its name, itself, the seconds that it took."""
    for name in names:
        model = peer(name, is_classes, seed, device) if name in PEERS else ours(name, is_classes, seed)
        begin = time.perf_counter()
        model.fit(A, a)
        yield name, model, time.perf_counter() - begin


def ours(name: str, is_classes: bool, seed: int) -> Any:
    """A model of ours: tunnel or budding; -cv the search with a bag, -cv-one the smallest that is as good, one network;
    -cv-distill one network that learned the answers of that setting's bag.

    Each does its own search: a bag may have networks of other settings, in place of those that failed in their fold.
    """
    import meristem  # not in the environment of RealMLP

    body, *rest = name.split("-")
    one: dict[str, Any] = {"rule": "1se", "refit": rest[1]} if rest[1:] else {}
    kind = f"{body.capitalize()}{'Classifier' if is_classes else 'Regressor'}{'CV' * bool(rest)}"
    return getattr(meristem, kind)(random_state=seed, **one)


def pin(number: Any) -> None:
    """A core for each process: threads of a search share it as the fits of a grid do."""
    if hasattr(os, "sched_setaffinity"):
        with number.get_lock():
            place, number.value = number.value, number.value + 1
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[place % len(cores)]})


def one_split(job: tuple[str, str, str, int, list[str], str]) -> None:
    """All models on one split of a table; each is a line as soon as it is fitted."""
    out, file, table, seed, names, device = job
    from sklearn.model_selection import train_test_split

    warnings.simplefilter("ignore")
    with np.load(file) as data:
        X, y = data[f"{table}.X"], data[f"{table}.y"]
    is_classes = not table.startswith("reg.")
    rows = np.random.default_rng(seed).permutation(len(X))[:ROWS]
    A, B, a, b = train_test_split(X[rows], y[rows], random_state=seed)
    for name, model, seconds in fits(names, is_classes, seed, A, a, device):
        record = {"table": table, "split": seed, "model": name, "rows": len(A), "test_rows": len(B)}
        record |= {"score": float(model.score(B, b)), "seconds": round(seconds, 3), "parameters": parameters(model)}
        record |= {"log_loss": log_loss(model, B, b) if is_classes else None} | choice(model)
        record |= {"device": device} if name in PYTABKIT and device != "cpu" else {}
        with open(out, "a") as lines:  # a line is written whole, whoever else writes
            lines.write(json.dumps(record) + "\n")


def log_loss(model: Any, X: Any, y: Any) -> float:
    """The mean of −log p; a class that was never seen has a probability of 1e-7."""
    said = dict(zip(model.classes_.tolist(), np.clip(model.predict_proba(X), 1e-7, 1).T, strict=True))
    never = np.full(len(X), 1e-7)
    return float(-np.mean([np.log(said.get(label, never)[row]) for row, label in enumerate(y.tolist())]))


def parameters(model: Any) -> int | None:
    """Of what is shipped: ours count themselves, weights and biases of an MLP or a linear model; None of others."""
    if hasattr(model, "n_parameters_"):
        return int(model.n_parameters_)
    for inner in ("regressor_", "best_estimator_", "named_steps"):
        model = getattr(model, inner, model)
    model = model["model"] if isinstance(model, dict) or hasattr(model, "keys") else model
    if hasattr(model, "coefs_"):
        return int(sum(part.size for part in [*model.coefs_, *model.intercepts_]))
    return int(model.coef_.size + np.size(model.intercept_)) if hasattr(model, "coef_") else None


def choice(model: Any) -> dict[str, Any]:
    """What was chosen by a search."""
    if hasattr(model, "path_"):
        chosen = {"penalty": model.penalty_, "l2": model.l2_, "input_dropout": model.input_dropout_}
        return {"chosen": chosen | {"penalty_1se": model.penalty_1se_, "epochs": int(model.path_.table["epochs"].sum())}}
    best = getattr(getattr(model, "regressor_", model), "best_params_", None)
    return {} if best is None else {"chosen": {key.removeprefix("model__"): value for key, value in best.items()}}


def ranks(scores: dict[str, float]) -> dict[str, float]:
    """1 is best; ties share."""
    return {
        name: 1 + sum(other > score for other in scores.values()) + (sum(o == score for o in scores.values()) - 1) / 2
        for name, score in scores.items()
    }


def mean_ranks(runs: list[dict[str, Any]], key: Callable[[dict[str, Any]], float | None], names: list[str]) -> dict[str, float]:
    """Over tables; a table's value is the mean over its splits. Tables that lack a model do not count."""
    values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        if run["model"] in names and (value := key(run)) is not None:
            values[run["table"]][run["model"]].append(value)
    tables = [{n: statistics.mean(v) for n, v in by.items()} for by in values.values() if set(by) == set(names)]
    placed = [ranks(table) for table in tables]
    return {name: statistics.mean(place[name] for place in placed) for name in names} if placed else {}


def behind(runs: list[dict[str, Any]], name: str) -> list[str]:
    """Tables on which a model is behind the better of a default MLP and a linear model by 0.02 and by one standard error."""
    cells = {(run["table"], run["split"], run["model"]): run["score"] for run in runs}
    tables = []
    for table in sorted({run["table"] for run in runs}):
        splits = sorted({run["split"] for run in runs if run["table"] == table and run["model"] == name})
        gaps = {}
        for other in ("mlp", "linear"):
            gaps[other] = [cells[table, s, other] - cells[table, s, name] for s in splits if (table, s, other) in cells]
        best = max(gaps.values(), key=lambda gap: statistics.mean(gap) if gap else -1)
        error = statistics.stdev(best) / len(best) ** 0.5 if len(best) > 1 else 0.0
        if best and statistics.mean(best) > max(0.02, error):
            tables.append(table)
    return tables


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """By model: ranks, means, medians."""
    names = [name for name in (*OURS, *PEERS) if any(run["model"] == name for run in runs)]
    by_score = mean_ranks(runs, lambda run: max(run["score"], -1.0), names)
    by_loss = mean_ranks(runs, lambda run: None if run["log_loss"] is None else -run["log_loss"], names)
    single = mean_ranks(runs, lambda run: max(run["score"], -1.0), [name for name in SINGLE if name in names])
    grid = {(run["table"], run["split"]): run["seconds"] for run in runs if run["model"] == "mlp-grid"}
    found = {}
    for name in names:
        own = [run for run in runs if run["model"] == name]
        sizes = [run["parameters"] for run in own if run["parameters"] is not None]
        timed = [run for run in own if "device" not in run]
        ratios = [run["seconds"] / grid[key] for run in timed if (key := (run["table"], run["split"])) in grid]
        found[name] = {
            "rank": by_score.get(name),
            "log_loss_rank": by_loss.get(name),
            "rank_of_single_defaults": single.get(name),
            "score": statistics.mean(max(run["score"], -1.0) for run in own),
            "parameters": statistics.median(sizes) if sizes else None,
            "seconds": statistics.median(run["seconds"] for run in timed) if timed else None,
            "time_of_grid": statistics.median(ratios) if ratios else None,
            "total_time_of_grid": sum(run["seconds"] for run in timed) / sum(grid.values()) if grid and timed else None,
            "settings_to_choose": CHOICES.get(name, 0),
            "behind": behind(runs, name) if name in SINGLE else None,
            "fits": len(own),
        }
    return found


def show(out: Path) -> None:
    runs = [json.loads(line) for line in (out / "runs.jsonl").read_text().splitlines()]
    found = summary(runs)

    def cell(value: Any, digits: int = 2) -> str:
        return "–" if value is None else f"{value:,.{digits}f}"

    print(f"{len({run['table'] for run in runs})} tables, {len(runs)} fits")
    heads = ["rank", "log-loss", "defaults", "score", "parameters", "seconds", "× grid", "chosen", "behind"]
    print(f"{'model':16}" + "".join(f"{head:>11}" for head in heads))
    for name, one in sorted(found.items(), key=lambda pair: pair[1]["rank"] or 99):
        cells = [cell(one["rank"]), cell(one["log_loss_rank"]), cell(one["rank_of_single_defaults"]), cell(one["score"], 4)]
        cells += [cell(one["parameters"], 0), cell(one["seconds"]), cell(one["time_of_grid"]), str(one["settings_to_choose"])]
        cells += ["–" if one["behind"] is None else str(len(one["behind"]))]
        print(f"{name:16}" + "".join(f"{text:>11}" for text in cells))
    (out / "summary.json").write_text(json.dumps(found, indent=1) + "\n")


def run(given: argparse.Namespace) -> None:
    with np.load(given.data) as data:
        tables = [name.removesuffix(".X") for name in data.files if name.endswith(".X")]
        size = {name: min(data[f"{name}.X"].shape[0], ROWS) * data[f"{name}.X"].shape[1] for name in tables}
    tables = sorted(
        (name for name in tables if not given.tables or name in given.tables.split(",")), key=lambda name: -size[name]
    )
    wanted = given.models.split(",") if given.models else [*OURS, *PEERS]
    wanted = [name for name in wanted if name not in PYTABKIT or find_spec("pytabkit") is not None]
    given.out.mkdir(parents=True, exist_ok=True)
    file, begin = given.out / "runs.jsonl", time.perf_counter()
    known = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    done = {(one["table"], one["split"], one["model"]) for one in known}
    jobs = [
        (str(file), str(given.data), table, split, missing, given.device)
        for table in tables  # the largest first: what is left for the end is quick
        for split in range(given.first_split, given.first_split + given.splits)
        if (missing := [name for name in wanted if (table, split, name) not in done])
    ]
    # Before the processes begin: a library of linear algebra takes its number of threads when it is imported.
    os.environ |= {"JAX_PLATFORMS": "cpu", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    context = get_context("spawn")
    cores = {"initializer": pin, "initargs": (context.Value("i", 0),)}
    with ProcessPoolExecutor(given.processes, mp_context=context, **cores) as pool:
        futures = {pool.submit(one_split, job): job for job in jobs}
        try:
            for number, future in enumerate(as_completed(futures, timeout=given.limit), 1):
                future.result()
                took = time.perf_counter() - begin
                left = took / number * (len(jobs) - number)
                print(f"{number} of {len(jobs)}: {futures[future][2]}, about {left / 60:.0f} min left", flush=True)
        except TimeoutError:
            print(f"{given.limit:.0f} s are over; the same command goes on", flush=True)
            for process in list(pool._processes.values()):
                process.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["run", "show"])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--first-split", type=int, default=0)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--models", default="", help=f"with commas, of {', '.join((*OURS, *PEERS))}")
    parser.add_argument("--tables", default="")
    parser.add_argument("--device", default="cpu", help="where RealMLP and TabM are trained: cpu or cuda")
    parser.add_argument("--limit", type=float, default=None, help="seconds after which it ends; what is done is kept")
    given = parser.parse_args()
    if given.what == "run":
        run(given)
    show(given.out)


if __name__ == "__main__":
    main()
