"""What an estimator keeps while it is trained, where `checkpoint_dir` names a folder: with `resume=True` the same fit goes on.

    with keeping(estimator, seed, parts, say) as told: …        everything that is trained inside; `told` looks on

The folder is one fit's at a time (folders/folder.py). What is trained is known by what it starts from (folders/checkpoints.py),
so that whatever a fit tries, one after another or side by side, is found again; what is there when it is over stays until
another fit begins, and the same fit with `resume=True` then takes no time. base and cv import it.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from meristem.files.whole import not_written
from meristem.folders.checkpoints import digest_of
from meristem.folders.folder import RunFolder
from meristem.train.callbacks import Watcher
from meristem.train.saving import SECONDS as USUAL_SECONDS

SECONDS = USUAL_SECONDS  # between checkpoints
NOT_SETTINGS = ["callbacks", "verbose", "checkpoint_dir", "resume", "random_state", "device"]


@contextmanager
def keeping(estimator: Any, seed: int, parts: Mapping[str, Any], say: Callable[[str], None]) -> Iterator[Watcher]:
    """Inside, trainings are kept, and what was kept goes on; `parts`: the data by name, which must be the same.

    Yields who writes the lines of their epochs, by which `meristem watch` follows.
    """
    if estimator.checkpoint_dir is None:
        yield Watcher()
        return
    if not isinstance(estimator.random_state, int | np.integer):
        raise ValueError(
            f"random_state={estimator.random_state!r}, and no fit is the same again: checkpoint_dir needs a whole number."
        )
    tell = say if estimator.verbose else lambda line: print(line, file=sys.stderr)
    name = type(estimator).__name__
    with RunFolder.take(_folder(estimator.checkpoint_dir)) as folder:
        about = {"estimator": name, "settings": _settings(estimator) | {"seed": seed}, "data": _data(parts)}
        for line in folder.begin(about, f"{name}.fit", resume=bool(estimator.resume), how="resume=True"):
            tell(line)
        checkpoints = folder.checkpoints(seconds=SECONDS, say=tell)
        try:
            with checkpoints.keeping("fit"):
                yield folder.epochs.watcher("fit")
        except BaseException:
            with suppress(Exception):  # what went wrong first is what a person should hear of
                checkpoints.now()
            raise
        checkpoints.now()
        checkpoints.close()
        folder.epochs.tidy()
        folder.end()


def _folder(given: Any) -> Path:
    folder = Path(given)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        words = f"checkpoint_dir={os.fspath(given)!r} cannot be made ({error.strerror}); choose another."
        raise not_written(words, error) from error
    return folder


def _settings(estimator: Any) -> dict[str, str]:
    given = estimator.get_params(deep=False)
    return {name: repr(value)[:200] for name, value in given.items() if name not in NOT_SETTINGS}


def _data(parts: Mapping[str, Any]) -> dict[str, str]:
    return {name: digest_of(_arrays(part)).hex()[:16] for name, part in parts.items()}


def _arrays(part: Any) -> list[Any]:
    """A table's arrays; of a sparse one those that it is made of."""
    return [part.data, part.indices, part.indptr] if hasattr(part, "indptr") else [part]
