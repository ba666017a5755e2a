"""A column that a model reads, and the features it becomes: plain data, learned from the training rows.

    number      one feature: its value, NaN where it is missing
    date        one feature: days since 1970-01-01, NaN where it is missing
    category    a feature of 0 and 1 for each frequent text, from the most frequent to the least; "(other)" for all rarer ones,
                "(missing)" where some were missing. Of two kinds of row one is enough: the rarer has the feature

    field.features → names;  field.texts → categories by code;  field.trace(ops, value) → its features

The value of a category is its code: the place among `texts`, UNSEEN or MISSING. An unseen category counts as "(other)", or as
nothing where there is no such feature: all features of the column are 0. So does a missing one. From texts to codes is a table
of `spellings` (texts.py); from codes on everything is arithmetic, the same in NumPy, ONNX and PyTorch. A tensor or a column of
codes would be further kinds. Imports texts and the operations; schema, tables and exports import it.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np

from meristem.check import short
from meristem.inputs.texts import MISSING_TEXTS, spellings
from meristem.layers.ops.base import InputOps

NUMBER, DATE, CATEGORY = "number", "date", "category"
MISSING, UNSEEN = -1, -2  # codes: the last two places of a table by code
MOST_TEXTS = 1000  # different texts of a column of categories
TOO_MANY_TEXTS = f"more than {MOST_TEXTS:,} categories"  # why a column of more is dropped
OTHERS, GAP = "(other)", "(missing)"
V = TypeVar("V")


@dataclass(frozen=True)
class Field:
    """See the module's header; `why` says in words what the column was taken for."""

    name: str
    kind: str = NUMBER
    why: str = ""
    categories: tuple[str, ...] = ()  # those that have a feature of their own
    rare: tuple[str, ...] = ()  # those that share one
    has_missing: bool = False  # whether rows without a category have a feature
    silent: str | None = None  # the category that has none, because there are two kinds of row

    @cached_property
    def features(self) -> list[str]:
        """Names of its features."""
        if self.kind != CATEGORY:
            return [self.name if self.kind == NUMBER else f"{self.name} (days)"]
        further = [OTHERS] * bool(self.rare) + [GAP] * self.has_missing
        return [f"{self.name}={text}" for text in [*self.categories, *further]]

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """All categories of the training rows, by code."""
        return (*self.categories, *self.rare, *(() if self.silent is None else (self.silent,)))

    @cached_property
    def places(self) -> np.ndarray:
        """The feature [codes] of each code, −1 for none; the last two are those of UNSEEN and MISSING."""
        places = np.full(len(self.texts) + 2, -1)
        places[: len(self.categories)] = np.arange(len(self.categories))
        if self.rare:
            places[len(self.categories) : len(self.categories) + len(self.rare)] = places[UNSEEN] = len(self.categories)
        if self.has_missing:
            places[MISSING] = len(self.features) - 1
        return places

    @cached_property
    def codes(self) -> dict[str, int]:
        """The code of every raw text that has one; all others are UNSEEN.

        >>> Field("metal", CATEGORY, categories=("gold", "tin")).codes["gold "]
        0
        """
        codes = {raw: MISSING for text in sorted(MISSING_TEXTS) for raw in spellings(text)}
        return codes | {raw: code for code, text in enumerate(self.texts) for raw in spellings(text)}

    def trace(self, ops: InputOps[V], value: V) -> V:
        """Its features [N, features] from its value [N, 1]: a number, days, or a code."""
        return value if self.kind != CATEGORY else ops.one_hot(self.places, len(self.features), value)

    def as_json(self) -> dict[str, Any]:
        """Made of JSON's values."""
        return {
            "name": self.name,
            "kind": self.kind,
            "why": self.why,
            "categories": [*self.categories],
            "rare": [*self.rare],
            "has_missing": self.has_missing,
            "silent": self.silent,
        }

    @classmethod
    def of_json(cls, entry: dict[str, Any]) -> Self:
        """What `as_json` gave; ValueError where it is something else."""
        silent, has_missing = entry["silent"], entry["has_missing"]
        if not isinstance(entry["categories"], list) or not isinstance(entry["rare"], list):
            raise ValueError(f"its column {short(entry['name'])} has categories that are no list.")
        if (n := len(entry["categories"]) + len(entry["rare"])) > MOST_TEXTS:
            raise ValueError(f"its column {short(entry['name'])} has {n:,} categories; a table has at most {MOST_TEXTS:,}.")
        field = cls(
            name=text_of(entry["name"]),
            kind=text_of(entry["kind"]),
            why=text_of(entry["why"]),
            categories=tuple(map(text_of, entry["categories"])),
            rare=tuple(map(text_of, entry["rare"])),
            has_missing=has_missing is True,
            silent=None if silent is None else text_of(silent),
        )
        is_sound = bool(field.name) and field.kind in (NUMBER, DATE, CATEGORY) and type(has_missing) is bool
        if not is_sound or not field.features or len(set(field.texts)) < len(field.texts):
            raise ValueError(f"its column {short(field.name)} does not hold together.")
        return field


def text_of(value: Any) -> str:
    """A text of a file; ValueError where it is something else."""
    if not isinstance(value, str):
        raise ValueError(f"its schema holds {short(value)} where a text should be.")
    return value
