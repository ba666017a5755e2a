"""Accuracy against flash on small tables: networks of a search, and dense ones chosen by hand in C by emlearn and others.

    python benchmarks/c_chart.py --data tables.npz --peers PYTHON --onnx2c PROGRAM --cache FOLDER \
        --out results/c-chart.json --picture docs/devices-flash.png bin.haberman reg.wankara …

Ours: a search with `rule="1se", refit="one"` of few settings, in float and in 8 bits. By hand: one hidden layer of
scikit-learn's MLP on standardized columns, of 4, 8, 16 or 32 rectifiers, the fewest whose three folds are within one standard
error of the best; the scaling is part of its weights. Three splits, 75 : 25: means of scores, accuracy or R², on the test rows,
and of sizes. Flash is a linked image for a Cortex-M4F with -Os less an empty program; the stack of a call is measured under
QEMU. Tables in the record are not measured again; without tables: its picture.
"""

import argparse
import json
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor

import meristem
from meristem.pictures.figure_style import SERIES, STYLE, figure_grid

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from c_devices import run_cortex_m4
from c_peers import Dense, flash, programs
from c_programs import image, run_c

SEARCH = {"cv": 3, "rule": "1se", "refit": "one", "penalties": [1e-3, 1e-2], "l2s": [1e-4], "random_state": 0}
HIDDEN, FOLDS, SPLITS = (4, 8, 16, 32), 3, 3


def searched(A: np.ndarray, a: np.ndarray, B: np.ndarray, b: np.ndarray, file: Path, *, is_classes: bool) -> dict[str, Any]:
    """Return sizes and scores of a search's network; a fitted one is kept in the file."""
    if not file.exists():
        estimator = meristem.TunnelClassifierCV if is_classes else meristem.TunnelRegressorCV
        estimator(**SEARCH).fit(A, a).save(file)
    model, score = meristem.load(file), accuracy_score if is_classes else r2_score
    result: dict[str, Any] = {"parameters": int(model.n_parameters_)}
    for name, options in {"float": {}, "int8": {"bits": 8, "X": A}}.items():
        with tempfile.TemporaryDirectory() as folder:
            source = model.to_c(Path(folder) / "model.c", **options)
            returned, y = run_c(source, B)
            said = model.classes_[returned] if is_classes else y[:, 0]
            stack = run_cortex_m4(source, B[:20]).stack
            result[name] = {"flash": image(source)["flash"], "stack": stack, "score": float(score(b, said))}
    return result


def by_hand(A: np.ndarray, a: np.ndarray, B: np.ndarray, b: np.ndarray, *, is_classes: bool) -> tuple[Dense, dict[str, Any]]:
    """Return the layers of a dense network, scaling inside, and its size and score."""
    center, scale = A.mean(0), np.where(A.std(0) > 0, A.std(0), 1)
    middle, unit = (0.0, 1.0) if is_classes else (a.mean(), a.std())
    Z, z = (A - center) / scale, a if is_classes else (a - middle) / unit
    found = []
    for n in HIDDEN:
        mlp = (MLPClassifier if is_classes else MLPRegressor)(hidden_layer_sizes=(n,), max_iter=1000, random_state=0)
        scores = cross_val_score(mlp, Z, z, cv=FOLDS)
        found.append((scores.mean(), scores.std(ddof=1) / np.sqrt(FOLDS), mlp))
    best = max(found, key=lambda entry: entry[0])
    mlp = next(mlp for score, _, mlp in found if score >= best[0] - best[1]).fit(Z, z)
    said = mlp.predict((B - center) / scale)
    score = accuracy_score(b, said) if is_classes else r2_score(b, middle + unit * said)
    layers = [(w.T.astype(float), c.astype(float)) for w, c in zip(mlp.coefs_, mlp.intercepts_, strict=True)]
    (first, bias), (last, end) = layers
    layers = [(first / scale, bias - first @ (center / scale)), (last * unit, end * unit + middle)]
    size = sum(w.size + c.size for w, c in layers)
    return [(w.astype(np.float32), c.astype(np.float32)) for w, c in layers], {
        "hidden": mlp.hidden_layer_sizes[0],
        "parameters": size,
        "score": float(score),
    }


