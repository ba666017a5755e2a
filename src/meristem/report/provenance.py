"""Sections about where a model comes from: what was tried and how long it took, how to load it, and what it was made with.

    tried(evidence), loading(evidence), made(evidence) → Section

Imports evidence; sections imports it.
"""

from typing import Any

import numpy as np

from meristem.report.evidence import Evidence
from meristem.report.given import versions
from meristem.report.numbers import count, duration, figure, many
from meristem.report.section import Section, Table
from meristem.report.svg import cut

MOST_SETTINGS = 100
TIMES = {"reading": "reading the table", "baselines": "the others", "search": "the search", "all": "in all"}


def tried(evidence: Evidence) -> Section:
    """The settings of a search, and its time."""
    model, tables = evidence.model, []
    epochs = int(sum(one.n_iter_ for one in evidence.networks))
    if not evidence.is_searched:
        words = [f"One setting, trained for {many(epochs, 'epoch')}; kept is epoch {count(model.best_epoch_)}."]
        return Section("tried", "What was tried, and how long it took", words)
    path = model.path_
    points, finished = path.points, {point.members for point in path.finished}
    folds = len(np.unique(path.table["fold"]))
    all_epochs = int(np.sum(path.table["epochs"])) if "epochs" in path.table else epochs
    words = [
        f"{many(len(points), 'setting')} in {many(folds, 'fold')}, {many(len(path.table['loss']), 'network')} and "
        f"{many(all_epochs, 'epoch')} in all; training them took {duration(path.seconds)}."
    ]
    if n_left := len(points) - len(finished):
        words.append(f"{many(n_left, 'setting')} left early: the others were already better.")
    rows = [
        [
            figure(point.penalty),
            figure(point.l2),
            figure(point.dropout),
            figure(point.loss),
            figure(point.error),
            count(point.n_parameters),
            "yes" if point.members in finished else "no",
        ]
        for point in sorted(points, key=lambda one: -one.score)[:MOST_SETTINGS]
    ]
    more = f", the best {MOST_SETTINGS} of {len(points)}" if len(points) > MOST_SETTINGS else ""
    head = ["penalty", "l2", "dropout", "held-out loss", "error", "parameters", "to its end"]
    tables.append(Table(f"What was tried, best first{more}", head, rows, is_folded=True))
    seconds = evidence.facts.get("seconds", {})
    times = [[name, duration(float(seconds[key]))] for key, name in TIMES.items() if seconds.get(key) is not None]
    if times:
        tables.append(Table("Time", ["step", "took"], times))
    return Section("tried", "What was tried, and how long it took", words, [], tables)


def loading(evidence: Evidence) -> Section:
    """How to use it."""
    if evidence.facts:
        code = 'import meristem\n\nmodel = meristem.load("model.safetensors")\nmodel.predict("new.csv")  # or a frame\n'
        shell = "meristem predict model.safetensors new.csv --out predictions.csv\n"
        words = ["`meristem fit` wrote the model beside this page; from Python `model.save(path)` does."]
        return Section("load", "How to use it", words, [], [], [code, shell])
    code = (
        "import meristem\n\n"
        'model.save("model.safetensors")\n'
        'model = meristem.load("model.safetensors")\n'
        f"model.predict(X)  # {many(evidence.model.n_features_in_, 'column')}\n"
    )
    return Section("load", "How to use it", ["It is one file, with everything that prediction needs."], [], [], [code])


def made(evidence: Evidence) -> Section:
    """Data, seed, versions, parameters."""
    model, facts = evidence.model, evidence.facts
    rows = [["estimator", type(model).__name__]]
    if facts:
        counted = facts["rows"]
        rows += [
            ["table", cut(str(facts["table"]), 120)],
            ["rows", f"{count(counted['all'])}: {count(counted['train'])} to learn from, {count(counted['test'])} held out"],
            ["inputs", f"{count(facts['inputs'])} from {many(len(facts['columns']), 'column')}"],
            ["target", f"{cut(str(facts['target']), 60)}: {facts['why']}"],
            ["device", f"{facts['device']}, {many(int(facts['cores']), 'core')}"],
        ]
    else:
        seen = getattr(model, "n_samples_seen_", None) or model._model_.n_samples_seen_
        rows += [["rows it learned from", count(seen)], ["rows of this report", count(evidence.n_rows)]]
    seed = facts["seed"] if facts else model.random_state
    rows += [
        ["seed", str(seed) if seed is not None else "none was given: another fit gives another model"],
        ["digest of the data (SHA-256)", evidence.digest or "none: the table came from no file"],
    ]
    then = {name: str(text) for name, text in facts.get("versions", {}).items()} if facts else {}
    rows += [["versions it was made with", _named(then)]] if then else []
    rows += [["versions of this page", _named(versions())]]
    given = [[name, cut(repr(value), 120)] for name, value in _parameters(model).items()]
    tables = [Table("Made with", ["what", "value"], rows)]
    if given:
        tables.append(Table("Parameters that are not the default", ["parameter", "value"], given, len(given) > 6))
    return Section("made", "Data, seed and versions", [], [], tables)


def _named(found: dict[str, str]) -> str:
    return ", ".join(f"{name} {text}" for name, text in found.items())


def _parameters(model: Any) -> dict[str, Any]:
    """Those that someone set."""
    usual = type(model)().get_params()
    return {name: value for name, value in model.get_params().items() if repr(value) != repr(usual[name])}
