"""Are the defaults good? The estimators against scikit-learn's MLP and a linear model, on the same splits of many data sets.

    python benchmarks/estimators.py --data DIR --json results/estimators/summary.json --table results/estimators/table.md
    python benchmarks/estimators.py --sets digits,moons --models tunnel --splits 3 --first 100 --params penalty=1e-4

Every model is its constructor's defaults and a seed; the rivals get standardized features, ours standardize by themselves.
Scores: accuracy for classes, R² for numbers, macro-F1 for labels (subset accuracy and Hamming accuracy are recorded beside
it: the first rewards caution where labels are many, the second is above 0.99 for a model that says no to everything on
corel5k). A rank is among one of ours and the two rivals, split by split, ties shared. The gap is that to the better rival's
mean: positive is ahead.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # scikit-learn's matrices are small: more threads only wait for one another

import argparse
import json
import platform
import sys
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np
from scipy.stats import rankdata
from sklearn.exceptions import ConvergenceWarning, UndefinedMetricWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, f1_score, r2_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from estimator_sets import LISTED, OTHERS, SETS, Split, load

OURS, RIVALS = ["tunnel", "budding"], ["mlp", "linear"]


def make(model: str, kind: str, seed: int, params: dict[str, Any]) -> Any:
    """A model with its defaults; `params` are for ours alone."""
    if model in RIVALS:
        rivals = {
            ("mlp", "numbers"): lambda: MLPRegressor(random_state=seed),
            ("linear", "numbers"): Ridge,
            ("linear", "classes"): lambda: LogisticRegression(max_iter=1000),
            ("linear", "labels"): lambda: OneVsRestClassifier(LogisticRegression(max_iter=1000)),
        }
        return make_pipeline(StandardScaler(), rivals.get((model, kind), lambda: MLPClassifier(random_state=seed))())
    from meristem import estimators

    name = model.capitalize() + ("Regressor" if kind == "numbers" else "Classifier")
    return getattr(estimators, name)(random_state=seed, **params)


def judge(kind: str, y: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """The scores, the one that counts first."""
    if kind == "numbers":
        return {"r2": r2_score(y, predicted)}
    if kind == "classes":
        return {"accuracy": accuracy_score(y, predicted)}
    there = y.any(0)  # a label without a positive among these rows has no F1
    return {
        "macro_f1": f1_score(y[:, there], predicted[:, there], average="macro", zero_division=0),
        "subset_accuracy": accuracy_score(y, predicted),
        "hamming_accuracy": float((y == predicted).mean()),
    }


def run(model: str, kind: str, split: Split, seed: int, params: dict[str, Any]) -> dict[str, Any]:
    """One fit, judged."""
    estimator = make(model, kind, seed, params)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        warnings.filterwarnings("ignore", message="Label .* is present in")
        warnings.simplefilter("ignore", UserWarning)
        begin = time.perf_counter()
        estimator.fit(split.x, split.y)
        seconds = time.perf_counter() - begin
        scores = judge(kind, split.test_y, estimator.predict(split.test_x))
    grown = {}
    if model in OURS:
        grown = {
            "soft_size": estimator.soft_size_,
            "live_units": estimator.n_live_units_,
            "parameters": sum(a.size for a in jax.tree.leaves(estimator.compact()) if hasattr(a, "size")),
            "epochs": estimator.n_iter_,
            "best_epoch": estimator.best_epoch_,
        }
    elif model == "mlp":
        mlp = estimator[-1]
        grown = {"parameters": sum(w.size for w in mlp.coefs_ + mlp.intercepts_), "epochs": mlp.n_iter_}
    return {"seed": seed, **scores, "seconds": seconds, **grown}


def summarize(runs: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Means, deviations, ranks and gaps of one data set. The first fit of ours compiles; its time is kept apart."""
    key = next(iter(k for k in runs[next(iter(runs))][0] if k != "seed"))
    scores = {model: np.array([r[key] for r in rows]) for model, rows in runs.items()}
    rivals = [model for model in RIVALS if model in runs]
    summary = {}
    for model, rows in runs.items():
        seconds = [r["seconds"] for r in rows]
        one = {"score": key, "mean": scores[model].mean(), "sd": scores[model].std(), "first_fit_seconds": seconds[0]}
        one["fit_seconds"] = float(np.median(seconds[1:] or seconds))
        for name in [k for k in rows[0] if k not in ("seed", "seconds", key)]:
            one[name] = float(np.mean([r[name] for r in rows]))
        if model in OURS and rivals:
            ranks = np.array([rankdata([-scores[m][i] for m in [model, *rivals]]) for i in range(len(rows))]).mean(0)
            one["ranks"] = dict(zip([model, *rivals], ranks.tolist(), strict=True))
            one["gap"] = one["mean"] - max(scores[m].mean() for m in rivals)
        summary[model] = one
    return summary


def overall(summaries: dict[str, Any]) -> dict[str, Any]:
    """Mean ranks over data sets, and the largest lag."""
    result = {}
    for model in OURS:
        ranked = {name: s[model] for name, s in summaries.items() if "ranks" in s.get(model, {})}
        if ranked:
            last = min(ranked, key=lambda name: ranked[name]["gap"])
            names = next(iter(ranked.values()))["ranks"]
            ranks = {m: float(np.mean([one["ranks"][m] for one in ranked.values()])) for m in names}
            result[model] = {"mean_rank": ranks, "worst_gap": ranked[last]["gap"], "worst_set": last}
    return result


