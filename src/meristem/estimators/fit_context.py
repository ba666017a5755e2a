"""The surroundings of a fit: its device, its callbacks, Ctrl-C, progress on the terminal, and its checkpoint folder.

    with on_device(name), watchers(…) as (watch, say), checkpointing(estimator, seed, data, say) as epoch_log: …

The first Ctrl-C ends the training after the current epoch, with the best model; a second one raises KeyboardInterrupt.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import jax
import numpy as np

from meristem.check import unknown
from meristem.files.atomic_write import not_written
from meristem.folders.checkpoints import digest_of
from meristem.folders.run_folder import RunFolder
from meristem.show.measures import error_measure
from meristem.show.progress import Progress
from meristem.train.callbacks import Watcher, WatcherGroup, watcher_of
from meristem.train.objectives import Objective
from meristem.train.saving import SECONDS as DEFAULT_SECONDS
from meristem.train.train_state import EpochInfo

SECONDS = DEFAULT_SECONDS  # between checkpoints
NOT_SETTINGS = ["callbacks", "verbose", "checkpoint_dir", "resume", "random_state", "device"]  # do not change the result


def on_device(name: str | None) -> AbstractContextManager[Any]:
    """Return a context in which JAX computes on a device: "cpu", "gpu", "gpu:1", …; None is JAX's default."""
    return nullcontext() if name is None else jax.default_device(find_device(name))


def find_device(name: Any) -> jax.Device:
    """Return the device of a name; raise a one-line ValueError if there is none."""
    platform, _, index = name.partition(":") if isinstance(name, str) else ("", "", "")
    try:
        if platform:
            return jax.devices(platform)[int(index or 0)]
    except (RuntimeError, ValueError, IndexError):
        pass
    devices = [f"{d.platform}:{i}" for every in (jax.devices(), jax.devices("cpu")) for i, d in enumerate(every)]
    names = [*dict.fromkeys(device.partition(":")[0] for device in devices), *dict.fromkeys(devices)]
    if platform in ("gpu", "cuda", "rocm", "tpu") and not index:
        raise ValueError(f"device={name!r}: JAX sees none here, only {', '.join(names)}; install JAX for it, or device=None.")
    raise unknown("device", name, names)


class Interrupt(Watcher):
    """Ends the training once it is requested."""

    requested = False

    def epoch(self, member: int, info: EpochInfo) -> bool:
        return self.requested

    def over(self) -> bool:
        return self.requested


@contextmanager
def first_interrupt() -> Iterator[Interrupt]:
    """Let the first SIGINT end the training, and the second one raise.

    Does nothing outside the main thread, which alone may handle signals, or where SIGINT has another handler: the command
    line ends in its own order (commands/shutdown.py).
    """
    interrupt = Interrupt()

    def handle(number: int, frame: FrameType | None) -> None:
        if interrupt.requested:
            raise KeyboardInterrupt
        interrupt.requested = True
        print("Ctrl-C: training ends after this epoch with the best model so far. Press again to abort.", file=sys.stderr)

    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield interrupt
        return
    before = signal.signal(signal.SIGINT, handle)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def watchers(
    name: str, epochs: int, objective: Objective, *, callbacks: Any, verbose: Any, epochs_before: int = 0
) -> Iterator[tuple[WatcherGroup, Callable[[str], None]]]:
    """Yield the watcher of a fit and a function that prints a line, which does nothing unless `verbose`.

    `epochs_before` are those of earlier fits.
    """
    with ExitStack() as stack:
        members: list[Watcher] = [stack.enter_context(first_interrupt()), watcher_of("callbacks", callbacks)]
        if not verbose:
            yield WatcherGroup(members), lambda line: None
            return
        measure = error_measure(objective.error_name, is_share=objective.error_is_share)
        progress = stack.enter_context(Progress())
        progress.plan({(name, "fit"): epochs})
        display = stack.enter_context(progress.group(name, "fit", epochs, measure, before=epochs_before))
        yield WatcherGroup([display, *members]), progress.say


@contextmanager
def checkpointing(estimator: Any, seed: int, data: Mapping[str, Any], say: Callable[[str], None]) -> Iterator[Watcher]:
    """Save checkpoints of every training inside to `checkpoint_dir`, if there is one, and continue from those of the same fit.

    Yields the watcher that logs epochs for `meristem watch`. The folder belongs to one fit at a time (folders/run_folder.py);
    checkpoints are found by what their training starts from (folders/checkpoints.py). They stay until another fit starts, so
    that the same fit with `resume=True` takes no time.
    """
    if estimator.checkpoint_dir is None:
        yield Watcher()
        return
    if not isinstance(estimator.random_state, int | np.integer):
        raise ValueError(f"random_state={estimator.random_state!r} makes every fit different: checkpoint_dir needs an integer.")
    tell = say if estimator.verbose else lambda line: print(line, file=sys.stderr)
    name, parameters = type(estimator).__name__, estimator.get_params(deep=False)
    settings = {name: repr(value)[:200] for name, value in parameters.items() if name not in NOT_SETTINGS}
    digests = {name: digest_of(_arrays(part)).hex()[:16] for name, part in data.items()}
    with RunFolder.take(_made_folder(estimator.checkpoint_dir)) as folder:
        identity = {"estimator": name, "settings": settings | {"seed": seed}, "data": digests}
        for line in folder.begin(identity, f"{name}.fit", resume=bool(estimator.resume), how="resume=True"):
            tell(line)
        checkpoints = folder.checkpoints(seconds=SECONDS, say=tell)
        try:
            with checkpoints.keeping("fit"):
                yield folder.epochs.watcher("fit")
        except BaseException:
            with suppress(Exception):  # the first error is the one to report
                checkpoints.now()
            raise
        checkpoints.now()
        checkpoints.close()
        folder.epochs.tidy()
        folder.end()


def _made_folder(path: Any) -> Path:
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        words = f"checkpoint_dir={os.fspath(path)!r} cannot be made ({error.strerror}); choose another."
        raise not_written(words, error) from error
    return Path(path)


def _arrays(part: Any) -> list[Any]:
    """Return the arrays of a dense or sparse matrix."""
    return [part.data, part.indices, part.indptr] if hasattr(part, "indptr") else [part]
