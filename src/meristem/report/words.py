"""What a report says in sentences: what was found, how sure it is, beside what, and what to doubt.

    summary(evidence) → the first paragraph's sentences;  doubts(evidence) → a list, most serious first;  kind_of(model) → words

Imports evidence; sections and page import it.
"""

from typing import Any

import numpy as np

from meristem.report.evidence import Beside, Evidence
from meristem.report.numbers import count, listed, many, rate, share
from meristem.report.svg import cut

FEW, WIDE = 100, {"accuracy": 0.15, "share of right labels": 0.15}  # rows; width of an interval (else a quarter)
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


def _compared(evidence: Evidence) -> list[str]:
    """Others by what ours is beside them, the best news first."""
    found: dict[str, list[str]] = {}
    for one in evidence.beside:
        if np.isfinite(one.score["value"]):
            found.setdefault(verdict(one), []).append(f"{_named(one, evidence)} ({rate(one.score['value'])})")
    order = ["clearly better", "not clearly better", "no better", "clearly worse"]
    parts = [f"{said} than {listed(found[said])}" for said in order if said in found]
    return [f"That is {'; it is '.join(parts)}."] if parts else []


def _named(one: Beside, evidence: Evidence) -> str:
    return CONSTANTS.get(evidence.kind, "a constant") if one.name == "constant" else NAMED[one.name]


def doubts(evidence: Evidence) -> list[str]:
    """What a reader should doubt, most serious first."""
    lines = [_sentence(line) for line in evidence.doubts]
    for name, words in (("constant", "It may have learned nothing"), ("linear model", "The network may not be worth it")):
        for one in evidence.beside:
            if one.name == name and (said := verdict(one)) != "clearly better" and np.isfinite(one.score["value"]):
                gain, low, high = (rate(value) for value in one.gain)
                lines.append(
                    f"{words}: it is {said} than {_named(one, evidence)} (difference {gain}, 95 % interval {low} to {high})."
                )
    if evidence.n_rows < FEW:
        lines.append(f"It is judged by {many(evidence.n_rows, 'row')}: a few that came out otherwise would change the score.")
    score = evidence.score
    if score is not None and np.isfinite(score["value"]):
        width = score["high"] - score["low"]
        if width > WIDE.get(score["measure"], 0.25):
            lines.append(f"The interval is wide: anything from {rate(score['low'])} to {rate(score['high'])} is plausible.")
    lines += _of_facts(evidence.facts) + _of_search(evidence)
    return list(dict.fromkeys(lines))


def _sentence(line: str) -> str:
    return line[:1].upper() + line[1:].rstrip(".") + "."


def _of_facts(facts: dict[str, Any]) -> list[str]:
    lines = []
    if facts:
        rows = facts["rows"]
        if facts["seconds"].get("ended_the_search"):
            lines.append("The search was ended by its limit of time; with more it may find a better model.")
        if rows["without_target"] > 0.05 * rows["all"]:
            lines.append(f"{share(rows['without_target'] / rows['all'])} of the rows had no target and were left out.")
        if rows["searched_with"] < rows["train"]:
            lines.append(
                f"It learned from {count(rows['searched_with'])} of the {count(rows['train'])} rows there were to learn from."
            )
    return lines


def _of_search(evidence: Evidence) -> list[str]:
    if not evidence.is_searched:
        return []
    tried = sorted({point.penalty for point in evidence.model.path_.points})
    if len(tried) > 2 and evidence.model.penalty_ in (tried[0], tried[-1]):
        end = "lowest" if evidence.model.penalty_ == tried[0] else "highest"
        return [f"The price that was chosen is the {end} that was tried; one beyond it may be better."]
    return []
