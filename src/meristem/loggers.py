"""Loggers: watchers that write the measures of each epoch, for `fit(…, watch=…)` and the estimators' `callbacks=`.

    JSONLines("run.jsonl")      {"group": "fit", "member": 0, "epoch": 12, "dev_error": 0.01, …, "layer_sizes": [3.1, 0.0], …}
    TensorBoard("logs")         scalars loss/0, dev_error/0, … of member 0, layer_sizes/0/1 of its first layer

A part of a fit that trains more than once (an estimator's "train", "search", "replay") is the "group" of its lines and begins
the tags of its scalars: train/loss/0. A logger has no open file that a copy would share: scikit-learn clones and pickles
estimators with their callbacks.
"""

import os
import threading
import warnings
import weakref
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from meristem.folders.epoch_lines import EpochLineWatcher
from meristem.train.callbacks import FunctionWatcher, Watcher
from meristem.train.train_state import EpochInfo


class JSONLines(EpochLineWatcher):
    """Log to a file, which is made, in a folder that exists; a full disk is a warning and does not end the training.

    Each line is one write, so that several threads may log.

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


class TensorBoard(Watcher, AbstractContextManager["TensorBoard"]):
    """Log to an event file (tensorboardX, the extra `tensorboard`) in a folder, which is made.

    The file is opened at the first epoch, flushed after each, and closed by `close()`, by `with`, or when the logger is
    garbage-collected; a copy of a logger opens another.
    """

    def __init__(self, folder: str | os.PathLike[str]):
        try:
            import tensorboardX  # noqa: F401
        except ImportError as error:
            raise ImportError("TensorBoard needs tensorboardX: pip install 'meristem-nn[tensorboard]'") from error
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"TensorBoard({os.fspath(folder)!r}): that is a file; give a folder.")
        self._writer: Any = None
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"TensorBoard({str(self.folder)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.folder,)

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; a later epoch opens another."""
        with self._lock:
            if self._writer is not None:
                self._writer.close()
            self._writer = None

    def part(self, name: str) -> Watcher:
        return FunctionWatcher(lambda member, info: self.epoch(member, info, f"{name}/"))

    def epoch(self, member: int, info: EpochInfo, prefix: str = "") -> bool:
        """Write the scalars of an epoch under tags with this prefix."""
        with self._lock:
            if self._writer is None:
                from tensorboardX import SummaryWriter

                self._writer = SummaryWriter(str(self.folder))
                weakref.finalize(self, self._writer.close)  # closing twice does nothing
            for name in info.keys():  # noqa: SIM118
                values, tag = np.asarray(info[name], float), f"{prefix}{name}/{member}"
                tags = [tag] if values.ndim == 0 else [f"{tag}/{place + 1}" for place in range(values.size)]
                for tag, value in zip(tags, values.ravel().tolist(), strict=True):
                    self._writer.add_scalar(tag, value, int(info.epoch))
            self._writer.flush()
        return False
