"""The command line: it reads arguments, calls the library, and turns bad input into one clear line and exit status 2."""

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import jax

import meristem
from meristem import figures, models
from meristem.compact import compact
from meristem.cpu import fuse_small_loops
from meristem.describe import describe
from meristem.experiments import mirflickr, mnist, summary, tagging, two_spirals
from meristem.experiments.runs import MODELS, device
from meristem.gpu import be_repeatable
from meristem.progress import Progress
from meristem.table import print_table

AFTERWARDS = """
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


def numbers(text: str) -> tuple[float, ...]:
    """A list of numbers with commas."""
    return tuple(float(name) for name in names(text))


def parser() -> argparse.ArgumentParser:
    main = Parser(prog="meristem", description="Neural networks that find their own size.")
    main.add_argument("--version", action="version", version=f"meristem {meristem.__version__}")
    commands = main.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)

    reproduce = commands.add_parser("reproduce", help="run a study of the paper", description="Run a study of the paper.")
    studies = reproduce.add_subparsers(dest="study", required=True, metavar="STUDY", parser_class=Parser)
    for add in (add_two_spirals, add_mnist, add_mirflickr, add_tagging):
        add(studies)

    draw = commands.add_parser(
        "figures",
        help="redraw the figures of a study from its files",
        description="Redraw the figures of a study from its files.",
        epilog="example:\n  meristem figures out/two-spirals\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    draw.add_argument("out", type=Path, metavar="OUT", help="the folder that a study wrote")
    draw.set_defaults(run=redraw)
    add_show(commands)
    add_export(commands)
    return main


def add_show(commands: Any) -> None:
    show = commands.add_parser(
        "show",
        help="what a model file holds: layers, open units, sizes, parameters",
        description="Print the structure of a model file and draw it beside the file.",
        epilog="example:\n  meristem show digits.safetensors\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    show.add_argument("model", type=Path, metavar="MODEL", help="a file that save() wrote")
    show.add_argument("--png", type=Path, metavar="FILE", help="where the picture goes (default: MODEL with .png)")
    show.set_defaults(run=show_model)


def add_export(commands: Any) -> None:
    export = commands.add_parser(
        "export",
        help="a model file for other programs",
        description="Write the compact form of a model file, with standardization and probabilities, for other programs.",
        epilog="example:\n  meristem export digits.safetensors --onnx digits.onnx\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    export.add_argument("model", type=Path, metavar="MODEL", help="a file that save() wrote")
    export.add_argument("--onnx", type=Path, required=True, metavar="FILE", help="the ONNX file to write")
    export.set_defaults(run=export_model)


def add_study(studies: Any, name: str, *, example: str, run: Callable[..., None], **texts: str) -> argparse.ArgumentParser:
    """A study's own parser."""
    return with_run(
        studies.add_parser(
            name,
            epilog=f"example:\n  meristem reproduce {name} {example}\n{AFTERWARDS}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            **texts,
        ),
        run,
    )


def with_run(parser: argparse.ArgumentParser, run: Callable[..., None]) -> argparse.ArgumentParser:
    parser.set_defaults(run=run)
    return parser


def add_common(study: argparse.ArgumentParser, default: Any, out: str) -> None:
    """The options of every study; `default` has their values."""
    study.add_argument(
        "--models",
        type=names,
        default=default.models,
        help=f"with commas, of {', '.join(MODELS)} (default: {','.join(default.models)})",
    )
    study.add_argument("--seeds", type=int, default=default.seeds, metavar="N", help="seeds 0 … N−1 (default: %(default)s)")
    study.add_argument(
        "--max-epochs",
        type=int,
        default=default.max_epochs,
        metavar="N",
        help="stop there at the latest (default: %(default)s)",
    )
    study.add_argument("--out", type=Path, default=Path(out), metavar="DIR", help="where results go (default: %(default)s)")


