"""A report as one HTML file: inline SVG, a style, no script, nothing from a network (its own policy forbids both).

    page_of(evidence) → text

Headings are in order, figures and tables have names, tables that are wide scroll by themselves and can be reached by keyboard.
Everything that comes from a user is text of an element, and escaped in one place (show/elements.py).
Imports words and sections.
"""

import re

import numpy as np

from meristem.report.doubting import doubts
from meristem.report.evidence import Evidence
from meristem.report.numbers import count, duration, rate
from meristem.report.section import Section, Table
from meristem.report.sections import sections
from meristem.report.style import STYLE
from meristem.report.words import kind_of, subject, summary
from meristem.show.elements import Child, Element, el, render

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
LONG = 24  # letters of a word that may be broken
NUMBER = re.compile(r"[−+]?[\d,.]+( %| × 10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?( to [−+]?[\d,.]+)?|–|")


def page_of(evidence: Evidence) -> str:
    """The whole page."""
    title = f"Report: {subject(evidence)}"
    parts = sections(evidence)
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=POLICY),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("link", rel="icon", href="data:,"),
        el("title", f"{title} · meristem"),
    )
    body = el(
        "body",
        el("a", "Skip to the sections", href="#sections", class_="skip"),
        _header(evidence, title, parts),
        el("main", *map(_section, parts), id="sections", tabindex="-1"),
        el("footer", el("p", "Made by meristem; this page is complete in itself and can be sent or printed.")),
    )
    style = f"<style>{STYLE}</style></head>"
    return f'<!DOCTYPE html>\n<html lang="en">{render(head).removesuffix("</head>")}{style}{render(body)}</html>\n'


def _header(evidence: Evidence, title: str, parts: list[Section]) -> Element:
    children: list[Child] = [
        el("h1", title),
        el("p", f"{kind_of(evidence.model).capitalize()}, {type(evidence.model).__name__}", class_="under"),
        el("p", " ".join(summary(evidence)), class_="lead"),
        _tiles(evidence),
    ]
    lines = doubts(evidence)
    if lines:
        items = [el("li", line) for line in lines]
        children.append(el("div", el("h2", "What to doubt", id="doubts"), el("ul", *items), class_="doubts", role="note"))
    links = [el("li", el("a", part.title, href=f"#{part.name}")) for part in parts]
    children.append(el("nav", el("ul", *links), aria_label="Sections"))
    return el("header", *children)


def _tiles(evidence: Evidence) -> Element:
    score, tiles = evidence.score, []
    if score is not None and np.isfinite(score["value"]):
        tiles.append((score["measure"], rate(score["value"]), f"{rate(score['low'])} to {rate(score['high'])}"))
    tiles.append(("parameters", count(evidence.model.n_parameters_), _networks(len(evidence.networks))))
    tiles.append(
        ("judged by", count(evidence.n_rows), "rows held out" if evidence.facts and "held" in evidence.rows else "rows")
    )
    seconds = evidence.facts.get("seconds", {}).get("all") or (evidence.model.path_.seconds if evidence.is_searched else None)
    if seconds:
        tiles.append(("found in", duration(float(seconds)), ""))
    each = [el("div", el("dt", name), el("dd", value, el("small", more))) for name, value, more in tiles]
    return el("dl", *each, class_="tiles")


def _networks(n: int) -> str:
    return "one network" if n == 1 else f"{n} networks"


def _section(part: Section) -> Element:
    left = [el("figure", drawn) for drawn in part.figures]
    right: list[Child] = [_paragraph(line) for line in part.words]
    right += [_table(table, f"{part.name}-{place}") for place, table in enumerate(part.tables)]
    right += [el("pre", el("code", code), tabindex="0", role="region", aria_label="Code") for code in part.code]
    figures = [el("div", *left)] if left else []
    parts = el("div", *figures, el("div", *right), class_="parts drawn" if left else "parts")
    return el("section", el("h2", part.title, id=f"{part.name}-head"), parts, id=part.name, aria_labelledby=f"{part.name}-head")


def _paragraph(line: str) -> Element:
    """`code` in backquotes is code."""
    pieces = line.split("`")
    return el("p", *(el("code", piece) if place % 2 else piece for place, piece in enumerate(pieces)))


def _table(table: Table, name: str) -> Element:
    are_numbers = [
        bool(table.rows) and all(NUMBER.fullmatch(row[place]) for row in table.rows) for place in range(len(table.header))
    ]
    kinds = ["number" if is_number else None for is_number in are_numbers]

    def cell(tag: str, text: str, kind: str | None, scope: str | None = None) -> Element:
        is_long = any(len(word) > LONG for word in text.split())
        return el(tag, text, scope=scope, class_="long" if is_long else kind)

    top = el("tr", *(el("th", text, scope="col", class_=kind) for text, kind in zip(table.header, kinds, strict=True)))
    rows = []
    for row in table.rows:
        rest = (cell("td", text, kind) for text, kind in zip(row[1:], kinds[1:], strict=True))
        rows.append(el("tr", cell("th", row[0], kinds[0], "row"), *rest))
    whole = el("table", el("caption", table.caption, id=name), el("thead", top), el("tbody", *rows))
    scrolled = el("div", whole, class_="scroll", tabindex="0", role="region", aria_labelledby=name)
    return el("details", el("summary", table.caption), scrolled) if table.is_folded else scrolled
