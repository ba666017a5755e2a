"""The options of a study: fields of a dataclass, each with its argument on the command line and a check of its values.

    @dataclass(frozen=True, kw_only=True)
    class MyOptions(Options):
        seeds: int = 3                                          a common option with another default
        split: int = integer_option(1, "which split")           an option of its own: --split

The command line is built from them (`commands/parsing.py`), and `MyOptions(split=2)` is checked in the same way; a ValueError
names the option as it is written there. Any other field is a constant of the study.
"""

import argparse
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from meristem.check import MOST, check_number, check_size, unknown
from meristem.nn.images import IMAGE_BODIES
from meristem.train.loop import MAX_EPOCHS

MAX_MEMBERS = 10_000  # of a population
PATH_RANGE = (0.1, 100.0)  # the ends of a penalty path, relative to --penalty
# Name → body; all but the plain highway network are penalized.
FEATURE_MODELS = {"tunnel": "tunnel", "budding": "budding", "highway": "highway", "highway-penalized": "highway"}
MODELS = FEATURE_MODELS | {body: body for body in IMAGE_BODIES}
UNPENALIZED = "highway"


def option(default: Any, help: str, check: Callable[[str, Any], object] = lambda name, value: None, **argument: Any) -> Any:
    """Return a field that is an option; `argument` is for argparse, but for `default_text`, shown in place of the default."""
    return field(default=default, metadata={"check": check, "help": help, **argument})


def choice_option(default: Any, choices: Iterable[str | int], help: str, **argument: Any) -> Any:
    """Return a field of one of the choices; of several, separated by commas, if the default is a tuple or None."""
    allowed, read = list(choices), type(default) if isinstance(default, str | int) else _split

    def check(name: str, value: str | int) -> None:
        if value not in allowed:
            raise unknown(name, value, [*map(str, allowed)])

    return option(default, help, check, type=read, **argument)


def numbers_option(default: Any, help: str, range_text: str, is_valid: Callable[[float], bool], **argument: Any) -> Any:
    """Return a field of one number or several, separated by commas."""
    check = partial(check_number, range_text=range_text, is_valid=lambda v: np.isfinite(v) and is_valid(v))
    return option(default, help, check, type=_split_numbers, **argument)


def integer_option(default: int | None, help: str, *, least: int = 1, most: int = MOST, **details: Any) -> Any:
    return option(default, help, partial(check_size, least=least, most=most), type=int, **{"metavar": "N"} | details)


def folder_option(content: str) -> Any:
    """Return a field of a folder of data; None is where data are searched by default."""
    where = "$MERISTEM_DATA, else the user's cache"
    return option(None, f"the folder with {content}", default_text=where, type=Path, metavar="DIR")


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
    models: tuple[str, ...] = choice_option(
        ("tunnel", "budding", "highway"), FEATURE_MODELS, f"with commas, of {', '.join(FEATURE_MODELS)}"
    )
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
        for name, metadata in self._metadata().items():
            value = getattr(self, name)
            if isinstance(value, tuple | list):
                value = tuple(dict.fromkeys(value))
                object.__setattr__(self, name, value)
                if not value:
                    raise ValueError(f"{flag(name)} is empty; give one value, or several with commas.")
            for entry in value if isinstance(value, tuple) else [] if value is None else [value]:
                metadata["check"](flag(name), entry)
        if self.penalties is not None and len(self.penalty) > 1:
            raise ValueError(f"--penalties={self.penalties} makes a path of one price; give a single --penalty with it.")
        if self.penalties is not None and self.budget is not None:
            raise ValueError(f"--penalties={self.penalties} tries prices, --budget={self.budget} finds its own; give one.")

    @classmethod
    def _metadata(cls) -> dict[str, dict[str, Any]]:
        """Return what `option` recorded of each field, the study's own first; one that changes a default inherits the rest."""
        ancestors = cls.__mro__[:-1][::-1]
        options = {field.name: dict(field.metadata) for parent in ancestors for field in fields(parent) if field.metadata}
        return {name: options[name] for name in sorted(options, key=Options.__dataclass_fields__.__contains__)}

    @classmethod
    def arguments(cls) -> dict[str, dict[str, Any]]:
        """Return the keyword arguments of argparse's `add_argument` for each option."""
        arguments = cls._metadata()
        for name, argument in arguments.items():
            default, text = cls.__dataclass_fields__[name].default, argument.pop("default_text", "")
            del argument["check"]
            argument |= {"dest": name} | ({"required": True} if default is MISSING else {"default": default})
            if default is False:
                argument["action"] = "store_true"
            elif default is not MISSING:
                argument["help"] += f" (default: {text or cls._default_text(name, default)})"
            argument["help"] = argument["help"].replace("%", "%%")
        return arguments

    @classmethod
    def _default_text(cls, name: str, default: Any) -> str:
        values = default if isinstance(default, tuple) else (default,)
        text = ",".join(f"{value:g}" if isinstance(value, float) else str(value) for value in values)
        if name == "rate":
            text = ", ".join([f"{cls.default_rate:g}", *(f"of {model} {rate:g}" for model, rate in cls.other_rates.items())])
        return f"{text}, the paper's" if name in cls.from_paper else text

    def rates_of(self, model: str) -> tuple[float, ...]:
        return (self.other_rates.get(model, self.default_rate),) if self.rate is None else self.rate

    def members(self, model: str) -> list[Member]:
        """Return the settings of each network: every rate with every penalty and input dropout, for every seed."""
        penalties: Sequence[float] = (0.0,) if model == UNPENALIZED else self.penalty
        if self.penalties is not None and model != UNPENALIZED:
            low, high = (end * self.penalty[0] for end in PATH_RANGE)
            penalties = np.geomspace(low, high, self.penalties).tolist()
        grid = itertools.product(self.input_dropout, self.rates_of(model), penalties, range(self.seeds))
        return [Member(*settings) for settings in grid]
