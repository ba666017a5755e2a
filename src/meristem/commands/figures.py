"""`meristem figures OUT`: the figures of a study once more, from its files."""

import argparse
from pathlib import Path
from typing import Any

from meristem.commands.parsing import add_command
from meristem.pictures.studies import draw


def add(commands: Any) -> None:
    """The command and its options."""
    command = add_command(
        commands,
        "figures",
        run=run,
        help="redraw the figures of a study from its files",
        description="Redraw the figures of a study from its files.",
        example="meristem figures out/two-spirals",
    )
    command.add_argument("out", type=Path, metavar="OUT", help="the folder that a study wrote")


def run(args: argparse.Namespace) -> None:
    """Draw them, and say where they are."""
    print("\n".join(str(path) for path in draw(args.out)))
