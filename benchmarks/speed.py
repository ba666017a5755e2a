"""How fast is it? meristem against PyTorch eager, and against its own promises, in one run on this machine.

    race         an online training step of the tunnel network and of a budding tree; both sides in turns, on one core
    live size    a step of a network that has shrunk costs what it costs in one that never grew
    compile      what one waits for before the first epoch; a fresh process each, on all cores

Prints a table. Status 1 if a requirement is missed, or if both sides do not compute the same.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

import report
from meristem.xla_flags import fuse_small_loops
from report import Block, Result, compare

HERE = Path(__file__).parent


def main() -> int:
    options = _options()
    load = report.load()
    if not options.default_xla:
        fuse_small_loops()  # as the command line does; the children inherit it
    compiled = [
        _compile("tunnel", "tunnel, 10 layers × 10 units", 3, options.compile_repeats),
        _compile("budding", "budding, capacity 8", 10, options.compile_repeats),
    ]
    core = _take_one_core()
    import fair  # not before: jax and torch count the cores when they begin
    import step_time

    try:
        tunnel, budding = step_time.tunnel(options.repeats), step_time.budding(options.repeats)
        sizes = step_time.live_size(options.repeats)
    except fair.UnfairError as error:
        print(error, file=sys.stderr)
        return 1
    results = [
        compare("race", "tunnel, 10 layers × 10 units", tunnel, 60, is_least=True, aim=150),
        compare("race", "budding, 4 live leaves", budding, 40, is_least=True),
        compare("live size", "budding, 2 live leaves", sizes, 1.5, is_least=False),
        *compiled,
    ]
    note = f"{options.repeats} timings of each side, in turns, one thread{'' if core is None else f' on core {core}'}"
    return report.tell(results, BLOCKS, report.machine(load), [note], options.out)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Times meristem and PyTorch side by side. Takes two to three minutes; --quick about one.",
        epilog="example: python benchmarks/speed.py --repeats 21 --out speed.json",
    )
    parser.add_argument("--repeats", type=int, default=15, metavar="N", help="timings of each side; medians count (default 15)")
    parser.add_argument("--quick", action="store_true", help="three timings of each side and one compilation of each model")
    parser.add_argument("--default-xla", action="store_true", help="without the command line's setting (meristem.xla_flags)")
    parser.add_argument("--out", type=Path, metavar="FILE.json", help="write every timing here")
    options = parser.parse_args()
    if options.repeats < 1:
        parser.error(f"--repeats {options.repeats} must be at least 1")
    if options.out and not options.out.resolve().parent.is_dir():
        parser.error(f"--out {options.out}: there is no folder {options.out.resolve().parent}")
    options.compile_repeats = 1 if options.quick else 3
    options.repeats = min(options.repeats, 3) if options.quick else options.repeats
    return options


def _compile(model: str, what: str, required: float, repeats: int) -> Result:
    seconds: dict[str, list[float]] = {"first epoch": [], "next epoch": []}
    for _ in range(repeats):
        child = subprocess.run([sys.executable, HERE / "compile_time.py", model], stdout=subprocess.PIPE, check=True, text=True)
        for side, value in zip(seconds, json.loads(child.stdout), strict=True):
            seconds[side].append(value)
    value = statistics.median(first - warm for first, warm in zip(*seconds.values(), strict=True))
    return Result("compile", what, seconds, value, required, is_least=False, unit=" s")


def _take_one_core() -> int | None:
    """One thread for both sides, set before jax or torch is imported; the core's number where it can be chosen."""
    os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
    if not hasattr(os, "sched_setaffinity"):
        return None
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return core


BLOCKS = {
    "race": Block("""\
One online training step, meristem against PyTorch eager with fused Adam: µs, median ± half the interquartile range.
Epochs of the difficult spirals (194 samples, batch 1), shuffling and measures included. The ratio says how many times faster
meristem is. Both sides gave the same outputs and gradients before the clock started."""),
    "live size": Block("""\
One online training step of meristem, without and with a larger past: µs, as above. The ratio says how many times longer it
takes in a network that once had 16 leaves (capacity 16) and has shrunk to 2 through the host loop."""),
    "compile": Block(
        """\
Compiling an epoch: seconds, the first epoch less the next one. Fresh processes, all cores, compilation cache off.""",
        value="compile",
        shown_in="s",
    ),
}


if __name__ == "__main__":
    sys.exit(main())