def add_two_spirals(studies: Any) -> None:
    study = add_study(
        studies,
        "two-spirals",
        run=reproduce_two_spirals,
        example="--seeds 10 --models tunnel,budding,highway,highway-penalized --out out/all",
        help="two spirals, easy to difficult, with one set of hyper-parameters",
        description="Train networks that size themselves on two spirals; show what came out beside the paper's results.",
    )
    default = two_spirals.Study()
    study.add_argument(
        "--tasks",
        type=names,
        default=default.tasks,
        help=f"with commas, of {', '.join(two_spirals.TASKS)} (default: all but classic)",
    )
    study.add_argument("--equal-rates", action="store_true", help="the same rate in all layers, the paper's ablation")
    study.add_argument(
        "--select-rate", action="store_true", help="try the paper's four rates, keep the smallest that solves every task"
    )
    study.add_argument(
        "--penalty",
        type=float,
        default=default.penalty,
        help="the price of complexity λ, relative to the mean loss (default: %(default)s, the paper's)",
    )
    add_common(study, default, "out/two-spirals")


def add_mnist(studies: Any) -> None:
    study = add_study(
        studies,
        "mnist",
        run=reproduce_mnist,
        example="--task two --models tunnel,budding --seeds 2 --data DIR",
        help="handwritten digits: ten classes, or 0 versus 1",
        description="Train on MNIST; show test errors and sizes beside the paper's. An epoch takes about two seconds on two "
        "cores, a run of ten classes some 150 epochs; a GPU trains all seeds of a model in about a minute.",
    )
    default = mnist.Study()
    study.add_argument("--task", type=names, default=default.task, help="ten, two, or both with a comma (default: ten)")
    add_data(study, "the four gzipped IDX files")
    add_knobs(study, default, "lowest validation error")
    add_common(study, default, "out/mnist")


def add_mirflickr(studies: Any) -> None:
    study = add_study(
        studies,
        "mirflickr",
        run=reproduce_mirflickr,
        example="--features tags --task 10,24 --seeds 2 --data DIR",
        help="photographs with several labels each",
        description="Train on MIRFLICKR-25k, on the paper's image features or on the users' tags; show macro-F1, errors per "
        "instance and sizes.",
    )
    default = mirflickr.Study()
    study.add_argument("--features", default=default.features, help="images, the paper's, or tags (default: %(default)s)")
    study.add_argument(
        "--task",
        type=names,
        default=(),
        help="how many labels, with commas, of 38, 24 and 10 (default: 10,38 for images, 10,24 for tags)",
    )
    study.add_argument("--split", type=int, default=default.split, metavar="1…5", help="which split (default: %(default)s)")
    add_data(study, "the unpacked archive, or the tags' file")
    add_dropout(study)
    add_knobs(study, default, "highest validation macro-F1")
    add_common(study, default, "out/mirflickr")


def add_tagging(studies: Any) -> None:
    study = add_study(
        studies,
        "tagging",
        run=reproduce_tagging,
        example="--data scene.npz corel5k.npz --seeds 2",
        help="the same study on multi-label data of your own",
        description="Train on .npz files with X_train, Y_train, X_test, Y_test (labels as 0 and 1) and labels (their names), "
        "at the paper's settings for MIRFLICKR.",
    )
    study.add_argument("--data", type=Path, nargs="+", required=True, metavar="FILE", help="one or more .npz files")
    study.add_argument(
        "--split", type=int, default=0, metavar="SEED", help="which fifth of the training part is for validation (default: 0)"
    )
    add_dropout(study)
    default = tagging.Study(data=())
    add_knobs(study, default, "highest validation macro-F1")
    add_common(study, default, "out/tagging")


def add_dropout(study: argparse.ArgumentParser) -> None:
    study.add_argument(
        "--input-dropout",
        type=float,
        default=tagging.INPUT_DROPOUT,
        metavar="SHARE",
        help="inputs set to 0 in each step (default: %(default)s, the paper's; less suits features that are rarely there)",
    )


def add_knobs(study: argparse.ArgumentParser, default: Any, best: str) -> None:
    """What may be tried out; `best`: what the choice goes by."""
    for option, what in (("rate", "the learning rate"), ("penalty", "the price of complexity λ, relative to the mean loss")):
        (usual,) = getattr(default, option)
        study.add_argument(
            f"--{option}",
            type=numbers,
            default=(usual,),
            help=f"{what}; of several with commas each model keeps that of the {best} (default: {usual}, the paper's)",
        )


