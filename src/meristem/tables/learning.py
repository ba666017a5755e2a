"""The schema of a table, learned from its training rows: what each column is, and which categories have a feature.

    learn_schema(table, rows, without=["price"]) → Schema

A category rarer than one in a thousand rows, or that occurs once, shares the feature "(other)". Imports kinds and inputs;
split imports it.
"""

import json
from collections.abc import Collection

import numpy as np

from meristem.inputs.field import CATEGORY, MISSING, Field
from meristem.inputs.schema import Schema
from meristem.tables.column import Column
from meristem.tables.kinds import DROPPED, kind_of
from meristem.tables.table import Table

RARE = 0.001  # of the rows
MOST_CHARACTERS = 50_000_000  # of all categories as JSON: the header of a model file has at most 100 MB


def learn_schema(table: Table, rows: np.ndarray, *, without: Collection[str] = ()) -> Schema:
    """Learn from some rows of a table, of all columns but those of `without`; ValueError where no column is left.

    >>> from meristem.tables.reading import table_of
    >>> table = table_of({"size": [1, 2, 3, 4, 5], "color": ["red", "red", "red", "blue", "blue"], "id": [7] * 5})
    >>> schema = learn_schema(table, np.arange(5))
    >>> schema.features, schema.dropped
    (['size', 'color=blue'], (('id', 'the same in every row: 7'),))
    """
    fields = [_field(column, rows) for name, column in table.columns.items() if name not in without]
    used = tuple(field for field in fields if field.kind != DROPPED)
    if not used:
        reasons = "; ".join(f"{field.name!r}: {field.why}" for field in fields[:3]) + " …" * (len(fields) > 3)
        raise ValueError(f"{table.source} has no column to learn from; {reasons or 'there is no other.'}")
    sizes = {field.name: sum(len(json.dumps(text)) for text in field.texts) for field in used}
    if sum(sizes.values()) > MOST_CHARACTERS:
        name = max(sizes, key=lambda name: sizes[name])
        raise ValueError(
            f"{table.source}: the categories of column {name!r} have {sizes[name]:,} characters in all, more than a model file "
            "holds; shorten them, or leave the column out."
        )
    return Schema(used, tuple((field.name, field.why) for field in fields if field.kind == DROPPED))


def _field(column: Column, rows: np.ndarray) -> Field:
    """How a column is read, from some of its rows."""
    kind = kind_of(column)
    if kind.kind != CATEGORY:
        return Field(column.name, kind.kind, kind.why)
    assert column.codes is not None
    codes = column.codes[rows]
    counts = np.bincount(codes[codes >= 0], minlength=len(column.texts))
    n_of = {text: n for text, n in zip(column.texts, counts.tolist(), strict=True) if n}
    n_missing, least = int((codes == MISSING).sum()), max(2, RARE * len(rows))
    by_count = sorted(n_of, key=lambda text: (-n_of[text], text))
    frequent, rare = ([text for text in by_count if (n_of[text] >= least) is is_frequent] for is_frequent in (True, False))
    n_kinds = len(frequent) + bool(rare) + bool(n_missing)
    if n_kinds < 2:
        why = "every category occurs once" if rare else "the same in every row that is learned from"
        return Field(column.name, DROPPED, why)
    silent = None
    if frequent and n_kinds == 2:
        silent, frequent = frequent[0], frequent[1:]
    return Field(column.name, CATEGORY, kind.why, tuple(frequent), tuple(rare), n_missing > 0, silent)
