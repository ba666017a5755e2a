"""Sections about the search: what each price came to, what was tried to its end, and what left early.

    prices(evidence), tried(evidence) → Section

Settings that left the search early were behind when settings were compared; their losses are of networks that had not settled
yet. So they are listed apart, and never ranked among those that were trained to their end. Imports evidence; sections
imports it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from meristem.check import many
from meristem.paths.result import Path, Point
from meristem.report.evidence import Evidence
from meristem.report.figures import path as figures_path
from meristem.report.numbers import count, duration, figure, span
from meristem.report.section import Section, Table
from meristem.show.settings import price_of

TITLE, TRIED = "Error and size against the price", "What was tried, and how long it took"
MOST_SETTINGS = 100
CLOSE = 4  # digits of losses, which are often near one another
TIMES = {"reading": "reading the table", "baselines": "the others", "search": "the search", "all": "in all"}
RULES = {"min": "the least held-out loss", "1se": "the highest price within one standard error of the best"}
BUDGET = "It was given a budget of {} parameters; no price was {}."


def prices(evidence: Evidence) -> Section:
    """The path."""
    model = evidence.model
    if not evidence.is_searched:
        return Section("path", TITLE, [_given(model)])
    found, chosen = model.path_, chosen_of(model)
    finished = {point.members for point in found.finished}
    measure = "held-out loss" if "score" not in found.table else "score, sign turned"
    best: dict[float, Point] = {}
    for point in sorted(found.points, key=lambda one: (one.members not in finished, -one.score)):
        best.setdefault(point.penalty, point)
    if chosen is not None:
        best[chosen.penalty] = chosen
    drawn = [
        figures_path.Priced(
            one.penalty, -one.score, one.standard_error, one.n_parameters, one.members in finished, one is chosen
        )
        for _, one in sorted(best.items())
        if np.isfinite(one.score)
    ]
    if len(drawn) < 2:
        single = f"A single price was tried: a penalty of {figure(model.penalty_)}."
        return Section("path", TITLE, [single if model.budget is None else BUDGET.format(count(model.budget), "tried")])
    n_left = sum(not one.is_finished for one in drawn)
    among = " of the settings that were trained to their end" if len(finished) < len(found.points) else ""
    words = [
        f"{many(len(drawn), 'price')} of size, from {figure(drawn[0].penalty)} to {figure(drawn[-1].penalty)}, each in "
        f"{many(len(np.unique(found.table['fold'])), 'fold')}. Chosen was {figure(model.penalty_)}, by {RULES[model.rule]}"
        f"{among}. Bars are standard errors of the difference to the best."
    ]
    if n_left:
        words.append(
            f"At {many(n_left, 'price')} no setting was trained to its end: hollow marks, drawn among the sizes alone, since "
            "the loss of a setting that left early is not comparable."
        )
    rows = [
        [
            figure(one.penalty),
            figure(one.loss, CLOSE) if one.is_finished else "–",
            figure(one.spread) if one.is_finished else "–",
            count(one.n_parameters),
            "chosen" if one.is_chosen else "" if one.is_finished else "left early",
        ]
        for one in drawn
    ]
    head = ["penalty", measure, "standard error", "parameters", "remark"]
    table = Table("The best setting at each price", head, rows, is_folded=True)
    return Section("path", TITLE, words, [figures_path.draw(drawn, measure)], [table])


def chosen_of(model: Any) -> Point | None:
    """The point of a path whose setting was taken; with a budget there may be none."""
    own = model.penalty_, model.l2_, model.input_dropout_
    return next((one for one in model.path_.points if (one.penalty, one.l2, one.dropout) == own), None)


def _given(model: Any) -> str:
    said = "by default" if isinstance(model.penalty, str) else "as given"
    if model.budget is not None:
        return BUDGET.format(count(model.budget), "searched for")
    return (
        f"Its price of size was not searched for: a penalty of {figure(price_of(model))}, {said}. "
        f"The estimators whose names end in CV find it."
    )


def tried(evidence: Evidence) -> Section:
    """The settings of a search, those that were trained to their end before those that left it, and its time."""
    model = evidence.model
    epochs = int(sum(one.n_iter_ for one in evidence.networks))
    if not evidence.is_searched:
        words = [f"One setting, trained for {many(epochs, 'epoch')}; kept is epoch {count(model.best_epoch_)}."]
        return Section("tried", TRIED, words)
    path, chosen = model.path_, chosen_of(model)
    finished = {point.members for point in path.finished}
    ranked = sorted(path.points, key=lambda one: -one.score)
    done, left = ([one for one in ranked if (one.members in finished) == is_done] for is_done in (True, False))
    folds = len(np.unique(path.table["fold"]))
    all_epochs = int(np.sum(path.table["epochs"])) if "epochs" in path.table else epochs
    words = [
        f"{many(len(ranked), 'setting')} in {many(folds, 'fold')}, {many(len(path.table['loss']), 'network')} and "
        f"{many(all_epochs, 'epoch')} in all; training them took {duration(path.seconds)}."
    ]
    seconds = evidence.facts.get("seconds", {})
    measure = "score" if "score" in path.table else "held-out loss"
    remark = ["chosen" if chosen is not None and one.members == chosen.members else "" for one in done]
    how_far = "to its end" if done[0].is_finished else "but not to its end"
    tables = [_settings(path, f"What was tried {how_far}, best first", measure, done, "epochs", remark)]
    if left:
        or_time = ", or the time was over" if seconds.get("ended_the_search") else ""
        words.append(
            f"{many(len(left), 'setting')} left early: behind the others when settings were compared{or_time}. Their losses "
            "were measured then, before their networks had settled and closed what they can do without: they are not "
            "comparable with those of settings that were trained to their end, and may well be lower."
        )
        caption = f"What left early: its {'score' if measure == 'score' else 'loss'} is not comparable"
        tables.append(_settings(path, caption, f"{measure} then", left, "left after epochs"))
    times = [[name, duration(float(seconds[key]))] for key, name in TIMES.items() if seconds.get(key) is not None]
    if times:
        tables.append(Table("Time", ["step", "took"], times))
    return Section("tried", TRIED, words, [], tables)


def _settings(path: Path, caption: str, measure: str, points: Sequence[Point], ended: str, remark: Sequence[str] = ()) -> Table:
    """A row for each; remarks are a last column, where there are some."""
    rows = [
        [
            *map(figure, (point.penalty, point.l2, point.dropout)),
            figure(point.score if "score" in path.table else point.loss, CLOSE),
            figure(point.error),
            count(point.n_parameters),
            span([float(n) for n in path.table["epochs"][list(point.members)]]) if "epochs" in path.table else "–",
            *remark[place : place + 1],
        ]
        for place, point in enumerate(points[:MOST_SETTINGS])
    ]
    more = f", the best {MOST_SETTINGS} of {len(points)}" if len(points) > MOST_SETTINGS else ""
    head = ["penalty", "l2", "dropout", measure, "error", "parameters", ended, *(["remark"] if remark else [])]
    return Table(caption + more, head, rows, is_folded=True)