def add_data(study: argparse.ArgumentParser, what: str) -> None:
    study.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help=f"the folder with {what} (default: $MERISTEM_DATA, else the user's cache)",
    )


def reproduce_two_spirals(args: argparse.Namespace) -> None:
    study = study_of(two_spirals.Study, args)
    fuse_small_loops()
    title = f"Two spirals, {seeds_of(study)}: median (range), beside the paper"
    reproduce("two-spirals", two_spirals.run, study, args.out, two_spirals.PAPER, two_spirals.table, title)


def reproduce_mnist(args: argparse.Namespace) -> None:
    study = study_of(mnist.Study, args)
    title = f"MNIST, {seeds_of(study)}: mean ± sd, beside the paper"
    reproduce("mnist", mnist.run, study, args.out, mnist.PAPER, mnist.table, title)


def reproduce_mirflickr(args: argparse.Namespace) -> None:
    study = study_of(mirflickr.Study, args)
    paper = mirflickr.papers(study.features)
    title = f"MIRFLICKR, {study.features}, split {study.split}, {seeds_of(study)}: mean ± sd in %"
    reproduce("mirflickr", mirflickr.run, study, args.out, paper, partial(tagging.table, papers=paper), title)


def reproduce_tagging(args: argparse.Namespace) -> None:
    args.data = tuple(args.data)
    study = study_of(tagging.Study, args)
    title = f"Tagging, {seeds_of(study)}: mean ± sd in %"
    reproduce("tagging", tagging.run, study, args.out, {}, partial(tagging.table, papers={}), title)


def study_of(kind: Any, args: argparse.Namespace) -> Any:
    """The study that the options describe."""
    return kind(**{field.name: getattr(args, field.name) for field in fields(kind)})


def seeds_of(study: Any) -> str:
    return "1 seed" if study.seeds == 1 else f"{study.seeds} seeds"


def reproduce(
    name: str, run: Callable[..., Any], study: Any, folder: Path, paper: Any, table: Callable[..., Any], title: str
) -> None:
    """Run a study, write its files, show its table, draw its figures."""
    out = summary.check_out(folder)
    begin = time.perf_counter()
    with Progress() as progress, ends_at_once(progress):
        progress.say(f"{name} on {device()}, {seeds_of(study)}")
        result = run(study, progress)
    head = summary.header(name, paper, time.perf_counter() - begin, result.runs) | result.more
    written = summary.write(out, head, result.history)
    columns, rows = table(result.runs)
    print_table(columns, rows, title)
    written += draw_figures(out)
    print(f"\nIn {out}: {', '.join(path.name for path in sorted(written))}")


def redraw(args: argparse.Namespace) -> None:
    if not figures.have_matplotlib():
        raise ValueError("Figures need matplotlib: pip install 'meristem[cli]'")
    print("\n".join(str(path) for path in figures.draw(args.out)))


def show_model(args: argparse.Namespace) -> None:
    model = models.load(args.model)
    network = getattr(model, "network_", model)
    if model is not network:
        print(f"{type(model).__name__}: {model.n_iter_} epochs, the best one {model.best_epoch_}, penalty {model.penalty:g}")
    lines, columns, rows = describe(network)
    print("\n".join(lines))
    print_table(columns, rows, title="")
    if not figures.have_matplotlib():
        print("No picture: matplotlib is not installed (pip install 'meristem[cli]').", file=sys.stderr)
        return
    path = args.png or args.model.with_suffix(".png")
    draw_structure(model, path)
    print(f"\nDrawn: {path}")


def draw_structure(model: Any, path: Path) -> None:
    import matplotlib

    matplotlib.use("agg")
    from meristem.plots import plot_structure

    try:
        plot_structure(model).figure.savefig(path, dpi=150, bbox_inches="tight")
    except OSError as error:
        raise ValueError(f"--png={str(path)!r} cannot be written ({error.strerror}); choose another place.") from error


def export_model(args: argparse.Namespace) -> None:
    model = models.load(args.model)
    from meristem import export

    is_estimator = hasattr(model, "network_")
    path = export.onnx_of(model, args.onnx) if is_estimator else export.to_onnx(args.onnx, compact(model))
    print(f"{path}: {path.stat().st_size:,} bytes")


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
    be_repeatable()
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
