"""Tables of text, for a terminal of any width or a file."""

import shutil
import sys
from typing import TextIO


def print_table(columns: list[str], rows: list[list[str]], title: str, stream: TextIO | None = None) -> None:
    """Print a table; columns that do not fit the terminal follow below, each time after the first two."""
    stream = stream or sys.stdout
    available = shutil.get_terminal_size((160, 24)).columns if stream.isatty() else 160
    widths = [max(len(line[i]) for line in [columns, *rows]) for i in range(len(columns))]
    print(title, file=stream)
    for page in _pages(widths, available):
        for line in [columns, ["-" * width for width in widths], *rows]:
            print("  ".join(line[i].ljust(widths[i]) for i in page).rstrip(), file=stream)


def without_empty(columns: list[str], rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """Leave out columns that have "–" in every row.

    >>> without_empty(["model", "paper", "ours"], [["tunnel", "–", "3"], ["budding", "–", "–"]])
    (['model', 'ours'], [['tunnel', '3'], ['budding', '–']])
    """
    filled = [place for place in range(len(columns)) if not rows or any(row[place] != "–" for row in rows)]
    return [columns[place] for place in filled], [[row[place] for place in filled] for row in rows]


def _pages(widths: list[int], available: int, repeated: int = 2) -> list[list[int]]:
    """Split columns into pages that fit, the first `repeated` on every page.

    >>> _pages([5, 5, 10, 10, 10], 40)
    [[0, 1, 2, 3], [0, 1, 4]]
    """
    pages = [list(range(repeated))]
    for column in range(repeated, len(widths)):
        if sum(widths[i] + 2 for i in [*pages[-1], column]) - 2 > available and len(pages[-1]) > repeated:
            pages.append(list(range(repeated)))
        pages[-1].append(column)
    return pages
