"""Argument parsing: errors in one line, options by their full names, an example below every help text."""

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn


class Parser(argparse.ArgumentParser):
    """A parser with errors in one line, and options by their full names only (--seed is not --seeds)."""

    def __init__(self, *args: Any, **options: Any):
        super().__init__(*args, **{"allow_abbrev": False, **options})

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def add_command(
    commands: Any, name: str, *, run: Callable[[argparse.Namespace], int | None], example: str, more: str = "", **texts: str
) -> argparse.ArgumentParser:
    """Add a command that calls `run`; `texts`: help and description; `more` follows the example."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name, epilog=f"example:\n  {example}\n{more}", formatter_class=argparse.RawDescriptionHelpFormatter, **texts
    )
    parser.set_defaults(run=run)
    return parser


def add_table_arguments(parser: argparse.ArgumentParser) -> None:
    """Add TABLE and how to read it."""
    option = parser.add_argument
    option("table", metavar="TABLE", help="a CSV file (may be gzipped), a Parquet file, or - for CSV on standard input")
    option("--sep", metavar="CHAR", help="column separator of a CSV file (default: detected from its header)")
    option("--encoding", metavar="NAME", help="encoding of a CSV file, such as cp1252 (default: utf-8)")


@contextmanager
def as_options(*names: str, **others: str) -> Iterator[None]:
    """Inside, rewrite errors that begin with one of these argument names to name the option instead.

    >>> with as_options(random_state="seed"):
    ...     raise ValueError("random_state=-1 must be an integer of at least 0.")
    Traceback (most recent call last):
    ValueError: --seed=-1 must be an integer of at least 0.
    """
    try:
        yield
    except ValueError as error:
        name, equals, rest = str(error).partition("=")
        options = dict(zip(names, names, strict=True)) | others
        if not equals or name not in options:
            raise
        raise ValueError(f"--{options[name].replace('_', '-')}={rest}") from error
