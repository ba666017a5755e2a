"""What a reader of a report should doubt, most serious first.

    doubts(evidence) → sentences

    beside others   no better than a constant or a linear model; many times as large as an MLP for little
    what was said   classes that are never said; numbers on the side of 0 where none is; surer, or less sure, than it should be
    the rows        few of them, a wide interval, rows left out; what `fit` doubted of the table, such as numbers read as texts
    the search      ended by time, a price at the end of those that were tried, a far smaller network that is as good

Imports evidence and words; page imports it.
"""

from typing import Any

import numpy as np

from meristem.check import many
from meristem.inputs.schema import TOO_MANY_TEXTS
from meristem.report.evidence import Evidence
from meristem.report.judge import CLASS, NUMBER
from meristem.report.numbers import count, figure, listed, rate, share
from meristem.report.searched import chosen_of
from meristem.report.words import differs, named, verdict
from meristem.show.elements import cut

FEW, WIDE = 100, {"accuracy": 0.15, "share of right labels": 0.15}  # rows; width of an interval (else a quarter)
LARGE, LITTLE = 10, 0.01  # times the parameters; a gain that is hardly one
BY_CHANCE = 2.576  # standard deviations that chance goes beyond once in a hundred times
MOST_NAMED = 8


def doubts(evidence: Evidence) -> list[str]:
    """See the module's header."""
    lines = [_sentence(line) for line in evidence.doubts]
    lines += _beside(evidence) + _never_said(evidence) + _beyond_zero(evidence) + _sureness(evidence)
    if evidence.n_rows < FEW:
        lines.append(f"It is judged by {many(evidence.n_rows, 'row')}: a few that came out otherwise would change the score.")
    score = evidence.score
    if score is not None and np.isfinite(score["value"]):
        width = score["high"] - score["low"]
        if width > WIDE.get(score["measure"], 0.25):
            lines.append(f"The interval is wide: anything from {rate(score['low'])} to {rate(score['high'])} is plausible.")
    lines += _of_facts(evidence.facts) + _dropped(evidence) + _of_search(evidence)
    return list(dict.fromkeys(lines))


def _sentence(line: str) -> str:
    return line[:1].upper() + line[1:].rstrip(".") + "."


def _beside(evidence: Evidence) -> list[str]:
    others, lines = {one.name: one for one in evidence.beside if np.isfinite(one.score["value"])}, []
    for name, words in (("constant", "It may have learned nothing"), ("linear model", "The network may not be worth it")):
        one = others.get(name)
        if one is not None and (said := verdict(one)) != "clearly better":
            why = f"difference {rate(one.gain[0])}, 95 % interval {differs(one)}"
            if one.same:
                why = f"the {one.same[0]} are the same on all {count(one.same[1])} rows"
            lines.append(f"{words}: it is {said} than {named(one, evidence.kind)} ({why}).")
    mlp, n = others.get("MLP of default size"), int(evidence.model.n_parameters_)
    if mlp is not None and n >= LARGE * mlp.n_parameters and (mlp.gain[1] <= 0 or mlp.gain[0] < LITTLE):
        lines.append(
            f"It is large for what it gains: {count(n)} parameters, {count(n / mlp.n_parameters)} times those of an MLP of "
            f"default size, and {verdict(mlp)} (difference {rate(mlp.gain[0])})."
        )
    return lines


def _never_said(evidence: Evidence) -> list[str]:
    """Classes that rows have and that none is said to have."""
    judge, said = evidence.judge, evidence.said
    if judge is None or said is None or judge.kind != CLASS:
        return []
    rows = np.bincount(judge.y[judge.y >= 0], minlength=len(judge.labels))
    never = np.flatnonzero((rows > 0) & (np.bincount(said, minlength=len(judge.labels)) == 0))
    if not len(never):
        return []
    names = [f"“{cut(judge.labels[c], 40)}” ({many(int(rows[c]), 'row')})" for c in never]
    return [f"It never says {_some(names)}, though {'it is' if len(never) == 1 else 'they are'} among the rows."]


