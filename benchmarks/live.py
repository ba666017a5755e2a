"""What a step costs late in a training: of the whole network, of what is open alone, and of a network of just that size.

    python benchmarks/live.py --data DIR --out DIR --width 100 --penalty 1e-3

A tunnel is trained on MNIST until it has settled; then epochs of the whole network and of what is open (train/live_size.py) are
timed in turns from the same state, and so are predictions of the whole network and of its compact form. "As large" is a network
of random weights that is exactly as large, as if it had been so from the first. Writes live.json; medians of repeats.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meristem import complexity
from meristem.compact import compact
from meristem.data.mnist import read_images
from meristem.experiments.mnist import INPUT_DROPOUT, task_of
from meristem.nn import Network
from meristem.train.hyperparameters import Knobs, Recipe
from meristem.train.live_size import live_part
from meristem.train.loop import fit
from meristem.train.run import Run, advance, begin
from meristem.train.training_data import Data, prepare

BATCH = 32


def timed(work: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    jax.block_until_ready(work())
    return time.perf_counter() - begun


def settled(run: Run) -> Run:
    """The run at the beginning of its last stage, before an epoch in which nothing is asked to close."""
    plateau = run.state.plateau._replace(stage=jnp.asarray(2), since=jnp.asarray(0))
    state = eqx.tree_at(lambda s: (s.plateau, s.epoch), run.state, (plateau, run.state.epoch * 2 + 1))
    return replace(run, state=state)


def as_large(network: Network, key: Any) -> Network:
    """A tunnel of random weights with as many dimensions, and all units of as many layers as hold those that are open."""
    units = np.asarray(network.body.gate.is_open)
    trunk = network.body.trunk
    width = units.shape[1] if trunk is None else int(trunk.is_open.sum())
    depth = max(1, round(units.sum() / width))
    return Network.create("tunnel", 784, 10, width=width, depth=depth, key=key)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--width", default="100")
    parser.add_argument("--depth", type=int, default=10)
    parser.add_argument("--price", default="units")
    parser.add_argument("--penalty", type=float, default=1e-3)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--max-epochs", type=int, default=60)
    parser.add_argument("--repeats", type=int, default=9)
    given = parser.parse_args()

    task = task_of(read_images(given.data), "ten")
    data = Data(task.data.x[: given.rows], task.data.y[: given.rows])
    size: dict[str, Any] = {"width": "auto", "max_width": 100} if given.width == "auto" else {"width": int(given.width)}
    network = Network.create("tunnel", 784, 10, depth=given.depth, key=jax.random.key(0), **size)
    recipe = Recipe(objective="multiclass", batch_size=BATCH, price=given.price, settle=True, follow=True, patience=8)
    knobs = Knobs(1e-3, given.penalty, dropout=INPUT_DROPOUT)
    run = begin(network, recipe, knobs, jax.random.key(1))
    prepared = prepare(data, network, recipe.task)
    begun = time.perf_counter()
    run = fit(run, data, max_epochs=given.max_epochs)
    print(f"trained in {time.perf_counter() - begun:.0f} s, {int(run.epochs)} epochs", flush=True)

    small = settled(run)
    whole = replace(small, recipe=replace(recipe, follow=False))
    same = begin(as_large(run.last, jax.random.key(2)), replace(recipe, settle=False, follow=False), knobs, jax.random.key(1))
    runs = {"whole": whole, "open": small, "as large": same}
    steps = -(-given.rows // BATCH)
    for one in runs.values():
        advance(one, prepared)  # compiles
    epochs = {name: [timed(lambda one=one: advance(one, prepared)) for _ in range(1)] for name, one in runs.items()}
    for _ in range(given.repeats):
        for name, one in runs.items():
            epochs[name].append(timed(lambda one=one: advance(one, prepared)))
    live = live_part(small.state, small.knobs, recipe)
    x, kept = np.asarray(task.test.x[:2000], np.float32) / 255, compact(run.last)
    predict = {"whole": jax.jit(jax.vmap(run.last)), "open": jax.jit(jax.vmap(kept))}
    predictions: dict[str, list[float]] = {name: [] for name in predict}
    for _ in range(given.repeats + 1):
        for name, function in predict.items():
            predictions[name].append(timed(lambda function=function: function(x)))
    middle = {name: 1e6 * statistics.median(seconds[1:]) / steps for name, seconds in epochs.items()}
    record = {
        "settings": {name: str(value) if isinstance(value, Path) else value for name, value in vars(given).items()},
        "device": jax.devices()[0].device_kind,
        "open units": int(complexity.hard_size(run.last)),
        "shapes": None if live is None else {name: list(np.shape(value)) for name, value in live._asdict().items()},
        "parameters": {"whole": sum(leaf.size for leaf in jax.tree.leaves(network)), "open": kept.n_parameters},
        "multiply-adds": {
            "whole": int(complexity.soft_multiply_adds(_opened(network))),
            "open": complexity.multiply_adds(run.last),
        },
        "microseconds a step": {name: round(value, 1) for name, value in middle.items()},
        "microseconds a prediction": {n: round(1e6 * statistics.median(s[1:]) / len(x), 2) for n, s in predictions.items()},
        "step, whole : open": round(middle["whole"] / middle["open"], 2),
        "step, open : as large": round(middle["open"] / middle["as large"], 2),
    }
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "live.json").write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps(record, indent=1))


def _opened(network: Network) -> Network:
    return eqx.tree_at(lambda n: n.body.gate.value, network, jnp.ones_like(network.body.gate.value))


if __name__ == "__main__":
    main()
