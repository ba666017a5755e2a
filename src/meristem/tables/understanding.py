"""What of a table is used for what: its target, the rows to learn from and those held out, and how its columns are encoded.

    Understood.of(table, target="price", task=None, test=0.2, seed=0) → Understood;  .words() → what there is to say of it

Rows without a target are left out. Of the rest `test` is a share that is held out, or a table of its own. Of classes as much of
each is held out; a row that is alone of its class is learned from. Everything that is wrong with a table is found here, before
anything is computed or written. Imports the encoding, the target and written; fitting and commands import it.
"""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from meristem.check import cut, short
from meristem.tables.column import number_of
from meristem.tables.encoding import Encoding, inputs_in_words
from meristem.tables.kinds import CATEGORY, NUMBER
from meristem.tables.reading import tabled
from meristem.tables.table import Table
from meristem.tables.target import CLASS, MOST_NAMED, Target
from meristem.tables.written import mistaken_of

LEAST_ROWS = 10  # on each side of a split


@dataclass(frozen=True, eq=False)
class Understood:
    """A table, and what it is used for."""

    table: Table
    goal: Target
    train: np.ndarray = field(repr=False)  # rows to learn from
    apart: Table  # the table that is tested on: often the same
    held: np.ndarray = field(repr=False)  # its rows that are
    encoding: Encoding

    @classmethod
    def of(cls, table: Table, *, target: str, task: str | None = None, test: Any = 0.2, seed: int = 0) -> Self:
        """See the module's header; raises ValueError of one line.

        >>> from meristem.tables.reading import table_of
        >>> table = table_of({"x": np.arange(20), "side": ["left"] * 10 + ["right"] * 10})
        >>> Understood.of(table, target="side").words()[0]
        'the frame: 20 rows; 16 to learn from, 4 held out'
        """
        goal = Target.of(table, target, task)
        train, apart, held = _parts(table, goal, test, seed)
        return cls(table, goal, train, apart, held, Encoding.of(table, train, without=[target]))

    @property
    def is_apart(self) -> bool:
        """Whether it is tested on a table of its own."""
        return self.apart is not self.table

    @property
    def n_marks(self) -> int:
        """How many inputs the estimator will add, that tell of gaps: one for each number or date that is missing in a row."""
        numbers = [one for one in self.encoding.columns if one.kind != CATEGORY]
        return sum(bool(np.isnan(one.values(self.table.columns.get(one.name), self.train)).any()) for one in numbers)

    def words(self) -> list[str]:
        """What was understood of a table, for a person."""
        goal, table = self.goal, self.table
        without = f", {goal.n_dropped:,} without a target are dropped" if goal.n_dropped else ""
        kinds = [one.kind for one in self.encoding.columns]
        seen = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
        offer = " (--task number, or task='number', to predict it as a number)" * goal.why.endswith("different whole numbers")
        tested = f"{len(self.held):,} of {self.apart.source} to test on" if self.is_apart else f"{len(self.held):,} held out"
        return [
            f"{table.source}: {table.rows:,} rows{without}; {len(self.train):,} to learn from, {tested}",
            f"target {goal.name!r}: {goal.why}{offer}",
            f"columns: {seen}; {inputs_in_words(len(self.encoding.inputs), self.n_marks)}",
            *(f"dropped column {name!r}: {why}" for name, why in self.encoding.dropped),
            *self._commas(),
            *(f"doubtful: {line}" for line in self.doubts()),
        ]

    def _commas(self) -> list[str]:
        """Columns whose numbers are written with decimal commas."""
        used = [self.goal.name, *(one.name for one in self.encoding.columns if one.kind == NUMBER)]
        names = [name for name in self.table.columns if name in used and self.table[name].has_commas]
        return [f"decimal commas are read as points in {cut(', '.join(map(repr, names)), MOST_NAMED)}"] if names else []

    def doubts(self) -> list[str]:
        """What of a table is likely a mistake, though it can be learned from; a line each.

        >>> from meristem.tables.reading import table_of
        >>> table = table_of({"5.1": np.arange(20) % 7, "rich": ["Yes"] * 10 + ["yes"] * 5 + ["no"] * 4 + ["?!"]})
        >>> for line in Understood.of(table, target="rich").doubts():
        ...     print(line)
        classes 'Yes' and 'yes' differ in case or spaces alone: they are taken as two
        class '?!' has one row: nothing can be learned of it
        """
        lines = []
        numbers = [name for name in self.table.columns if not np.isnan(number_of(name))]
        if 2 * len(numbers) > len(self.table.columns):
            lines.append(f"names of columns are numbers, such as {numbers[0]!r}: if the table has no header, give it one")
        lines += self._mistaken() + self._counting()
        if self.goal.task != CLASS:
            return lines
        labels, counts = np.unique(self.goal.values[self.goal.rows], return_counts=True)
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
        found = {name: "dropped" for name, _ in self.encoding.dropped}
        found |= {one.name: "read as categories" for one in self.encoding.columns if one.kind == CATEGORY}
        found |= {self.goal.name: "read as classes"} if self.goal.task == CLASS else {}
        lines = []
        for name in [name for name in self.table.columns if name in found]:
            if (mistaken := mistaken_of(self.table[name])) is not None:
                lines.append(f"column {short(name)} {mistaken.words()}: it is {found[name]}; {mistaken.remedy}")
        return lines

    def _counting(self) -> list[str]:
        """Numbers that count the rows, one by one: they are names of rows, or their order."""
        lines = []
        for name in [one.name for one in self.encoding.columns if one.kind == NUMBER]:
            values = self.table[name].as_numbers()
            if (np.diff(values) == 1).all() and values[0] == np.round(values[0]):
                count = f"column {short(name)} counts the rows, from {values[0]:.0f} on"
                lines.append(f"{count}: if it is but their number, remove it from the table")
        return lines


