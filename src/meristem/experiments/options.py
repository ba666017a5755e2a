"""The options of a study: fields of a dataclass, with how each is read from the command line, checked and explained.

    @dataclass(frozen=True, kw_only=True)
    class MyOptions(Options):
        split: int = integer_option(1, "which split")

The command line is built from these fields (`commands/parsing.py`), `split` as `--split`; `MyOptions(split=2)` is checked in
the same way, and a ValueError names the option as it is written there. A field without an `Option` is a constant of the study.
"""

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from meristem.check import MOST, check_number, check_size, unknown
from meristem.experiments.setting_selection import RULES
from meristem.experiments.study_training import MODELS, Task, Trials
from meristem.train.loop import MAX_EPOCHS

MAX_MEMBERS = 10_000  # of a population
PATH_RANGE = (0.1, 100.0)  # the ends of a penalty path, relative to --penalty
FROM_PAPER = ", the paper's"  # a note on a default


@dataclass(frozen=True)
class Option:
    """How a field is read, checked and explained."""

    help: str
    default_text: str = ""
    read: Callable[[str], Any] | None = None  # parses a value; None: a flag
    check: Callable[[str, Any], object] = lambda name, value: None  # of the option's name and value; raises ValueError
    metavar: str | None = None
    takes_many: bool = False  # several values, separated by spaces
    old_spellings: tuple[str, ...] = ()  # accepted, not shown

    def field(self, default: Any) -> Any:
        """Return the field of a dataclass; a default of `...` makes it required."""
        return field(**({} if default is ... else {"default": default}), metadata={"option": self})


def option_of(field: Any) -> Option | None:
    """Return the Option of a dataclass's field."""
    return field.metadata.get("option")


def flag(name: str) -> str:
    """Return an option as it is written: '--max-epochs' for 'max_epochs'."""
    return f"--{name.replace('_', '-')}"


# Kinds of options -----------------------------------------------------------------------------------------------------------


def names_option(
    default: Sequence[str] | None,
    choices: Iterable[str],
    help: str,
    *,
    default_text: str = "",
    old_spellings: tuple[str, ...] = (),
) -> Any:
    """Return a field of several of the choices, separated by commas."""
    choices = list(choices)

    def check(name: str, values: Sequence[str]) -> None:
        if not values:
            raise ValueError(f"{name} is empty; choose of: {', '.join(choices)}.")
        for value in values:
            if value not in choices:
                raise unknown(name, value, choices)

    text = default_text or ",".join(default or ())
    return Option(help, text, _split, check, old_spellings=old_spellings).field(default)


def choice_option(default: str | int, choices: Iterable[str | int], help: str, *, metavar: str | None = None) -> Any:
    """Return a field of one of the choices, which are of one type."""
    choices = list(choices)

    def check(name: str, value: str | int) -> None:
        if value not in choices:
            raise unknown(name, value, [str(choice) for choice in choices])

    return Option(help, str(default), type(default), check, metavar).field(default)


def numbers_option(
    default: Sequence[float] | None,
    help: str,
    range_text: str,
    is_valid: Callable[[float], bool],
    default_text: str,
    metavar: str | None = None,
) -> Any:
    """Return a field of one number or several, separated by commas."""

    def check(name: str, values: Sequence[float]) -> None:
        if not values:
            raise ValueError(f"{name} is empty; give a number, or several with commas.")
        for value in values:
            check_number(name, value, range_text, lambda v: np.isfinite(v) and is_valid(v))

    return Option(help, default_text, _split_numbers, check, metavar).field(default)


def integer_option(
    default: int | None, help: str, *, least: int = 1, most: int = MOST, default_text: str = "", metavar: str = "N"
) -> Any:
    """Return a field of an integer; `default_text` explains a default of None."""

    def check(name: str, value: int) -> None:
        check_size(name, value, least, most)

    return Option(help, default_text or str(default), int, check, metavar).field(default)


def switch_option(help: str) -> Any:
    return Option(help).field(False)


def folder_option(content: str) -> Any:
    """Return a field of a folder of data; None is where data are searched by default."""
    return Option(f"the folder with {content}", "$MERISTEM_DATA, else the user's cache", Path, metavar="DIR").field(None)


def files_option(help: str) -> Any:
    """Return a required field of one or more files."""
    return Option(help, read=Path, metavar="FILE", takes_many=True).field(...)


def models_option(*default: str) -> Any:
    return names_option(default, MODELS, f"with commas, of {', '.join(MODELS)}")


