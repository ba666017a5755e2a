"""Two numbers: the seconds of the first epoch and of the next one; between them lies compilation. A child of speed.py.

A process of its own, on all cores, with the persistent compilation cache off: what a person waits for at the first `fit`.
"""

import sys
import time

import jax
import jax.numpy as jnp

from meristem.data.spirals import two_spirals
from meristem.nn import Network
from meristem.train.hyperparameters import Knobs, Recipe
from meristem.train.programs import start, whole_epoch
from meristem.train.training_data import Data

OPTIONS = {"tunnel": {"depth": 10}, "budding": {"capacity": 8}}


def main(model: str) -> None:
    jax.config.update("jax_enable_compilation_cache", False)
    network = Network.create(model, 2, 1, width=10, key=jax.random.key(0), **OPTIONS[model])
    data, knobs = Data(*two_spirals("difficult")), Knobs(jnp.float32(1e-3), jnp.float32(1e-3))
    state = jax.block_until_ready(start(network, jax.random.key(1), recipe=Recipe()))
    seconds = []
    for _ in range(2):
        begin = time.perf_counter()
        state, _ = jax.block_until_ready(whole_epoch(state, data, knobs, recipe=Recipe()))
        seconds.append(time.perf_counter() - begin)
    if seconds[1] > seconds[0] / 5:
        raise RuntimeError(f"The second epoch of {model} compiled again: {seconds[1]:.2f} s after {seconds[0]:.2f} s.")
    print(seconds)


if __name__ == "__main__":
    main(sys.argv[1])
