"""What a model reads: a table's columns, the features that each becomes, and the inputs of its network.

    columns ──schema──▶ features ──preprocessor──▶ inputs
    a value each        numbers, 0 and 1           float32, gaps filled, standardized, limited

Both steps are formulas over shared operations (layers/ops), so that predictions, files, exports and reports cannot disagree.

    number      one feature: its value, NaN where it is missing
    date        one feature: days since 1970-01-01, NaN where it is missing
    category    a feature of 0 and 1 for each frequent text, most frequent first; "(other)" for all rarer ones, "(missing)"
                where some rows had none. With two kinds of row only the rarer has a feature

The value of a category is its code: the index in `field.texts`, UNSEEN or MISSING. An unseen category counts as "(other)", or
has all features 0 where there is no such feature; so has a missing one. Texts are compared exactly, but for one space on either
side: `normalized(raw) == text` exactly where `raw in spellings(text)`, a finite table that an ONNX graph can hold.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np

from meristem.check import many, short
from meristem.inputs.preprocessor import Preprocessor
from meristem.json_schema import ANY, FLAG, TEXT, check_json, one_of
from meristem.layers.ops.operations import InputOps

NUMBER, DATE, CATEGORY = "number", "date", "category"
MISSING, UNSEEN = -1, -2  # codes: the last two places of an array that is indexed by code
MOST_TEXTS = 1000  # different texts of a column of categories
TOO_MANY_TEXTS = f"more than {MOST_TEXTS:,} categories"  # why a column of more is dropped
OTHERS, GAP = "(other)", "(missing)"
MOST_SPACES = 64  # a blank cell of a fixed width is missing
MISSING_TEXTS = frozenset(
    ["", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "-nan", "NAN", "NaT", "null", "NULL", "Null", "None", "?"]
)
TEXTS: list[Any] = [TEXT]
FIELD = {"name": TEXT, "kind": one_of([NUMBER, DATE, CATEGORY]), "why": TEXT, "categories": TEXTS, "rare": TEXTS}
JSON = {"columns": [FIELD | {"has_missing": FLAG, "silent": (None, TEXT), TEXT: ANY}], "dropped": [TEXTS], TEXT: ANY}
V = TypeVar("V")


def normalized(raw: str) -> str:
    """Return the text of a category, without the space on either side if there is no more than one.

    >>> [normalized(raw) for raw in ("gold ", " gold", "gold  ", "   ", "very good")]
    ['gold', 'gold', 'gold  ', '', 'very good']
    """
    text = raw.strip(" ")
    if not text:
        return "" if len(raw) <= MOST_SPACES else raw
    return text if text == raw or text == raw.removeprefix(" ").removesuffix(" ") else raw


def spellings(text: str) -> list[str]:
    """Return all raw texts that are normalized to this one.

    >>> spellings("gold"), spellings("gold  ")
    (['gold', ' gold', 'gold ', ' gold '], ['gold  '])
    """
    if not text:
        return [" " * n for n in range(MOST_SPACES + 1)]
    if normalized(text) != text:
        return []
    return [text] if text != text.strip(" ") else [text, f" {text}", f"{text} ", f" {text} "]


MISSING_SPELLINGS = [raw for text in sorted(MISSING_TEXTS) for raw in spellings(text)]


@dataclass(frozen=True)
class Field:
    """A column and its features; `why` says in words what it was taken for. Its names are those of the file format."""

    name: str
    kind: str = NUMBER
    why: str = ""
    categories: tuple[str, ...] = ()  # those with a feature of their own
    rare: tuple[str, ...] = ()  # those that share one
    has_missing: bool = False  # whether rows without a category have a feature
    silent: str | None = None  # the category without a feature, where there are two kinds of row

    @cached_property
    def features(self) -> list[str]:
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
        """The feature of each code, [texts + 2], −1 for none; the last two are those of UNSEEN and MISSING."""
        places = np.full(len(self.texts) + 2, -1)
        places[: len(self.categories)] = np.arange(len(self.categories))
        if self.rare:
            places[len(self.categories) : len(self.categories) + len(self.rare)] = places[UNSEEN] = len(self.categories)
        if self.has_missing:
            places[MISSING] = len(self.features) - 1
        return places

    @cached_property
    def codes(self) -> dict[str, int]:
        """The code of every raw text that has one; all others are UNSEEN."""
        codes = dict.fromkeys(MISSING_SPELLINGS, MISSING)
        return codes | {raw: code for code, text in enumerate(self.texts) for raw in spellings(text)}


@dataclass(frozen=True)
class Schema:
    """The columns that a model reads, in order, and those that were dropped."""

    fields: tuple[Field, ...]
    dropped: tuple[tuple[str, str], ...] = ()  # (column, why)

    @cached_property
    def features(self) -> list[str]:
        return [name for field in self.fields for name in field.features]

    @property
    def names(self) -> list[str]:
        return [field.name for field in self.fields]

    @property
    def texts(self) -> dict[str, Sequence[str]]:
        """Column → categories, of the columns of categories."""
        return {field.name: field.texts for field in self.fields if field.kind == CATEGORY}

    @cached_property
    def groups(self) -> list[np.ndarray]:
        """The indices of each column's features."""
        ends = np.cumsum([len(field.features) for field in self.fields])
        return np.split(np.arange(ends[-1]), ends[:-1])

    def trace(self, ops: InputOps[V], values: Sequence[V]) -> V:
        """Return all features [N, features] from a value [N, 1] for each column: a number, days, or a code."""
        parts = []
        for place, (field, value) in enumerate(zip(self.fields, values, strict=True)):
            with ops.named(f"column_{place}"):
                parts.append(value if field.kind != CATEGORY else ops.one_hot(field.places, len(field.features), value))
        return ops.concat(parts)

    def as_json(self) -> dict[str, Any]:
        lists = [asdict(field) | {"categories": [*field.categories], "rare": [*field.rare]} for field in self.fields]
        return {"columns": lists, "dropped": [[name, why] for name, why in self.dropped]}

    @classmethod
    def of_json(cls, entry: Any) -> Self:
        """Return what `as_json` gave; raise ValueError where it is something else.

        >>> schema = Schema((Field("size"), Field("color", CATEGORY, categories=("red",), silent="blue")), (("id", "unique"),))
        >>> Schema.of_json(schema.as_json()) == schema, schema.features
        (True, ['size', 'color=red'])
        """
        check_json(entry, JSON, "its schema does not fit: ")
        columns = [{name: column[name] for name in Field.__dataclass_fields__} for column in entry["columns"]]
        fields = tuple(Field(**c | {name: tuple(c[name]) for name in ("categories", "rare")}) for c in columns)
        for field in fields:
            if (n := len(field.categories) + len(field.rare)) > MOST_TEXTS:
                raise ValueError(f"its column {short(field.name)} has {n:,} categories; a table has at most {MOST_TEXTS:,}.")
            if not (field.name and field.features) or len(set(field.texts)) < len(field.texts):
                raise ValueError(f"its column {short(field.name)} is inconsistent.")
        if not fields or len({field.name for field in fields}) < len(fields):
            raise ValueError("its schema has no columns, or two of a name.")
        return cls(fields, tuple((name, why) for name, why in entry["dropped"]))


