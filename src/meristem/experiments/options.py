"""What a person may set of a study: the fields of a dataclass, checked where it is made.

    @dataclass(frozen=True, kw_only=True)
    class MyOptions(Options):
        split: int = whole_option(1, "which split")

The command line is made of these fields (`commands/reproduce.py`), `split` as `--split`; `MyOptions(split=2)` is checked in the
same way. A field without an `Option` (option.py) is not on the command line: a constant of the study.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from meristem.experiments.choice import CHOICES
from meristem.experiments.models import MODELS
from meristem.experiments.option import flag, name_option, names_option, numbers_option, option_of, switch_option, whole_option
from meristem.experiments.runs import Task, Trials
from meristem.train.loop import MAX_EPOCHS

MOST_MEMBERS = 10_000  # of a population
PATH = (0.1, 100.0)  # the ends of a path, times the usual price
THE_PAPERS = ", the paper's"  # a note on a default


def models_option(*default: str) -> Any:
    """Which models are trained."""
    return names_option(default, MODELS, f"with commas, of {', '.join(MODELS)}")


def seeds_option(default: int) -> Any:
    """How many of each."""
    return whole_option(default, "seeds 0 … N−1", most=MOST_MEMBERS)


def rates_option(usual: Mapping[str, float], note: str = "") -> Any:
    """The rates that are tried; None: each model's own. `note`: what to say of the default."""
    common = max(set(usual.values()), key=list(usual.values()).count)
    others = [f"of {model} {rate:g}" for model, rate in usual.items() if rate != common]
    text, words = "the learning rate; of several with commas each model keeps one", ", ".join([f"{common:g}", *others]) + note
    return numbers_option(None, text, must="above 0", fits=lambda v: v > 0, usual=words)


def penalties_option(default: float, note: str = "") -> Any:
    """The prices of complexity that are tried."""
    text = "the price of complexity λ, relative to the mean loss; of several with commas each model keeps one"
    return numbers_option((default,), text, must="of at least 0", fits=lambda v: v >= 0, usual=f"{default:g}{note}")


def dropouts_option(default: float, note: str = "") -> Any:
    """The shares of dropped inputs that are tried."""
    text, must = "inputs set to 0 in each step, one share or several with commas", "of at least 0 and below 1"
    return numbers_option((default,), text, must=must, fits=lambda v: 0 <= v < 1, usual=f"{default:g}{note}", metavar="SHARE")


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of every study; a study's own class gives its defaults, and adds what is its own."""

    usual_rates: ClassVar[Mapping[str, float]] = dict.fromkeys(MODELS, 0.001)

    rate: tuple[float, ...] | None = rates_option(usual_rates)
    penalty: tuple[float, ...] = penalties_option(0.001)
    penalties: int | None = whole_option(
        None,
        "a path: so many prices, from a tenth of the usual one to a hundred times it, in place of --penalty, as one population "
        "of networks that settle; draws error against size",
        least=2,
        most=MOST_MEMBERS,
        usual="none",
    )
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
    width: int | None = whole_option(None, "units of a layer", usual="the paper's")
    depth: int | None = whole_option(None, "layers of a tunnel or highway", usual="the paper's")
    settle: bool = switch_option("what is not worth its price closes for good, see docs/sizes.md; not the paper's rule")
    budget: int | None = whole_option(
        None, "at most so many parameters, in place of a penalty: networks settle and learn their width", usual="none"
    )
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
        if self.penalties is not None and len(self.penalty) > 1:
            raise ValueError(f"--penalties={self.penalties} makes a path of one price; give a single --penalty with it.")
        if self.penalties is not None and self.budget is not None:
            raise ValueError(
                f"--penalties={self.penalties} is a path of prices, --budget={self.budget} finds its own; give one."
            )

    def rates_of(self, model: str) -> tuple[float, ...]:
        """Those at which a model is tried."""
        return (self.usual_rates[model],) if self.rate is None else self.rate

    @property
    def prices(self) -> tuple[float, ...]:
        """The penalties that are tried."""
        if self.penalties is None:
            return self.penalty
        low, high = (span * self.penalty[0] for span in PATH)
        return tuple(np.geomspace(low, high, self.penalties).tolist())

    def sized(self, task: Task) -> Task:
        """The task with networks of the size that is asked for, which settle where that is asked for."""
        sized = replace(task, width=self.width or task.width, depth=self.depth or task.depth)
        if self.budget is not None:
            recipe = replace(task.recipe, settle=True, price="parameters")
            return replace(sized, recipe=recipe, learns_width=True)
        settles = self.settle or self.penalties is not None
        return replace(sized, recipe=replace(task.recipe, settle=True)) if settles else sized

    def trials(self, model: str) -> Trials:
        """All that is tried of a model."""
        return Trials(
            self.rates_of(model),
            self.prices,
            self.seeds,
            self.max_epochs,
            self.input_dropout,
            self.choose,
            self.budget,
            is_path=self.penalties is not None,
        )
