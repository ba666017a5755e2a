"""What of a table is used for what: its target, the rows to learn from and those held out, and the schema of its columns.

    TableSplit.of(table, target="price", task=None, test=0.2, seed=0) → TableSplit;  .words() → what there is to say of it

Rows without a target are left out. Of the rest `test` is a share that is held out, or a table of its own, which is read by the
schema: categories keep their codes whatever else it holds. Of classes as much of each is held out; a row that is alone of its
class is learned from. What is wrong with a table is found here, before anything is computed or written. Imports learning, the
target and written; fitting and commands import it.
"""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from meristem.check import cut, short
from meristem.inputs.field import CATEGORY, NUMBER
from meristem.inputs.schema import Schema, inputs_in_words
from meristem.tables.answers import check_test_target
from meristem.tables.coding import column_values, differences
from meristem.tables.learning import learn_schema
from meristem.tables.reading import tabled
from meristem.tables.scalars import number_of
from meristem.tables.table import Table
from meristem.tables.target import CLASS, MOST_NAMED, Target
from meristem.tables.written import mistaken_of

LEAST_ROWS = 10  # on each side of a split


@dataclass(frozen=True, eq=False)
class TableSplit:
    """A table, and what it is used for."""

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
        """See the module's header; `reading` are options of `read_table` for a test file. Raises ValueError of one line.

        >>> from meristem.tables.reading import table_of
        >>> table = table_of({"x": np.arange(20), "side": ["left"] * 10 + ["right"] * 10})
        >>> TableSplit.of(table, target="side").words()[0]
        'the frame: 20 rows; 16 to learn from, 4 held out'
        """
        column = Target.of(table, target, task)
        if isinstance(test, bool) or not isinstance(test, int | float | np.number):
            schema = learn_schema(table, column.rows, without=[target])
            labels = np.unique(column.values[column.rows]) if column.task == CLASS else None
            classes = {} if labels is None else {target: [str(label) for label in labels.tolist()]}
            other = tabled(test, schema.texts | classes, **reading or {})
            return cls(table, column, column.rows, other, check_test_target(other, target, column.task, labels), schema)
        train, held_out = split_rows(table, column, float(test), seed)
        return cls(table, column, train, table, held_out, learn_schema(table, train, without=[target]))

    @property
    def has_test_table(self) -> bool:
        """Whether it is tested on a table of its own."""
        return self.test_table is not self.table

    @property
    def n_gaps(self) -> int:
        """How many inputs the estimator will add, that tell of gaps: one for each number or date that is missing in a row."""
        values = zip(self.schema.fields, column_values(self.schema, self.table, self.train_rows), strict=True)
        return sum(bool(np.isnan(value).any()) for column, value in values if column.kind != CATEGORY)

    def words(self) -> list[str]:
        """What was understood of a table, for a person."""
        target, table = self.target, self.table
        without = f", {target.n_dropped:,} without a target are dropped" if target.n_dropped else ""
        kinds = [column.kind for column in self.schema.fields]
        seen = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
        offer = " (--task number, or task='number', to predict it as a number)" * target.why.endswith("different whole numbers")
        n_test = f"{len(self.test_rows):,}"
        tested = f"{n_test} of {self.test_table.source} to test on" if self.has_test_table else f"{n_test} held out"
        return [
            f"{table.source}: {table.rows:,} rows{without}; {len(self.train_rows):,} to learn from, {tested}",
            f"target {target.name!r}: {target.why}{offer}",
            f"columns: {seen}; {inputs_in_words(len(self.schema.features), self.n_gaps)}",
            *(f"dropped column {name!r}: {why}" for name, why in self.schema.dropped),
            *self._commas(),
            *(f"{self.test_table.source}: {line}" for line in self.test_differences()),
            *(f"doubtful: {line}" for line in self.doubts()),
        ]

    def test_differences(self) -> list[str]:
        """What of a test table is unlike the table that is learned from: unseen categories, columns that are not there."""
        return differences(self.schema, self.test_table) if self.has_test_table else []

    def _commas(self) -> list[str]:
        """Columns whose numbers are written with decimal commas."""
        used = [self.target.name, *(column.name for column in self.schema.fields if column.kind == NUMBER)]
        names = [name for name in self.table.columns if name in used and self.table[name].has_commas]
        return [f"decimal commas are read as points in {cut(', '.join(map(repr, names)), MOST_NAMED)}"] if names else []

    def doubts(self) -> list[str]:
        """What of a table is likely a mistake, though it can be learned from; a line each.

        >>> from meristem.tables.reading import table_of
        >>> table = table_of({"5.1": np.arange(20) % 7, "rich": ["Yes"] * 10 + ["yes"] * 5 + ["no"] * 4 + ["?!"]})
        >>> for line in TableSplit.of(table, target="rich").doubts():
        ...     print(line)
        classes 'Yes' and 'yes' differ in case or spaces alone: they are taken as two
        class '?!' has one row: nothing can be learned of it
        """
        lines = []
        numbers = [name for name in self.table.columns if not np.isnan(number_of(name))]
        if 2 * len(numbers) > len(self.table.columns):
            lines.append(f"names of columns are numbers, such as {numbers[0]!r}: if the table has no header, give it one")
        lines += self._mistaken() + self._counting()
        if self.target.task != CLASS:
            return lines
        labels, counts = np.unique(self.target.values[self.target.rows], return_counts=True)
        alike: dict[str, list[str]] = {}
        for label in labels.tolist():
            alike.setdefault("".join(str(label).casefold().split()), []).append(str(label))
        for same in [same for same in alike.values() if len(same) > 1][:1]:
            lines.append(f"classes {same[0]!r} and {same[1]!r} differ in case or spaces alone: they are taken as two")
        once = labels[counts == 1].tolist()
        if len(once) == 1:
            lines.append(f"class {once[0]!r} has one row: nothing can be learned of it")
        elif once:
            lines.append(f"{len(once):,} classes have one row each, such as {once[0]!r}: nothing can be learned of them")
        return lines

    def _mistaken(self) -> list[str]:
        """Columns that look like numbers or dates and are read as texts."""
        found = {name: "dropped" for name, _ in self.schema.dropped}
        found |= {column.name: "read as categories" for column in self.schema.fields if column.kind == CATEGORY}
        found |= {self.target.name: "read as classes"} if self.target.task == CLASS else {}
        lines = []
        for name in [name for name in self.table.columns if name in found]:
            if (mistaken := mistaken_of(self.table[name])) is not None:
                lines.append(f"column {short(name)} {mistaken.words()}: it is {found[name]}; {mistaken.remedy}")
        return lines

    def _counting(self) -> list[str]:
        """Numbers that count the rows, one by one: they are names of rows, or their order."""
        lines = []
        for name in [column.name for column in self.schema.fields if column.kind == NUMBER]:
            values = self.table[name].as_numbers()
            if (np.diff(values) == 1).all() and values[0] == np.round(values[0]):
                count = f"column {short(name)} counts the rows, from {values[0]:.0f} on"
                lines.append(f"{count}: if it is but their number, remove it from the table")
        return lines


