"""Sections about the model: its growth and structure, the search for its settings, its use and its provenance.

Settings that were stopped early were behind when settings were compared; their losses are those of networks before pruning.
So they are listed separately, and never ranked among those that were trained to the end. The program reads a file as the
model's own table was read (separator, encoding, decimal commas, numbers, dates, missing values); the suite runs it as printed.
"""

import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from meristem import __version__
from meristem.check import many
from meristem.inputs.schema import inputs_in_words
from meristem.paths.picture import best_points, draw_path
from meristem.paths.result import Path, Point
from meristem.pictures.growth_plot import draw_growth
from meristem.pictures.image_files import page_svg
from meristem.report.formatting import count, duration, render_template, significant, value_range
from meristem.report.report_data import ReportData, Section, Table, n_training_rows
from meristem.show.describe import penalty_of
from meristem.show.elements import shorten
from meristem.show.structure_drawing import gallery, networks_of

PATH_TITLE = "Error and size by penalty"
MOST_SETTINGS = 100
LOSS_DIGITS = 4  # losses are often close to each other
STEPS = {"reading": "reading the table", "baselines": "baselines", "search": "search", "all": "total"}
RULES = {"min": "the lowest held-out loss", "1se": "the highest penalty within one standard error of the best"}
NOT_COMPARABLE = (
    "Their losses were measured when they stopped, before pruning: they are not comparable with those of settings that were "
    "trained to the end, and may well be lower."
)
OUTPUTS = {"class": "the labels [N] and the probabilities [N, classes]", "number": "the numbers [N]"}
ONNX = (
    "model.onnx (`model.to_onnx(path)`) needs onnxruntime only, in any language. It has an input [N, 1] for each raw column"
    ": numbers as double, dates as days since 1970-01-01, categories as string; missing values are NaN or the empty string. "
    "It returns {}."
)
SIZE = (
    "model.safetensors is larger than its parameters: it holds the networks as they were trained, with closed parts and the "
    "state of the optimizer, so that training can continue. {} holds only what prediction needs; ship that."
)
NO_FILE = "none: the table was not read from a file"


def growth_section(data: ReportData) -> Section | None:
    members = [member for member in data.members if member.n_iter_]
    if not members:
        return None
    sizes = [(member.history_["hard_size"].tolist(), member.best_epoch_ - 1) for member in members]
    first, most, last = map(value_range, zip(*((own[0], max(own), own[best]) for own, best in sizes), strict=True))
    unit = "Nodes of the tree" if any(member.network_.capacity for member in members) else "Open units"
    epochs = value_range([member.n_iter_ for member in members])
    text = (
        f"{epochs} epoch{'' if epochs == '1' else 's'}{', a line for each network' if len(members) > 1 else ''}; "
        f"rings: the epochs kept. {unit}: {first} after the first epoch, {most} at most, {last} at the end."
    )
    chart = page_svg("growth", "Loss and size by epoch", text, lambda *axes: draw_growth(axes, members), height=400, rows=2)
    return Section("growth", "Growth during training", [text], [chart])


def network_section(data: ReportData) -> Section:
    members, inputs = data.members, data.model._inputs_
    linear = sum(not member._compact_.units for member in members)
    text = ["Layer by layer, from the inputs to the outputs; the numbers count what is open."]
    if n_gaps := len(inputs.gaps):
        text.append(f"Of {many(inputs.n_inputs, 'input')}, {many(n_gaps, 'marks', 'mark')} missing values.")
    if linear:
        which = "The network has" if len(members) == 1 else f"{linear} of {len(members)} networks have"
        text.append(f"{which} no open unit: a linear function of the inputs was enough.")
    sizes = [(net.hard_size_, net.n_live_units_, net.n_parameters_) for net in members]
    rows = [[str(n), significant(net.soft_size_), *map(count, sizes[n - 1])] for n, net in enumerate(members, 1)]
    table = Table("Sizes", ["network", "soft size", "hard size", "units", "parameters"], rows)
    return Section("network", "Network structure", text, [gallery(networks_of(members), name="network")], [table])