def measured(table: str, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """Return sizes and scores of one split."""
    with np.load(options.data) as arrays:
        X, y = arrays[f"{table}.X"].astype(float), arrays[f"{table}.y"]
    is_classes = not table.startswith("reg.")
    A, B, a, b = train_test_split(X, y if is_classes else y.astype(float).ravel(), random_state=seed)
    layers, hand = by_hand(A, a, B, b, is_classes=is_classes)
    with tempfile.TemporaryDirectory() as folder:
        others = programs(layers, Path(folder), options.peers, options.onnx2c, is_classes=is_classes)
        n_in, n_out = A.shape[1], max(len(layers[-1][1]), 2)
        hand["flash"] = {name: flash(program, n_in, n_out, Path(folder)) for name, program in others if name != "meristem"}
    ours = searched(A, a, B, b, options.cache / f"{table}-{seed}.safetensors", is_classes=is_classes)
    return {"meristem": ours, "by hand": hand}


def mean(splits: list[Any]) -> Any:
    """Return the means of equal documents of numbers."""
    if isinstance(splits[0], dict):
        return {name: mean([split[name] for split in splits]) for name in splits[0]}
    return round(float(np.mean(splits)), 4)


def picture(tables: list[dict[str, Any]], file: Path) -> None:
    """Draw a panel for each table: the score against flash."""
    blue, red, green, *_ = SERIES
    marks = {"emlearn": ("s", red), "onnx2c": ("^", green)}  # that of emx-onnx-cgen lies where that of onnx2c does
    figure, axes = figure_grid(2, 5, (2.3, 2.3), sharex=True)
    for ax, entry in zip(axes.flat, tables, strict=False):
        ours, hand = entry["meristem"], entry["by hand"]
        points = [(ours[kind]["flash"], ours[kind]["score"]) for kind in ("int8", "float")]
        ax.plot(*zip(*points, strict=True), color=blue, linewidth=1)
        ax.plot(*points[0], "o", color=blue, markersize=8, label="search, 8 bits")
        ax.plot(*points[1], "o", color=blue, markerfacecolor="white", markersize=8, label="search, float")
        for name, (mark, color) in marks.items():
            ax.plot(hand["flash"][name], hand["score"], mark, color=color, markersize=7, label=f"by hand, {name}")
        kind = "R²" if entry["table"].startswith("reg.") else "accuracy"
        ax.set_title(f"{entry['table'].split('.')[1]}, {kind}", fontsize=10)
        scores = [score for _, score in points] + [hand["score"]]
        middle, half = (max(scores) + min(scores)) / 2, max(max(scores) - min(scores), 0.04)
        ax.set(xscale="log", xlim=(350, 14000), ylim=(middle - half, min(middle + half, 1.004)))
        ax.set_xticks([500, 1000, 2000, 5000, 10000], ["0.5", "1", "2", "5", "10"])
        ax.minorticks_off()
        ax.grid(color="#e6e6e6")
        ax.tick_params(labelsize=8)
        ax.spines[["top", "right"]].set_visible(False)
    figure.supxlabel("flash of the linked image, kB (Cortex-M4F, -Os)", fontsize=10)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False, fontsize=10)
    figure.savefig(file, dpi=110, facecolor="white")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for flag in ("--data", "--peers", "--onnx2c", "--cache", "--picture"):
        parser.add_argument(flag, type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("tables", nargs="*")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    results, known = [], json.loads(options.out.read_text())["tables"] if options.out.exists() else []
    for table in options.tables:
        options.cache.mkdir(parents=True, exist_ok=True)
        entry = next((entry for entry in known if entry["table"] == table), None)
        if entry is None:
            splits = [measured(table, seed, options) for seed in range(SPLITS)]
            entry = {"table": table, **mean(splits), "splits": splits}
        results.append(entry)
        print(table, entry["meristem"], entry["by hand"], flush=True)
        files = f"--data tables.npz --peers PYTHON --onnx2c PROGRAM --cache FOLDER --out results/{options.out.name}"
        command = f"python benchmarks/c_chart.py {files} {' '.join(options.tables)}"
        record = {"command": command, "version": meristem.__version__, "search": SEARCH, "tables": results}
        options.out.write_text(json.dumps(record, indent=1) + "\n")
    if options.picture is not None:
        with rc_context(STYLE):
            picture(json.loads(options.out.read_text())["tables"], options.picture)


if __name__ == "__main__":
    main()
