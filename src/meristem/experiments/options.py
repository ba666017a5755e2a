"""The options of a study: fields of a dataclass, each with an Option that says how it is read, checked and explained.

    @dataclass(frozen=True, kw_only=True)
    class MyOptions(Options):
        seeds: int = 3                                          a common option with another default
        split: int = integer_option(1, "which split")           an option of its own: --split

The command line is built from them (`commands/parsing.py`), and `MyOptions(split=2)` is checked in the same way; a ValueError
names the option as it is written there. A field without an Option is a constant of the study.
"""

import argparse
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from meristem.check import MOST, check_number, check_size, unknown
from meristem.train.loop import MAX_EPOCHS

MAX_MEMBERS = 10_000  # of a population
PATH_RANGE = (0.1, 100.0)  # the ends of a penalty path, relative to --penalty
# Name → body; all but the plain highway network are penalized.
MODELS = {"tunnel": "tunnel", "budding": "budding", "highway": "highway", "highway-penalized": "highway"}
UNPENALIZED = "highway"


@dataclass(frozen=True)
class Option:
    """How a field is read, checked and explained."""

    help: str
    read: Callable[[str], Any] | None = None  # parses a value; None: a flag
    check: Callable[[str, Any], object] = lambda name, value: None  # of the option's name and each value; raises ValueError
    default_text: str = ""  # in place of the default
    metavar: str | None = None
    takes_many: bool = False  # several values, separated by spaces


def option(default: Any, help: str, *args: Any, **details: Any) -> Any:
    """Return a dataclass field with an Option; a default of MISSING makes it required."""
    return field(default=default, metadata={"option": Option(help, *args, **details)})


def names_option(default: Sequence[str] | None, choices: Iterable[str], help: str, **details: Any) -> Any:
    """Return a field of several of the choices, separated by commas."""
    return choice_option(default, choices, help, read=_split, **details)


def choice_option(default: Any, choices: Iterable[str | int], help: str, **details: Any) -> Any:
    """Return a field of one of the choices, which are of one type."""
    allowed = list(choices)

    def check(name: str, value: str | int) -> None:
        if value not in allowed:
            raise unknown(name, value, list(map(str, allowed)))

    return option(default, help, check=check, **{"read": type(default)} | details)


def numbers_option(default: Any, help: str, range_text: str, is_valid: Callable[[float], bool], **details: Any) -> Any:
    """Return a field of one number or several, separated by commas."""
    check = partial(check_number, range_text=range_text, is_valid=lambda v: np.isfinite(v) and is_valid(v))
    return option(default, help, _split_numbers, check, **details)


def integer_option(default: int | None, help: str, *, least: int = 1, most: int = MOST, **details: Any) -> Any:
    """Return a field of an integer."""
    return option(default, help, int, partial(check_size, least=least, most=most), **{"metavar": "N"} | details)


def folder_option(content: str) -> Any:
    """Return a field of a folder of data; None is where data are searched by default."""
    where = "$MERISTEM_DATA, else the user's cache"
    return option(None, f"the folder with {content}", Path, default_text=where, metavar="DIR")


def flag(name: str) -> str:
    """Return an option as it is written: '--max-epochs' for 'max_epochs'."""
    return f"--{name.replace('_', '-')}"


