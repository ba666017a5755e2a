"""The command line: it reads arguments, calls the commands, and turns bad input into one clear line and exit status 2."""

import argparse
import os
import sys
from collections.abc import Sequence

import meristem
from meristem.cache import keep_programs
from meristem.commands import figures, models, reproduce, tables
from meristem.commands.parsing import Parser
from meristem.gpu import be_repeatable

EXTRAS = {  # package → the extra that installs it
    "matplotlib": "cli",
    "rich": "cli",
    "safetensors": "files",
    "sklearn": "sklearn",
    "threadpoolctl": "sklearn",
    "onnx": "onnx",
    "pyarrow": "tables",
    "torch": "torch",
}


def parser() -> argparse.ArgumentParser:
    main = Parser(prog="meristem", description="Neural networks that find their own size.")
    main.add_argument("--version", action="version", version=f"meristem {meristem.__version__}")
    commands = main.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)
    for command in (tables, reproduce, figures, models):
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
    args = parser().parse_args(argv)
    keep_programs()
    be_repeatable()
    try:
        status = args.run(args) or 0
        sys.stdout.flush()
        return int(status)
    except ValueError as error:
        print(f"meristem: {error}", file=sys.stderr)
        return 2
    except ImportError as error:
        print(f"meristem: {missing_package(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("meristem: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # whoever read our output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:  # a disk that is full, most of all: whatever was being written
        print(f"meristem: {f'{error.filename!r}: ' if error.filename else ''}{error.strerror or error}", file=sys.stderr)
        return 2
