"""What a report says first: what was found, how sure it is, and beside what.

    summary(evidence) → the first paragraph's sentences;  verdict(beside) and kind_of(model) → words

Imports evidence; doubting, sections and page import it.
"""

from typing import Any

import numpy as np

from meristem.check import many
from meristem.report.evidence import Beside, Evidence
from meristem.report.numbers import count, listed, rate
from meristem.show.elements import cut

NAMED = {"constant": "a constant", "linear model": "a linear model", "MLP of default size": "an MLP of default size"}
CONSTANTS = {"class": "always saying the commonest class", "number": "always saying the mean"}


def kind_of(model: Any) -> str:
    """What kind of network it is.

    >>> import meristem
    >>> kind_of(meristem.TunnelClassifierCV())
    'tunnel network'
    """
    name = type(model).__name__
    return next((words for kind, words in KINDS.items() if name.startswith(kind)), "network")


KINDS = {"Tunnel": "tunnel network", "Budding": "budding perceptron", "Highway": "highway network"}


def subject(evidence: Evidence) -> str:
    """What is predicted, as a title has it."""
    return cut(evidence.target, 60) if evidence.facts else type(evidence.model).__name__


def summary(evidence: Evidence) -> list[str]:
    """The first paragraph, a sentence each."""
    networks, what = len(evidence.networks), kind_of(evidence.model)
    is_or_are = f"A {what}" if networks == 1 else f"{count(networks)} {what}s whose answers are averaged"
    predicted = (
        f"“{cut(evidence.target, 40)}”"
        if evidence.facts
        else {"class": "the class", "labels": "the labels"}.get(evidence.kind, "the number")
    )
    verb = "predicts" if networks == 1 else "predict"
    lines = []
    score = evidence.score
    if score is None or not np.isfinite(score["value"]):
        lines.append(f"{is_or_are} {verb} {predicted}; how well cannot be said from {evidence.rows}.")
    else:
        lines.append(
            f"{is_or_are} {verb} {predicted} with {_scored(score)} on {evidence.rows} "
            f"(95 % interval {rate(score['low'])} to {rate(score['high'])})."
        )
        lines += _compared(evidence)
    n = int(evidence.model.n_parameters_)
    size = f"It has {many(n, 'parameter')} in all" if networks == 1 else f"Together they have {many(n, 'parameter')}"
    sizes = [f"{NAMED[one.name]} has {count(one.n_parameters)}" for one in evidence.beside if one.name != "constant"]
    lines.append(size + (f"; {listed(sizes)}." if sizes else "."))
    return lines


def _scored(score: dict[str, Any]) -> str:
    value = rate(score["value"])
    if score["measure"] == "accuracy":
        return f"an accuracy of {value}"
    return f"{'an' if score['measure'].startswith('R') else 'a'} {score['measure']} of {value}"


def verdict(one: Beside) -> str:
    """How ours is beside another.

    >>> verdict(Beside("constant", {}, (0.2, 0.1, 0.3), 1)), verdict(Beside("constant", {}, (0.1, -0.1, 0.3), 1))
    ('clearly better', 'not clearly better')
    """
    gain, low, high = one.gain
    if low > 0:
        return "clearly better"
    if high < 0:
        return "clearly worse"
    return "not clearly better" if gain > 0 else "no better"


def differs(one: Beside) -> str:
    """The interval of the difference; where no row tells two models apart, that.

    >>> differs(Beside("constant", {}, (0.2, 0.1, 0.3), 1))
    '0.100 to 0.300'
    >>> differs(Beside("constant", {}, (0.0, 0.0, 0.0), 1, same=("answers", 48)))
    'same answers'
    """
    if one.same:
        return f"same {one.same[0]}"
    return f"{rate(one.gain[1])} to {rate(one.gain[2])}"


def _compared(evidence: Evidence) -> list[str]:
    """Others by what ours is beside them, the best news first."""
    found: dict[str, list[str]] = {}
    for one in evidence.beside:
        if np.isfinite(one.score["value"]):
            found.setdefault(verdict(one), []).append(f"{named(one, evidence.kind)} ({rate(one.score['value'])})")
    order = ["clearly better", "not clearly better", "no better", "clearly worse"]
    parts = [f"{said} than {listed(found[said])}" for said in order if said in found]
    return [f"That is {'; it is '.join(parts)}."] if parts else []


def named(one: Beside, kind: str) -> str:
    """Another model in a sentence, where the task is of this kind."""
    return CONSTANTS.get(kind, "a constant") if one.name == "constant" else NAMED[one.name]
