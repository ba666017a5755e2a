"""How fast is it? meristem against PyTorch eager, and against its own promises, in one run on this machine.

    race         an online training step of the tunnel network and of a budding tree; both sides in turns, on one core
    live size    a step of a network that has shrunk costs what it costs in one that never grew
    compile      what one waits for before the first epoch; a fresh process each, on all cores

Prints a table. Status 1 if a requirement is missed, or if both sides do not compute the same.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from meristem.cpu import fuse_small_loops

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Result:
    """What was measured and what is required of it."""

    block: str
    what: str
    seconds: dict[str, list[float]]  # side → one per repeat
    value: float
    required: float
    is_least: bool  # or the most that is allowed
    unit: str
    aim: float | None = None

    @property
    def met(self) -> bool:
        return self.value >= self.required if self.is_least else self.value <= self.required

    @property
    def requirement(self) -> str:
        return f"{'at least' if self.is_least else 'at most'} {self.required:g}{self.unit}"

    @property
    def verdict(self) -> str:
        if not self.met:
            return f"MISSED by {100 * abs(self.value / self.required - 1):.0f} %"
        aimed = "" if self.aim is None else f" (aim {self.aim:g}{self.unit}: {'met' if self.value >= self.aim else 'not met'})"
        return "ok" + aimed


def main() -> int:
    options = _options()
    load = _load()
    if not options.default_xla:
        fuse_small_loops()  # as the command line does; the children inherit it
    compiled = [
        _compile("tunnel", "tunnel, 10 layers × 10 units", 3, options.compile_repeats),
        _compile("budding", "budding, capacity 8", 10, options.compile_repeats),
    ]
    core = _take_one_core()
    import step_time  # not before: jax and torch count the cores when they are imported

    try:
        tunnel, budding = step_time.tunnel(options.repeats), step_time.budding(options.repeats)
        sizes = step_time.live_size(options.repeats)
    except step_time.UnfairError as error:
        print(error, file=sys.stderr)
        return 1
    results = [
        _compare("race", "tunnel, 10 layers × 10 units", tunnel, 60, is_least=True, aim=150),
        _compare("race", "budding, 4 live leaves", budding, 40, is_least=True),
        _compare("live size", "budding, 2 live leaves", sizes, 1.5, is_least=False),
        *compiled,
    ]
    machine = {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **{name: version(name) for name in ("jax", "jaxlib", "torch")},  # XLA is part of jaxlib
        "load": load,  # before this run: what others did on the machine
        "XLA_FLAGS": os.environ.get("XLA_FLAGS", ""),
    }
    _print(results, machine, core, options)
    if options.out:
        report = {"machine": machine, "results": [{**asdict(r), "met": r.met} for r in results]}
        options.out.write_text(json.dumps(report, indent=1) + "\n")
    missed = [r for r in results if not r.met]
    for r in missed:
        print(f"{r.block}, {r.what}: {r.value:.3g}{r.unit}, required {r.requirement}: {r.verdict}", file=sys.stderr)
    return 1 if missed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Times meristem and PyTorch side by side. Takes two to three minutes; --quick about one.",
        epilog="example: python benchmarks/speed.py --repeats 21 --out speed.json",
    )
    parser.add_argument("--repeats", type=int, default=15, metavar="N", help="timings of each side; medians count (default 15)")
    parser.add_argument("--quick", action="store_true", help="three timings of each side and one compilation of each model")
    parser.add_argument("--default-xla", action="store_true", help="without the command line's setting (meristem.cpu)")
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


def _compare(block: str, what: str, seconds: dict[str, list[float]], required: float, *, is_least: bool, aim=None) -> Result:
    """How many times as long the second side takes as the first, by their medians."""
    first, second = map(statistics.median, seconds.values())
    return Result(block, what, seconds, second / first, required, is_least, "×", aim)


def _take_one_core() -> int | None:
    """One thread for both sides, set before jax or torch is imported; the core's number where it can be chosen."""
    os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
    if not hasattr(os, "sched_setaffinity"):
        return None
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return core


def _load() -> float:
    """Runnable processes over the last minute; 0 where it is not known."""
    return round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else 0.0


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


HEADINGS = {
    "race": """\
One online training step, meristem against PyTorch eager with fused Adam: µs, median ± half the interquartile range.
Epochs of the difficult spirals (194 samples, batch 1), shuffling and measures included. The ratio says how many times faster
meristem is. Both sides gave the same outputs and gradients before the clock started.""",
    "live size": """\
One online training step of meristem, without and with a larger past: µs, as above. The ratio says how many times longer it
takes in a network that once had 16 leaves (capacity 16) and has shrunk to 2 through the host loop.""",
    "compile": """\
Compiling an epoch: seconds, the first epoch less the next one. Fresh processes, all cores, compilation cache off.""",
}


def _print(results: list[Result], machine: dict, core: int | None, options: argparse.Namespace) -> None:
    print(", ".join(f"{name} {value}" for name, value in machine.items() if value != ""))
    print(f"{options.repeats} timings of each side, in turns, one thread{'' if core is None else f' on core {core}'}")
    if machine["load"] > 0.5:
        print(
            f"Others use the machine (load {machine['load']:.1f} before this run): times, compilation above all, are too long."
        )
    for block, heading in HEADINGS.items():
        rows = [r for r in results if r.block == block]
        sides = list(rows[0].seconds)
        found = "compile" if block == "compile" else "ratio"
        print(f"\n{heading}\n\n{'':32}{sides[0]:>18}{sides[1]:>18}{found:>10}   {'required':16}verdict")
        for r in rows:
            times = "".join(f"{_spread(values, block):>18}" for values in r.seconds.values())
            print(f"{r.what:32}{times}{f'{r.value:.3g}{r.unit}':>10}   {r.requirement:16}{r.verdict}")


def _spread(seconds: list[float], block: str) -> str:
    low, middle, high = statistics.quantiles(seconds, n=4) if len(seconds) > 1 else seconds * 3
    if block == "compile":
        return f"{middle:.3f} s"
    return f"{1e6 * middle:.1f} ± {1e6 * (high - low) / 2:.1f}"


if __name__ == "__main__":
    sys.exit(main())
