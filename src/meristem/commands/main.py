"""The command line: it reads arguments, calls the commands, and turns what goes wrong into one clear line and a status."""

import argparse
import logging
import os
import sys
import traceback
from collections.abc import Sequence

import meristem
from meristem.cache import keep_programs
from meristem.check import short
from meristem.commands import figures, models, predict, reproduce, tables, watch
from meristem.commands.parsing import Parser
from meristem.commands.streams import steady
from meristem.files.atomic_write import CANNOT_WRITE, OutputError
from meristem.gpu import be_repeatable

EXTRAS = {  # package → the extra that installs it
    "matplotlib": "cli",
    "rich": "cli",
    "safetensors": "files",
    "sklearn": "sklearn",
    "threadpoolctl": "sklearn",
    "onnx": "onnx",
    "pyarrow": "tables",
    "starlette": "live",
    "tensorboardX": "tensorboard",
    "torch": "torch",
    "uvicorn": "live",
}


def parser() -> argparse.ArgumentParser:
    main = Parser(prog="meristem", description="Neural networks that find their own size.")
    main.add_argument("--version", action="version", version=f"meristem {meristem.__version__}")
    commands = main.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)
    for command in (tables, predict, reproduce, watch, figures, models):
        command.add(commands)
    return main


def missing_package(error: ImportError) -> str:
    """What to install; an error that is not about a package of an extra is raised again.

    >>> missing_package(ModuleNotFoundError(name="safetensors.numpy"))
    "safetensors is not installed: pip install 'meristem-nn[files]'"
    """
    package = (error.name or "").partition(".")[0]
    if package in EXTRAS:
        return f"{package} is not installed: pip install 'meristem-nn[{EXTRAS[package]}]'"
    if "pip install" in str(error):
        return str(error)
    raise error


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; the exit status, see docs/api.md."""
    with steady() as streams:
        try:
            return streams.status(_run(argv))
        except SystemExit as end:  # --help, --version, or an option that does not fit
            return streams.status(end.code if isinstance(end.code, int) else 0)


def _run(argv: Sequence[str] | None) -> int:
    args = parser().parse_args(argv)
    keep_programs()
    be_repeatable()
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # where its fonts are kept is no one's concern here
    try:
        status = args.run(args) or 0
        sys.stdout.flush()
        return int(status)
    except ValueError as error:
        return _told(str(error), 1 if isinstance(error, OutputError) else 2)
    except ImportError as error:
        return _told(missing_package(error), 2)
    except KeyboardInterrupt:
        return _told("interrupted", 130)
    except OSError as error:
        place = f"{short(str(error.filename))}: " if error.filename else ""
        return _told(f"{place}{error.strerror}", 1 if error.errno in CANNOT_WRITE else 2)
    except Exception as error:
        if not _is_of_a_platform(error):
            raise
        wanted, reason = os.environ.get("JAX_PLATFORMS", ""), (str(error) or "there is no such device").splitlines()[0]
        return _told(f"JAX_PLATFORMS={wanted!r} cannot be used: {reason}", 2)


def _is_of_a_platform(error: BaseException) -> bool:
    """Whether JAX raised it while it looked for a device."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return str(frame.f_globals.get("__name__", "")).endswith("xla_bridge")


def _told(line: str, status: int) -> int:
    print(f"meristem: {line}", file=sys.stderr)
    return status
