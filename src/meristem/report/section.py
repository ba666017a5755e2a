"""A part of a page as data: a heading, sentences, figures, tables, code.

Imports show/elements.py; sections, judging and provenance make these, page.py writes them.
"""

from dataclasses import dataclass, field

from meristem.show.elements import Element


@dataclass(frozen=True)
class Table:
    """Rows of texts; the first of each is its header. A folded one is opened by its reader."""

    caption: str
    header: list[str]
    rows: list[list[str]]
    is_folded: bool = False


@dataclass(frozen=True)
class Section:
    """In the order of the page: sentences, figures, tables, code."""

    name: str
    title: str
    words: list[str]
    figures: list[Element] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    code: list[str] = field(default_factory=list)
