"""Flash, memory and scores of the C files of small networks on tables, in float and in 8 bits.

    python benchmarks/c_export.py --data tables.npz --cache FOLDER --out results/c-export.json [--splits 10] [bin.pima …]

Without names all tables. Flash is that of the linked image for a Cortex-M4F with -Os less an empty program (arm-none-eabi-gcc),
stack what a call overwrites under QEMU in some of the test rows, each with the bound that the file states; scores are on the
test rows, which the C file predicts on this machine. With several splits a network is trained for each; a record holds them and
the mean of int8 less float. Fitted models are kept in the folder.
"""

import argparse
import json
import re
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import train_test_split

import meristem

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from c_devices import run_cortex_m4
from c_programs import image, run_c

ROWS, FOLDS, TRIED = 2500, 3, 20


def measured(data: Path, table: str, split: int, cache: Path) -> dict[str, Any]:
    """One split of a table: sizes, flash, stack and scores of its network."""
    with np.load(data) as arrays:
        X, y = arrays[f"{table}.X"].astype(float), arrays[f"{table}.y"]
    is_classes = not table.startswith("reg.")
    rows = np.random.default_rng(split).permutation(len(X))[:ROWS]
    A, B, a, b = train_test_split(X[rows], y[rows], random_state=split)
    file = cache / f"{table}-{split}.safetensors"
    if not file.exists():
        estimator = meristem.TunnelClassifierCV if is_classes else meristem.TunnelRegressorCV
        estimator(rule="1se", refit="one", cv=FOLDS, random_state=split).fit(A, a).save(file)
    model = meristem.load(file)
    score = accuracy_score if is_classes else r2_score
    exact = float(score(b, model.predict(B)))
    result = {"table": table, "rows": len(A), "parameters": int(model.n_parameters_), "score": exact}
    for name, options in {"float": {}, "int8": {"bits": 8, "X": A}}.items():
        with tempfile.TemporaryDirectory() as folder:
            try:
                source = model.to_c(Path(folder) / "model.c", **options)
            except ValueError as error:  # a column that float cannot hold
                result[name] = {"refused": str(error)}
                continue
            flash, stack = (int(number.replace(",", "")) for number in re.findall(r"at most ([\d,]+) byte", source.read_text()))
            taken = {"flash": image(source)["flash"], "stack": run_cortex_m4(source, B[:TRIED]).stack}
            result[name] = taken | {"bound": flash, "stack_bound": stack}
            if name == "int8":
                returned, outputs = run_c(source, B)
                predicted = model.classes_[returned] if is_classes else outputs[:, 0]
                result[name] |= {"score": float(score(b, predicted))}
    return result


def over_splits(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The mean of int8 less float and its standard error, over the splits with both files; and every split."""
    differences = [run["int8"]["score"] - run["score"] for run in runs if "score" in run["int8"]]
    if not differences:
        return {"splits": runs}
    error = float(np.std(differences, ddof=1) / np.sqrt(len(differences))) if differences[1:] else None
    return {"n": len(differences), "int8_less_float": float(np.mean(differences)), "standard_error": error, "splits": runs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for flag in ("--data", "--cache", "--out"):
        parser.add_argument(flag, type=Path, required=True)
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("tables", nargs="*")
    options = parser.parse_args()
    with np.load(options.data) as arrays:
        names = options.tables or sorted({name[:-2] for name in arrays.files})
    warnings.simplefilter("ignore")
    options.cache.mkdir(parents=True, exist_ok=True)
    results = []
    for table in names:
        runs = [measured(options.data, table, split, options.cache) for split in range(options.splits)]
        results.append(runs[0] if len(runs) == 1 else {"table": table} | over_splits(runs))
        print(json.dumps(results[-1]), flush=True)
        files = f"--data tables.npz --cache FOLDER --out results/{options.out.name}"
        files += f" --splits {options.splits}" * (options.splits > 1)
        command = f"python benchmarks/c_export.py {files} {' '.join(options.tables)}".rstrip()
        record = {"command": command, "version": meristem.__version__, "folds": FOLDS, "tables": results}
        options.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
