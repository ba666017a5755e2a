"""How arguments are read: errors in one line, options by their full names, an example below every help."""

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn


class Parser(argparse.ArgumentParser):
    """Errors in one line; options by their full names (--seed is not --seeds)."""

    def __init__(self, *args: Any, **options: Any):
        super().__init__(*args, **{"allow_abbrev": False, **options})

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def add_command(
    commands: Any, name: str, *, run: Callable[[argparse.Namespace], int | None], example: str, more: str = "", **texts: str
) -> argparse.ArgumentParser:
    """A command's own parser; `run` does it. `texts`: help and description; `more` stands below the example."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name, epilog=f"example:\n  {example}\n{more}", formatter_class=argparse.RawDescriptionHelpFormatter, **texts
    )
    parser.set_defaults(run=run)
    return parser


@contextmanager
def as_options(*names: str, **others: str) -> Iterator[None]:
    """Inside, an error that begins with one of these names, as Python has them, names the option instead.

    >>> with as_options(random_state="seed"):
    ...     raise ValueError("random_state=-1 must be an integer of at least 0.")
    Traceback (most recent call last):
    ValueError: --seed=-1 must be an integer of at least 0.
    """
    try:
        yield
    except ValueError as error:
        name, mark, rest = str(error).partition("=")
        known = {**{one: one for one in names}, **others}
        if not mark or name not in known:
            raise
        raise ValueError(f"--{known[name].replace('_', '-')}={rest}") from error
