"""Flash, memory and accuracy of the C files of networks on scikit-learn's digits as images of 8 × 8 bytes.

    python benchmarks/c_images.py --cache FOLDER --out results/c-images.json [--budget "8 KB"]

With a budget networks are trained within so many bytes of flash in eight bits. A stratified quarter is held out with each seed;
training rows set the ranges. Flash is that of the image linked for a Cortex-M4F with -Os less an empty program
(arm-none-eabi-gcc), stack the sum over all functions, the bound what the file says; test images are predicted by the C file on
this machine. Fitted models are kept in the folder.
"""

import argparse
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import meristem

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from c_programs import image, run_c

SEEDS, SETTING = (0, 1, 2), {"channels": (10, 20)}
VERSIONS = {"float": {}, "int8": {"bits": 8}, "int16": {"bits": 16}, "int8, no floating point": {"bits": 8, "numbers": "int"}}


def measured(seed: int, cache: Path, setting: dict[str, Any]) -> dict[str, Any]:
    """One seed: sizes, flash, stack and accuracy of its network."""
    X, y = load_digits(return_X_y=True)
    A, B, a, b = train_test_split(X.astype(np.uint8).reshape(-1, 8, 8), y, test_size=0.25, stratify=y, random_state=seed)
    file = cache / f"digits_{setting.get('budget', '').replace(' ', '')}_{seed}.safetensors"
    if not file.exists():
        meristem.TunnelImageClassifier(**setting, random_state=seed).fit(A, a).save(file)
    model = meristem.load(file)
    result = {"seed": seed, "test_images": len(B), "parameters": int(model.n_parameters_), "accuracy": model.score(B, b)}
    for name, options in VERSIONS.items():
        with tempfile.TemporaryDirectory() as folder:
            rows = {"X": A} if "bits" in options else {}
            source = model.to_c(Path(folder) / "digits.c", pixels="uint8", **options, **rows)
            returned, _ = run_c(source, B.reshape(len(B), -1))
            bound = re.search(r"flash: at most ([\d,]+)", source.read_text())
            assert bound is not None
            sizes = image(source) | {"flash_bound": int(bound[1].replace(",", ""))}
            same = float((model.classes_[returned] == model.predict(B)).mean())
            result[name] = sizes | {"accuracy": float((model.classes_[returned] == b).mean()), "same_class": same}
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for flag in ("--cache", "--out"):
        parser.add_argument(flag, type=Path, required=True)
    parser.add_argument("--budget", help="bytes of flash, such as '8 KB'")
    options = parser.parse_args()
    setting = SETTING | ({} if options.budget is None else {"budget": options.budget})
    options.cache.mkdir(parents=True, exist_ok=True)
    results = []
    for seed in SEEDS:
        results.append(measured(seed, options.cache, setting))
        print(json.dumps(results[-1]), flush=True)
        command = f"python benchmarks/c_images.py --cache FOLDER --out results/{options.out.name}"
        command += f" --budget '{options.budget}'" * (options.budget is not None)
        record = {"command": command, "version": meristem.__version__, "setting": setting, "seeds": results}
        options.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
