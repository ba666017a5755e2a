"""Two numbers: the peak memory of a process in MiB with the data, and after training. A child of mnist.py.

One tunnel network learns the ten digits for two epochs, as `meristem reproduce mnist` trains it; nothing is compiled yet.
"""

import io
import resource
import sys
from pathlib import Path

import jax

from meristem.data.mnist import read_images
from meristem.experiments.mnist import INPUT_DROPOUT, LEARNING_RATE, PENALTY, task_of
from meristem.experiments.options import Options
from meristem.experiments.study_training import Trainer, train
from meristem.show.progress import Progress


def peak() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used / (2**20 if sys.platform == "darwin" else 2**10)  # bytes there, KiB elsewhere


def main(folder: str) -> None:
    jax.config.update("jax_enable_compilation_cache", False)
    task = task_of(read_images(Path(folder)), "ten")
    with_data = peak()
    with Progress(io.StringIO()) as progress:
        options = Options(rate=(LEARNING_RATE,), penalty=(PENALTY,), max_epochs=2, input_dropout=(INPUT_DROPOUT,))
        train("tunnel", task, options, Trainer(progress))
    print([with_data, peak()])


if __name__ == "__main__":
    main(sys.argv[1])
