"""Sections about the search: loss and size at each penalty, and the settings that were tried.

Settings that were stopped early were behind when settings were compared; their losses are those of networks before pruning.
So they are listed separately, and never ranked among those that were trained to the end.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from meristem.check import many
from meristem.paths.picture import best_points
from meristem.paths.result import Path, Point
from meristem.report.charts import path_chart
from meristem.report.formatting import count, duration, significant, value_range
from meristem.report.report_data import ReportData, Section, Table
from meristem.show.describe import penalty_of

PATH_TITLE = "Error and size by penalty"
MOST_SETTINGS = 100
LOSS_DIGITS = 4  # losses are often close to each other
STEPS = {"reading": "reading the table", "baselines": "baselines", "search": "search", "all": "total"}
RULES = {"min": "the lowest held-out loss", "1se": "the highest penalty within one standard error of the best"}
NOT_COMPARABLE = (
    "Their losses were measured when they stopped, before pruning: they are not comparable with those of settings that were "
    "trained to the end, and may well be lower."
)


def path_section(data: ReportData) -> Section:
    model = data.model
    if not data.is_searched:
        source = "the default" if isinstance(model.penalty, str) else "as given"
        fixed = f"The penalty was not searched: it is {significant(penalty_of(model))}, {source}."
        fixed = f"{fixed} Estimators whose names end in CV search for it." if model.budget is None else _budget(model)
        return Section("path", PATH_TITLE, [fixed])
    path, chosen = model.path_, chosen_point(model)
    finished = {point.members for point in path.finished}
    best = {point.penalty: point for point in [*best_points(path), *([chosen] if chosen else [])] if np.isfinite(point.score)}
    if len(best) < 2:
        single = f"A single penalty was tried: {significant(model.penalty_)}."
        return Section("path", PATH_TITLE, [single if model.budget is None else _budget(model)])
    among = " among the settings trained to the end" if len(finished) < len(path.points) else ""
    text = [
        f"{many(len(best), 'penalty', 'penalties')} ({significant(min(best))} to {significant(max(best))}), "
        f"each in {many(len(np.unique(path.table['fold'])), 'fold')}. The chosen one is {significant(model.penalty_)}, by "
        f"{RULES[model.rule]}{among}. The band is the standard error of the difference to the best."
    ]
    if n_stopped := sum(point.members not in finished for point in best.values()):
        text.append(f"At {many(n_stopped, 'penalty', 'penalties')} all settings stopped early: rings. {NOT_COMPARABLE}")
    measure = "held-out score" if "score" in path.table else "held-out loss"
    rows = []
    for point in best.values():
        numbers = (significant(_loss(path, point), LOSS_DIGITS), significant(point.standard_error))
        is_done, remark = point.members in finished, "chosen" if point is chosen else ""
        size = count(point.n_parameters)
        rows.append([significant(point.penalty), *(numbers if is_done else "––"), size, remark if is_done else "stopped early"])
    table = Table(
        "The best setting at each penalty", ["penalty", measure, "standard error", "parameters", "remark"], rows, True
    )
    chart = path_chart(path, {"chosen": chosen} if chosen else {}, table.in_words())
    return Section("path", PATH_TITLE, text, [chart], [table])


def _loss(path: Path, point: Point) -> float:
    """Return the score that replaces the loss, if there is one."""
    return point.score if "score" in path.table else point.loss


def _budget(model: Any) -> str:
    return f"The network was limited to a budget of {count(model.budget)} parameters; the penalty was not searched."


def chosen_point(model: Any) -> Point | None:
    """Return the point of the path with the chosen setting; None with a budget."""
    chosen = model.penalty_, model.l2_, model.input_dropout_
    return next((point for point in model.path_.points if (point.penalty, point.l2, point.dropout) == chosen), None)


def settings_section(data: ReportData) -> Section:
    """Return the settings of a search, those trained to the end before those that stopped early, and its time."""
    model, epochs = data.model, int(sum(member.n_iter_ for member in data.members))
    if not data.is_searched:
        text = [f"One setting, trained for {many(epochs, 'epoch')}; the model is that of epoch {count(model.best_epoch_)}."]
        return Section("tried", "Training", text)
    path, chosen, seconds = model.path_, chosen_point(model), data.facts.get("seconds", {})
    finished = {point.members for point in path.finished}
    ranked = sorted(path.points, key=lambda point: -point.score)
    done, stopped = ([point for point in ranked if (point.members in finished) == is_done] for is_done in (True, False))
    folds = len(np.unique(path.table["fold"]))
    all_epochs = int(np.sum(path.table["epochs"])) if "epochs" in path.table else epochs
    text = [
        f"{many(len(ranked), 'setting')} in {many(folds, 'fold')}: {many(len(path.table['loss']), 'network')}, "
        f"{many(all_epochs, 'epoch')} in all, trained in {duration(path.seconds)}."
    ]
    measure = "score" if "score" in path.table else "held-out loss"
    remarks = ["chosen" if chosen is not None and point.members == chosen.members else "" for point in done]
    extent = "to the end" if done[0].is_finished else "but not to the end"
    tables = [_settings_table(path, f"Settings trained {extent}, best first", measure, done, "epochs", remarks)]
    if stopped:
        or_time = ", or the time limit was reached" if seconds.get("ended_the_search") else ""
        text.append(
            f"{many(len(stopped), 'setting')} stopped early: behind the others when settings were compared{or_time}. "
            f"{NOT_COMPARABLE}"
        )
        caption = f"Settings that stopped early: {measure} not comparable"
        tables.append(_settings_table(path, caption, f"{measure} then", stopped, "stopped after epochs"))
    times = [[name, duration(float(seconds[key]))] for key, name in STEPS.items() if seconds.get(key) is not None]
    tables += [Table("Time", ["step", "time"], times)] if times else []
    return Section("tried", "Search: settings and time", text, [], tables)


def _settings_table(
    path: Path, caption: str, measure: str, points: Sequence[Point], epochs_header: str, remarks: Sequence[str] = ()
) -> Table:
    rows = [
        [
            *map(significant, (point.penalty, point.l2, point.dropout)),
            significant(_loss(path, point), LOSS_DIGITS),
            significant(point.error),
            count(point.n_parameters),
            value_range(path.table["epochs"][list(point.members)].tolist()) if "epochs" in path.table else "–",
            *remarks[number : number + 1],
        ]
        for number, point in enumerate(points[:MOST_SETTINGS])
    ]
    more = f", the best {MOST_SETTINGS} of {len(points)}" if len(points) > MOST_SETTINGS else ""
    header = ["penalty", "l2", "dropout", measure, "error", "parameters", epochs_header, *(["remark"] if remarks else [])]
    return Table(caption + more, header, rows, is_folded=True)
