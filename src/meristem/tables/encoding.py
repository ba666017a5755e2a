"""Learn the schema of a table, and read tables by it: as features, or as the raw values that an exported model takes.

A category that occurs once, or in fewer than one in a thousand rows, shares the feature "(other)". A column that the table does
not have is missing in every row; one that the schema does not have is ignored.
"""

import json
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from meristem.check import many
from meristem.inputs.schema import CATEGORY, MISSING, NUMBER, UNSEEN, Field, Schema
from meristem.layers.ops.numpy import NUMPY
from meristem.tables.table_columns import DROPPED, IS_BLANK, ROW_KINDS, Column, Table, kind_of

RARE = 0.001  # of the rows
MOST_CHARACTERS = 50_000_000  # of all categories as JSON: the header of a model file has at most 100 MB
BLOCK = 65_536  # rows that are encoded at a time
ALL = slice(None)


def learn_schema(table: Table, rows: np.ndarray, *, without: Collection[str] = ()) -> Schema:
    """Return the schema of some rows of a table, of all columns but `without`; ValueError where no column is left."""
    fields = [_learn_field(column, rows) for name, column in table.columns.items() if name not in without]
    used = tuple(field for field in fields if field.kind != DROPPED)
    if not used:
        reasons = "; ".join(f"{field.name!r}: {field.why}" for field in fields[:3]) + " …" * (len(fields) > 3)
        raise ValueError(f"{table.source} has no column to learn from; {reasons or 'there is no other.'}")
    sizes = {field.name: sum(len(json.dumps(text)) for text in field.texts) for field in used}
    if sum(sizes.values()) > MOST_CHARACTERS:
        name = max(sizes, key=lambda name: sizes[name])
        what = f"the categories of column {name!r} have {sizes[name]:,} characters in all, more than a model file holds"
        raise ValueError(f"{table.source}: {what}; shorten them, or leave the column out.")
    return Schema(used, tuple((field.name, field.why) for field in fields if field.kind == DROPPED))


def _learn_field(column: Column, rows: np.ndarray) -> Field:
    field = kind_of(column)
    if field.kind != CATEGORY or column.codes is None:
        return field
    codes = column.codes[rows]
    counts = np.bincount(codes[codes >= 0], minlength=len(column.texts))
    count_of = {text: n for text, n in zip(column.texts, counts.tolist(), strict=True) if n}
    n_missing, least = int((codes == MISSING).sum()), max(2, RARE * len(rows))
    by_count = sorted(count_of, key=lambda text: (-count_of[text], text))
    frequent = [text for text in by_count if count_of[text] >= least]
    rare = by_count[len(frequent) :]
    n_kinds = len(frequent) + bool(rare) + bool(n_missing)
    if n_kinds < 2:
        why = "every category occurs once" if rare else "the same in every row that is learned from"
        return replace(field, kind=DROPPED, why=why)
    silent = None
    if frequent and n_kinds == 2:
        silent, frequent = frequent[0], frequent[1:]
    return replace(field, categories=tuple(frequent), rare=tuple(rare), has_missing=n_missing > 0, silent=silent)


def column_values(schema: Schema, table: Table, rows: Any = ALL) -> list[np.ndarray]:
    """Return the value [n, 1] of each column of the schema: a number, days, or a code."""
    return [_values(field, table)[rows, None] for field in schema.fields]


def codes(schema: Schema, table: Table, rows: Any = ALL) -> np.ndarray:
    """Return these values of all columns, [n, columns], float64, which C files and torch modules take."""
    return np.concatenate(column_values(schema, table, rows), axis=1)


def features(schema: Schema, table: Table, rows: Any = ALL) -> np.ndarray:
    """Return the features [n, features], float64, that estimators take as X."""
    return schema.trace(NUMPY, column_values(schema, table, rows))


def feature_blocks(schema: Schema, table: Table, rows: np.ndarray) -> Iterator[np.ndarray]:
    for begin in range(0, len(rows), BLOCK):
        yield features(schema, table, rows[begin : begin + BLOCK])


def feeds(schema: Schema, table: Table, rows: Any = ALL) -> dict[str, np.ndarray]:
    """Return column → array [n, 1], which an ONNX runtime takes: numbers, days, and categories as texts.

    >>> from meristem.tables.frames import table_of
    >>> schema = learn_schema(table_of({"size": [1, 2, 3], "color": ["red", "blue", "red"]}), np.arange(3))
    >>> raw = feeds(schema, table_of({"color": ["red", "", "pink"]}))
    >>> raw["size"].ravel().tolist(), raw["color"].ravel().tolist()
    ([nan, nan, nan], ['red', '', 'pink'])
    """
    values = {field.name: (_texts if field.kind == CATEGORY else _values)(field, table) for field in schema.fields}
    return {name: column[rows, None] for name, column in values.items()}


def absent(schema: Schema, table: Table) -> list[str]:
    """Return the columns of the schema that a table does not have; raise ValueError where it has none of them."""
    names = [name for name in schema.names if name not in table]
    if len(names) == len(schema.fields):
        listed = ", ".join(map(repr, names[:5])) + " …" * (len(names) > 5)
        raise ValueError(f"{table.source} has none of the model's columns: {listed}; give another table.")
    return names


def differences(schema: Schema, table: Table) -> list[str]:
    """Return how a table differs from the training table, a line each."""
    lines = [f"column {name!r} is not there: missing in every row" for name in absent(schema, table)]
    for field in (field for field in schema.fields if field.name in table):
        column = table[field.name]
        if field.kind != CATEGORY:
            n = int((~np.isin(column.row_kinds, (IS_BLANK, ROW_KINDS[field.kind]))).sum())
            what = f"with something else than a {field.kind}, read as missing"
        else:
            n = int((column.as_codes(field.texts) == UNSEEN).sum())
            text = next((text for text in column.texts if text not in field.codes), None)
            what = "of unseen categories" + (f", such as {text!r}" if text is not None else "")
        lines += [f"column {field.name!r}: {many(n, 'row')} {what}"] if n else []
    return lines


def _values(field: Field, table: Table) -> np.ndarray:
    """Return the value of each row of a column, which may be absent."""
    column, is_category = table.columns.get(field.name), field.kind == CATEGORY
    if column is None:
        return np.full(table.rows, MISSING if is_category else np.nan, float)
    if is_category:
        return column.as_codes(field.texts).astype(float)
    return column.as_numbers() if field.kind == NUMBER else column.as_days()


def _texts(field: Field, table: Table) -> np.ndarray:
    """Return the text of each row of a column of categories, which may be absent."""
    column, unseen = table.columns.get(field.name), "(none of them)"
    while unseen in field.codes:
        unseen += "_"
    if column is None or column.codes is None:
        return np.array([*field.texts, unseen, ""], object)[_values(field, table).astype(int)]
    return np.array([*column.texts, unseen, ""], object)[column.codes]
