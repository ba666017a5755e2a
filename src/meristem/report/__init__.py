"""A report about a model: one HTML file with its score, baselines, size, importances and caveats.

    model.report("report.html", X, y)        every estimator
    table_model.report("report.html")        written by `meristem fit`, next to summary.json

report_data.py collects the facts (scoring, baselines, importance); report_text.py and sections*.py make text, tables and
figures, report.html.jinja the page: inline SVG and style, no script, nothing from a network (its own policy forbids both).
A model is used by its attributes, never by its type.
"""

import re

from meristem.report.formatting import count, decimal, duration, interval_text, render_template, score_text
from meristem.report.report_data import ReportData, Section, Table, from_estimator as from_estimator, from_table as from_table
from meristem.report.report_text import caveats, network_kind, summary
from meristem.report.sections import sections
from meristem.show.elements import shorten

LONG = 24  # letters of a word that may be broken
NUMBER = re.compile(r"[−+]?[\d,.]+( %| × 10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?( to [−+]?[\d,.]+)?|–|")


def render_page(data: ReportData, own: list[Section] | None = None) -> str:
    """Return the HTML of a report, from `from_estimator` or `from_table`; every text is escaped by the template.

    `own` sections replace those of tables (image_report.py).
    """
    return render_template(
        "report.html.jinja",
        title=f"Report: {shorten(data.target, 60) if data.facts else type(data.model).__name__}",
        subtitle=f"{network_kind(data.model).capitalize()}, {type(data.model).__name__}",
        summary=" ".join(summary(data)),
        tiles=_tiles(data),
        caveats=caveats(data),
        sections=sections(data) if own is None else own,
        column_classes=_column_classes,
        is_long=lambda text: len(text) > 2 * LONG or any(len(word) > LONG for word in text.split()),
    )


def _tiles(data: ReportData) -> list[tuple[str, str, str]]:
    """Return name, value and remark of the numbers at the top of the page."""
    score, n, tiles = data.finite_score, len(data.members), []
    if score is not None:
        measure = score["measure"]
        tiles.append((measure, score_text(score["value"], measure), interval_text(score["low"], score["high"], measure)))
        own = data.metrics.get("recall")
        if own is not None and measure != "accuracy":
            tiles.append(("recall", decimal(own["value"]), interval_text(own["low"], own["high"])))
    tiles.append(("parameters", count(data.model.n_parameters_), "one network" if n == 1 else f"{n} networks"))
    tiles.append(("evaluated on", count(data.n_rows), "held-out rows" if "held-out" in data.rows else "rows"))
    seconds = data.facts.get("seconds", {}).get("all") or (data.model.path_.seconds if data.is_searched else None)
    return tiles + ([("time", duration(float(seconds)), "")] if seconds else [])


def _column_classes(table: Table) -> list[str | None]:
    """Return "number" for each column of numbers, which is aligned to the right."""
    columns = zip(*table.rows, strict=True) if table.rows else ((text,) for text in table.header)
    return ["number" if table.rows and all(map(NUMBER.fullmatch, column)) else None for column in columns]
