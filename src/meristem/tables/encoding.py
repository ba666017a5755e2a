"""How the columns of a table become the inputs of a network: plain data, learned from the training rows.

    encoding = Encoding.of(table, rows, without=["price"])
    encoding(table) → float64 [rows, inputs];  encoding.inputs → their names;  encoding.doubts(table) → what is unlike, in words

    number      its value, NaN where it is missing (estimators fill gaps, and tell the network of them)
    date        days since 1970-01-01, NaN where it is missing
    category    1 for the text of the row, from the most frequent to the rarest; "(other)" for all that are rarer than one
                in a thousand rows or occur once, "(missing)" where some were missing. Of two kinds of row one is enough: the
                rarer has the input

A category that was never seen counts as "(other)", or as nothing where there was no such input: all of the column's are 0. So
does a missing one. A column that is not there is missing in every row; one that was not there is ignored. Imports NumPy.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from meristem.files.categories import check_categories
from meristem.tables.column import MISSING, OTHER, Column
from meristem.tables.kinds import CATEGORY, DATE, DROPPED, NUMBER, kind_of
from meristem.tables.table import Known, Table

RARE = 0.001  # of the rows
BLOCK = 65_536  # rows that are encoded at a time
OTHERS, GAP = "(other)", "(missing)"


@dataclass(frozen=True)
class Encoded:
    """A column that the network sees: its name, its kind, why, and of a category what has an input, in order."""

    name: str
    kind: str
    why: str
    categories: tuple[str, ...] = ()  # those that have an input of their own
    rare: tuple[str, ...] = ()  # those that share one
    has_missing: bool = False  # whether rows without a category have an input
    silent: str | None = None  # the category that has none, because there are two kinds of row

    @property
    def inputs(self) -> list[str]:
        """Names of its inputs."""
        if self.kind != CATEGORY:
            return [self.name if self.kind == NUMBER else f"{self.name} (days)"]
        further = [OTHERS] * bool(self.rare) + [GAP] * self.has_missing
        return [f"{self.name}={text}" for text in [*self.categories, *further]]

    @property
    def known(self) -> list[str]:
        """All categories that were seen."""
        return [*self.categories, *self.rare, *([] if self.silent is None else [self.silent])]

    def values(self, column: Column | None, rows: np.ndarray) -> np.ndarray:
        """Float64 [rows, inputs] of some rows of a column; None: it is not there."""
        out = np.zeros((len(rows), len(self.inputs)))
        if self.kind != CATEGORY:
            out[:, 0] = np.nan if column is None else (column.as_numbers() if self.kind == NUMBER else column.as_days())[rows]
            return out
        places = np.full(len(self.known) + 2, -1)  # code → input; the last two are of OTHER and MISSING
        places[: len(self.categories)] = np.arange(len(self.categories))
        if self.rare:
            places[len(self.categories) : len(self.categories) + len(self.rare)] = places[OTHER] = len(self.categories)
        if self.has_missing:
            places[MISSING] = len(self.inputs) - 1
        codes = np.full(len(rows), MISSING) if column is None else column.as_codes(self.known)[rows]
        found = places[codes]
        out[np.flatnonzero(found >= 0), found[found >= 0]] = 1
        return out


def inputs_in_words(n: int, marks: int) -> str:
    """How many inputs a network is given: those of the columns, and a mark for each that had gaps.

    >>> inputs_in_words(14, 3), inputs_in_words(1, 0)
    ('14 inputs and 3 marks of missing values, 17 in all', '1 input')
    """
    own = f"{n:,} input{'s' * (n != 1)}"
    return f"{own} and {marks:,} mark{'s' * (marks != 1)} of missing values, {n + marks:,} in all" if marks else own


@dataclass(frozen=True)
class Encoding:
    """Of a table: the columns that the network sees, and those that it does not, with the reason."""

    columns: tuple[Encoded, ...]
    dropped: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, table: Table, rows: np.ndarray, *, without: Collection[str] = ()) -> Self:
        """From some rows of a table, of all columns but those of `without`.

        >>> from meristem.tables.reading import table_of
        >>> table = table_of({"size": [1, 2, 3, 4, 5], "color": ["red", "red", "red", "blue", "blue"], "id": [7] * 5})
        >>> encoding = Encoding.of(table, np.arange(5))
        >>> encoding.inputs, encoding.dropped
        (['size', 'color=blue'], (('id', 'the same in every row: 7'),))
        >>> encoding(table)[2:].tolist()
        [[3.0, 0.0], [4.0, 1.0], [5.0, 1.0]]
        """
        seen = [_encoded(column, rows) for name, column in table.columns.items() if name not in without]
        kept = tuple(one for one in seen if one.kind != DROPPED)
        if not kept:
            raise ValueError(f"{table.source} has no column to learn from; {_reasons(seen)}")
        return cls(kept, tuple((one.name, one.why) for one in seen if one.kind == DROPPED))

    @property
    def inputs(self) -> list[str]:
        """Names of all inputs, in order."""
        return [name for one in self.columns for name in one.inputs]

    @property
    def known(self) -> Known:
        """The categories of each column that has some, for `read_table`."""
        return {one.name: one.known for one in self.columns if one.kind == CATEGORY}

    def __call__(self, table: Table, rows: np.ndarray | None = None) -> np.ndarray:
        """Float64 [rows, inputs]."""
        rows = np.arange(table.rows) if rows is None else rows
        return np.concatenate([one.values(table.columns.get(one.name), rows) for one in self.columns], axis=1)

    def blocks(self, table: Table, rows: np.ndarray) -> Iterator[np.ndarray]:
        """The same a block of rows at a time."""
        for begin in range(0, len(rows), BLOCK):
            yield self(table, rows[begin : begin + BLOCK])

    def doubts(self, table: Table) -> list[str]:
        """What of a table is not as it was in the one that was learned from; a line each.

        >>> from meristem.tables.reading import table_of
        >>> encoding = Encoding.of(table_of({"size": [1, 2, 3], "color": ["red", "blue", "red"]}), np.arange(3))
        >>> encoding.doubts(table_of({"color": ["red", "pink"], "name": ["Ada", "Grace"]}))
        ["column 'size' is not there: missing in every row", "column 'color': 1 row of unseen categories, such as 'pink'"]
        """
        absent = self.absent(table)
        if len(absent) == len(self.columns):
            raise ValueError(f"{table.source} has none of the model's columns: {_listed(absent)}; give another table.")
        lines = [f"column {name!r} is not there: missing in every row" for name in absent]
        for one in self.columns:
            if one.name in table:
                lines += [f"column {one.name!r}: {words}" for words in _unlike(one, table[one.name])]
        return lines

    def absent(self, table: Table) -> list[str]:
        """Names of columns that a table does not have."""
        return [one.name for one in self.columns if one.name not in table]

    def as_json(self) -> dict[str, Any]:
        """Made of JSON's values."""
        columns = [
            {
                "name": one.name,
                "kind": one.kind,
                "why": one.why,
                "categories": [*one.categories],
                "rare": [*one.rare],
                "has_missing": one.has_missing,
                "silent": one.silent,
            }
            for one in self.columns
        ]
        return {"columns": columns, "dropped": [[name, why] for name, why in self.dropped]}

    @classmethod
    def of_json(cls, given: Any) -> Self:
        """What `as_json` gave; raises ValueError where it is something else.

        >>> from meristem.tables.reading import table_of
        >>> encoding = Encoding.of(table_of({"size": [1, 2], "color": ["red", ""]}), np.arange(2))
        >>> Encoding.of_json(encoding.as_json()) == encoding
        True
        """
        encoding = cls(
            tuple(map(_column_of_json, given["columns"])), tuple((_text(name), _text(why)) for name, why in given["dropped"])
        )
        if not encoding.columns or len({one.name for one in encoding.columns}) < len(encoding.columns):
            raise ValueError("its encoding has no columns, or two of a name.")
        return encoding


