"""What a first fit costs a person: seconds, memory, and what a second one compiles. A child of estimator_speed.py.

    python benchmarks/estimator_fit.py digits TunnelClassifier
    python benchmarks/estimator_fit.py large TunnelClassifier

A process of its own in which nothing is compiled yet, with the persistent compilation cache off. Prints a JSON object: seconds
of the first and of the second fit, names of the programs that each compiled, MiB of the data, and the peak memory in MiB with
the data and after the first fit.
"""

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import jax
import numpy as np
from sklearn.datasets import load_digits

import meristem
from mnist_memory import peak

LARGE = 100_000, 100  # doubles
_compiled: list[str] = []


def _note(event: str, _: float, **about: object) -> None:
    if event == "/jax/core/compile/backend_compile_duration":
        _compiled.append(str(about["fun_name"]))


jax.monitoring.register_event_duration_secs_listener(_note)


@contextmanager
def programs() -> Iterator[list[str]]:
    """The names of the programs that are compiled inside."""
    before, new = len(_compiled), []
    yield new
    new += _compiled[before:]


def clock(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def large() -> tuple[np.ndarray, np.ndarray]:
    """Ten classes: the largest of the first ten features."""
    X = np.random.default_rng(0).normal(size=LARGE)
    return X, X[:, :10].argmax(1)


def main(data: str, name: str) -> None:
    jax.config.update("jax_enable_compilation_cache", False)
    warnings.simplefilter("ignore", meristem.GrowthWarning)
    X, y = large() if data == "large" else load_digits(return_X_y=True)
    options = {"max_epochs": 2} if data == "large" else {}

    def fit() -> tuple[float, list[str], float]:
        model = getattr(meristem, name)(random_state=0, **options)
        with programs() as compiled:
            seconds = clock(lambda: model.fit(X, y))
        return seconds, compiled, peak()

    with_data = peak()
    seconds, compiled, peaks = zip(fit(), fit(), strict=True)
    told = {"seconds": seconds, "programs": compiled, "data": X.nbytes / 2**20, "mebibytes": [with_data, peaks[0]]}
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
