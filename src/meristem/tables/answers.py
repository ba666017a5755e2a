"""What the target column of a table says, as the place of a class or as a number.

    answers(table, "species", "class", classes) → places [rows], −2 where it is none of the classes, −1 where there is none
    answers(table, "price", "number") → numbers [rows], NaN where there is none

`check_test_target` is for rows that a model is tested on: what cannot be compared there is said before anything is trained.
Imports column and table; split, fitting and the model import it.
"""

import numpy as np

from meristem.check import many, short
from meristem.inputs.field import MISSING
from meristem.tables.table import Table
from meristem.tables.target import CLASS, LARGEST

LEAST_ROWS = 2  # of a test


def answers(table: Table, name: str, task: str, classes: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the target of each row, and the rows that have one; ValueError where none does."""
    if name not in table:
        raise ValueError(f"{table.source} has no column {name!r}, which was to be predicted; give a table that has.")
    column = table[name]
    if task == CLASS:
        values = column.as_codes([str(label) for label in ([] if classes is None else classes.tolist())])
        rows = np.flatnonzero(values != MISSING)
    else:
        values = column.as_numbers()
        rows = np.flatnonzero(~np.isnan(values))
    if not len(rows):
        raise ValueError(f"{table.source}: column {name!r} is missing in every row; there is nothing to compare with.")
    return values, rows


def check_test_target(table: Table, name: str, task: str, classes: np.ndarray | None = None) -> np.ndarray:
    """Return the rows of a test table that have a target; ValueError of one line where some cannot be compared.

    >>> from meristem.tables.reading import table_of
    >>> check_test_target(table_of({"price": ["1", "2", "dear"]}), "price", "number")
    Traceback (most recent call last):
    ValueError: test: the frame: column 'price' holds 'dear' in row 3, which is no number; mend it, or leave the cell empty.
    """
    if name not in table:
        raise ValueError(f"test: {table.source} has no column {name!r}; the target must be in it, too.")
    column = table[name]
    if column.n_missing == column.rows:
        raise ValueError(f"test: {table.source}: column {name!r} is missing in every row.")
    values, rows = answers(table, name, CLASS, classes)
    if len(rows) < LEAST_ROWS:
        raise ValueError(f"test: {table.source} has {many(len(rows), 'row')} with a target; give at least {LEAST_ROWS}.")
    if task == CLASS:
        if classes is not None and not (values[rows] >= 0).any():
            such = ", ".join(repr(str(label)) for label in classes[:3].tolist())
            raise ValueError(f"test: {table.source}: no row of column {name!r} is of a class that is learned, such as {such}.")
        return rows
    numbers = column.as_numbers()
    if (largest := np.nanmax(np.abs(numbers), initial=0)) > LARGEST:
        raise ValueError(
            f"test: {table.source}: column {name!r} holds {largest:.3g}, whose square no float holds; divide it by 1e150."
        )
    if len(stray := rows[np.isnan(numbers[rows])]):
        text = column.texts[column.codes[stray[0]]] if column.codes is not None else column.example
        others = f" (and {many(len(stray) - 1, 'more row')})" if len(stray) > 1 else ""
        raise ValueError(
            f"test: {table.source}: column {name!r} holds {short(text)} in row {stray[0] + 1}{others}, which is no number; "
            "mend it, or leave the cell empty."
        )
    return rows