def _split(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _split_numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(number) for number in _split(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number, or several with commas, as in 0.0003,0.001") from None


class Member(NamedTuple):
    """The settings of one network of a population."""

    input_dropout: float
    learning_rate: float
    penalty: float
    seed: int


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of every study; a subclass changes defaults and adds its own."""

    default_rate: ClassVar[float] = 0.001
    other_rates: ClassVar[Mapping[str, float]] = {}  # of models with another default
    from_paper: ClassVar[tuple[str, ...]] = ()  # options whose defaults are the paper's

    rate: tuple[float, ...] | None = numbers_option(
        None, "the learning rate; of several with commas each model keeps one", "above 0", lambda v: v > 0
    )
    penalty: tuple[float, ...] = numbers_option(
        (0.001,),
        "the price of complexity λ, relative to the mean loss; of several with commas each model keeps one",
        "of at least 0",
        lambda v: v >= 0,
    )
    penalties: int | None = integer_option(
        None,
        "a path: so many prices, from a tenth of the usual one to a hundred times it, in place of --penalty, as one population "
        "of networks that settle; draws error against size",
        least=2,
        most=MAX_MEMBERS,
        default_text="none",
    )
    choose: str = choice_option(
        "best",
        ["best", "smallest"],
        "which of several settings a model keeps: the best, by the measure that selects its best epoch, or the smallest "
        "network within one standard error of it",
        metavar="HOW",
    )
    models: tuple[str, ...] = names_option(("tunnel", "budding", "highway"), MODELS, f"with commas, of {', '.join(MODELS)}")
    seeds: int = integer_option(1, "seeds 0 … N−1", most=MAX_MEMBERS)
    max_epochs: int = integer_option(MAX_EPOCHS, "stop there at the latest")
    width: int | None = integer_option(None, "units of a layer", default_text="the paper's")
    depth: int | None = integer_option(None, "layers of a tunnel or highway", default_text="the paper's")
    settle: bool = option(False, "what is not worth its price closes for good, see docs/sizes.md; not the paper's rule")
    budget: int | None = integer_option(
        None, "at most so many parameters, in place of a penalty: networks settle and learn their width", default_text="none"
    )
    input_dropout: tuple[float, ...] = (0.0,)
    select_rate: bool = False  # by the paper's rule, see study_training.py

    def __post_init__(self) -> None:
        """Remove repeated values from lists and check every option."""
        for name, option in self.described().items():
            value = getattr(self, name)
            if isinstance(value, tuple | list):
                value = tuple(dict.fromkeys(value))
                object.__setattr__(self, name, value)
                if not value:
                    raise ValueError(f"{flag(name)} is empty; give one value, or several with commas.")
            for entry in value if isinstance(value, tuple) else [] if value is None else [value]:
                option.check(flag(name), entry)
        if self.penalties is not None and len(self.penalty) > 1:
            raise ValueError(f"--penalties={self.penalties} makes a path of one price; give a single --penalty with it.")
        if self.penalties is not None and self.budget is not None:
            raise ValueError(
                f"--penalties={self.penalties} is a path of prices, --budget={self.budget} finds its own; give one."
            )

    @classmethod
    def described(cls) -> dict[str, Option]:
        """Return the option of each field that has one, with the text of its default; the study's own come first."""
        options: dict[str, Option] = {}
        for ancestor in reversed(cls.__mro__[:-1]):  # a field that changes a default inherits the option
            options |= {field.name: field.metadata["option"] for field in fields(ancestor) if field.metadata}
        texts = {field.name: cls._default_text(field) for field in fields(cls)}
        own_first = sorted((name for name in texts if name in options), key=Options.__dataclass_fields__.__contains__)
        return {name: replace(options[name], default_text=options[name].default_text or texts[name]) for name in own_first}

    @classmethod
    def _default_text(cls, field: Any) -> str:
        if field.default is MISSING or field.default is False:
            return ""
        values = field.default if isinstance(field.default, tuple) else (field.default,)
        text = ",".join(f"{value:g}" if isinstance(value, float) else str(value) for value in values)
        if field.name == "rate":
            text = ", ".join([f"{cls.default_rate:g}", *(f"of {model} {rate:g}" for model, rate in cls.other_rates.items())])
        return f"{text}, the paper's" if field.name in cls.from_paper else text

    def rates_of(self, model: str) -> tuple[float, ...]:
        """Return the learning rates that are tried."""
        return (self.other_rates.get(model, self.default_rate),) if self.rate is None else self.rate

    def members(self, model: str) -> list[Member]:
        """Return the settings of each network: every rate with every penalty and input dropout, for every seed."""
        penalties: Sequence[float] = (0.0,) if model == UNPENALIZED else self.penalty
        if self.penalties is not None and model != UNPENALIZED:
            low, high = (end * self.penalty[0] for end in PATH_RANGE)
            penalties = np.geomspace(low, high, self.penalties).tolist()
        grid = itertools.product(self.input_dropout, self.rates_of(model), penalties, range(self.seeds))
        return [Member(*settings) for settings in grid]
