"""What a benchmark says: results, each with what is required of it; tables of them, and a file with every repeat."""

import json
import os
import platform
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import jax


@dataclass(frozen=True)
class Result:
    """What was measured and what is required of it."""

    block: str
    what: str
    seconds: dict[str, list[float]]  # side → one per repeat
    value: float
    required: float | None  # None: nothing is, it is only told
    is_least: bool  # or the most that is allowed
    unit: str
    aim: float | None = None
    mebibytes: dict[str, list[float]] = field(default_factory=dict)  # side → one per repeat, where memory is measured

    @property
    def met(self) -> bool:
        if self.required is None:
            return True
        return self.value >= self.required if self.is_least else self.value <= self.required

    @property
    def requirement(self) -> str:
        return "" if self.required is None else f"{'at least' if self.is_least else 'at most'} {self.required:g}{self.unit}"

    @property
    def verdict(self) -> str:
        if self.required is None:
            return ""
        if not self.met:
            return f"MISSED by {100 * abs(self.value / self.required - 1):.0f} %"
        aimed = "" if self.aim is None else f" (aim {self.aim:g}{self.unit}: {'met' if self.value >= self.aim else 'not met'})"
        return "ok" + aimed


@dataclass(frozen=True)
class Block:
    """A table of results: the text above it, what the value is called, and in what the sides are shown: µs, s or MiB."""

    heading: str
    value: str = "ratio"
    shown_in: str = "µs"


def compare(
    block: str, what: str, seconds: dict[str, list[float]], required: float | None, *, is_least: bool, aim: float | None = None
) -> Result:
    """How many times as long the second side takes as the first, by their medians."""
    first, second = map(statistics.median, seconds.values())
    return Result(block, what, seconds, second / first, required, is_least, "×", aim)


def load() -> float:
    """Runnable processes over the last minute; 0 where it is not known."""
    return round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else 0.0


def machine(load: float) -> dict:
    """What computes, and the programs that do; `load` before this run: what others did on the machine."""
    return {
        "device": jax.devices()[0].device_kind,
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **{name: _version(name) for name in ("jax", "jaxlib", "torch")},  # XLA is part of jaxlib
        "load": load,
        "XLA_FLAGS": os.environ.get("XLA_FLAGS", ""),
    }


def _version(name: str) -> str:
    """Of a package; nothing where it is not there, which not every benchmark needs."""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def tell(
    results: Sequence[Result], blocks: Mapping[str, Block], machine: dict, notes: Sequence[str] = (), out: Path | None = None
) -> int:
    """Print the tables in the order of `blocks`, write the file, and give the exit status: 1 if a requirement is missed."""
    print(", ".join(f"{name} {value}" for name, value in machine.items() if value != ""))
    for note in notes:
        print(note)
    if machine["load"] > 0.5:
        print(
            f"Others use the machine (load {machine['load']:.1f} before this run): times, compilation above all, are too long."
        )
    for name, block in blocks.items():
        rows = [r for r in results if r.block == name]
        if rows:
            _print(block, rows)
    if out:
        command = " ".join(["python", *sys.argv])
        report = {"command": command, "machine": machine, "results": [{**asdict(r), "met": r.met} for r in results]}
        out.write_text(json.dumps(report, indent=1) + "\n")
    missed = [r for r in results if not r.met]
    for r in missed:
        print(f"{r.block}, {r.what}: {r.value:.3g}{r.unit}, required {r.requirement}: {r.verdict}", file=sys.stderr)
    return 1 if missed else 0


def _print(block: Block, rows: Sequence[Result]) -> None:
    sides = "".join(f"{side:>18}" for side in rows[0].seconds or rows[0].mebibytes)
    print(f"\n{block.heading}\n\n{'':32}{sides}{block.value:>10}   {'required':18}verdict")
    for r in rows:
        values = "".join(f"{_spread(v, block.shown_in):>18}" for v in (r.seconds or r.mebibytes).values())
        print(f"{r.what:32}{values}{_value(r):>10}   {r.requirement:18}{r.verdict}".rstrip())


def _value(result: Result) -> str:
    return f"{result.value:.0f}{result.unit}" if result.value >= 1000 else f"{result.value:.3g}{result.unit}"


def _spread(values: list[float], shown_in: str) -> str:
    """The median, of µs with half the interquartile range."""
    low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
    if shown_in == "µs":
        return f"{1e6 * middle:.1f} ± {1e6 * (high - low) / 2:.1f}"
    return f"{middle:.3f} s" if shown_in == "s" else f"{middle:.0f} MiB"
