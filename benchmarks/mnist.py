"""How fast is training on MNIST? meristem against PyTorch, and against its own promises, in one run on this machine.

784 inputs → 10 layers × 100 units → 10 outputs, batches of 32, a quarter of the inputs dropped: the paper's tunnel network.

                CPU                                     GPU
    race        a whole epoch, against PyTorch eager    a training step, against PyTorch eager and its CUDA graph
    steps                                               a training step alone, in populations, and of a budding tree
    memory      the peak of a process that trains

Prints a table. Status 1 if a requirement is missed, or if both sides do not compute the same.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

import jax

import report
from meristem.data.dataset_files import find
from meristem.data.mnist import FILES, URL
from report import Block, Result, compare

HERE = Path(__file__).parent
TUNNEL = "tunnel, 10 layers × 100 units"
POPULATION = 64
TORCH_STEPS = 300  # on a GPU an eager one takes milliseconds
REQUIRED = {
    "cpu": {"race": 1.5, "memory": 1024},
    "gpu": {"alone": 140, "64 together": 6, "budding": 2.5},
}
BLOCKS_OF = {"cpu": ["race", "memory"], "gpu": ["race", "steps"]}


def main() -> int:
    options = _options()
    load = report.load()
    try:
        folder = find("mnist", FILES, URL, options.data)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    device = "cpu" if jax.default_backend() == "cpu" else "gpu"
    blocks = ["race", "steps", "memory"] if options.small else BLOCKS_OF[device]
    required = {} if options.small else REQUIRED[device]
    notes, results = [f"{options.repeats} timings of each side, in turns; medians count"], []
    if "memory" in blocks:
        # The first of all: a child's peak counts from its parent's size.
        results.append(_memory(folder, 1 if options.small else 3, required.get("memory")))
    import fair
    import mnist_time

    unfair = False
    digits = mnist_time.Digits(folder, 20_000 if options.small else None)
    try:
        if "steps" in blocks:
            results += _steps(digits, 2 if options.small else POPULATION, options.repeats, required)
        if device == "cpu":
            results += _epoch_race(digits, options.repeats, required.get("race"))
        if device == "gpu" or options.small:
            results += _step_race(digits, options.repeats, notes)
    except fair.UnfairError as error:
        print(error, file=sys.stderr)
        unfair = True  # what was measured before is told
    return max(unfair, report.tell(results, BLOCKS, report.machine(load), notes, options.out))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Times training on MNIST, meristem and PyTorch side by side. Takes about two minutes.",
        epilog="example: python benchmarks/mnist.py --data shared/data/mnist --out mnist.json",
    )
    parser.add_argument("--repeats", type=int, default=9, metavar="N", help="timings of each side; medians count (default 9)")
    parser.add_argument("--data", type=Path, metavar="DIR", help="the four files (default: $MERISTEM_DATA, else the cache)")
    parser.add_argument("--out", type=Path, metavar="FILE.json", help="write every timing here")
    parser.add_argument(
        "--small", action="store_true", help="every block on any machine, less of everything, nothing required: does it run?"
    )
    options = parser.parse_args()
    if options.repeats < 1:
        parser.error(f"--repeats {options.repeats} must be at least 1")
    if options.out and not options.out.resolve().parent.is_dir():
        parser.error(f"--out {options.out}: there is no folder {options.out.resolve().parent}")
    return options


def _memory(folder: Path, repeats: int, required: float | None) -> Result:
    peaks: dict[str, list[float]] = {"with the data": [], "after training": []}
    for _ in range(repeats):
        command = [sys.executable, HERE / "mnist_memory.py", folder]
        child = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
        for side, value in zip(peaks, json.loads(child.stdout), strict=True):
            peaks[side].append(value)
    value = statistics.median(peaks["after training"])
    return Result("memory", TUNNEL, {}, value, required, is_least=False, unit=" MiB", mebibytes=peaks)


def _steps(digits, members: int, repeats: int, required: dict[str, float]) -> list[Result]:
    results = []
    for count, seconds in zip([0, members], digits.alone_and_together(members, repeats).values(), strict=True):
        what = f"{count} together" if count else "alone"
        each = 1e6 * statistics.median(seconds) / max(count, 1)
        sides = {"step": seconds}
        results.append(Result("steps", f"tunnel, {what}", sides, each, required.get(what), is_least=False, unit=" µs"))
    seconds = digits.against_budding(repeats)
    return [*results, compare("budding", "budding, 8 live leaves", seconds, required.get("budding"), is_least=False)]


def _epoch_race(digits, repeats: int, required: float | None) -> list[Result]:
    ours, *theirs = digits.race(repeats).items()
    return [
        compare("epoch race", what, dict([ours, ("PyTorch", seconds)]), required, is_least=True) for what, seconds in theirs
    ]


def _step_race(digits, repeats: int, notes: list[str]) -> list[Result]:
    results = []
    for what, recorded in {"PyTorch eager": False, "PyTorch, a CUDA graph": True}.items():
        try:
            seconds = digits.step_race(repeats, TORCH_STEPS, recorded=recorded)
            results.append(compare("step race", what, seconds, None, is_least=True))
        except (AssertionError, RuntimeError) as error:  # no CUDA, or no graph of this step
            notes.append(f"{what}: not timed, {str(error).splitlines()[0]}")
    return results


BLOCKS = {
    "epoch race": Block(
        """\
A whole epoch, meristem as `fit` runs it against PyTorch eager with fused Adam: seconds, median. 50,000 digits in batches of 32,
shuffling included, then loss and error of the training and validation part. The ratio says how many times faster meristem is.
Both sides gave the same outputs and gradients before the clock started.""",
        shown_in="s",
    ),
    "step race": Block("""\
One training step on a batch of 32, meristem against PyTorch with fused Adam: µs, median ± half the interquartile range.
Shuffling and dropout included, the measures of an epoch not. The ratio says how many times faster meristem is. Both sides gave
the same outputs and gradients before the clock started."""),
    "steps": Block(
        """\
One training step of meristem, one network and populations of them: µs, as above, and per network. The first part of an epoch,
shuffling and dropout included, the measures of an epoch not.""",
        value="each",
    ),
    "budding": Block("""\
One training step of meristem, tunnel and budding: µs, as above. The ratio says how many times longer it takes in a tree of
8 leaves that fills its capacity."""),
    "memory": Block(
        """\
Peak memory of a fresh process that trains for two epochs as `meristem reproduce mnist` does: MiB, median. Compilation included,
its cache off.""",
        value="peak",
        shown_in="MiB",
    ),
}


if __name__ == "__main__":
    sys.exit(main())
