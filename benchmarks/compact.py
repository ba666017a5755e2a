"""What does compaction save? Full against compact networks, and compact ones against plain ones, in one run on this machine.

    shrunk     a batch of 1,000 through the full network and through what compact() leaves of it
    plain      the same against a plain network with as many units in as many layers: what the copies cost that remain

Before the clock starts both must give the same outputs. Prints a table. Status 1 if a requirement is missed.
"""

import argparse
import sys
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import report
from meristem.compact import compact
from meristem.compact.report import compiled, in_turns, multiply_adds, plain_of
from meristem.layers.compact_network import n_floats
from meristem.nn import Network
from networks import full_tree
from report import Block, Result, compare

BATCH = 1000
MNIST = {"n_in": 784, "n_out": 10, "width": 100}
SPIRALS = {"n_in": 2, "n_out": 1, "width": 10}
TOLERANCE = 1e-5  # of the largest output


def tunnel(share: float, *, depth: int = 10, n_in: int, n_out: int, width: int) -> Network:
    """A tunnel network in which this share of the units is open, some a little, some wholly, at random."""
    network = Network.create("tunnel", n_in, n_out, width=width, depth=depth, key=jax.random.key(0))
    rng = np.random.default_rng(0)
    gates = np.where(rng.uniform(size=(depth, width)) < share, rng.uniform(0.05, 1, (depth, width)), 0)
    return eqx.tree_at(lambda n: n.body.gate.value, network, jnp.asarray(gates, jnp.float32))


def cases() -> dict[str, tuple[Network, float]]:
    """What is timed, and how many times faster the compact network must be at least."""
    return {
        "tunnel 10 × 100, closed": (tunnel(0, **MNIST), 5),
        "tunnel 10 × 100, 5 % open": (tunnel(0.05, **MNIST), 1),
        "tunnel 10 × 100, half open": (tunnel(0.5, **MNIST), 1),
        "tunnel 10 × 100, 90 % open": (tunnel(0.9, **MNIST), 1),
        "budding × 100, 1 leaf of 4": (full_tree(**MNIST, height=0, capacity=4), 1),
        "budding × 100, 8 leaves": (full_tree(**MNIST, height=3), 1),
        "tunnel 10 × 10, 15 % open": (tunnel(0.15, **SPIRALS), 1),
        "budding × 10, 4 leaves": (full_tree(**SPIRALS, height=2), 1),
    }


def measure(what: str, network: Network, required: float, repeats: int) -> list[Result]:
    x = jnp.asarray(np.random.default_rng(0).normal(size=(BATCH, *network.input_shape)), jnp.float32)
    sides = {"compact": compact(network), "full": network, "plain": plain_of(network)}
    calls = {name: compiled(side, x) for name, side in sides.items()}
    small, full = (np.asarray(calls[name]()) for name in ("compact", "full"))
    gap = np.abs(small - full).max() / np.abs(full).max()
    if gap > TOLERANCE:
        raise SystemExit(f"{what}: the outputs of the full and of the compact network differ by {gap:.1e} of the largest.")
    for name, side in sides.items():
        print(f"{what:32}{name:10}{n_floats(side):>10,} parameters {multiply_adds(side, x[0]):>10,} multiply-adds")
    seconds = in_turns(calls, repeats)
    return [
        compare("shrunk", what, {side: seconds[side] for side in ("compact", "full")}, required, is_least=True),
        compare("plain", what, {side: seconds[side] for side in ("plain", "compact")}, None, is_least=False),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Times full, compact and plain networks side by side. Takes about half a minute.",
        epilog="example: python benchmarks/compact.py --repeats 101 --out compact.json",
    )
    parser.add_argument("--repeats", type=int, default=51, metavar="N", help="timings of each side; medians count (default 51)")
    parser.add_argument("--out", type=Path, metavar="FILE.json", help="write every timing here")
    options = parser.parse_args()
    if options.repeats < 1:
        parser.error(f"--repeats {options.repeats} must be at least 1")
    if options.out and not options.out.resolve().parent.is_dir():
        parser.error(f"--out {options.out}: there is no folder {options.out.resolve().parent}")
    load = report.load()
    results = [r for what, (network, least) in cases().items() for r in measure(what, network, least, options.repeats)]
    note = f"{options.repeats} timings of each side, in turns; batches of {BATCH:,}"
    return report.tell(results, BLOCKS, report.machine(load), [note], options.out)


BLOCKS = {
    "shrunk": Block("""\
A batch through the compact and through the full network, compiled: µs, median ± half the interquartile range. The ratio says
how many times faster the compact one is. Both gave the same outputs before the clock started."""),
    "plain": Block("""\
A batch through a plain network with as many units in as many layers as are live, and through the compact one: µs, as above.
The ratio says how many times longer the compact one takes: the price of the units that copy."""),
}


if __name__ == "__main__":
    sys.exit(main())
