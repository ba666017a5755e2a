"""An option as data: the field of a dataclass, with how it is read from a text, checked and explained.

    split: int = whole_option(1, "which split")

What does not fit is a ValueError of one line that names the option as it is written on the command line. Imports nothing of the
studies; their options are made of these.
"""

import argparse
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from meristem.check import MOST, short, unknown

Check = Callable[[str, Any], None]  # the option's name and its value; raises ValueError


@dataclass(frozen=True)
class Option:
    """How a field is given."""

    help: str
    usual: str = ""  # the default, in words
    read: Callable[[str], Any] | None = None  # from a text; None: a flag
    check: Check = lambda name, value: None
    metavar: str | None = None
    takes_many: bool = False  # texts with spaces between them
    older: tuple[str, ...] = ()  # other spellings, accepted and not shown

    def field(self, default: Any) -> Any:
        """The field of a dataclass; a default of `...` makes it a required one."""
        given = {} if default is ... else {"default": default}
        return field(**given, metadata={"option": self})


def option_of(field: Any) -> Option | None:
    """That of a dataclass's field."""
    return field.metadata.get("option")


def flag(name: str) -> str:
    """An option as it is written.

    >>> flag("max_epochs")
    '--max-epochs'
    """
    return f"--{name.replace('_', '-')}"


# Reading and checking -------------------------------------------------------------------------------------------------------


def read_names(text: str) -> tuple[str, ...]:
    """A list with commas.

    >>> read_names("tunnel, budding,")
    ('tunnel', 'budding')
    """
    return tuple(name.strip() for name in text.split(",") if name.strip())


def read_numbers(text: str) -> tuple[float, ...]:
    """A list of numbers with commas.

    >>> read_numbers("0.001,3e-4")
    (0.001, 0.0003)
    """
    try:
        return tuple(float(name) for name in read_names(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number, or several with commas, as in 0.0003,0.001") from None


def check_names(name: str, values: Sequence[str], known: list[str]) -> None:
    """That an option holds names, and none but the known ones."""
    if not values:
        raise ValueError(f"{name} is empty; choose of: {', '.join(known)}.")
    for value in values:
        if value not in known:
            raise unknown(name, value, known)


def check_numbers(name: str, values: Sequence[float], must: str, fits: Callable[[float], bool]) -> None:
    """That an option holds numbers, and none but those that fit."""
    if not values:
        raise ValueError(f"{name} is empty; give a number, or several with commas.")
    for value in values:
        with np.errstate(over="ignore", under="ignore"):
            single = np.float32(value)
        if not (np.isfinite(single) and fits(value) and fits(float(single))):
            raise ValueError(f"{name}={value} must be a finite number {must}, of those that single precision holds.")


# Kinds of options -----------------------------------------------------------------------------------------------------------


def names_option(
    default: Sequence[str] | None, known: Iterable[str], help: str, *, usual: str = "", older: tuple[str, ...] = ()
) -> Any:
    """Some of the known names, with commas."""
    check = partial(check_names, known=list(known))
    return Option(help, usual or ",".join(default or ()), read_names, check, older=older).field(default)


def name_option(default: str, known: Iterable[str], help: str, *, metavar: str | None = None) -> Any:
    """One of the known names."""
    choices = list(known)
    return Option(help, default, str, lambda name, value: check_names(name, [value], choices), metavar).field(default)


def numbers_option(
    default: Sequence[float] | None,
    help: str,
    *,
    must: str,
    fits: Callable[[float], bool],
    usual: str = "",
    metavar: str | None = None,
) -> Any:
    """One number or several, with commas."""
    words = usual or ",".join(f"{value:g}" for value in default or ())
    check = partial(check_numbers, must=must, fits=fits)
    return Option(help, words, read_numbers, check, metavar).field(default)


def whole_option(
    default: int | None, help: str, *, least: int = 1, most: int = MOST, usual: str = "", metavar: str = "N"
) -> Any:
    """A whole number; `usual`: what a default of None means."""

    def check(name: str, value: int) -> None:
        if value < least:
            raise ValueError(f"{name}={short(value)} must be at least {least}.")
        if value > most:
            raise ValueError(f"{name}={short(value)} must be at most {most:,}.")

    return Option(help, usual or str(default), int, check, metavar).field(default)


def one_of_option(default: int, known: Iterable[int], help: str, *, metavar: str) -> Any:
    """One of several whole numbers."""
    choices = list(known)

    def check(name: str, value: int) -> None:
        if value not in choices:
            raise ValueError(f"{name}={value} must be one of {', '.join(map(str, choices))}.")

    return Option(help, str(default), int, check, metavar).field(default)


def switch_option(help: str) -> Any:
    """Something that is off unless it is asked for."""
    return Option(help).field(False)


def folder_option(what: str) -> Any:
    """Where data are; None: where they are usually found."""
    return Option(f"the folder with {what}", "$MERISTEM_DATA, else the user's cache", Path, metavar="DIR").field(None)


def files_option(help: str) -> Any:
    """One or more files, which must be given."""
    return Option(help, read=Path, metavar="FILE", takes_many=True).field(...)