def path_section(data: ReportData) -> Section:
    model, chosen = data.model, data.chosen
    if not data.is_searched:
        source = "the default" if isinstance(model.penalty, str) else "as given"
        fixed = f"The penalty was not searched: it is {significant(penalty_of(model))}, {source}."
        fixed = f"{fixed} Estimators whose names end in CV search for it." if model.budget is None else _budget(model)
        return Section("path", PATH_TITLE, [fixed])
    path = model.path_
    finished = {point.members for point in path.finished}
    best = {point.penalty: point for point in [*best_points(path), *([chosen] if chosen else [])] if np.isfinite(point.score)}
    if len(best) < 2:
        single = f"A single penalty was tried: {significant(model.penalty_)}."
        return Section("path", PATH_TITLE, [single if model.budget is None else _budget(model)])
    rule = RULES[model.rule] if "score" not in path.table or model.rule != "min" else "the best held-out score"
    among = " among the settings trained to the end" if len(finished) < len(path.points) else ""
    text = [
        f"{many(len(best), 'penalty', 'penalties')} ({significant(min(best))} to {significant(max(best))}), "
        f"each in {many(len(np.unique(path.table['fold'])), 'fold')}. The chosen one is {significant(model.penalty_)}, by "
        f"{rule}{among}. The band is the standard error of the difference to the best."
    ]
    if n_stopped := sum(point.members not in finished for point in best.values()):
        text.append(f"At {many(n_stopped, 'penalty', 'penalties')} all settings stopped early: rings. {NOT_COMPARABLE}")
    rows, measure = [], "score" if "score" in path.table else "loss"
    for point in best.values():
        result, remark = ["–", "–"], "stopped early"
        if point.members in finished:
            result = [significant(getattr(point, measure), LOSS_DIGITS), significant(point.standard_error)]
            remark = "chosen" if point is chosen else ""
        rows.append([significant(point.penalty), *result, count(point.n_parameters), remark])
    header = ["penalty", f"held-out {measure}", "standard error", "parameters", "remark"]
    table = Table("The best setting at each penalty", header, rows, is_folded=True)
    title = f"Error and size at {many(len({point.penalty for point in path.points}), 'penalty', 'penalties')}"
    draw = partial(draw_path, path=path, marks={"chosen": chosen} if chosen else {})
    return Section("path", PATH_TITLE, text, [page_svg("path", title, table.in_words(), draw, height=400, rows=2)], [table])


def _budget(model: Any) -> str:
    size = f"{model.budget} of flash" if isinstance(model.budget, str) else f"{count(model.budget)} parameters"
    return f"The network was limited to a budget of {size}; the penalty was not searched."


def settings_section(data: ReportData) -> Section:
    """Return the settings of a search, those trained to the end before those that stopped early, and its time."""
    model, epochs = data.model, int(sum(member.n_iter_ for member in data.members))
    if not data.is_searched:
        text = [f"One setting, trained for {many(epochs, 'epoch')}; the model is that of epoch {count(model.best_epoch_)}."]
        return Section("tried", "Training", text)
    path, chosen, seconds = model.path_, data.chosen, data.facts.get("seconds", {})
    finished = {point.members for point in path.finished}
    ranked = sorted(path.points, key=lambda point: -point.score)
    done, stopped = ([point for point in ranked if (point.members in finished) == is_done] for is_done in (True, False))
    folds = len(np.unique(path.table["fold"]))
    all_epochs = int(np.sum(path.table["epochs"])) if "epochs" in path.table else epochs
    text = [
        f"{many(len(ranked), 'setting')} in {many(folds, 'fold')}: {many(len(path.table['loss']), 'network')}, "
        f"{many(all_epochs, 'epoch')} in all, trained in {duration(path.seconds)}."
    ]
    measure, error = "held-out score" if "score" in path.table else "held-out loss", model._targets_.objective.error_name
    remarks = ["chosen" if chosen is not None and point.members == chosen.members else "" for point in done]
    extent = "to the end" if done[0].is_finished else "but not to the end"
    tables = [_settings_table(path, f"Settings trained {extent}, best first", (measure, error), done, "epochs", remarks)]
    if stopped:
        or_time = ", or the time limit was reached" if seconds.get("ended_the_search") else ""
        text.append(
            f"{many(len(stopped), 'setting')} stopped early: behind the others when settings were compared{or_time}. "
            f"{NOT_COMPARABLE}"
        )
        caption = f"Settings that stopped early: {measure} not comparable"
        tables.append(_settings_table(path, caption, (f"{measure} then", error), stopped, "stopped after epochs"))
    times = [[name, duration(float(seconds[key]))] for key, name in STEPS.items() if seconds.get(key) is not None]
    tables += [Table("Time", ["step", "time"], times)] if times else []
    return Section("tried", "Search: settings and time", text, [], tables)


def _settings_table(
    path: Path,
    caption: str,
    measures: tuple[str, str],
    points: Sequence[Point],
    epochs_header: str,
    remarks: Sequence[str] = (),
) -> Table:
    rows = [
        [
            *map(significant, (point.penalty, point.l2, point.dropout)),
            significant(point.score if "score" in path.table else point.loss, LOSS_DIGITS),
            significant(point.error),
            count(point.n_parameters),
            value_range(path.table["epochs"][list(point.members)].tolist()) if "epochs" in path.table else "–",
            *remarks[number : number + 1],
        ]
        for number, point in enumerate(points[:MOST_SETTINGS])
    ]
    more = f", the best {MOST_SETTINGS} of {len(points)}" if len(points) > MOST_SETTINGS else ""
    header = ["penalty", "l2", "dropout", *measures, "parameters per network", epochs_header, *["remark"] * bool(remarks)]
    return Table(caption + more, header, rows, is_folded=True)


