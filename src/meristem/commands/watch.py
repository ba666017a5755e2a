"""`meristem watch OUT`: watch a run from its files, in the terminal or in a local browser, without disturbing it."""

import argparse
import sys
from queue import SimpleQueue

from meristem.commands.entry import on_shutdown
from meristem.watch.terminal import follow, show_once
from meristem.watch.view import View


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
