"""An event file for TensorBoard: a scalar for everything that an epoch says, its step the epoch.

    loss/0, dev_error/0, soft_size/0, …         of member 0
    layer_sizes/0/1                             of its first layer
    train/loss/0                                in a part of a fit that trains more than once: an estimator's "train", "replay"

Written by tensorboardX (the extra `tensorboard`), which is imported when a logger is made. Each epoch is flushed; the file is
opened at the first epoch, and a copy of a logger opens another.
"""

import os
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np

from meristem.train.callbacks import Watcher
from meristem.train.train_state import EpochInfo


class TensorBoard(Watcher):
    """A logger into a folder, which is made; closed by `close()`, by `with`, or when nobody holds it any more.

    >>> import jax, os, tempfile
    >>> from meristem import fit
    >>> from meristem.data.spirals import two_spirals
    >>> from meristem.nn import Network
    >>> network = Network.create("tunnel", 2, 1, width=3, depth=2, key=jax.random.key(0))
    >>> given = {"learning_rate": 3e-3, "penalty": 1e-3, "key": jax.random.key(1), "max_epochs": 2}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with TensorBoard(folder) as board:
    ...         run = fit(network, two_spirals("easy"), **given, watch=board)
    ...     [name.startswith("events.out.tfevents.") for name in os.listdir(folder)]
    [True]
    """

    def __init__(self, folder: str | os.PathLike[str]):
        try:
            import tensorboardX  # noqa: F401
        except ImportError as error:
            raise ImportError("TensorBoard needs tensorboardX: pip install 'meristem-nn[tensorboard]'") from error
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"TensorBoard({os.fspath(folder)!r}): that is a file; give a folder.")
        self._forget()

    def _forget(self) -> None:
        self._writer: Any = None
        self._closing: Any = None
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"TensorBoard({str(self.folder)!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self.folder}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.folder = state["folder"]
        self._forget()

    def __enter__(self) -> "TensorBoard":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """What is told later goes to another file."""
        with self._lock:
            if self._closing is not None:
                self._closing()
            self._writer = self._closing = None

    def part(self, name: str) -> Watcher:
        return _Part(self, f"{name}/")

    def epoch(self, member: int, info: EpochInfo) -> bool:
        """Write the scalars of an epoch."""
        self.write("", member, info)
        return False

    def write(self, before: str, member: int, info: EpochInfo) -> None:
        """Under tags that begin so."""
        with self._lock:
            if self._writer is None:
                from tensorboardX import SummaryWriter

                self._writer = SummaryWriter(str(self.folder))
                self._closing = weakref.finalize(self, self._writer.close)
            for name in info.keys():  # noqa: SIM118
                values, tag = np.asarray(info[name], float), f"{before}{name}/{member}"
                tags = [tag] if values.ndim == 0 else [f"{tag}/{place + 1}" for place in range(values.size)]
                for one, value in zip(tags, values.ravel().tolist(), strict=True):
                    self._writer.add_scalar(one, value, int(info.epoch))
            self._writer.flush()


class _Part(Watcher):
    def __init__(self, board: TensorBoard, before: str):
        self.board, self.before = board, before

    def epoch(self, member: int, info: EpochInfo) -> bool:
        self.board.write(self.before, member, info)
        return False
