"""A table: named columns of as many rows each, whatever they came from.

    Table(columns, rows, source);  table["age"] → Column
    check_names(source, names)     a ValueError of one line where a column has no name, or the name of another

Imports column.py; readers and all that use tables import it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from meristem.check import short, unknown
from meristem.tables.column import Column

KnownTexts = Mapping[str, Sequence[str]]  # of each column of categories those that keep their place


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of as many rows each."""

    columns: dict[str, Column] = field(repr=False)
    rows: int
    source: str  # the file, in quotes, or "the frame"
    digest: str | None = None  # SHA-256 of the file's content, unpacked; None: it came from no file
    texts: dict[str, list[str]] = field(
        default_factory=dict, repr=False
    )  # of columns that were asked for, as the file has them
    sep: str | None = None  # what separates the columns of a CSV file; None: it came from no such file
    encoding: str | None = None  # of a CSV file
    format: str | None = None  # "csv", "csv.gz" or "parquet"; None: it came from no file

    def __getitem__(self, name: str) -> Column:
        return self.columns[name]

    def __contains__(self, name: object) -> bool:
        return name in self.columns


def check_names(source: str, names: list[str]) -> None:
    """Raise ValueError where a column has no name, the name of another, or one that is no text.

    >>> check_names("the frame", ["age", " "])
    Traceback (most recent call last):
    ValueError: the frame: column 2 of 2 has no name; give it one in the header.
    """
    if not names:
        raise ValueError(f"{source} has no columns; its first line must name them.")
    places: dict[str, int] = {}
    for place, name in enumerate(names):
        if not name.strip():
            hint = " (an index that pandas wrote? to_csv(…, index=False))" if place == 0 else ""
            raise ValueError(f"{source}: column {place + 1} of {len(names)} has no name{hint}; give it one in the header.")
        if "\0" in name or any("\ud800" <= char <= "\udfff" for char in name):
            raise ValueError(
                f"{source}: column {place + 1} is called {short(name)}, which is no Unicode text without NUL; rename it."
            )
        if (first := places.setdefault(name, place)) != place:
            raise ValueError(
                f"{source}: columns {first + 1} and {place + 1} are both called {short(name)}; rename one in the header."
            )


def room_for(keep: Sequence[str], names: list[str]) -> dict[str, list[str]]:
    """Room for the texts of columns that are asked for, one or several with commas; ValueError where there is no such column.

    >>> room_for(["id, age", "size, in cm"], ["id", "age", "job", "size, in cm"])
    {'id': [], 'age': [], 'size, in cm': []}
    """
    wanted = [part for entry in keep for part in ([entry] if entry in names else map(str.strip, entry.split(",")))]
    for name in wanted:
        if name not in names:
            raise unknown("keep", name, names, most=300)
    return {name: [] for name in wanted}
