"""The sections of a report: what each says, its figures and tables; one that would be empty is not there.

    sections(evidence) → [Section(…), …] in the order of the page

A section is plain data that page.py writes. Imports evidence, words and the figures; page imports it.
"""

from collections.abc import Callable

import numpy as np

from meristem.check import many
from meristem.report import glossary, judging, provenance, searched, using
from meristem.report.evidence import Evidence
from meristem.report.figures import growth, importance, score
from meristem.report.numbers import count, figure, rate, span
from meristem.report.section import Section, Table
from meristem.report.words import differs, verdict
from meristem.show.card import gallery, networks_of

MOST_INPUTS, MOST_ROWS = 30, 200  # that are shown; rows of a table


def sections(evidence: Evidence) -> list[Section]:
    """All that there is something to say in."""
    makers: list[Callable[[Evidence], Section | None]] = [
        scores,
        searched.prices,
        grown,
        found,
        inputs,
        judging.confusion,
        judging.residuals,
        judging.calibration,
        searched.tried,
        using.loading,
        provenance.made,
        glossary.words,
    ]
    return [section for make in makers if (section := make(evidence)) is not None]


def scores(evidence: Evidence) -> Section | None:
    """The score beside others."""
    own = evidence.score
    if own is None or not np.isfinite(own["value"]):
        return None
    rows = [("this model", own), *((one.name, one.score) for one in evidence.beside)]
    drawn = [(name, one["value"], one["low"], one["high"]) for name, one in rows if np.isfinite(one["value"])]
    sizes = [int(evidence.model.n_parameters_), *(one.n_parameters for one in evidence.beside)]
    scored = [[name, rate(one["value"]), count(size)] for (name, one), size in zip(rows, sizes, strict=True)]
    tables = [Table("Each model", ["model", own["measure"], "parameters"], scored)]
    if evidence.beside:
        leads = [[one.name, verdict(one), rate(one.gain[0]), differs(one)] for one in evidence.beside]
        caption = "This model beside the others" + ("" if evidence.is_paired else "; intervals as if on other rows, wider")
        tables.append(Table(caption, ["beside", "it is", "by", "95 % interval"], leads))
    words = [f"{_measured(own['measure'])} {evidence.how_beside if evidence.beside else ''}".strip()]
    return Section("score", "How good it is", words, [score.draw(own["measure"], drawn)], tables)


def _measured(measure: str) -> str:
    return {
        "accuracy": "Accuracy is the share of rows whose class is right.",
        "share of right labels": "The share of all labels, present or absent, that are right.",
        "R²": "R² is the share of the numbers’ variance that is predicted: 1 is perfect, 0 is no better than the mean.",
    }.get(measure, "1 is perfect, 0 is no better than the best constant.")


def grown(evidence: Evidence) -> Section | None:
    """Its history."""
    courses, has_tree, is_told = [], False, False
    for one in evidence.networks:
        history = one.history_
        if not len(history["loss"]):
            continue
        kept = int(np.clip(one.best_epoch_ - (one.n_iter_ - len(history["loss"])), 1, len(history["loss"])))
        is_told |= bool(np.any(history["dev_loss"] != history["loss"]))
        courses.append(growth.Grown(np.asarray(history["dev_loss"], float), np.asarray(history["hard_size"], float), kept))
        has_tree |= one.network_.capacity > 0
    if not courses:
        return None
    loss, size = "held-out loss" if is_told else "training loss", "nodes of the tree" if has_tree else "open units"
    first, last, most = (span([f(one) for one in courses]) for f in (_first, _last, _largest))
    epochs = span([len(one.loss) for one in courses])
    epochs += " epoch" if epochs == "1" else " epochs"
    each = "" if len(courses) == 1 else ", a line for each network"
    words = [
        f"{epochs}{each}; dots are the epochs that were kept. {size.capitalize()}: {first} after the first epoch, "
        f"{most} at most, {last} in the end."
    ]
    return Section("growth", "How it grew", words, [growth.draw(courses, loss, size)])


def _first(one: growth.Grown) -> float:
    return float(one.size[0])


def _last(one: growth.Grown) -> float:
    return float(one.size[one.kept - 1])


def _largest(one: growth.Grown) -> float:
    return float(one.size.max())


def found(evidence: Evidence) -> Section:
    """The network."""
    members = evidence.networks
    figures = [gallery(networks_of(members), name="network")]
    linear = sum(not member._compact_.units for member in members)
    words = ["Layer by layer, from the inputs to the outputs; numbers are those of what is open."]
    gaps = evidence.model._inputs_.gaps
    if len(gaps):
        every = many(evidence.model._inputs_.n_inputs, "input")
        words.append(f"Of {every} that there are, {many(len(gaps), 'is a mark', 'are marks')} of missing values.")
    if linear:
        which = "The network has" if len(members) == 1 else f"{linear} of {len(members)} networks have"
        words.append(f"{which} no unit open: a weighted sum of the inputs was enough.")
    rows = [
        [str(place + 1), figure(one.soft_size_), count(one.hard_size_), count(one.n_live_units_), count(one.n_parameters_)]
        for place, one in enumerate(evidence.networks)
    ]
    table = Table("Sizes", ["network", "soft size", "hard size", "units", "parameters"], rows)
    return Section("network", "The network that was found", words, figures, [table])


def inputs(evidence: Evidence) -> Section | None:
    """What was read, what was not, and how much each column matters."""
    words, tables, figures = [], [], []
    told = evidence.importance
    if told is not None:
        order = np.argsort(-told.mean, kind="stable")
        spread = [None] * len(order) if told.spread is None else told.spread.tolist()
        ranked = [(evidence.columns[place], float(told.mean[place]), spread[place]) for place in order]
        figures.append(importance.draw(ranked[:MOST_INPUTS], evidence.measure))
        times, lines = (
            ("once", "; how much another shuffling would differ is unknown")
            if told.spread is None
            else (f"{told.repeats} times", ", thin lines its standard deviation over the shufflings")
        )
        words.append(
            f"Each column’s values were shuffled {times} among {many(told.rows, 'row')}; bars are what the {evidence.measure} "
            f"loses{lines}. A column that another can stand in for loses little."
            " Below 0, these rows came out better with the column shuffled; on other rows that may be otherwise."
        )
        if len(ranked) > MOST_INPUTS:
            words.append(
                f"The {MOST_INPUTS} that matter most are drawn; {many(len(ranked) - MOST_INPUTS, 'more column')} matter less."
            )
        if len(ranked) > 1:
            names = ["column", f"{evidence.measure} lost", *(["standard deviation"] if told.spread is not None else [])]
            rows = [[name, *(rate(value) for value in values if value is not None)] for name, *values in ranked[:MOST_ROWS]]
            tables.append(Table("How much each column matters", names, rows, is_folded=True))
    gone = [
        *((name, why) for name, why in evidence.dropped),
        *((name, "its gate is closed: not read") for name in evidence.unused),
    ]
    if gone:
        words.append(f"{many(len(gone), 'column')} {'is' if len(gone) == 1 else 'are'} not used.")
        tables.append(
            Table(
                "Columns that are not used", ["column", "why"], [[name, why] for name, why in gone[:MOST_ROWS]], len(gone) > 8
            )
        )
    elif told is not None:
        words.append("No column was dropped.")
    return Section("inputs", "Which inputs matter", words, figures, tables) if words else None