def seeds_option(default: int) -> Any:
    return integer_option(default, "seeds 0 … N−1", most=MAX_MEMBERS)


def rates_option(defaults: Mapping[str, float], note: str = "") -> Any:
    """Return a field of the learning rates that are tried; None: the default of each model."""
    rates = list(defaults.values())
    common = max(set(rates), key=rates.count)
    text = ", ".join([f"{common:g}", *(f"of {model} {rate:g}" for model, rate in defaults.items() if rate != common)])
    help = "the learning rate; of several with commas each model keeps one"
    return numbers_option(None, help, "above 0", lambda v: v > 0, text + note)


def penalties_option(default: float, note: str = "") -> Any:
    """Return a field of the penalties that are tried."""
    help = "the price of complexity λ, relative to the mean loss; of several with commas each model keeps one"
    return numbers_option((default,), help, "of at least 0", lambda v: v >= 0, f"{default:g}{note}")


def dropouts_option(default: float, note: str = "") -> Any:
    """Return a field of the input dropouts that are tried."""
    help, range_text = "inputs set to 0 in each step, one share or several with commas", "of at least 0 and below 1"
    return numbers_option((default,), help, range_text, lambda v: 0 <= v < 1, f"{default:g}{note}", metavar="SHARE")


def _split(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _split_numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(number) for number in _split(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number, or several with commas, as in 0.0003,0.001") from None


# The options of every study -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of every study; a subclass changes defaults and adds its own."""

    default_rates: ClassVar[Mapping[str, float]] = dict.fromkeys(MODELS, 0.001)

    rate: tuple[float, ...] | None = rates_option(default_rates)
    penalty: tuple[float, ...] = penalties_option(0.001)
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
        RULES,
        "which of several settings a model keeps: the best, by the measure that selects its best epoch, or the smallest "
        "network within one standard error of it",
        metavar="HOW",
    )
    models: tuple[str, ...] = models_option("tunnel", "budding", "highway")
    seeds: int = seeds_option(1)
    max_epochs: int = integer_option(MAX_EPOCHS, "stop there at the latest")
    width: int | None = integer_option(None, "units of a layer", default_text="the paper's")
    depth: int | None = integer_option(None, "layers of a tunnel or highway", default_text="the paper's")
    settle: bool = switch_option("what is not worth its price closes for good, see docs/sizes.md; not the paper's rule")
    budget: int | None = integer_option(
        None, "at most so many parameters, in place of a penalty: networks settle and learn their width", default_text="none"
    )
    input_dropout: tuple[float, ...] = (0.0,)
    select_rate: bool = False  # by the paper's rule, see `train_selecting_rate`

    def __post_init__(self) -> None:
        """Remove repeated values from lists and check every option."""
        for option_field in fields(self):
            name, option = option_field.name, option_of(option_field)
            value = getattr(self, name)
            if isinstance(value, tuple | list):
                value = tuple(dict.fromkeys(value))
                object.__setattr__(self, name, value)
            if option is not None and value is not None:
                option.check(flag(name), value)
        if self.penalties is not None and len(self.penalty) > 1:
            raise ValueError(f"--penalties={self.penalties} makes a path of one price; give a single --penalty with it.")
        if self.penalties is not None and self.budget is not None:
            raise ValueError(
                f"--penalties={self.penalties} is a path of prices, --budget={self.budget} finds its own; give one."
            )

    def rates_of(self, model: str) -> tuple[float, ...]:
        """Return the learning rates that are tried."""
        return (self.default_rates[model],) if self.rate is None else self.rate

    def resized(self, task: Task) -> Task:
        """Return the task with networks of the requested size, which settle if that is requested."""
        task = replace(task, width=self.width or task.width, depth=self.depth or task.depth)
        if self.budget is not None:
            return replace(task, recipe=replace(task.recipe, settle=True, price="parameters"), learns_width=True)
        if self.settle or self.penalties is not None:
            return replace(task, recipe=replace(task.recipe, settle=True))
        return task

    def trials(self, model: str) -> Trials:
        """Return all that is tried of a model."""
        penalties = self.penalty
        if self.penalties is not None:
            low, high = (end * self.penalty[0] for end in PATH_RANGE)
            penalties = tuple(np.geomspace(low, high, self.penalties).tolist())
        return Trials(
            rates=self.rates_of(model),
            penalties=penalties,
            seeds=self.seeds,
            max_epochs=self.max_epochs,
            dropouts=self.input_dropout,
            choose=self.choose,
            budget=self.budget,
            is_path=self.penalties is not None,
        )
