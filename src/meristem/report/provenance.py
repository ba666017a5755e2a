"""The section about where a model comes from: what it was made with, so that it can be made again.

    made(evidence) → Section

Imports evidence; sections imports it.
"""

from typing import Any

from meristem.check import many
from meristem.inputs.schema import inputs_in_words
from meristem.report.evidence import Evidence
from meristem.report.numbers import count
from meristem.report.rows import versions
from meristem.report.section import Section, Table
from meristem.show.elements import cut

NO_FILE = "none: the table came from no file"


def made(evidence: Evidence) -> Section:
    """Data, seed, versions, parameters."""
    model, facts = evidence.model, evidence.facts
    rows = [["estimator", type(model).__name__]]
    if facts:
        counted = facts["rows"]
        rows += [
            ["table", cut(str(facts["table"]), 120)],
            ["rows", f"{count(counted['all'])}: {', '.join(_used(facts))}"],
            *_tested(facts),
            [
                "inputs",
                f"{inputs_in_words(facts['inputs'], len(model._inputs_.gaps))}, from {many(len(facts['columns']), 'column')}",
            ],
            ["target", f"{cut(str(facts['target']), 60)}: {facts['why']}"],
            ["device", f"{facts['device']}, {many(int(facts['cores']), 'core')}"],
        ]
    else:
        seen = getattr(model, "n_samples_seen_", None) or model._model_.n_samples_seen_
        rows += [["rows it learned from", count(seen)], ["rows of this report", count(evidence.n_rows)]]
    seed = facts["seed"] if facts else model.random_state
    rows += [
        ["seed", str(seed) if seed is not None else "none was given: another fit gives another model"],
        ["digest of the data (SHA-256)", evidence.digest or NO_FILE],
    ]
    then = {name: str(text) for name, text in facts.get("versions", {}).items()} if facts else {}
    rows += [["versions it was made with", _named(then)]] if then else []
    rows += [["versions of this page", _named(versions())]]
    given = [[name, cut(repr(value), 120)] for name, value in _parameters(model).items()]
    tables = [Table("Made with", ["what", "value"], rows)]
    if given:
        tables.append(Table("Parameters that are not the default", ["parameter", "value"], given, len(given) > 6))
    return Section("made", "Data, seed and versions", [], [], tables)


def _used(facts: dict[str, Any]) -> list[str]:
    """What the rows of its table are for; together they are all.

    >>> _used({"rows": {"train": 130, "test": 48, "without_target": 2}, "test": {"table": "test.csv", "sha256": None}})
    ['130 to learn from', '2 without a target']
    """
    counted = facts["rows"]
    held = [] if facts.get("test") else [f"{count(counted['test'])} held out"]
    without = [f"{count(counted['without_target'])} without a target"] if counted["without_target"] else []
    return [f"{count(counted['train'])} to learn from", *held, *without]


def _tested(facts: dict[str, Any]) -> list[list[str]]:
    """The table that it was tested on, where that is one of its own."""
    test = facts.get("test")
    if not test:
        return []
    return [
        ["test table", cut(str(test["table"]), 120)],
        ["rows of the test table", f"{count(facts['rows']['test'])} with a target"],
        ["digest of the test table (SHA-256)", test["sha256"] or NO_FILE],
    ]


def _named(found: dict[str, str]) -> str:
    return ", ".join(f"{name} {text}" for name, text in found.items())


def _parameters(model: Any) -> dict[str, Any]:
    """Those that someone set."""
    usual = type(model)().get_params()
    return {name: value for name, value in model.get_params().items() if repr(value) != repr(usual[name])}