def usage_section(data: ReportData) -> Section:
    title, load = "How to use the model", 'model = meristem.load("model.safetensors")\n'
    if not data.facts:
        columns = many(data.model.n_features_in_, "column")
        code = f'import meristem\n\nmodel.save("model.safetensors")\n{load}model.predict(X)  # {columns}\n'
        text = ["One file holds all that prediction needs.", SIZE.format("What `model.to_onnx(path)` writes")]
        return Section("load", title, text, code=[code])
    task = str(data.facts["task"])
    python = f'import meristem\n\n{load}model.predict("new.csv")  # or a frame\n'
    shell = "meristem predict model.safetensors new.csv --out predictions.csv\n"
    saving = "`meristem fit` writes the model next to this page; in Python use `model.save(path)`."
    text = [saving, ONNX.format(OUTPUTS[task]), SIZE.format("model.onnx")]
    return Section("load", title, text, code=[python, shell, onnx_code(data.facts.get("reading") or {}, task)])


def onnx_code(reading: dict[str, Any], task: str) -> str:
    """Return a program that reads a file as a model's table was read, and predicts its rows with model.onnx.

    >>> print(onnx_code({"format": "csv", "sep": ";", "encoding": "utf-8"}, "number").splitlines()[8])
    new = pandas.read_csv("new.csv", sep=";", dtype=str, keep_default_na=False)
    """
    is_gzip = reading.get("format") == "csv.gz"
    options = {"sep": reading.get("sep"), "encoding": reading.get("encoding"), "compression": "gzip" if is_gzip else None}
    return render_template(
        "onnx_example.py.jinja",
        file="new.csv.gz" if is_gzip else "new.csv",
        options=[f"{name}={json.dumps(text)}, " for name, text in options.items() if text not in (None, "", ",", "utf-8")],
        is_parquet=reading.get("format") == "parquet",
        has_commas=bool(reading.get("decimal_commas")),
        task=task,
    )


def provenance_section(data: ReportData) -> Section:
    """Return data, seed, versions and parameters, to reproduce the model."""
    model, facts = data.model, data.facts
    items = {"estimator": type(model).__name__}
    if facts:
        inputs, test = inputs_in_words(facts["inputs"], len(model._inputs_.gaps)), facts.get("test_table")
        rows = facts["rows"]  # uses add up to all of them
        uses = {"train": "for training", **({} if test else {"test": "held out"}), "without_target": "without a target"}
        counts = ", ".join(f"{count(rows[name])} {use}" for name, use in uses.items() if rows[name])
        items |= {"table": shorten(str(facts["table"]), 120), "rows": f"{count(rows['all'])}: {counts}"}
        if test:
            items["test table"] = shorten(str(test["table"]), 120)
            items["rows of the test table"] = f"{count(rows['test'])} with a target"
            items["digest of the test table (SHA-256)"] = test["sha256"] or NO_FILE
        items["inputs"] = f"{inputs}, from {many(len(facts['columns']), 'column')}"
        items["target"] = f"{shorten(str(facts['target']), 60)}: {facts['why']}"
        items["device"] = f"{facts['device']}, {many(int(facts['cores']), 'core')}"
    else:
        items |= {"training rows": count(n_training_rows(model)), "rows of this report": count(data.n_rows)}
    seed = facts["seed"] if facts else model.random_state
    items["seed"] = str(seed) if seed is not None else "none: another fit gives another model"
    items["digest of the data (SHA-256)"] = data.digest or NO_FILE
    for name, numbers in (("versions of the fit", facts.get("versions")), ("versions of this report", versions())):
        if numbers:
            items[name] = ", ".join(f"{package} {number}" for package, number in numbers.items())
    tables = [Table("Origin of the model", ["item", "value"], [list(item) for item in items.items()])]
    defaults = type(model)().get_params()
    parameters = {name: repr(value) for name, value in model.get_params().items()}
    changed = [[name, shorten(value, 120)] for name, value in parameters.items() if value != repr(defaults[name])]
    if changed:
        tables.append(Table("Parameters that differ from the default", ["parameter", "value"], changed, len(changed) > 6))
    return Section("made", "Data, seed and versions", [], [], tables)


def versions() -> dict[str, str]:
    names = {"meristem": __version__, "Python": sys.version.split()[0]}
    for package in ("jax", "NumPy", "equinox", "scikit-learn"):
        with suppress(PackageNotFoundError):
            names[package] = version(package)
    return names
