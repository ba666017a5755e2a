"""The seconds that training on MNIST takes, meristem's and PyTorch's, measured in turns in this process.

Every function returns {side: [seconds, one per repeat]}: of a whole epoch as `fit` runs it, its measures included, or of one
training step, all that belongs to it included (shuffling, dropout, Adam, clipping, growth), the measures not.
"""

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

import torch_networks
from fair import in_turns, match, must
from meristem.data.mnist import read_images
from meristem.experiments.mnist import DEPTH, INPUT_DROPOUT, LEARNING_RATE, PENALTY, WIDTH, task_of
from meristem.nn import Network
from meristem.train.epoch import steps_per_epoch
from meristem.train.hyperparameters import Knobs, check_knobs
from meristem.train.programs import descend, parts_of, run_epoch, start, unpack
from meristem.train.train_state import no_growth
from meristem.train.training_data import Data, prepare, to_float
from networks import RESTING_RATE, full_tree, half_open_tunnel
from torch_mnist import Trainer

Times = dict[str, list[float]]
HEIGHT = 3  # of the budding tree: 8 leaves

torch.set_flush_denormal(True)  # no penalty for tiny numbers: XLA flushes them to zero, too
WAIT = torch.cuda.synchronize if torch.cuda.is_available() else lambda: None


class Digits:
    """The ten-class task on the device, `rows` of its training part (None: all), and how to time training on it."""

    def __init__(self, folder: Path, rows: int | None = None):
        task = task_of(read_images(folder), "ten")
        data = task.data._replace(x=task.data.x[:rows], y=task.data.y[:rows])
        self.recipe, self.size = task.recipe, {"n_in": data.x.shape[1], "n_out": task.n_out, "width": WIDTH}
        self.tunnel = half_open_tunnel(**self.size, depth=DEPTH)
        self.host, self.prepared = data, prepare(data, self.tunnel, task.recipe.task)
        self.data = self.prepared.data
        self.steps = steps_per_epoch(data.x.shape[0], self.recipe.batch_size)
        self.parts = parts_of(self.steps)

    def race(self, repeats: int) -> Times:
        """A whole epoch, against PyTorch eager on all cores, and on one: small batches do not always gain from more."""
        trainer = self._opponent()

        def theirs(threads: int) -> float:
            torch.set_num_threads(threads)
            return _clock(trainer.epoch)

        counts = dict.fromkeys([os.cpu_count() or 1, 1])
        sides = {f"PyTorch, {n} thread{'s' * (n > 1)}": partial(theirs, n) for n in counts}
        return in_turns({"meristem": self._ours(self.tunnel, whole=True)} | sides, repeats)

    def step_race(self, repeats: int, steps: int, *, recorded: bool = False) -> Times:
        """A training step, against `steps` ones of PyTorch, eager or as a CUDA graph; RuntimeError where there can be none."""
        trainer = self._opponent(capturable=recorded)
        step = trainer.recorded_step() if recorded else None
        theirs = {"PyTorch": lambda: _clock(lambda: trainer.steps(steps, step)) / steps}
        return in_turns({"meristem": self._ours(self.tunnel)} | theirs, repeats)

    def alone_and_together(self, members: int, repeats: int) -> Times:
        """A training step of one network, and of a population."""
        return in_turns({f"{n}": self._ours(self.tunnel, n) for n in (0, members)}, repeats)

    def against_budding(self, repeats: int) -> Times:
        """A training step of the tunnel network, and of a tree of 8 live leaves that fills its capacity."""
        tree = full_tree(**self.size, height=HEIGHT)
        return in_turns({"tunnel": self._ours(self.tunnel), "budding": self._ours(tree, rate=RESTING_RATE)}, repeats)

    def _ours(
        self, network: Network, members: int = 0, *, rate: float = LEARNING_RATE, whole: bool = False
    ) -> Callable[[], float]:
        """A repeat of meristem's side, for one network or for so many members that start alike and are shuffled apart."""
        shape, key = (), jax.random.key(2)
        if members:
            shape, key = (members,), jax.random.split(key, members)
            network = jax.tree.map(lambda a: jnp.broadcast_to(a, (members, *a.shape)), network)
        knobs = check_knobs(Knobs(rate, PENALTY, dropout=INPUT_DROPOUT), shape)
        state = start(network, key, recipe=self.recipe)
        leaves = 2**HEIGHT if hasattr(network.body, "leafness") else 0
        growth = no_growth(shape)
        ask = self._ask_epoch if whole else partial(self._ask_part, growth)

        def run() -> float:
            nonlocal state
            seconds, (state, news) = _clock_and_result(lambda: ask(state, knobs))
            must(np.all(news.opened + news.closed == 0), "the structure changed while the clock ran")
            must(np.all(news.most_leaves == leaves), f"there were not {leaves} live leaves all the time")
            must(not np.any(state.diverged), "the loss turned non-finite")
            return seconds if whole else seconds / -(-self.steps // self.parts)

        return run

    def _ask_epoch(self, state: Any, knobs: Knobs) -> tuple[Any, Any]:
        """As `fit` does for the command line, which waits for every part to show how far it is."""
        state, packed = run_epoch(state, self.prepared, knobs, self.recipe, lambda share: None)
        return state, unpack(packed)

    def _ask_part(self, growth: Any, state: Any, knobs: Knobs) -> tuple[Any, Any]:
        """The steps of the first part of an epoch; all of them are real ones."""
        part = jnp.zeros((), jnp.int32)
        state, growth = descend(state, growth, self.data, knobs, part, recipe=self.recipe, parts=self.parts)
        return jax.block_until_ready(state), jax.device_get(growth)

    def _opponent(self, **options: bool) -> Trainer:
        """PyTorch's trainer on the same kind of device, after a check that it computes the same on a batch."""
        device = "cpu" if jax.default_backend() == "cpu" else "cuda"
        with torch.device(device):
            network = torch_networks.tunnel(**self.size, depth=DEPTH)
        optimizer = torch_networks.adam(network, LEARNING_RATE, **options)
        batch = self.recipe.batch_size
        x, y = np.asarray(to_float(self.data.x[:batch])), self.host.y[:batch].astype(np.int64)
        torch.backends.cuda.matmul.allow_tf32 = False
        match(self.tunnel, network, optimizer, x, y, self.recipe, PENALTY)
        torch.backends.cuda.matmul.allow_tf32 = True  # as XLA does
        train, dev = ((_tensor(x, device), _tensor(y, device).long()) for x, y in _pairs(self.host))
        return Trainer(network, optimizer, train, dev, batch_size=batch, dropout=INPUT_DROPOUT, penalty=PENALTY)


def _pairs(data: Data) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(data.x, data.y), (data.dev_x, data.dev_y)]


def _tensor(array: np.ndarray, device: str) -> torch.Tensor:
    return torch.tensor(np.ascontiguousarray(array), device=device)


def _clock(work: Callable[[], object]) -> float:
    return _clock_and_result(work)[0]


def _clock_and_result(work: Callable[[], Any]) -> tuple[float, Any]:
    """Until the device is done, too."""
    begin = time.perf_counter()
    result = work()
    WAIT()
    return time.perf_counter() - begin, result
