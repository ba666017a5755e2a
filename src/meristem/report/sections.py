"""The sections of a report as data: text, figures, tables and code; a section without content is left out.

sections(data) → [Section(name, title, …), …] in the order of the page

`title` is the heading. docs/report.md lists the headings, and no test compares them. The other sections are in
sections_predictions.py, sections_search.py and sections_usage.py.
"""

import numpy as np

from meristem.check import many
from meristem.report.charts import growth_chart, importance_chart, score_chart
from meristem.report.formatting import count, decimal, interval_text, significant, value_range
from meristem.report.report_data import ReportData, Section, Table
from meristem.report.report_text import gain_interval, verdict
from meristem.report.sections_predictions import prediction_sections
from meristem.report.sections_search import path_section, settings_section
from meristem.report.sections_usage import provenance_section, usage_section
from meristem.show.card import gallery, networks_of

MOST_INPUTS, MOST_ROWS = 30, 200  # that are drawn; rows of a table
MEASURES = {
    "accuracy": "Accuracy is the share of rows whose class is predicted correctly.",
    "share of right labels": "The share of all labels, present or absent, that are predicted correctly.",
    "R²": "R² is the share of the target’s variance that is predicted: 1 is perfect, 0 is no better than the mean.",
    "quantile skill": "1 is perfect, 0 is no better than the best constant quantiles.",
}
GLOSSARY = {  # docs/report.md has the same lines
    "gate": "A learned number from 0 (closed) to 1 (open) that says how much of a unit, a layer or an input is used.",
    "soft size": "The sum of the gates: how much of the network is used.",
    "hard size": "The number of units, or nodes of a tree, whose gates are above 0.",
    "penalty": "The cost of size in training: the higher, the smaller the network.",
    "l2": "The weight of the L2 regularization: the higher, the smoother the predictions.",
    "dropout": "The share of inputs that is set to zero at random in each training step.",
    "rate": "The learning rate; it is reduced when the loss stops falling.",
    "pruning": "At the end of training, gates whose contribution does not justify their cost are closed.",
    "stopped early": "A setting whose training was stopped because it was behind when settings were compared.",
    "calibration": "The agreement of predicted probabilities with observed frequencies.",
    "temperature": "The number that outputs are divided by before they become probabilities, to calibrate them.",
    "recall": "Of the rows of a class, the share that is predicted as that class.",
    "precision": "Of the rows predicted as a class, the share that is of that class.",
}


def sections(data: ReportData) -> list[Section]:
    """Return all sections that have content."""
    made: list[Section | None] = [
        score_section(data),
        path_section(data),
        growth_section(data),
        network_section(data),
        inputs_section(data),
        *prediction_sections(data),
        settings_section(data),
        usage_section(data),
        provenance_section(data),
        Section(
            "glossary", "Glossary", [], [], [Table("Terms", ["term", "meaning"], [list(item) for item in GLOSSARY.items()])]
        ),
    ]
    return [section for section in made if section is not None]


def score_section(data: ReportData) -> Section | None:
    own = data.finite_score
    if own is None:
        return None
    models = [("this model", own, int(data.model.n_parameters_))]
    models += [(other.name, other.score, other.n_parameters) for other in data.baselines]
    rows = [
        [name, decimal(score["value"]), interval_text(score["low"], score["high"]), count(size)] for name, score, size in models
    ]
    tables = [Table("Scores and sizes", ["model", own["measure"], "95 % interval", "parameters"], rows)]
    if data.baselines:
        gains = [[other.name, verdict(other), decimal(other.gain[0]), gain_interval(other)] for other in data.baselines]
        caption = "Gain over each baseline" + ("" if data.is_paired else ", as on independent rows")
        tables.append(Table(caption, ["baseline", "this model is", "gain", "95 % interval"], gains))
    text = f"{MEASURES[own['measure']]} {data.baselines_note if data.baselines else ''}".strip()
    finite = {name: [score["value"], score["low"], score["high"]] for name, score, _ in models if np.isfinite(score["value"])}
    chart = score_chart(own["measure"], list(finite), np.array(list(finite.values())), tables[0].in_words())
    return Section("score", "Score and baselines", [text], [chart], tables)


