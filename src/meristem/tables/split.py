"""Split a table into training and test rows, with its target and the schema of its columns, before anything is computed.

    TableSplit.of(table, target="price", task=None, test=0.2, seed=0) → TableSplit;  .words() → lines for the user

Rows without a target are left out. `test` is the share of the rest that is held out, or a table of its own. Classes are
stratified; the only row of a class is a training row. Errors in a table are raised here.
"""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from meristem.check import cut, short
from meristem.inputs.schema import CATEGORY, NUMBER, Schema, inputs_in_words
from meristem.tables.encoding import column_values, differences, learn_schema
from meristem.tables.reading import as_table
from meristem.tables.table_columns import Table, misread_as, number_of
from meristem.tables.target import CLASS, MOST_NAMED, Target, check_test_target

LEAST_ROWS = 10  # with a target


@dataclass(frozen=True, eq=False)
class TableSplit:
    """A table with its target, its training and test rows, and its schema."""

    table: Table
    target: Target
    train_rows: np.ndarray = field(repr=False)
    test_table: Table  # often the same
    test_rows: np.ndarray = field(repr=False)
    schema: Schema

    @classmethod
    def of(
        cls,
        table: Table,
        *,
        target: str,
        task: str | None = None,
        test: Any = 0.2,
        seed: int = 0,
        reading: dict[str, Any] | None = None,
    ) -> Self:
        """Return the split of a table; `reading` are options of `read_table` for a test file. Raises ValueError of one line.

        >>> from meristem.tables.frames import table_of
        >>> table = table_of({"x": np.arange(20), "side": ["left"] * 10 + ["right"] * 10})
        >>> TableSplit.of(table, target="side").words()[0]
        'the frame: 20 rows; 16 to learn from, 4 held out'
        """
        column = Target.of(table, target, task)
        if isinstance(test, bool) or not isinstance(test, int | float | np.number):
            schema, labels = learn_schema(table, column.rows, without=[target]), column.classes
            classes = {} if labels is None else {target: [str(label) for label in labels.tolist()]}
            test_table = as_table(test, schema.texts | classes, **reading or {})
            test_rows = check_test_target(test_table, target, column.task, labels)
            return cls(table, column, column.rows, test_table, test_rows, schema)
        train_rows, test_rows = split_rows(table, column, float(test), seed)
        return cls(table, column, train_rows, table, test_rows, learn_schema(table, train_rows, without=[target]))

    @property
    def has_test_table(self) -> bool:
        """Whether it is tested on a table of its own."""
        return self.test_table is not self.table

    def words(self) -> list[str]:
        """Return lines for the user: rows, target, columns, what was dropped, and warnings."""
        target, table = self.target, self.table
        without = f", {target.n_dropped:,} without a target are dropped" if target.n_dropped else ""
        values = column_values(self.schema, table, self.train_rows)
        n_gaps = sum(bool(np.isnan(value).any()) for value in values)  # numbers and dates with an indicator of gaps
        kinds = [column.kind for column in self.schema.fields]
        columns = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
        offer = " (--task number, or task='number', to predict it as a number)" * target.why.endswith("different whole numbers")
        numbers = {target.name, *(column.name for column in self.schema.fields if column.kind == NUMBER)}
        commas = ", ".join(repr(name) for name in table.columns if name in numbers and table[name].has_commas)
        test_differences = differences(self.schema, self.test_table) if self.has_test_table else []
        n_test = f"{len(self.test_rows):,}"
        tested = f"{n_test} of {self.test_table.source} to test on" if self.has_test_table else f"{n_test} held out"
        return [
            f"{table.source}: {table.rows:,} rows{without}; {len(self.train_rows):,} to learn from, {tested}",
            f"target {target.name!r}: {target.why}{offer}",
            f"columns: {columns}; {inputs_in_words(len(self.schema.features), n_gaps)}",
            *(f"dropped column {name!r}: {why}" for name, why in self.schema.dropped),
            *([f"decimal commas are read as points in {cut(commas, MOST_NAMED)}"] if commas else []),
            *(f"{self.test_table.source}: {line}" for line in test_differences),
            *(f"warning: {line}" for line in self.table_warnings()),
        ]

    def table_warnings(self) -> list[str]:
        """Return what is likely a mistake in the table, though it can be learned from; a line each."""
        names, kinds = list(self.table.columns), {column.name: column.kind for column in self.schema.fields}
        numbers = [name for name in names if not np.isnan(number_of(name))]
        lines = []
        if 2 * len(numbers) > len(names):
            lines.append(f"names of columns are numbers, such as {numbers[0]!r}: if the table has no header, give it one")
        read_as = {name: "dropped" for name, _ in self.schema.dropped}
        read_as |= {name: "read as categories" for name, kind in kinds.items() if kind == CATEGORY}
        read_as |= {self.target.name: "read as classes"} if self.target.task == CLASS else {}
        for name in [name for name in names if name in read_as]:
            if (misread := misread_as(self.table[name])) is not None:
                lines.append(f"column {short(name)} {misread.words}: it is {read_as[name]}; {misread.remedy}")
        for name in [name for name, kind in kinds.items() if kind == NUMBER]:
            values = self.table[name].as_numbers()
            if (np.diff(values) == 1).all() and values[0] == np.round(values[0]):
                what = f"column {short(name)} counts the rows, from {values[0]:.0f} on"
                lines.append(f"{what}: if it is only an index, remove it from the table")
        return lines + (self._class_warnings() if self.target.task == CLASS else [])

    def _class_warnings(self) -> list[str]:
        """Report classes that differ in case or spaces alone, and classes of one row."""
        labels, counts = np.unique(self.target.values[self.target.rows], return_counts=True)
        alike: dict[str, list[str]] = {}
        for label in labels.tolist():
            alike.setdefault("".join(str(label).casefold().split()), []).append(str(label))
        pairs = [same for same in alike.values() if len(same) > 1]
        lines = [f"classes {a!r} and {b!r} differ in case or spaces alone: they are taken as two" for a, b, *_ in pairs[:1]]
        once = labels[counts == 1].tolist()
        if len(once) == 1:
            lines.append(f"class {once[0]!r} has one row: nothing can be learned of it")
        elif once:
            lines.append(f"{len(once):,} classes have one row each, such as {once[0]!r}: nothing can be learned of them")
        return lines