def _beyond_zero(evidence: Evidence) -> list[str]:
    """Numbers that are predicted on a side of 0 where no true one is."""
    judge, said = evidence.judge, evidence.said
    if judge is None or said is None or judge.kind != NUMBER:
        return []
    lines = []
    for side, sign in (("below", 1.0), ("above", -1.0)):
        beyond = np.where((sign * judge.y).min(0) >= 0, -sign * said.reshape(judge.y.shape), 0).max(1)
        if n := int((beyond > 0).sum()):
            furthest = figure(float(-sign * beyond.max()))
            lines.append(f"{_rows(n)} predicted {side} 0, as far as {furthest}, where no true number is.")
    return lines


def _some(names: list[str]) -> str:
    return listed(names[:MOST_NAMED] + [f"{len(names) - MOST_NAMED} more"] * (len(names) > MOST_NAMED))


def _rows(n: int) -> str:
    return f"{many(n, 'row')} {'is' if n == 1 else 'are'}"


def _sureness(evidence: Evidence) -> list[str]:
    """Of classes, whether the probability of what was said is right as often as it says, but for chance."""
    judge, said, raw = evidence.judge, evidence.said, evidence.raw
    if judge is None or said is None or raw is None or judge.kind != CLASS:
        return []
    chance = np.asarray(evidence.model._targets_.probabilities(raw), float).max(1)
    right, expected = float((judge.y == said).mean()), float(chance.mean())
    deviation = np.sqrt((chance * (1 - chance)).sum()) / len(chance)
    if abs(expected - right) <= BY_CHANCE * deviation:
        return []
    return [
        f"It is {'surer' if expected > right else 'less sure'} than it should be, by more than chance explains: its answers "
        f"have a probability of {share(expected)} on average, and {share(right)} of them are right."
    ]


def _of_facts(facts: dict[str, Any]) -> list[str]:
    lines = []
    if facts:
        rows, of_table = facts["rows"], facts.get("doubts", [])
        lines += [_sentence(line) for line in of_table[:MOST_NAMED]]
        if (n := len(of_table) - MOST_NAMED) > 0:
            lines.append(f"There {'is' if n == 1 else 'are'} {many(n, 'more doubt')} about the table, in summary.json.")
        if facts["seconds"].get("ended_the_search"):
            lines.append("The search was ended by its limit of time; with more it may find a better model.")
        if any("lacks" in one for one in facts["baselines"].values()):
            lines.append("What it is compared with was cut short by the limit of time: it may be better than it looks.")
        if rows["without_target"] > 0.05 * rows["all"]:
            lines.append(f"{share(rows['without_target'] / rows['all'])} of the rows had no target and were left out.")
        if rows["searched_with"] < rows["train"]:
            lines.append(
                f"It learned from {count(rows['searched_with'])} of the {count(rows['train'])} rows there were to learn from."
            )
    return lines


def _dropped(evidence: Evidence) -> list[str]:
    """Columns that were dropped though they may say something: with so many categories."""
    names = [f"“{cut(name, 40)}”" for name, why in evidence.dropped if why == TOO_MANY_TEXTS]
    return [f"Columns of {TOO_MANY_TEXTS} are dropped: {_some(names)}. If one matters, give it in fewer."] if names else []


def _of_search(evidence: Evidence) -> list[str]:
    if not evidence.is_searched:
        return []
    model, lines = evidence.model, []
    tried = sorted({point.penalty for point in model.path_.points})
    if len(tried) > 2 and model.penalty_ in (tried[0], tried[-1]):
        end = "lowest" if model.penalty_ == tried[0] else "highest"
        lines.append(f"The price that was chosen is the {end} that was tried; one beyond it may be better.")
    chosen, small = chosen_of(model), model.path_.within_one_se()
    if model.budget is None and chosen is not None and LARGE * small.n_parameters <= chosen.n_parameters:
        lines.append(
            f"A far smaller network is as good within one standard error: rule “1se” would choose one of "
            f"{count(small.n_parameters)} parameters (penalty {figure(small.penalty)}), where this has "
            f"{count(chosen.n_parameters)} in each fold."
        )
    return lines
