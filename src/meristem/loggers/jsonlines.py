"""A logger that appends a JSON line for each epoch of each member, as in the folder of a run (folders/epoch_lines.py).

    {"group": "fit", "member": 0, "epoch": 12, "dev_error": 0.01, …, "layer_sizes": [3.1, 0.0], …}

"group" is the part of a fit that trains more than once: an estimator's "train", "search", "replay". Each line is one write, so
that several threads may log.
"""

import os
import warnings
from pathlib import Path

from meristem.folders.epoch_lines import EpochLineWatcher


class JSONLines(EpochLineWatcher):
    """Log to a file, which is made, in a folder that exists; a full disk is a warning and does not end the training.

    >>> logger = JSONLines("run.jsonl")         # fit(…, watch=logger), or TunnelClassifier(callbacks=logger)
    """

    def __init__(self, path: str | os.PathLike[str], group: str = "fit"):
        super().__init__(group)
        self.path = Path(path)
        if self.path.is_dir() or not self.path.absolute().parent.is_dir():
            raise ValueError(f"JSONLines({os.fspath(path)!r}): give the path of a file in a folder that exists.")

    def __repr__(self) -> str:
        return f"JSONLines({str(self.path)!r})"

    def append(self, line: bytes, epoch: int) -> None:
        try:
            with open(self.path, "ab", buffering=0) as file:
                file.write(line)
        except OSError as error:
            text = f"{str(self.path)!r} cannot be written ({error.strerror}); epoch {epoch} is not in it."
            warnings.warn(text, RuntimeWarning, stacklevel=3)
