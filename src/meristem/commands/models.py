"""`meristem show MODEL` and `meristem export MODEL`: what a model file holds, and the same for other programs."""

import argparse
import sys
from pathlib import Path
from typing import Any

from meristem import figures, models
from meristem.commands.parsing import add_command
from meristem.compact import compact
from meristem.show.describe import describe
from meristem.show.table import print_table


def add(commands: Any) -> None:
    """Both commands and their options."""
    show = add_command(
        commands,
        "show",
        run=run_show,
        help="what a model file holds: layers, open units, sizes, parameters",
        description="Print the structure of a model file and draw it beside the file.",
        example="meristem show digits.safetensors",
    )
    export = add_command(
        commands,
        "export",
        run=run_export,
        help="a model file for other programs",
        description="Write the compact form of a model file, with standardization and probabilities, for other programs.",
        example="meristem export digits.safetensors --onnx digits.onnx",
    )
    for command in (show, export):
        command.add_argument("model", type=Path, metavar="MODEL", help="a file that save() wrote")
    show.add_argument("--png", type=Path, metavar="FILE", help="where the picture goes (default: MODEL with .png)")
    export.add_argument("--onnx", type=Path, required=True, metavar="FILE", help="the ONNX file to write")


def run_show(args: argparse.Namespace) -> None:
    """Words, a table and a picture."""
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
    _draw_structure(model, path)
    print(f"\nDrawn: {path}")


def _draw_structure(model: Any, path: Path) -> None:
    import matplotlib

    matplotlib.use("agg")
    from meristem.pictures import plot_structure

    try:
        plot_structure(model).figure.savefig(path, dpi=150, bbox_inches="tight")
    except OSError as error:
        raise ValueError(f"--png={str(path)!r} cannot be written ({error.strerror}); choose another place.") from error


def run_export(args: argparse.Namespace) -> None:
    """The file, and how large it is."""
    model = models.load(args.model)
    from meristem import export

    is_estimator = hasattr(model, "network_")
    path = export.onnx_of(model, args.onnx) if is_estimator else export.to_onnx(args.onnx, compact(model))
    print(f"{path}: {path.stat().st_size:,} bytes")