def table(summaries: dict[str, Any], splits: int) -> str:
    """Markdown: a line per data set and model, over so many splits."""
    lines = [
        "| data | score | model | mean ± sd | rank | gap | fit, s | soft size | parameters |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, models in summaries.items():
        for i, (model, one) in enumerate(models.items()):
            head = f"| {name} | {one['score']} " if i == 0 else "| | "
            cells = [
                model,
                f"{one['mean']:.3f} ± {one['sd']:.3f}",
                f"{one['ranks'][model]:.1f}" if "ranks" in one else "",
                f"{one['gap']:+.3f}" if "gap" in one else "",
                f"{one['fit_seconds']:.2f}",
                f"{one['soft_size']:.1f}" if "soft_size" in one else "",
                f"{one['parameters']:.0f}" if "parameters" in one else "",
            ]
            lines.append(f"{head}| " + " | ".join(cells) + " |")
    for one in overall(summaries).values():
        ranks = ", ".join(f"{m} {rank:.2f}" for m, rank in one["mean_rank"].items())
        lines += ["", f"Mean ranks: {ranks}. Furthest behind the better rival: {one['worst_gap']:+.3f} on {one['worst_set']}."]
    return "\n".join([f"{splits} splits", "", *lines]) + "\n"


def compare(
    sets: list[str], models: list[str], splits: range, params: dict[str, Any], data: Path | None, tell: Callable[[str], None]
) -> dict[str, Any]:
    """All runs: data set → model → one entry per split."""
    total, done, begin, runs = len(splits) * len(sets) * len(models), 0, time.monotonic(), {}
    for name in sets:
        runs[name] = {model: [] for model in models}
        for seed in splits:
            split = load(name, seed, data)
            for model in models:
                one = run(model, SETS[name].kind, split, seed, params.get(model, {}))
                runs[name][model].append(one)
                done += 1
                left = (time.monotonic() - begin) / done * (total - done)
                shown = ", ".join(f"{k} {v:.3f}" for k, v in one.items() if isinstance(v, float) and k != "seconds")
                where = f"{done}/{total}  {name}, split {seed}, {model}"
                tell(f"{where}: {shown}, {one['seconds']:.1f} s; about {left / 60:.0f} min left")
    return runs


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", default="listed", help="names with commas between them, or 'listed', 'others', 'all'")
    parser.add_argument("--models", default=",".join(OURS + RIVALS), help=f"of {', '.join(OURS + RIVALS)}")
    parser.add_argument("--splits", type=int, default=10, help="how many (10)")
    parser.add_argument("--first", type=int, default=0, help="the seed of the first split (0); a search should use others")
    parser.add_argument("--params", nargs="*", default=[], metavar="KEY=VALUE", help="for ours, or tunnel.KEY=VALUE for one")
    parser.add_argument("--data", type=Path, default=os.environ.get("MERISTEM_DATA"), help="folder with multilabel/*.npz")
    parser.add_argument("--json", type=Path, help="where to write every run")
    parser.add_argument("--table", type=Path, help="where to write the table")
    args = parser.parse_args(argv)
    groups = {"listed": list(LISTED), "others": list(OTHERS), "all": list(SETS)}
    args.sets = groups.get(args.sets) or args.sets.split(",")
    args.models = args.models.split(",")
    for what, given, known in [("sets", args.sets, list(SETS)), ("models", args.models, OURS + RIVALS)]:
        if unknown := [name for name in given if name not in known]:
            parser.error(f"--{what}: {unknown[0]!r} is not one of {', '.join(known)}.")
    args.data = Path(args.data) if args.data else None
    try:
        args.params = parameters(args.params)
    except ValueError as error:
        parser.error(str(error))
    return args


def parameters(pairs: list[str]) -> dict[str, dict[str, Any]]:
    """Overrides by model; a value is JSON if it can be read so, else text.

    >>> parameters(["width=32", "tunnel.penalty=1e-4"])
    {'tunnel': {'width': 32, 'penalty': 0.0001}, 'budding': {'width': 32}}
    """
    chosen: dict[str, dict[str, Any]] = {model: {} for model in OURS}
    for pair in pairs:
        key, is_pair, text = pair.partition("=")
        if not is_pair:
            raise ValueError(f"--params {pair!r} is not KEY=VALUE.")
        try:
            value = json.loads(text)
        except json.JSONDecodeError:
            value = text
        owner, _, name = key.rpartition(".")
        if owner and owner not in OURS:
            raise ValueError(f"--params {pair!r}: {owner!r} is not one of {', '.join(OURS)}.")
        for model in [owner] if owner else OURS:
            chosen[model][name] = value
    return chosen


def defaults() -> dict[str, Any]:
    """The parameters of ours as they stand."""
    from meristem import estimators

    names = [f"{model.capitalize()}{kind}" for model in OURS for kind in ("Classifier", "Regressor")]
    return {name: getattr(estimators, name)().get_params() for name in names}


def main(argv: list[str] | None = None) -> int:
    args = parse(argv)
    splits = range(args.first, args.first + args.splits)
    runs = compare(
        args.sets, args.models, splits, args.params, args.data, lambda line: print(line, file=sys.stderr, flush=True)
    )
    summaries = {name: summarize(models) for name, models in runs.items()}
    text = table(summaries, args.splits)
    print(text)
    if args.table:
        args.table.parent.mkdir(parents=True, exist_ok=True)
        args.table.write_text(text)
    if args.json:
        packages = ["jax", "numpy", "scikit-learn"]
        record = {
            "command": "python benchmarks/estimators.py " + " ".join(argv if argv is not None else sys.argv[1:]),
            "machine": {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()},
            "versions": {"python": platform.python_version(), **{name: version(name) for name in packages}},
            "params": args.params,
            "defaults": defaults(),
            "overall": overall(summaries),
            "summary": summaries,
            "runs": runs,
        }
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps(record, indent=1, default=float) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