def _parts(table: Table, goal: Target, test: Any, seed: int) -> tuple[np.ndarray, Table, np.ndarray]:
    """Training rows; the table that is tested on, and its rows."""
    if isinstance(test, bool) or not isinstance(test, int | float | np.number):
        apart = tabled(test)
        if goal.name not in apart:
            raise ValueError(f"test: {apart.source} has no column {goal.name!r}; the target must be in it, too.")
        held = np.flatnonzero(apart[goal.name].as_codes([]) != -1)  # any value
        if not len(held):
            raise ValueError(f"test: {apart.source}: column {goal.name!r} is missing in every row.")
        return goal.rows, apart, held
    from sklearn.model_selection import train_test_split

    n = len(goal.rows)
    if round(n * float(test)) < 2 or n < LEAST_ROWS:
        raise ValueError(f"{table.source} has {n} rows with a target, of which test={test} holds out too few; give more rows.")
    n_held, alone, rows, strata = round(n * float(test)), goal.rows[:0], goal.rows, None
    if goal.task == CLASS:
        _, place, counts = np.unique(goal.values[rows], return_inverse=True, return_counts=True)
        is_alone, n_classes = counts[place] == 1, int((counts > 1).sum())
        if n_classes <= min(n_held, n - int(is_alone.sum()) - n_held):
            alone, rows, strata = rows[is_alone], rows[~is_alone], goal.values[rows[~is_alone]]
    train, rest = train_test_split(rows, test_size=n_held, random_state=seed, stratify=strata)
    train = np.concatenate([train, alone])
    if goal.task == CLASS and len(np.unique(goal.values[train])) < 2:
        raise ValueError(f"{table.source}: the rows to learn from hold one class; give more rows of the others.")
    return np.sort(train), table, np.sort(rest)


def held_again(facts: dict[str, Any], target: str, task: str, table: Table) -> np.ndarray | None:
    """The rows of the file that a model with these facts was made from which were held out then; None of any other table."""
    known = facts["rows"]
    is_same = table.digest is not None and table.digest == facts.get("table_sha256") and table.rows == known["all"]
    if not is_same or known["train"] + known["test"] + known["without_target"] != known["all"]:  # it was tested on another
        return None
    goal = Target.of(table, target, task)
    return _parts(table, goal, known["test"] / len(goal.rows), int(facts["seed"]))[2]
