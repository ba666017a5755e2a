"""The sections of a report: what each says, its figures and tables; one that would be empty is not there.

    sections(evidence) → [Section(…), …] in the order of the page

A section is plain data that page.py writes. Imports evidence, words and the figures; page imports it.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from meristem.nn.structure import Nodes
from meristem.report import judging, provenance
from meristem.report.evidence import Evidence
from meristem.report.figures import growth, importance, network, path, score, tree
from meristem.report.numbers import count, figure, many, rate
from meristem.report.section import Section, Table
from meristem.report.words import verdict
from meristem.show.settings import price_of

MOST_INPUTS, MOST_ROWS = 30, 200  # that are shown; rows of a table


def sections(evidence: Evidence) -> list[Section]:
    """All that there is something to say in."""
    makers: list[Callable[[Evidence], Section | None]] = [
        scores,
        prices,
        grown,
        found,
        inputs,
        judging.confusion,
        judging.residuals,
        judging.calibration,
        provenance.tried,
        provenance.loading,
        provenance.made,
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
    leads = [
        ["–", "–"],
        *([verdict(one), f"{rate(one.gain[0])} ({rate(one.gain[1])} to {rate(one.gain[2])})"] for one in evidence.beside),
    ]
    table = Table(
        "Each model on the same rows",
        ["model", own["measure"], "parameters", "this model is", "by (95 % interval)"],
        [[name, rate(one["value"]), count(size), *lead] for (name, one), size, lead in zip(rows, sizes, leads, strict=True)],
    )
    words = [f"{_measured(own['measure'])} {evidence.how_beside if evidence.beside else ''}".strip()]
    return Section("score", "How good it is", words, [score.draw(own["measure"], drawn)], [table])


def _measured(measure: str) -> str:
    return {
        "accuracy": "Accuracy is the share of rows whose class is right.",
        "share of right labels": "The share of all labels, present or absent, that are right.",
        "R²": "R² is the share of the numbers’ variance that is predicted: 1 is perfect, 0 is no better than the mean.",
    }.get(measure, "1 is perfect, 0 is no better than the best constant.")


def prices(evidence: Evidence) -> Section | None:
    """The path."""
    if not evidence.is_searched:
        return Section("path", "Error and size against the price", [_given(evidence.model)])
    found, model = evidence.model.path_, evidence.model
    points, finished = found.points, {point.members for point in found.finished}
    measure = "held-out loss" if "score" not in found.table else "score, sign turned"
    best: dict[float, Any] = {}
    for point in sorted(points, key=lambda one: (one.members not in finished, -one.score)):
        best.setdefault(point.penalty, point)
    chosen = next(
        (one for one in points if (one.penalty, one.l2, one.dropout) == (model.penalty_, model.l2_, model.input_dropout_)), None
    )
    if chosen is not None:
        best[chosen.penalty] = chosen
    drawn = [
        path.Priced(one.penalty, -one.score, one.standard_error, one.n_parameters, one.members in finished, one is chosen)
        for _, one in sorted(best.items())
        if np.isfinite(one.score)
    ]
    if len(drawn) < 2:
        if model.budget is not None:
            return Section(
                "path",
                "Error and size against the price",
                [f"It was given a budget of {count(model.budget)} parameters; no price was tried."],
            )
        return Section(
            "path", "Error and size against the price", [f"A single price was tried: a penalty of {figure(model.penalty_)}."]
        )
    rule = {"min": "the least held-out loss", "1se": "the highest price within one standard error of the best"}[model.rule]
    words = [
        f"{many(len(drawn), 'price')} of size, from {figure(drawn[0].penalty)} to {figure(drawn[-1].penalty)}, each in "
        f"{many(len(np.unique(found.table['fold'])), 'fold')}. Chosen was {figure(model.penalty_)}, by {rule}. Bars are "
        "standard errors of the difference to the best; hollow marks left the search early."
    ]
    table = Table(
        "The best setting at each price",
        ["penalty", measure, "standard error", "parameters", "remark"],
        [
            [
                figure(one.penalty),
                figure(one.loss),
                figure(one.spread),
                count(one.n_parameters),
                "chosen" if one.is_chosen else "" if one.is_finished else "left early",
            ]
            for one in drawn
        ],
        is_folded=True,
    )
    return Section("path", "Error and size against the price", words, [path.draw(drawn, measure)], [table])


def _given(model: Any) -> str:
    said = "by default" if isinstance(model.penalty, str) else "as given"
    if model.budget is not None:
        return f"It was given a budget of {count(model.budget)} parameters; no price was searched for."
    return (
        f"Its price of size was not searched for: a penalty of {figure(price_of(model))}, {said}. "
        f"The estimators whose names end in CV find it."
    )


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
        has_tree |= isinstance(one.network_.body.structure(None), Nodes)
    if not courses:
        return None
    loss, size = "held-out loss" if is_told else "training loss", "nodes of the tree" if has_tree else "open units"
    first, last, most = (_span([f(one) for one in courses]) for f in (_first, _last, _largest))
    epochs = _span([len(one.loss) for one in courses])
    each = "" if len(courses) == 1 else ", a line for each network"
    words = [
        f"{epochs} epochs{each}; dots are the epochs that were kept. {size.capitalize()}: {first} after the first epoch, "
        f"{most} at most, {last} in the end."
    ]
    return Section("growth", "How it grew", words, [growth.draw(courses, loss, size)])


def _first(one: growth.Grown) -> float:
    return float(one.size[0])


def _last(one: growth.Grown) -> float:
    return float(one.size[one.kept - 1])


def _largest(one: growth.Grown) -> float:
    return float(one.size.max())


def _span(values: Sequence[float]) -> str:
    """One number, or from the least to the most."""
    low, high = min(values), max(values)
    return count(low) if low == high else f"{count(low)} to {count(high)}"


def found(evidence: Evidence) -> Section:
    """The network."""
    n_out = evidence.model._targets_.n_out
    units = [(int(_inputs(one)), *one._compact_.units, n_out) for one in evidence.networks]
    trees = [shown for one in evidence.networks if isinstance(shown := one.network_.body.structure(None), Nodes)]
    figures = [network.draw(units)]
    drawn = tree.draw(trees) if trees else None
    figures += [drawn] if drawn is not None else []
    linear = sum(len(one) == 2 for one in units)
    words = ["Only what is open is drawn, layer by layer; numbers are units."]
    if linear:
        which = "The network has" if len(units) == 1 else f"{linear} of {len(units)} networks have"
        words.append(f"{which} no unit open: a weighted sum of the inputs was enough.")
    rows = [
        [str(place + 1), figure(one.soft_size_), count(one.hard_size_), count(one.n_live_units_), count(one.n_parameters_)]
        for place, one in enumerate(evidence.networks)
    ]
    table = Table("Sizes", ["network", "soft size", "hard size", "units", "parameters"], rows)
    return Section("network", "The network that was found", words, figures, [table])


def _inputs(one: Any) -> int:
    """How many inputs a network reads, those that tell of gaps included."""
    gates = one.network_.features
    return one._columns_.n_inputs if gates is None else int((np.asarray(gates.value) > 0).sum())


def inputs(evidence: Evidence) -> Section | None:
    """What was read, what was not, and how much each column matters."""
    words, tables, figures = [], [], []
    told = evidence.importance
    if told is not None:
        order = np.argsort(-told.mean, kind="stable")
        ranked = [(evidence.columns[place], float(told.mean[place]), float(told.spread[place])) for place in order]
        figures.append(importance.draw(ranked[:MOST_INPUTS], evidence.measure))
        times = "once" if told.repeats == 1 else f"{told.repeats} times"
        words.append(
            f"Each column’s values were shuffled {times} among {many(told.rows, 'row')}; bars are what the {evidence.measure} "
            "loses, thin lines its standard deviation. A column that another can stand in for loses little; below 0 is chance."
        )
        if len(ranked) > MOST_INPUTS:
            words.append(
                f"The {MOST_INPUTS} that matter most are drawn; {many(len(ranked) - MOST_INPUTS, 'more column')} matter less."
            )
        if len(ranked) > 1:
            rows = [[name, rate(mean), rate(spread)] for name, mean, spread in ranked[:MOST_ROWS]]
            tables.append(
                Table(
                    "How much each column matters",
                    ["column", f"{evidence.measure} lost", "standard deviation"],
                    rows,
                    is_folded=True,
                )
            )
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
