"""The surroundings of a fit: its device, callbacks, Ctrl-C, garbage collection, progress on the terminal, checkpoint folder.

    with on_device(name), watchers(…) as (watch, say), checkpointing(estimator, table, watch, say) as watch: …

The first Ctrl-C ends the training after the current epoch, with the best model; a second one raises KeyboardInterrupt.
"""

import gc
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import jax
import numpy as np

from meristem.check import unknown
from meristem.estimators.encoded_table import EncodedTable
from meristem.estimators.image_input import EncodedImages
from meristem.files.atomic_write import not_written
from meristem.folders.checkpoints import digest_of
from meristem.folders.run_folder import RunFolder
from meristem.paths.penalty_path import watching
from meristem.sparse import is_sparse
from meristem.train.callbacks import Watcher, WatcherGroup, watcher_of
from meristem.train.loop import DivergedError
from meristem.train.objectives import Objective
from meristem.train.saving import SECONDS as SECONDS  # between checkpoints
from meristem.train.train_state import EpochInfo

# They do not change the result.
NOT_SETTINGS = ["callbacks", "verbose", "checkpoint_dir", "resume", "random_state", "device", "executor"]
are_set_aside = False  # whether older objects are set aside from garbage collection


def on_device(name: str | None) -> AbstractContextManager[Any]:
    """Return a context in which JAX computes on a device: "cpu", "gpu", "gpu:1", …; None is JAX's default."""
    return nullcontext() if name is None else jax.default_device(find_device(name))


def find_device(name: Any) -> jax.Device:
    """Return the device of a name; raise a one-line ValueError if there is none."""
    platform, _, index = str(name).partition(":")
    with suppress(RuntimeError, ValueError, IndexError):
        return jax.devices(platform or "none")[int(index or 0)]  # "" would be the default
    devices = [f"{d.platform}:{i}" for every in (jax.devices(), jax.devices("cpu")) for i, d in enumerate(every)]
    names = [*dict.fromkeys(device.partition(":")[0] for device in devices), *dict.fromkeys(devices)]
    if platform in ("gpu", "cuda", "rocm", "tpu") and not index:
        raise ValueError(f"device={name!r}: JAX sees none here, only {', '.join(names)}; install JAX for it, or device=None.")
    raise unknown("device", name, names)


class Interrupt(Watcher):
    """Ends the training after the first SIGINT; the second one raises KeyboardInterrupt."""

    requested = False

    def epoch(self, member: int, info: EpochInfo) -> bool:
        return self.requested

    def over(self) -> bool:
        return self.requested

    def handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
        print("Ctrl-C: training ends after this epoch with the best model so far. Press again to abort.", file=sys.stderr)


@contextmanager
def unchanged_by_errors(estimator: Any) -> Iterator[None]:
    """Give an estimator back the attributes that it had before, where a fit raises; a divergence says so."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException as error:
        estimator.__dict__ = before
        if isinstance(error, DivergedError):
            stays = "is as it was before" if hasattr(estimator, "network_") else "stays unfitted"
            error.args = (f"{error} The {type(estimator).__name__} {stays}.",)
        raise


@contextmanager
def collecting_new_objects() -> Iterator[None]:
    """Let Python's garbage collection look at objects that are made inside alone.

    Imports leave some 300,000 objects. Tracing makes so many more that a first fit would look through all of them three times,
    which takes a tenth of it. What is garbage before is collected after the fit.
    """
    global are_set_aside
    if are_set_aside or gc.get_freeze_count():  # by another fit, or by the user; counting them takes long
        yield
        return
    are_set_aside = True
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        are_set_aside = False


@contextmanager
def watchers(
    name: str, epochs: int, objective: Objective, *, callbacks: Any, verbose: Any, **options: Any
) -> Iterator[tuple[WatcherGroup, Callable[[str], None]]]:
    """Yield the watcher of a fit, and a function that prints a line if `verbose`; options are those of `Progress.group`.

    SIGINT is not handled outside the main thread, which alone may, nor where it has another handler: the command line ends in
    its own order (commands/entry.py).
    """
    interrupt, is_main = Interrupt(), threading.current_thread() is threading.main_thread()
    own, handles = [interrupt, watcher_of("callbacks", callbacks)], is_main and signal.getsignal(signal.SIGINT)
    with ExitStack() as stack:
        stack.enter_context(collecting_new_objects())
        if handles is signal.default_int_handler:
            stack.callback(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, interrupt.handle))
        yield stack.enter_context(watching(name, "fit", epochs, objective, own, verbose=verbose, **options))


@contextmanager
def checkpointing(
    estimator: Any,
    table: EncodedTable | EncodedImages,
    watch: WatcherGroup,
    say: Callable[[str], None],
    dev: EncodedTable | None = None,
) -> Iterator[WatcherGroup]:
    """Save checkpoints of every training inside to `checkpoint_dir`, if there is one, and continue from those of the same fit.

    Yields a watcher that also logs epochs for `meristem watch`. The folder belongs to one fit at a time
    (folders/run_folder.py); checkpoints are found by what their training starts from (folders/checkpoints.py). They stay until
    another fit starts, so that the same fit with `resume=True` takes no time. Streams have none.
    """
    if estimator.checkpoint_dir is None or table.is_stream:
        yield watch
        return
    if not isinstance(estimator.random_state, int | np.integer):
        raise ValueError(f"random_state={estimator.random_state!r} makes every fit different: checkpoint_dir needs an integer.")
    tell = say if estimator.verbose else lambda line: print(line, file=sys.stderr)
    name, path, parameters = type(estimator).__name__, Path(estimator.checkpoint_dir), estimator.get_params(deep=False)
    settings = {name: repr(value)[:200] for name, value in parameters.items() if name not in NOT_SETTINGS}
    tables = {"": table} if dev is None else {"": table, "validation.": dev}
    data = {f"{prefix}{part}": getattr(own, part) for prefix, own in tables.items() for part in ("x", "y", "weight")}
    arrays = {name: [part.data, part.indices, part.indptr] if is_sparse(part) else [part] for name, part in data.items()}
    identity = {
        "estimator": name,
        "settings": settings | {"seed": table.seed},
        "data": {name: digest_of(parts).hex()[:16] for name, parts in arrays.items()},
    }
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise not_written(f"checkpoint_dir={str(path)!r} cannot be made ({error.strerror}); choose another.", error) from error
    with RunFolder.take(path) as folder:
        for line in folder.begin(identity, f"{name}.fit", resume=bool(estimator.resume), how="resume=True"):
            tell(line)
        checkpoints = folder.checkpoints(seconds=SECONDS, say=tell)
        try:
            with checkpoints.keeping("fit"):
                yield WatcherGroup([*watch.watchers, folder.epochs.watcher("fit")])
        except BaseException:
            with suppress(Exception):  # the first error is the one to report
                checkpoints.now()
            raise
        checkpoints.now()
        checkpoints.close()
        folder.epochs.tidy()
        folder.end()
