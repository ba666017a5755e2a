"""`meristem watch OUT`: watch a run from its files, in the terminal or in a local browser, without disturbing it."""

import argparse
import sys
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from meristem.commands.parsing import add_command
from meristem.commands.shutdown import on_shutdown
from meristem.watch.terminal import follow, show_once
from meristem.watch.view import View


def add(commands: Any) -> None:
    """Add the command and its options."""
    command = add_command(
        commands,
        "watch",
        run=run,
        help="watch a run in the terminal or in a browser",
        description="Show the progress of a run: learning curves, layers that open and close, networks of a population. Only "
        "the run's files are read: it may run in another process, and may have ended.",
        example="meristem watch out/two-spirals --serve",
    )
    command.add_argument("out", type=Path, metavar="OUT", help="the folder of the run: its --out or checkpoint_dir")
    command.add_argument("--serve", action="store_true", help="show a page to browsers on this machine, until Ctrl-C")
    command.add_argument("--port", type=int, metavar="N", help="the port of the page (default: any free port)")
    command.add_argument("--once", action="store_true", help="print the current state and exit")


def run(args: argparse.Namespace) -> None:
    """Watch until the run is finished; with --serve until Ctrl-C."""
    if args.once and args.serve:
        raise ValueError("--once and --serve exclude each other; give one.")
    if args.port is not None and not args.serve:
        raise ValueError(f"--port={args.port} needs --serve; add it, or leave out --port.")
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
        follow(view, sys.stdout, on_shutdown=on_shutdown)
