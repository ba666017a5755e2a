"""Convolutional networks on images: a training step against the same layers without gates in plain JAX, and populations.

    step          meristem's step (gates, their price, projection, running statistics) against plain JAX: the same kernels,
                  normalized over the batch, no gates, optax's Adam
    population    members one after the other against all at once, whose convolutions are grouped ones

Both sides of a step begin with the same weights and all gates at 1, and must give the same outputs in single precision. Prints
a table. Status 1 if a requirement is missed, or if the outputs differ.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

import report
from meristem.gate import map_gates
from meristem.nn import Network
from meristem.nn.batch_norm import BATCH, EPSILON
from meristem.nn.images import IMAGE_BODIES
from meristem.train.epoch import Batch, step
from meristem.train.hyperparameters import Knobs, Recipe
from meristem.train.precision import PRECISIONS, in_precision
from meristem.train.train_state import start
from report import Block, Result, compare

LARGE = {"input_shape": (32, 32, 3), "max_width": (32, 64, 128), "depth": 3}
SMALL = {"input_shape": (8, 8), "max_width": (8, 16), "depth": 1}
REQUIRED = 1.2  # times as long as plain JAX, on a GPU
BLOCKS = {
    "step": Block("A training step, and the same layers without gates in plain JAX"),
    "population": Block("A step of each of 4 members: one after the other, and all at once"),
}
RATE, MEMBERS = 1e-3, 4


def main() -> int:
    options = _options()
    load, is_gpu = report.load(), jax.default_backend() != "cpu"
    sizes, batch, steps = (LARGE, 512, 20) if is_gpu and not options.small else (SMALL, 32, 5)
    results: list[Result] = []
    for body in options.bodies:
        network = Network.create(body, **sizes, n_out=10, normalize=True, key=jax.random.key(0))
        network = map_gates(lambda gate: gate.at(jnp.ones_like(gate.value)), network)
        batches = _batches(network, batch, steps)
        if difference := _difference(network, body, batches.x[0]):
            print(f"{body}: outputs differ by {difference:.1e} of the largest", file=sys.stderr)
            return 1
        sides = {
            "plain JAX": partial(_plain_steps(body, options.precision), _plain_of(network), batches),
            "meristem": _own_steps(network, batches, options.precision),
        }
        if "step" in options.blocks:
            seconds = {side: [each / steps for each in times] for side, times in _in_turns(sides, options.repeats).items()}
            results.append(compare("step", body, seconds, REQUIRED if is_gpu and not options.small else None, is_least=False))
        if "population" in options.blocks:
            results.append(_population(body, sizes, batches, steps, options))
    size = f"batches of {batch}, {' × '.join(map(str, sizes['input_shape']))}, at most {sizes['max_width']} channels"
    size += f", {options.precision}"
    return report.tell(results, BLOCKS, report.machine(load), [f"{size}; medians of {options.repeats}"], options.out)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Times training steps of convolutional networks. A minute on a GPU; with --small anywhere.",
        epilog="example: python benchmarks/images.py --bodies conv-inverted --out images.json",
    )
    parser.add_argument("--bodies", nargs="+", choices=IMAGE_BODIES, default=list(IMAGE_BODIES), help="which (default: all)")
    parser.add_argument("--blocks", nargs="+", choices=BLOCKS, default=list(BLOCKS), help="which tables (default: all)")
    parser.add_argument("--precision", choices=PRECISIONS, default="float32", help="of a step (default float32)")
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="timings of each side; medians count (default 5)")
    parser.add_argument("--out", type=Path, metavar="FILE.json", help="write every timing here")
    parser.add_argument("--small", action="store_true", help="small networks and batches, nothing required")
    return parser.parse_args()


def _batches(network: Network, batch: int, steps: int) -> Batch:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (steps, batch, *network.input_shape), dtype=np.uint8)
    y = rng.integers(0, network.n_out, (steps, batch), dtype=np.int32)
    return jax.device_put(Batch(jax.random.split(jax.random.key(1), steps), x, y))


def _in_turns(sides: dict[str, Callable[[], Any]], repeats: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {side: [] for side in sides}
    for repeat in range(repeats + 1):
        for side, run in sides.items():
            begin = time.perf_counter()
            jax.block_until_ready(jax.tree.leaves(run()))
            if repeat:  # the first compiles
                times[side].append(time.perf_counter() - begin)
    return times


def _recipe(batches: Batch, precision: str) -> Recipe:
    sizes: dict[str, Any] = {"batch_size": batches.x.shape[1], "precision": precision}
    return Recipe(objective="multiclass", price="parameters", settle=True, depth_decay=1.0, **sizes)


def _own_steps(network: Network, batches: Batch, precision: str) -> Callable[[], Any]:
    recipe = _recipe(batches, precision)
    knobs = Knobs(jnp.float32(RATE), jnp.float32(1e-6))
    state = start(network, jax.random.key(0), recipe)

    @eqx.filter_jit
    def run(state: Any, batches: Batch) -> Any:
        return jax.lax.scan(lambda state, batch: (step(state, batch, knobs, recipe)[0], None), state, batches)[0]

    return lambda: run(state, batches)


def _population(body: str, sizes: dict[str, Any], batches: Batch, steps: int, options: argparse.Namespace) -> Result:
    recipe = _recipe(batches, options.precision)
    knobs = Knobs(jnp.float32(RATE), jnp.float32(1e-6))

    def begin(key: jax.Array) -> Any:
        return start(Network.create(body, **sizes, n_out=10, normalize=True, key=key), key, recipe)

    def run(state: Any) -> Any:
        return jax.lax.scan(lambda state, batch: (step(state, batch, knobs, recipe)[0], None), state, batches)[0]

    states = jax.jit(jax.vmap(begin))(jax.random.split(jax.random.key(0), MEMBERS))
    in_turn, together = jax.jit(lambda states: jax.lax.map(run, states)), jax.jit(jax.vmap(run))
    times = _in_turns({"in turn": lambda: in_turn(states), "together": lambda: together(states)}, options.repeats)
    seconds = {side: [each / steps / MEMBERS for each in own] for side, own in times.items()}
    first, second = map(statistics.median, seconds.values())
    return Result("population", body, seconds, second / first, None, False, "×")


def _plain_of(network: Network) -> dict[str, Any]:
    """Its kernels and biases, without gates, block by block."""
    parts = getattr(network.body, "parts", (network.body,))

    def arrays(part: Any) -> Any:
        names = ["inner", "bias", "depthwise", "shift", "outer", "weight"]
        scales = {name: getattr(part, name).scale for name in ("norm", "depthwise_norm") if hasattr(part, name)}
        return {name: getattr(part, name) for name in names if hasattr(part, name)} | scales

    return {
        "stem": network.embed.weight,
        "parts": [arrays(part) for part in parts],
        "head": (network.head.weight, network.head.bias),
        "pixels": (jnp.array(network.embed.pixel_mean), jnp.array(network.embed.pixel_scale)),
    }


def _conv(h: jax.Array, weight: jax.Array, groups: int = 1) -> jax.Array:
    weight = weight if weight.ndim == 4 else weight[:, :, None, None]
    layout = ("NCHW", "OIHW", "NCHW")
    return jax.lax.conv_general_dilated(h, weight, (1, 1), "SAME", dimension_numbers=layout, feature_group_count=groups)


def _normalized(z: jax.Array, scale: jax.Array, bias: jax.Array) -> jax.Array:
    """σ of values normalized over the batch."""
    mean, variance = z.mean((0, 2, 3), keepdims=True), z.var((0, 2, 3), keepdims=True)
    return jax.nn.relu(scale[:, None, None] * (z - mean) * jax.lax.rsqrt(variance + EPSILON) + bias[:, None, None])


def _plain(body: str, arrays: dict[str, Any], x: jax.Array) -> jax.Array:
    """The outputs of a batch of bytes."""
    mean, scale = arrays["pixels"]
    x = x[..., None] if x.ndim == 3 else x
    h = _conv(jnp.moveaxis((x.astype(mean.dtype) / 255 - mean) / scale, -1, 1), arrays["stem"])
    for part in arrays["parts"]:
        if "bias" not in part:  # a map between stages
            n, channels, height, width = h.shape
            halves = h[:, :, : height // 2 * 2, : width // 2 * 2].reshape(n, channels, height // 2, 2, width // 2, 2)
            h = _conv(halves.mean((3, 5)), part["weight"])
            continue
        for block in range(len(part["bias"])):
            own = {name: values[block] for name, values in part.items()}
            if body == "conv-tunnel":
                h = _normalized(_conv(h, own["weight"]), own["norm"], own["bias"])
                continue
            hidden = _normalized(_conv(h, own["inner"]), own["norm"], own["bias"])
            if body == "conv-inverted":
                kernel = own["depthwise"][:, None]
                hidden = _normalized(_conv(hidden, kernel, len(kernel)), own["depthwise_norm"], own["shift"])
            h = h + _conv(hidden, own["outer"])
    weight, bias = arrays["head"]
    return h.mean((2, 3)) @ weight.T + bias


def _plain_steps(body: str, precision: str) -> Callable[..., Any]:
    optimizer = optax.adam(RATE)

    def loss(arrays: Any, x: jax.Array, y: jax.Array) -> jax.Array:
        outputs = in_precision(precision, partial(_plain, body), arrays, x)
        return optax.softmax_cross_entropy_with_integer_labels(outputs, y).mean()

    @jax.jit
    def run(arrays: Any, batches: Batch) -> Any:
        def update(carry: Any, batch: Batch) -> tuple[Any, None]:
            arrays, state = carry
            updates, state = optimizer.update(jax.grad(loss)(arrays, batch.x, batch.y), state)
            return (optax.apply_updates(arrays, updates), state), None

        return jax.lax.scan(update, (arrays, optimizer.init(arrays)), batches)[0]

    return run


def _difference(network: Network, body: str, x: jax.Array) -> float:
    """Between the outputs of both sides, relative to the largest; 0 where they agree to 1e-4."""
    with jax.default_matmul_precision("highest"):
        ours = jax.jit(jax.vmap(network, axis_name=BATCH))(x.astype(jnp.float32) / 255)
        theirs = jax.jit(partial(_plain, body))(_plain_of(network), x)
    difference = float(jnp.abs(ours - theirs).max() / jnp.abs(ours).max())
    return difference if difference > 1e-4 else 0.0


if __name__ == "__main__":
    sys.exit(main())
