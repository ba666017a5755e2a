"""The columns that a model reads, in order, and those that it does not, with the reason.

    schema.features → names of all features;  schema.trace(ops, values) → features [N, features] from a value for each column
    schema.groups → for each column, the places of its features

Tables are read by it (tables/coding.py), files store it, ONNX graphs and PyTorch modules have an input for each of its columns,
reports name what it names. Imports field; Inputs holds one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np

from meristem.inputs.field import CATEGORY, Field, text_of
from meristem.layers.ops.base import InputOps

V = TypeVar("V")


@dataclass(frozen=True)
class Schema:
    """See the module's header."""

    fields: tuple[Field, ...]
    dropped: tuple[tuple[str, str], ...] = ()  # (column, why)

    @cached_property
    def features(self) -> list[str]:
        """Names of all features, in order."""
        return [name for field in self.fields for name in field.features]

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [field.name for field in self.fields]

    @property
    def texts(self) -> dict[str, Sequence[str]]:
        """The categories of each column that has some: a reader keeps their codes."""
        return {field.name: field.texts for field in self.fields if field.kind == CATEGORY}

    @cached_property
    def groups(self) -> list[np.ndarray]:
        """The places of each column's features among all."""
        ends = np.cumsum([len(field.features) for field in self.fields])
        return np.split(np.arange(ends[-1]), ends[:-1])

    def trace(self, ops: InputOps[V], values: Sequence[V]) -> V:
        """All features [N, features] from a value [N, 1] for each column: a number, days, or a code."""
        parts = []
        for place, (field, value) in enumerate(zip(self.fields, values, strict=True)):
            with ops.named(f"column_{place}"):
                parts.append(field.trace(ops, value))
        return ops.concat(parts)

    def as_json(self) -> dict[str, Any]:
        """Made of JSON's values."""
        return {"columns": [field.as_json() for field in self.fields], "dropped": [[name, why] for name, why in self.dropped]}

    @classmethod
    def of_json(cls, entry: Any) -> Self:
        """What `as_json` gave; ValueError where it is something else.

        >>> schema = Schema((Field("size"), Field("color", CATEGORY, categories=("red",), silent="blue")), (("id", "unique"),))
        >>> Schema.of_json(schema.as_json()) == schema, schema.features
        (True, ['size', 'color=red'])
        """
        schema = cls(
            tuple(map(Field.of_json, entry["columns"])), tuple((text_of(name), text_of(why)) for name, why in entry["dropped"])
        )
        if not schema.fields or len(set(schema.names)) < len(schema.fields):
            raise ValueError("its schema has no columns, or two of a name.")
        return schema


def inputs_in_words(n_features: int, n_gaps: int) -> str:
    """How many inputs a network is given, in words: the features of the columns, and an indicator for each with gaps.

    >>> inputs_in_words(14, 3), inputs_in_words(1, 0)
    ('14 inputs and 3 marks of missing values, 17 in all', '1 input')
    """
    own = f"{n_features:,} input{'s' * (n_features != 1)}"
    if not n_gaps:
        return own
    return f"{own} and {n_gaps:,} mark{'s' * (n_gaps != 1)} of missing values, {n_features + n_gaps:,} in all"
