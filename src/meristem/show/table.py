"""A table for people, on a terminal of any width or in a file."""

import shutil
import sys
from typing import TextIO


def print_table(columns: list[str], rows: list[list[str]], title: str, stream: TextIO | None = None) -> None:
    """A table for people, as wide as the terminal allows: further columns follow below, beside the first two again."""
    stream = stream or sys.stdout
    room = shutil.get_terminal_size((160, 24)).columns if stream.isatty() else 160
    widths = [max(len(line[i]) for line in [columns, *rows]) for i in range(len(columns))]
    print(title, file=stream)
    for chosen in _pages(widths, room):
        for line in [columns, ["-" * width for width in widths], *rows]:
            print("  ".join(line[i].ljust(widths[i]) for i in chosen).rstrip(), file=stream)


def without_empty(columns: list[str], rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """Leave out the columns in which no row has anything to say.

    >>> without_empty(["model", "paper", "ours"], [["tunnel", "–", "3"], ["budding", "–", "–"]])
    (['model', 'ours'], [['tunnel', '3'], ['budding', '–']])
    """
    kept = [place for place in range(len(columns)) if not rows or any(row[place] != "–" for row in rows)]
    return [columns[place] for place in kept], [[row[place] for place in kept] for row in rows]


def _pages(widths: list[int], room: int, repeated: int = 2) -> list[list[int]]:
    """Columns that fit beside one another, the first `repeated` on every page.

    >>> _pages([5, 5, 10, 10, 10], 40)
    [[0, 1, 2, 3], [0, 1, 4]]
    """
    pages = [list(range(repeated))]
    for column in range(repeated, len(widths)):
        if sum(widths[i] + 2 for i in [*pages[-1], column]) - 2 > room and len(pages[-1]) > repeated:
            pages.append(list(range(repeated)))
        pages[-1].append(column)
    return pages
