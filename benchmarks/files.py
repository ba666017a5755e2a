"""What do true files cost? Saving with and without reading back, and loading against safetensors' own, in one run.

    saved      `save`, which reads back what it wrote, against the same without that
    loaded     `load` of a network of 100 MB against `safetensors.numpy.load_file` and one SHA-256 of the arrays' bytes

Prints a table. Status 1 if a requirement is missed.
"""

import argparse
import hashlib
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
from safetensors.numpy import load_file
from sklearn.datasets import load_iris

import meristem
import report
from meristem.compact.report import in_turns
from meristem.data.spirals import two_spirals
from meristem.files import document, file_kinds
from meristem.files.atomic_write import write_whole
from meristem.nn import Network
from report import Block, Result, compare

READING_BACK, LOADING = 2.0, 1.3  # times as long, at most


def things() -> dict[str, Any]:
    """What is saved: the small things that are saved often, and one of 100 MB."""
    small = Network.create("tunnel", 2, 1, depth=10, key=jax.random.key(0))
    knobs, recipe = meristem.Knobs(learning_rate=3e-3, penalty=1e-3), meristem.Recipe(batch_size=32)
    run, _ = meristem.advance(meristem.begin(small, recipe, knobs, jax.random.key(1)), two_spirals("difficult"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator = meristem.TunnelClassifier(max_epochs=2, random_state=0).fit(*load_iris(return_X_y=True))
    large = Network.create("tunnel", 100, 10, width=1000, depth=25, key=jax.random.key(0))
    return {"a small network": small, "a run": run, "an estimator": estimator, "a network of 100 MB": large}


def save_alone(path: Path, thing: Any) -> None:
    """`save` as it would be if nothing were read back."""
    kind = file_kinds.kind_of(thing)
    header, arrays = kind.pack(thing)
    write_whole(path, document.packed(kind.name, arrays, header))


def load_alone(path: Path) -> None:
    """The arrays as safetensors loads them, and one digest of their bytes."""
    digest = hashlib.sha256()
    for array in load_file(path).values():
        digest.update(array.reshape(-1).view(np.uint8).data)


def measure(repeats: int, folder: Path) -> list[Result]:
    """All results."""
    found, file = [], folder / "model.safetensors"
    for what, thing in things().items():
        saving: dict[str, Callable[[], Any]] = {
            "without": lambda thing=thing: save_alone(file, thing),
            "reading back": lambda thing=thing: meristem.save(file, thing),
        }
        found.append(compare("saved", what, in_turns(saving, repeats), READING_BACK, is_least=False))
    loading: dict[str, Callable[[], Any]] = {
        "safetensors": lambda: load_alone(file),
        "load": lambda: jax.block_until_ready(meristem.load(file)),
    }
    megabytes = file.stat().st_size / 1e6
    return [*found, compare("loaded", f"a network of {megabytes:.0f} MB", in_turns(loading, repeats), LOADING, is_least=False)]


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Times what makes files true: reading back, digests and checks. Takes about a minute.",
        epilog="example: python benchmarks/files.py --repeats 21 --out files.json",
    )
    parser.add_argument("--repeats", type=int, default=11, metavar="N", help="timings of each side; medians count (default 11)")
    parser.add_argument("--out", type=Path, metavar="FILE.json", help="write every timing here")
    parser.add_argument("--folder", type=Path, help="where the files are written (default: a temporary folder)")
    options = parser.parse_args()
    if options.repeats < 1:
        parser.error(f"--repeats {options.repeats} must be at least 1")
    load = report.load()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        results = measure(options.repeats, Path(folder))
    note = f"{options.repeats} timings of each side, in turns"
    return report.tell(results, BLOCKS, report.machine(load), [note], options.out)


BLOCKS = {
    "saved": Block("""\
Saving without and with reading back what was written: µs, median ± half the interquartile range."""),
    "loaded": Block("""\
Loading with safetensors alone and one SHA-256, and with `load`, which checks the digest and every number: µs, as above."""),
}


if __name__ == "__main__":
    sys.exit(main())
