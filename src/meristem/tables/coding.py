"""A table as a schema reads it: a value for each column, features, and what a graph or a module outside is given.

    column_values(schema, table, rows) → [float64 [n, 1], …]      numbers, days, codes of categories
    features(schema, table, rows) → float64 [n, features]         what estimators take as X
    codes(schema, table) → float64 [n, columns]                   what a PyTorch module takes
    feeds(schema, table, rows) → {name: array [n, 1]}             what an ONNX runtime takes: raw values, texts as they are
    differences(schema, table) → lines                            what of it is unlike the table that was learned from

A column that is not there is missing in every row; one that the schema does not name is ignored. Imports inputs and tables;
the model, fitting and commands import it.
"""

from collections.abc import Iterator

import numpy as np

from meristem.inputs.field import CATEGORY, MISSING, NUMBER, UNSEEN, Field
from meristem.inputs.schema import Schema
from meristem.layers.ops.numpy import NUMPY
from meristem.tables.column import Column
from meristem.tables.table import Table

BLOCK = 65_536  # rows that are encoded at a time


def column_values(schema: Schema, table: Table, rows: np.ndarray | None = None) -> list[np.ndarray]:
    """Return the value [n, 1] of each column: a number, days, or a code."""
    rows = np.arange(table.rows) if rows is None else rows
    return [_values(field, table.columns.get(field.name), rows)[:, None] for field in schema.fields]


def features(schema: Schema, table: Table, rows: np.ndarray | None = None) -> np.ndarray:
    """Return float64 [n, features].

    >>> from meristem.tables.learning import learn_schema
    >>> from meristem.tables.reading import table_of
    >>> table = table_of({"size": [1, 2, 3, 4, 5], "color": ["red", "red", "red", "blue", "blue"]})
    >>> features(learn_schema(table, np.arange(5)), table)[2:].tolist()
    [[3.0, 0.0], [4.0, 1.0], [5.0, 1.0]]
    """
    return schema.trace(NUMPY, column_values(schema, table, rows))


def feature_blocks(schema: Schema, table: Table, rows: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the same a block of rows at a time."""
    for begin in range(0, len(rows), BLOCK):
        yield features(schema, table, rows[begin : begin + BLOCK])


def codes(schema: Schema, table: Table) -> np.ndarray:
    """Return float64 [n, columns]: numbers, days and codes of categories, which −1 marks as missing and −2 as unseen."""
    return np.concatenate(column_values(schema, table), axis=1)


def feeds(schema: Schema, table: Table, rows: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """Return what a runtime is given for some rows of a table.

    >>> from meristem.tables.learning import learn_schema
    >>> from meristem.tables.reading import table_of
    >>> schema = learn_schema(table_of({"size": [1, 2, 3], "color": ["red", "blue", "red"]}), np.arange(3))
    >>> raw = feeds(schema, table_of({"color": ["red", "", "pink"]}))
    >>> raw["size"].ravel().tolist(), raw["color"].ravel().tolist()
    ([nan, nan, nan], ['red', '', 'pink'])
    """
    rows = np.arange(table.rows) if rows is None else rows
    return {
        field.name: (_texts if field.kind == CATEGORY else _values)(field, table.columns.get(field.name), rows)[:, None]
        for field in schema.fields
    }


def absent(schema: Schema, table: Table) -> list[str]:
    """Return the names of columns that a table does not have; ValueError where it has none of them."""
    names = [name for name in schema.names if name not in table]
    if len(names) == len(schema.fields):
        listed = ", ".join(map(repr, names[:5])) + " …" * (len(names) > 5)
        raise ValueError(f"{table.source} has none of the model's columns: {listed}; give another table.")
    return names


def differences(schema: Schema, table: Table) -> list[str]:
    """Return what of a table is not as it was in the one that was learned from, a line each.

    >>> from meristem.tables.learning import learn_schema
    >>> from meristem.tables.reading import table_of
    >>> schema = learn_schema(table_of({"size": [1, 2, 3], "color": ["red", "blue", "red"]}), np.arange(3))
    >>> differences(schema, table_of({"color": ["red", "pink"], "name": ["Ada", "Grace"]}))
    ["column 'size' is not there: missing in every row", "column 'color': 1 row of unseen categories, such as 'pink'"]
    """
    lines = [f"column {name!r} is not there: missing in every row" for name in absent(schema, table)]
    for field in schema.fields:
        if field.name in table and (words := _unlike(field, table[field.name])):
            lines.append(f"column {field.name!r}: {words}")
    return lines


def _values(field: Field, column: Column | None, rows: np.ndarray) -> np.ndarray:
    """The value [n] of some rows of a column; None: it is not there."""
    if field.kind == CATEGORY:
        return np.full(len(rows), float(MISSING)) if column is None else column.as_codes(field.texts)[rows].astype(float)
    if column is None:
        return np.full(len(rows), np.nan)
    return (column.as_numbers() if field.kind == NUMBER else column.as_days())[rows]


def _texts(field: Field, column: Column | None, rows: np.ndarray) -> np.ndarray:
    """The text [n] of some rows of a column of categories."""
    if column is None:
        return np.full(len(rows), "", object)
    if column.codes is not None:
        return np.array([*column.texts, _unseen_text(field), ""], object)[column.codes[rows]]
    return np.array([*field.texts, _unseen_text(field), ""], object)[column.as_codes(field.texts)[rows]]


def _unseen_text(field: Field) -> str:
    """A text that the column never had."""
    text = "(none of them)"
    while text in field.codes:
        text += "_"
    return text


def _unlike(field: Field, column: Column) -> str:
    """What of a column was not so when it was learned from."""
    if field.kind == CATEGORY:
        if column.codes is not None and all(text in field.codes for text in column.texts):
            return ""  # all that it holds are the model's
        n = int((column.as_codes(field.texts) == UNSEEN).sum())
        text = next((text for text in column.texts if text not in field.codes), None)
        such = f", such as {text!r}" if text is not None else ""
        return f"{n:,} row{'s' * (n != 1)} of unseen categories{such}" if n else ""
    typed = column.numbers if field.kind == NUMBER else column.days
    is_typed = column.codes is None and column.is_text is None and (column.numbers is None or column.days is None)
    if is_typed and typed is not None:
        return ""  # all of it is of that type
    values = column.as_numbers() if field.kind == NUMBER else column.as_days()
    n = int(np.isnan(values).sum()) - column.n_missing - column.n_blank
    return f"{n:,} row{'s' * (n != 1)} with something else than a {field.kind}, read as missing" if n else ""
