"""Ray as an executor: `submit` returns a future, as those of concurrent.futures do. The only module that imports ray.

    with RayExecutor("auto", num_gpus=1) as executor: path(…, executor=executor)

A worker that dies is a BrokenExecutor, after which remote_trainer.py submits the task again; Ray itself repeats nothing. An
exception of the task is raised as it was there. A task has `num_cpus` cores and `num_gpus` GPUs to itself; of a share of a GPU,
JAX takes memory as it needs it. XLA_FLAGS of the driver hold for its workers, too.
"""

import os
import socket
import warnings
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from typing import Any

SECONDS = 10.0  # to find a cluster


class RayExecutor(Executor):
    """Runs functions on a Ray cluster: at `address`, else at $RAY_ADDRESS, else on this machine.

    address     "auto": the cluster that this machine belongs to; "host:port"; or None
    num_cpus    cores of each task, which bound the threads of XLA as well
    num_gpus    GPUs of each task

    ValueError of one line if there is no such cluster; ImportError with what to install.

    >>> from meristem.train.placement import on_workers
    >>> with on_workers("ray", "127.0.0.1:1"):                          # doctest: +SKIP
    ...     pass
    Traceback (most recent call last):
    ValueError: address='127.0.0.1:1' is no Ray cluster that can be reached; start one with `ray start --head`.
    """

    def __init__(self, address: str | None = None, *, num_cpus: int = 1, num_gpus: float = 0):
        try:
            import ray
        except ImportError:
            raise ImportError("executor='ray' needs Ray; install it with `pip install 'meristem-nn[ray]'`.") from None
        self.num_cpus, self.num_gpus = num_cpus, num_gpus
        self._ray: Any = ray
        self._is_own = not ray.is_initialized()
        if self._is_own:
            _start(ray, address or os.environ.get("RAY_ADDRESS"))
        self.host: str = ray.util.get_node_ip_address()
        variables = {"NPROC": str(num_cpus)} | ({"XLA_FLAGS": os.environ["XLA_FLAGS"]} if "XLA_FLAGS" in os.environ else {})
        if num_gpus % 1:
            variables |= {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
        self._options = {"num_cpus": num_cpus, "num_gpus": num_gpus, "max_retries": 0, "runtime_env": {"env_vars": variables}}

    @property
    def _max_workers(self) -> int:
        """How many tasks the cluster runs at a time now."""
        resources = self._ray.cluster_resources()
        counts = [resources.get(name, 0) / n for name, n in (("CPU", self.num_cpus), ("GPU", self.num_gpus)) if n]
        return max(1, int(min(counts, default=1)))

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Return the future of a call on some worker."""
        remote = self._ray.remote(**self._options)(_call).options(name=getattr(function, "__name__", "function"))
        reference = remote.remote(function, *args, **kwargs)
        future: Future[Any] = Future()

        def finish(result: Any) -> None:
            if not future.set_running_or_notify_cancel():
                return
            if isinstance(result, Exception):
                future.set_exception(self._problem(result))
            else:
                future.set_result(result)

        reference._on_completed(finish)
        future.reference = reference  # type: ignore[attr-defined]  # a reference that nobody holds is forgotten
        return future

    def _problem(self, error: Exception) -> Exception:
        """Return the exception of a task as it was raised; of a worker that died, a BrokenExecutor."""
        if isinstance(error, self._ray.exceptions.RayTaskError):
            cause: Exception = error.cause
            return cause
        if isinstance(error, self._ray.exceptions.RayError):
            return BrokenExecutor(str(error).splitlines()[0])
        return error

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the cluster, if this executor has joined it; what runs there then ends."""
        if self._is_own and self._ray.is_initialized():
            self._ray.shutdown()

    def __deepcopy__(self, memo: dict[int, Any]) -> "RayExecutor":
        """Return the executor itself: an estimator that is cloned uses the same cluster."""
        return self


def _call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call anything: Ray itself takes functions for tasks, and makes actors of classes."""
    return function(*args, **kwargs)


def _start(ray: Any, address: str | None) -> None:
    """Join a cluster, or start one here; Ray itself would try for half a minute to reach one that is not there."""
    problem = f"address={address!r} is no Ray cluster that can be reached; start one with `ray start --head`."
    if address is not None and address not in ("auto", "local") and not _can_connect(address.removeprefix("ray://")):
        raise ValueError(problem)
    options = {"address": address, "log_to_driver": False, "logging_level": "error"}
    options |= {} if address else {"include_dashboard": False}
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)  # of the programs that ray starts
            ray.init(**options)
    except Exception as error:  # of many kinds
        raise ValueError(problem) from error


def _can_connect(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=SECONDS):
            return True
    except (OSError, ValueError, OverflowError):
        return False