def split_rows(table: Table, target: Target, test: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to learn from and those held out, ascending."""
    from sklearn.model_selection import train_test_split

    n = len(target.rows)
    if round(n * float(test)) < 2 or n < LEAST_ROWS:
        raise ValueError(f"{table.source} has {n} rows with a target, of which test={test} holds out too few; give more rows.")
    n_held, alone, rows, strata = round(n * float(test)), target.rows[:0], target.rows, None
    if target.task == CLASS:
        _, place, counts = np.unique(target.values[rows], return_inverse=True, return_counts=True)
        is_alone, n_classes = counts[place] == 1, int((counts > 1).sum())
        if n_classes <= min(n_held, n - int(is_alone.sum()) - n_held):
            alone, rows, strata = rows[is_alone], rows[~is_alone], target.values[rows[~is_alone]]
    train, rest = train_test_split(rows, test_size=n_held, random_state=seed, stratify=strata)
    train = np.concatenate([train, alone])
    if target.task == CLASS and len(np.unique(target.values[train])) < 2:
        raise ValueError(f"{table.source}: the rows to learn from hold one class; give more rows of the others.")
    return np.sort(train), np.sort(rest)


def held_out_again(facts: dict[str, Any], target: str, task: str, table: Table) -> np.ndarray | None:
    """The rows of the file that a model with these facts was made from which were held out then; None of any other table."""
    counts = facts["rows"]
    is_same = table.digest is not None and table.digest == facts.get("table_sha256") and table.rows == counts["all"]
    if not is_same or counts["train"] + counts["test"] + counts["without_target"] != counts["all"]:  # it was tested on another
        return None
    column = Target.of(table, target, task)
    return split_rows(table, column, counts["test"] / len(column.rows), int(facts["seed"]))[1]