@dataclass(frozen=True, eq=False)
class Inputs:
    """Schema and preprocessor together; an estimator has no schema: its columns are the numbers of X.

    >>> inputs = Inputs(Preprocessor.of(np.array([[1.0], [3.0], [np.nan]])), names=("size",))
    >>> inputs.column_names, inputs.n_inputs, inputs(np.array([[2.0]])).tolist()[0][0]
    (['size'], 2, 0.0)
    """

    preprocessor: Preprocessor
    schema: Schema | None = None  # None: the columns are numbers, each a feature
    names: tuple[str, ...] | None = None  # of the features, where X had names

    @property
    def n_inputs(self) -> int:
        return self.preprocessor.n_inputs

    @property
    def n_features(self) -> int:
        """How many columns X has, as estimators take it."""
        return self.preprocessor.n_features

    @property
    def gaps(self) -> np.ndarray:
        """The features that have an indicator of gaps."""
        return self.preprocessor.feature_of_input[len(self.preprocessor.fill) :]

    @property
    def column_names(self) -> list[str]:
        if self.schema is not None:
            return self.schema.names
        return [f"column {place}" for place in range(self.n_features)] if self.names is None else [*self.names]

    @property
    def groups(self) -> list[np.ndarray]:
        return [*np.arange(self.n_features)[:, None]] if self.schema is None else self.schema.groups

    def __call__(self, x: Any) -> np.ndarray:
        """Return the inputs [n, n_inputs], float32, of features, dense or sparse."""
        return self.preprocessor(x)

    def with_more(self, x: Any, weight: np.ndarray | None = None) -> Self:
        return replace(self, preprocessor=self.preprocessor.with_more(x, weight))

    def trace(self, ops: InputOps[V], values: Sequence[V]) -> V:
        """Return inputs [N, n_inputs], float32, from a value [N, 1] for each column."""
        x = ops.concat(values) if self.schema is None else self.schema.trace(ops, values)
        return self.preprocessor.trace(ops, x)

    def read_features(self, gates: np.ndarray | None) -> np.ndarray:
        """Return which features [n_features] a network with these input gates [n_inputs] reads; None: all are open."""
        is_read = np.zeros(self.n_features, bool)
        is_open = np.ones(self.n_inputs, bool) if gates is None else np.asarray(gates) > 0
        is_read[self.preprocessor.feature_of_input[is_open]] = True
        return is_read


def inputs_in_words(n_features: int, n_gaps: int) -> str:
    """Return how many inputs a network has, in words: the features, and an indicator for each feature with gaps.

    >>> inputs_in_words(14, 3), inputs_in_words(1, 0)
    ('14 inputs and 3 marks of missing values, 17 in all', '1 input')
    """
    marks = f" and {many(n_gaps, 'mark')} of missing values, {n_features + n_gaps:,} in all" if n_gaps else ""
    return many(n_features, "input") + marks