def growth_section(data: ReportData) -> Section | None:
    members = [member for member in data.members if member.n_iter_]
    if not members:
        return None
    sizes = []
    for member in members:
        own = member.history_["hard_size"].tolist()
        sizes.append((own[0], max(own), own[member.best_epoch_ - 1]))
    first, most, last = map(value_range, zip(*sizes, strict=True))
    unit = "Nodes of the tree" if any(member.network_.capacity for member in members) else "Open units"
    epochs = value_range([member.n_iter_ for member in members])
    text = (
        f"{epochs} epoch{'' if epochs == '1' else 's'}{', a line for each network' if len(members) > 1 else ''}; "
        f"rings: the epochs kept. {unit}: {first} after the first epoch, {most} at most, {last} at the end."
    )
    return Section("growth", "Growth during training", [text], [growth_chart(members, text)])


def network_section(data: ReportData) -> Section:
    members, inputs = data.members, data.model._inputs_
    linear = sum(not member._compact_.units for member in members)
    text = ["Layer by layer, from the inputs to the outputs; the numbers count what is open."]
    if n_gaps := len(inputs.gaps):
        text.append(f"Of {many(inputs.n_inputs, 'input')}, {many(n_gaps, 'marks', 'mark')} missing values.")
    if linear:
        which = "The network has" if len(members) == 1 else f"{linear} of {len(members)} networks have"
        text.append(f"{which} no open unit: a linear function of the inputs was enough.")
    rows = [
        [str(number), significant(net.soft_size_), *map(count, (net.hard_size_, net.n_live_units_, net.n_parameters_))]
        for number, net in enumerate(members, 1)
    ]
    table = Table("Sizes", ["network", "soft size", "hard size", "units", "parameters"], rows)
    return Section("network", "Network structure", text, [gallery(networks_of(members), name="network")], [table])


def inputs_section(data: ReportData) -> Section | None:
    """Return the importances of the columns, and the columns that are not used."""
    text, tables, figures, importance = [], [], [], data.importance
    if importance is not None:
        order, spread = np.argsort(-importance.mean, kind="stable"), importance.spread
        names = [data.columns[place] for place in order]
        times = f"{importance.repeats} times" if spread is not None else "once"
        lines = ", lines its standard deviation" if spread is not None else "; its standard deviation is unknown"
        text.append(
            f"The values of each column were shuffled {times} among {many(importance.rows, 'row')}; bars are the mean drop in "
            f"{data.measure}{lines}. The drop is small if another column holds the same information. Below 0, the score was "
            "higher with the column shuffled, by chance or because the column misleads the model."
        )
        if len(names) > MOST_INPUTS:
            more = many(len(names) - MOST_INPUTS, "less important column is", "less important columns are")
            text.append(f"The {MOST_INPUTS} most important columns are drawn; {more} not.")
        numbers = {f"drop in {data.measure}": importance.mean} | ({} if spread is None else {"standard deviation": spread})
        rows = [
            [names[n], *(decimal(values[place]) for values in numbers.values())] for n, place in enumerate(order[:MOST_ROWS])
        ]
        table = Table("Importance of each column", ["column", *numbers], rows, is_folded=True)
        tables += [table] * (len(names) > 1)
        half = np.full(len(order), np.nan) if spread is None else spread
        values = np.stack([importance.mean, importance.mean - half, importance.mean + half], 1)[order[:MOST_INPUTS]]
        figures.append(importance_chart(data.measure, names[:MOST_INPUTS], values, table.in_words()))
    unused = [[name, why] for name, why in (*data.dropped, *((name, "gate closed in training") for name in data.unused))]
    if unused:
        text.append(f"{many(len(unused), 'column is', 'columns are')} not used.")
        tables.append(Table("Columns that are not used", ["column", "why"], unused[:MOST_ROWS], len(unused) > 8))
    elif importance is not None:
        text.append("All columns are used.")
    return Section("inputs", "Input importance", text, figures, tables) if text else None
