"""The command line: it reads arguments, calls the library, and turns bad input into one clear line and exit status 2."""

import argparse
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import jax

import meristem
from meristem import figures
from meristem.cpu import fuse_small_loops
from meristem.experiments import summary, two_spirals
from meristem.progress import Progress
from meristem.table import print_table

TWO_SPIRALS_HELP = """\
example:
  meristem reproduce two-spirals --seeds 10 --models tunnel,budding,highway,highway-penalized --out out/all

writes summary.json, history.npz and the figures into --out; `meristem figures OUT` redraws the figures from the files.
"""


class Parser(argparse.ArgumentParser):
    """Errors in one line; options by their full names (--seed is not --seeds)."""

    def __init__(self, *args: Any, **options: Any):
        super().__init__(*args, **{"allow_abbrev": False, **options})

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def names(text: str) -> tuple[str, ...]:
    """A list with commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def parser() -> argparse.ArgumentParser:
    main = Parser(prog="meristem", description="Neural networks that find their own size.")
    main.add_argument("--version", action="version", version=f"meristem {meristem.__version__}")
    commands = main.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)

    reproduce = commands.add_parser("reproduce", help="run a study of the paper", description="Run a study of the paper.")
    studies = reproduce.add_subparsers(dest="study", required=True, metavar="STUDY", parser_class=Parser)
    spirals = studies.add_parser(
        "two-spirals",
        help="two spirals, easy to difficult, with one set of hyper-parameters",
        description="Train networks that size themselves on two spirals; show what came out beside the paper's results.",
        epilog=TWO_SPIRALS_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    default = two_spirals.Study()
    spirals.add_argument(
        "--models",
        type=names,
        default=default.models,
        help=f"with commas, of {', '.join(two_spirals.MODELS)} (default: tunnel,budding)",
    )
    spirals.add_argument(
        "--tasks",
        type=names,
        default=default.tasks,
        help=f"with commas, of {', '.join(two_spirals.TASKS)} (default: all but classic)",
    )
    spirals.add_argument("--seeds", type=int, default=default.seeds, metavar="N", help="seeds 0 … N−1 (default: %(default)s)")
    spirals.add_argument(
        "--penalty", type=float, default=default.penalty, help="the price of complexity λ (default: %(default)s)"
    )
    spirals.add_argument("--equal-rates", action="store_true", help="the same rate in all layers, the paper's ablation")
    spirals.add_argument(
        "--select-rate", action="store_true", help="try the paper's four rates, keep the smallest that solves every task"
    )
    spirals.add_argument(
        "--max-epochs",
        type=int,
        default=default.max_epochs,
        metavar="N",
        help="stop there at the latest (default: %(default)s)",
    )
    spirals.add_argument(
        "--out", type=Path, default=Path("out/two-spirals"), metavar="DIR", help="where results go (default: %(default)s)"
    )
    spirals.set_defaults(run=reproduce_two_spirals)

    draw = commands.add_parser(
        "figures",
        help="redraw the figures of a study from its files",
        description="Redraw the figures of a study from its files.",
        epilog="example:\n  meristem figures out/two-spirals\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    draw.add_argument("out", type=Path, metavar="OUT", help="the folder that a study wrote")
    draw.set_defaults(run=redraw)
    return main


def reproduce_two_spirals(args: argparse.Namespace) -> None:
    fields = ("models", "tasks", "seeds", "penalty", "equal_rates", "select_rate", "max_epochs")
    study = two_spirals.Study(**{name: getattr(args, name) for name in fields})
    out = summary.check_out(args.out)
    fuse_small_loops()
    begin = time.perf_counter()
    with Progress() as progress, ends_at_once(progress):
        result = two_spirals.run(study, progress)
    head = summary.header("two-spirals", two_spirals.PAPER, time.perf_counter() - begin, result.runs)
    if result.rates:
        head["rates"] = result.rates
    written = summary.write(out, head, result.history)
    seeds = "1 seed" if study.seeds == 1 else f"{study.seeds} seeds"
    print_table(*two_spirals.table(result.runs), title=f"Two spirals, {seeds}: median (range), beside the paper")
    written += draw_figures(out)
    print(f"\nIn {out}: {', '.join(path.name for path in sorted(written))}")


def redraw(args: argparse.Namespace) -> None:
    if not figures.have_matplotlib():
        raise ValueError("Figures need matplotlib: pip install 'meristem[cli]'")
    print("\n".join(str(path) for path in figures.draw(args.out)))


def draw_figures(out: Path) -> list[Path]:
    if figures.have_matplotlib():
        return figures.draw(out)
    print(
        "Figures skipped: matplotlib is not installed (pip install 'meristem[cli]', then: meristem figures DIR).",
        file=sys.stderr,
    )
    return []


@contextmanager
def ends_at_once(progress: Progress) -> Iterator[None]:
    """Ctrl-C ends the process itself: an exception can get lost inside JAX, and leaving Python while XLA computes can crash."""

    def end(number: int, frame: FrameType | None) -> None:
        progress.close()
        print("\nmeristem: interrupted; no results were written", file=sys.stderr, flush=True)
        os._exit(130)

    before = signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def keep_compiled_programs() -> None:
    """A second run finds its programs compiled. Only here: a library must not change JAX's settings."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "meristem" / "jax"
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)


def main(argv: Sequence[str] | None = None) -> int:
    args = parser().parse_args(argv)
    keep_compiled_programs()
    try:
        args.run(args)
    except ValueError as error:
        print(f"meristem: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("meristem: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # whoever read our output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0
