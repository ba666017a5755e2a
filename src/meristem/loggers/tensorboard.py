"""A logger that writes an event file for TensorBoard: a scalar for every measure of an epoch, the epoch as its step.

    loss/0, dev_error/0, soft_size/0, …         of member 0
    layer_sizes/0/1                             of its first layer
    train/loss/0                                in a part of a fit that trains more than once: an estimator's "train", "replay"

tensorboardX (the extra `tensorboard`) is imported when a logger is made. The file is opened at the first epoch and flushed
after each; a copy of a logger opens another.
"""

import os
import threading
import weakref
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from meristem.train.callbacks import FunctionWatcher, Watcher
from meristem.train.train_state import EpochInfo


class TensorBoard(Watcher, AbstractContextManager["TensorBoard"]):
    """Log to a folder, which is made; closed by `close()`, by `with`, or when it is garbage-collected."""

    def __init__(self, folder: str | os.PathLike[str]):
        try:
            import tensorboardX  # noqa: F401
        except ImportError as error:
            raise ImportError("TensorBoard needs tensorboardX: pip install 'meristem-nn[tensorboard]'") from error
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"TensorBoard({os.fspath(folder)!r}): that is a file; give a folder.")
        self._writer: Any = None
        self._close: Any = None
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
            if self._close is not None:
                self._close()
            self._writer = self._close = None

    def part(self, name: str) -> Watcher:
        return FunctionWatcher(lambda member, info: self.epoch(member, info, f"{name}/"))

    def epoch(self, member: int, info: EpochInfo, prefix: str = "") -> bool:
        """Write the scalars of an epoch under tags with this prefix."""
        with self._lock:
            if self._writer is None:
                from tensorboardX import SummaryWriter

                self._writer = SummaryWriter(str(self.folder))
                self._close = weakref.finalize(self, self._writer.close)
            for name in info.keys():  # noqa: SIM118
                values, tag = np.asarray(info[name], float), f"{prefix}{name}/{member}"
                tags = [tag] if values.ndim == 0 else [f"{tag}/{place + 1}" for place in range(values.size)]
                for tag, value in zip(tags, values.ravel().tolist(), strict=True):
                    self._writer.add_scalar(tag, value, int(info.epoch))
            self._writer.flush()
        return False
