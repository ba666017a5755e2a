"""A line of JSON for each epoch of each member, as in the folder of a run (folders/epochs.py).

    {"group": "fit", "member": 0, "epoch": 12, "dev_error": 0.01, …, "layer_sizes": [3.1, 0.0], …}

"group" is the part of a fit that trains more than once: an estimator's "train", "search", "replay". Lines are appended, each in
one piece, and are on their way to the disk when the epoch is over; members of a population may be told of by several threads.
"""

import os
import warnings
from pathlib import Path

import numpy as np

from meristem.folders.epochs import line_of
from meristem.train.callbacks import Watcher
from meristem.train.train_state import EpochInfo


class JSONLines(Watcher):
    """A logger into a file, which is made, in a folder that is there. A disk that is full is a warning, no end of the training.

    >>> import jax, json, tempfile
    >>> from meristem import fit
    >>> from meristem.data.spirals import two_spirals
    >>> from meristem.nn import Network
    >>> network = Network.create("tunnel", 2, 1, width=3, depth=2, key=jax.random.key(0))
    >>> given = {"learning_rate": 3e-3, "penalty": 1e-3, "key": jax.random.key(1), "max_epochs": 2}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = fit(network, two_spirals("easy"), **given, watch=JSONLines(f"{folder}/run.jsonl"))
    ...     lines = [json.loads(line) for line in Path(f"{folder}/run.jsonl").read_text().splitlines()]
    >>> [(line["member"], line["epoch"], len(line["layer_sizes"])) for line in lines]
    [(0, 1, 2), (0, 2, 2)]
    >>> [line["loss"] for line in lines] == run.history["loss"].tolist()
    True
    """

    def __init__(self, path: str | os.PathLike[str], group: str = "fit"):
        self.path, self.group = Path(path), group
        if self.path.is_dir() or not self.path.absolute().parent.is_dir():
            raise ValueError(f"JSONLines({os.fspath(path)!r}): give the path of a file in a folder that exists.")

    def __repr__(self) -> str:
        return f"JSONLines({str(self.path)!r})"

    def part(self, name: str) -> "JSONLines":
        return JSONLines(self.path, name)

    def epoch(self, member: int, info: EpochInfo) -> bool:
        """Append a line."""
        values = {name: np.asarray(info[name]) for name in info.keys() if name != "epoch"}  # noqa: SIM118
        line = line_of(self.group, member, int(info.epoch), values)
        try:
            with open(self.path, "ab", buffering=0) as file:
                file.write(line.encode() + b"\n")
        except OSError as error:
            warnings.warn(
                f"{str(self.path)!r} cannot be written ({error.strerror}); epoch {int(info.epoch)} is not in it.",
                RuntimeWarning,
                stacklevel=2,
            )
        return False
