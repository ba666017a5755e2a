"""What `executor=` may be, and the context in which populations train on its workers.

    with connected("processes"): fit(…)             called by `on_workers` (train/placement.py)

"processes" is a pool of new processes, one for each core, each with one core. Workers connect to this process: on this machine,
or at the address that Ray has for it; for other executors at $MERISTEM_HOST, else at that of its route to the network.
"""

import os
import socket
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import get_context
from typing import Any

from meristem.train.loop import cores
from meristem.train.placement import TRAINER
from meristem.workers.remote_trainer import RemoteTrainer
from meristem.workers.worker import begin_process

HERE = "127.0.0.1"


@contextmanager
def connected(executor: Any = None, address: str | None = None) -> Iterator[RemoteTrainer]:
    """Have populations inside trained by workers; ValueError for what is no executor, or cannot be reached."""
    with ExitStack() as stack:
        executor, is_own = executor_of(executor, address), isinstance(executor, str)
        if is_own:
            stack.callback(_end, executor)
        trainer = RemoteTrainer(executor, host_of(executor))
        stack.callback(trainer.close)
        if is_own:  # the pool may have been replaced
            stack.callback(lambda: _end(trainer.executor))
        token = TRAINER.set(trainer)
        stack.callback(TRAINER.reset, token)
        yield trainer


def executor_of(executor: Any, address: str | None = None) -> Any:
    """Return an object with `submit`; ValueError of one line where there is none."""
    if executor == "processes":
        return ProcessPoolExecutor(cores(), get_context("spawn"), begin_process)
    if executor == "ray":
        from meristem.workers.ray_executor import RayExecutor  # it needs an extra

        return RayExecutor(address)
    context = getattr(executor, "_mp_context", None)
    if isinstance(executor, ProcessPoolExecutor) and context is not None and context.get_start_method() == "fork":
        spawn = 'ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn"))'
        raise ValueError(f"executor is a pool of forked processes, in which JAX would wait forever; give {spawn}.")
    return executor


def host_of(executor: Any) -> str:
    """Return the address of this process for the workers of an executor."""
    if isinstance(executor, ProcessPoolExecutor):
        return HERE
    own: str | None = os.environ.get("MERISTEM_HOST") or getattr(executor, "host", None)
    if own is not None:
        return own
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing; chooses the interface
        host: str = probe.getsockname()[0]
        return host
    return HERE


def _end(executor: Any) -> None:
    """Shut down an executor that was made here, without waiting for its workers: they end with their connection."""
    executor.shutdown(wait=False, cancel_futures=True)