def split_rows(table: Table, target: Target, test: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return training and test rows, ascending."""
    from sklearn.model_selection import train_test_split

    n, rows = len(target.rows), target.rows
    n_test = round(n * test)
    if n_test < 2 or n < LEAST_ROWS:
        raise ValueError(f"{table.source} has {n} rows with a target, of which test={test} holds out too few; give more rows.")
    alone, strata = rows[:0], None
    if target.task == CLASS:
        _, place, counts = np.unique(target.values[rows], return_inverse=True, return_counts=True)
        is_alone, n_classes = counts[place] == 1, int((counts > 1).sum())
        if n_classes <= min(n_test, n - int(is_alone.sum()) - n_test):
            alone, rows, strata = rows[is_alone], rows[~is_alone], target.values[rows[~is_alone]]
    train, rest = train_test_split(rows, test_size=n_test, random_state=seed, stratify=strata)
    train = np.concatenate([train, alone])
    if target.task == CLASS and len(np.unique(target.values[train])) < 2:
        raise ValueError(f"{table.source}: the rows to learn from hold one class; give more rows of the others.")
    return np.sort(train), np.sort(rest)


def original_test_rows(facts: dict[str, Any], target: str, task: str, table: Table) -> np.ndarray | None:
    """Return the rows that were held out when a model with these facts was made from this file; None for any other table."""
    counts = facts["rows"]
    is_same = table.digest is not None and table.digest == facts.get("table_sha256") and table.rows == counts["all"]
    if not is_same or counts["train"] + counts["test"] + counts["without_target"] != counts["all"]:  # it had a test table
        return None
    column = Target.of(table, target, task)
    return split_rows(table, column, counts["test"] / len(column.rows), int(facts["seed"]))[1]