def _column_of_json(given: dict[str, Any]) -> Encoded:
    silent, has_missing = given["silent"], given["has_missing"]
    check_categories(_text(given["name"]), len(given["categories"]) + len(given["rare"]))
    one = Encoded(
        name=_text(given["name"]),
        kind=_text(given["kind"]),
        why=_text(given["why"]),
        categories=tuple(map(_text, given["categories"])),
        rare=tuple(map(_text, given["rare"])),
        has_missing=has_missing is True,
        silent=None if silent is None else _text(silent),
    )
    is_sound = one.name and one.kind in (NUMBER, DATE, CATEGORY) and type(has_missing) is bool and bool(one.inputs)
    if not is_sound or len(set(one.known)) < len(one.known):
        raise ValueError(f"its encoding of the column {one.name!r} does not hold together.")
    return one


def _encoded(column: Column, rows: np.ndarray) -> Encoded:
    """How a column is seen, from some of its rows."""
    kind = kind_of(column)
    if kind.kind != CATEGORY:
        return Encoded(column.name, kind.kind, kind.why)
    assert column.codes is not None
    codes = column.codes[rows]
    counts = np.bincount(codes[codes >= 0], minlength=len(column.texts))
    n_of = {text: n for text, n in zip(column.texts, counts.tolist(), strict=True) if n}
    n_missing, least = int((codes == MISSING).sum()), max(2, RARE * len(rows))
    seen = sorted(n_of, key=lambda text: (-n_of[text], text))
    often, rare = ([text for text in seen if (n_of[text] >= least) is is_often] for is_often in (True, False))
    if len(often) + bool(rare) + bool(n_missing) < 2:
        why = "every category occurs once" if rare else "the same in every row that is learned from"
        return Encoded(column.name, DROPPED, why)
    silent = None
    if often and len(often) + bool(rare) + bool(n_missing) == 2:
        silent, often = often[0], often[1:]
    return Encoded(column.name, CATEGORY, kind.why, tuple(often), tuple(rare), n_missing > 0, silent)


def _unlike(one: Encoded, column: Column) -> list[str]:
    """What of a column was not so when it was learned from."""
    if one.kind == CATEGORY:
        n = int((column.as_codes(one.known) == OTHER).sum())
        unseen = next((text for text in column.texts if text not in one.known), None)
        such = f", such as {unseen!r}" if unseen is not None else ""
        return [f"{n:,} row{'s' * (n != 1)} of unseen categories{such}"] if n else []
    values = column.as_numbers() if one.kind == NUMBER else column.as_days()
    n = int(np.isnan(values).sum()) - column.n_missing
    return [f"{n:,} row{'s' * (n != 1)} with something else than a {one.kind}, read as missing"] if n else []


def _reasons(seen: list[Encoded]) -> str:
    return "; ".join(f"{one.name!r}: {one.why}" for one in seen[:3]) + " …" * (len(seen) > 3) if seen else "there is no other."


def _listed(names: list[str]) -> str:
    return ", ".join(map(repr, names[:5])) + " …" * (len(names) > 5)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"its encoding holds {value!r} where a text should be.")
    return value
