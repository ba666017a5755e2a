"""What a person may set of a study: the fields of a dataclass, each with how it is read, checked and explained.

    @dataclass(frozen=True, kw_only=True)
    class MyOptions(Options):
        split: int = whole_option(1, "which split")

The command line is made of these fields (`commands/reproduce.py`), `split` as `--split`; `MyOptions(split=2)` is checked in the
same way. What does not fit is a ValueError of one line. A field without an `Option` is not on the command line: a constant of
the study.
"""

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from meristem.check import unknown
from meristem.experiments.choice import CHOICES
from meristem.experiments.models import MODELS
from meristem.experiments.runs import Trials
from meristem.train.loop import MAX_EPOCHS

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
        if not (np.isfinite(value) and fits(value)):
            raise ValueError(f"{name}={value} must be a finite number {must}.")


# Kinds of options -----------------------------------------------------------------------------------------------------------


def names_option(
    default: Sequence[str] | None, known: Iterable[str], help: str, *, usual: str = "", older: tuple[str, ...] = ()
) -> Any:
    """Some of the known names, with commas."""
    choices = list(known)
    check = lambda name, values: check_names(name, values, choices)  # noqa: E731
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
    check = lambda name, values: check_numbers(name, values, must, fits)  # noqa: E731
    return Option(help, words, read_numbers, check, metavar).field(default)


def whole_option(default: int, help: str, *, least: int = 1, metavar: str = "N") -> Any:
    """A whole number."""

    def check(name: str, value: int) -> None:
        if value < least:
            raise ValueError(f"{name}={value} must be at least {least}.")

    return Option(help, str(default), int, check, metavar).field(default)


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


# What every study takes -----------------------------------------------------------------------------------------------------


def models_option(*default: str) -> Any:
    """Which models are trained."""
    return names_option(default, MODELS, f"with commas, of {', '.join(MODELS)}")


def seeds_option(default: int) -> Any:
    """How many of each."""
    return whole_option(default, "seeds 0 … N−1")


def rates_option(usual: Mapping[str, float]) -> Any:
    """The rates that are tried; None: each model's own."""
    common = max(set(usual.values()), key=list(usual.values()).count)
    others = [f"of {model} {rate:g}" for model, rate in usual.items() if rate != common] or ["the paper's"]
    text = "the learning rate; of several with commas each model keeps one"
    return numbers_option(None, text, must="above 0", fits=lambda v: v > 0, usual=", ".join([f"{common:g}", *others]))


def penalties_option(default: float) -> Any:
    """The prices of complexity that are tried."""
    text = "the price of complexity λ, relative to the mean loss; of several with commas each model keeps one"
    usual = f"{default:g}, the paper's"
    return numbers_option((default,), text, must="of at least 0", fits=lambda v: v >= 0, usual=usual)


def dropouts_option(default: float) -> Any:
    """The shares of dropped inputs that are tried."""
    text = "inputs set to 0 in each step, one share or several with commas"
    must, usual = "of at least 0 and below 1", f"{default:g}, the paper's"
    return numbers_option((default,), text, must=must, fits=lambda v: 0 <= v < 1, usual=usual, metavar="SHARE")


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of every study; a study's own class gives its defaults, and adds what is its own."""

    usual_rates: ClassVar[Mapping[str, float]]  # of each model

    rate: tuple[float, ...] | None = rates_option(dict.fromkeys(MODELS, 0.001))
    penalty: tuple[float, ...] = penalties_option(0.001)
    choose: str = name_option(
        "best",
        CHOICES,
        "which of several settings a model keeps: the best, by the measure that selects its best epoch, or the smallest "
        "network within one standard error of it",
        metavar="HOW",
    )
    models: tuple[str, ...] = models_option("tunnel", "budding", "highway")
    seeds: int = seeds_option(1)
    max_epochs: int = whole_option(MAX_EPOCHS, "stop there at the latest")
    input_dropout: tuple[float, ...] = (0.0,)
    select_rate: bool = False  # the paper's rule, see select_rate.py

    def __post_init__(self) -> None:
        """Lists with each value once; every value as its option wants it."""
        for one in fields(self):
            value, option = getattr(self, one.name), option_of(one)
            if isinstance(value, tuple | list):
                value = tuple(dict.fromkeys(value))
                object.__setattr__(self, one.name, value)
            if option is not None and value is not None:
                option.check(flag(one.name), value)

    def rates_of(self, model: str) -> tuple[float, ...]:
        """Those at which a model is tried."""
        return (self.usual_rates[model],) if self.rate is None else self.rate

    def trials(self, model: str) -> Trials:
        """All that is tried of a model."""
        return Trials(self.rates_of(model), self.penalty, self.seeds, self.max_epochs, self.input_dropout, self.choose)
