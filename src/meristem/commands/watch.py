"""`meristem watch OUT`: follow a run from its files, in the terminal or in a browser on this machine, unnoticed by it."""

import argparse
import sys
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from meristem.commands.ending import ends_with
from meristem.commands.parsing import add_command
from meristem.watch.terminal import follow, show_once
from meristem.watch.view import View


def add(commands: Any) -> None:
    """The command and its options."""
    command = add_command(
        commands,
        "watch",
        run=run,
        help="follow a run in the terminal or in a browser",
        description="Follow a run from the files in its folder: curves, layers that open and close, members of a population. "
        "It may be that of another process, and may have ended; it is not disturbed.",
        example="meristem watch out/two-spirals --serve",
    )
    command.add_argument("out", type=Path, metavar="OUT", help="the folder that a run writes to: its --out, or checkpoint_dir")
    command.add_argument("--serve", action="store_true", help="a page for browsers on this machine (127.0.0.1), until Ctrl-C")
    command.add_argument("--port", type=int, metavar="N", help="of the page (default: one that is free)")
    command.add_argument("--once", action="store_true", help="print what there is now, and end")


def run(args: argparse.Namespace) -> None:
    """Until the run is finished; with --serve until Ctrl-C."""
    if args.once and args.serve:
        raise ValueError("--once and --serve exclude each other; give one.")
    if args.port is not None and not args.serve:
        raise ValueError(f"--port={args.port} is that of a page; give --serve, too.")
    if args.serve:
        from meristem.watch.server import serving

        problems: SimpleQueue[ValueError] = SimpleQueue()
        with serving(args.out, args.port or 0, problems.put) as url:
            print(f"{url}  (Ctrl-C ends)", flush=True)
            raise problems.get()
    view = View(args.out)
    if args.once:
        show_once(view, sys.stdout)
    else:
        follow(view, sys.stdout, closing=ends_with)
