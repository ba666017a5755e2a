"""The text at the top of a report, in sentences: a summary paragraph, and the caveats (docs/report.md), most serious first."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from meristem.check import many
from meristem.inputs.schema import TOO_MANY_TEXTS
from meristem.report.baselines import Comparison
from meristem.report.formatting import (
    count,
    decimal,
    interval_text,
    join_names,
    percent,
    score_text,
    significant,
    tenths_of_percent,
)
from meristem.report.report_data import ReportData
from meristem.report.scoring import CLASS, NUMBER
from meristem.show.elements import shorten

KINDS = {
    "TunnelImage": "convolutional network",
    "Tunnel": "tunnel network",
    "Budding": "budding perceptron",
    "Highway": "highway network",
}
VERDICTS = ["clearly better", "not clearly better", "no better", "clearly worse"]
CONSTANTS = {CLASS: "always predicting the most frequent class", NUMBER: "always predicting the mean"}
ARTICLES = {"constant": "a", "linear model": "a", "MLP": "an", "last value": "the"}
LINEAR = dict.fromkeys(("linear model", "ridge regression", "logistic regression"), "A linear model may be enough")
FEW_ROWS, WIDE = 100, {"accuracy": 0.15, "share of right labels": 0.15, "R²": 0.25, "quantile skill": 0.25}  # of an interval
WIDE |= dict.fromkeys(["balanced accuracy", "ROC AUC", "average precision", "F1", "recall", "precision"], 0.25)
LARGE, SMALL_GAIN = 10, 0.01  # times the parameters; score
Z99 = 2.576  # standard deviations on both sides that hold 99 %
MOST_NAMED = 8


def network_kind(model: Any) -> str:
    name = type(model).__name__
    return next((kind for prefix, kind in KINDS.items() if name.startswith(prefix)), "network")


def summary(data: ReportData) -> list[str]:
    n_networks, kind, score = len(data.members), network_kind(data.model), data.finite_score
    subject = f"A {kind} predicts" if n_networks == 1 else f"The average of {count(n_networks)} {kind}s predicts"
    target = f"“{shorten(data.target, 40)}”" if data.facts else f"the {data.target}"
    if score is None:
        lines = [f"{subject} {target}; its score on {data.rows} is undefined."]
    else:
        measure = score["measure"]
        interval = f"95 % interval {interval_text(score['low'], score['high'], measure)}"
        value = f"{'an' if measure[0] in 'aRF' else 'a'} {measure} of {score_text(score['value'], measure)}"
        worse = clearly_worse(data.finite_baselines, data.task)
        lines = [f"{subject} {target} with {value} on {data.rows} ({interval}){worse}.", *_threshold_sentence(data)]
        names = _names_by_verdict(data.finite_baselines, data.task)
        parts = [f"{words} than {join_names(names[words])}" for words in VERDICTS[:-1] if words in names]
        that = "That" if len(lines) == 1 else f"Its {measure}"
        lines += [f"{that} is {'; it is '.join(parts)}."] if parts else []
    size = f"{'It has' if n_networks == 1 else 'Together the networks have'} {many(int(data.model.n_parameters_), 'parameter')}"
    others = [(_baseline_name(other, data.task), other.n_parameters) for other in data.baselines if other.name != "constant"]
    sizes = [f"{name} has {count(n)}" for name, n in others if n is not None]
    return [*lines, f"{size}; {join_names(sizes)}." if sizes else f"{size}."]


def _names_by_verdict(baselines: Iterable[Comparison], task: str) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for baseline in baselines:
        name = f"{_baseline_name(baseline, task)} ({score_text(baseline.score['value'], baseline.score['measure'])})"
        names.setdefault(verdict(baseline), []).append(name)
    return names


def clearly_worse(baselines: Iterable[Comparison], task: str) -> str:
    """Return ", clearly worse than …", the end of a sentence about the model; "" if it is not."""
    names = _names_by_verdict(baselines, task).get(VERDICTS[-1])
    return f", {VERDICTS[-1]} than {join_names(names)}" if names else ""


def worse_warnings(baselines: Iterable[Comparison], task: str) -> list[str]:
    """Return a sentence for each baseline that is clearly better than the model."""
    return [_baseline_sentence("It", other, task) for other in baselines if verdict(other) == VERDICTS[-1]]


def _baseline_sentence(subject: str, baseline: Comparison, task: str) -> str:
    measure = baseline.score["measure"]
    why = f"difference {score_text(baseline.gain[0], measure)}, 95 % interval {gain_interval(baseline, measure)}"
    if baseline.same:
        why = f"the {baseline.same[0]} are the same on all {count(baseline.same[1])} rows"
    return f"{subject} is {verdict(baseline)} than {_baseline_name(baseline, task)} ({why})."


def missed_recall(rule: object, values: dict[str, Any], intervals: dict[str, Any]) -> str | None:
    """Return a sentence if a threshold was to give a recall that is above the interval of the measured one.

    >>> missed_recall("recall=0.9", {"recall": 0.67}, {"recall": [0.56, 0.76]})
    'The threshold was chosen for a recall of 90 %; on the held-out rows it is 67 % (95 % interval 56 % to 76 %).'
    """
    name, _, level = str(rule).partition("=")
    if name != "recall" or "recall" not in values or intervals["recall"][1] >= float(level):
        return None
    low, high = map(percent, intervals["recall"])
    chosen = f"The threshold was chosen for a recall of {percent(float(level))}"
    return f"{chosen}; on the held-out rows it is {percent(values['recall'])} (95 % interval {low} to {high})."


def _threshold_sentence(data: ReportData) -> Iterator[str]:
    """Yield recall and precision of the positive class, where accuracy does not say enough."""
    recall, precision, model = data.metrics.get("recall"), data.metrics.get("precision"), data.model
    is_plain = (data.score or {}).get("measure") == "accuracy" and not getattr(model, "threshold", None)
    if recall is None or precision is None or is_plain or not hasattr(model, "threshold_"):
        return
    at, name = f"At the threshold {significant(model.threshold_)}", f"“{shorten(str(model.positive_class_), 40)}”"
    if data.predictions is not None and not (data.predictions == model._targets_.positive).any():
        yield f"{at}, no row is predicted as {name}."
        return
    yield (
        f"{at}, {percent(recall['value'])} of the rows of {name} are predicted as that class (recall), and "
        f"{percent(precision['value'])} of the rows predicted as it are right (precision)."
    )


def verdict(baseline: Comparison) -> str:
    """Return how the model compares with a baseline, from the interval of a difference that is not 0 in the digits shown."""
    gain, low, high = baseline.gain
    measure = baseline.score.get("measure", "")
    if score_text(abs(gain), measure) != score_text(0.0, measure) and (low > 0 or high < 0):
        return VERDICTS[0] if low > 0 else VERDICTS[3]
    return VERDICTS[1] if gain > 0 else VERDICTS[2]


def gain_interval(baseline: Comparison, measure: str = "") -> str:
    """Return the interval of the difference, or that no row distinguishes the two models."""
    return f"same {baseline.same[0]}" if baseline.same else interval_text(*baseline.gain[1:], measure)


def _baseline_name(baseline: Comparison, task: str) -> str:
    if baseline.name == "constant" and task in CONSTANTS:
        return CONSTANTS[task]
    return f"{ARTICLES.get(baseline.name, '')} {baseline.name}".strip()


def learning_curve_text(facts: dict[str, Any]) -> str | None:
    """Return how much twice the rows would help, in a sentence; None where it is not known."""
    curve = facts.get("learning_curve")
    if curve is None:
        return None
    measure, gain, (*_, before, last) = curve["measure"], curve["gain"], curve["scores"]
    texts = [score_text(value, measure) for value in (before, last)]
    halves = f"with half of the {count(curve['rows'][-1])} rows of a fold, {measure} was {texts[0]}, with all {texts[1]}"
    interval = interval_text(gain["low"], gain["high"], measure)
    if gain["low"] > 0:
        expected = f"twice as many would make it better by about {score_text(gain['value'], measure)}"
        return f"More data would help: {halves}; {expected} (95 % interval {interval})."
    if gain["high"] <= 0 or _ends(gain, measure) == _ends({"low": 0.0, "high": 0.0}, measure):
        return f"More data would not help: {halves} (gain of twice as many: 95 % interval {interval})."
    return f"More data may not help: {halves}; the gain of twice as many is between {_ends(gain, measure)} (95 % interval)."


def _ends(gain: dict[str, float], measure: str) -> str:
    return " and ".join(score_text(gain[name], measure) for name in ("low", "high"))


def caveats(data: ReportData) -> list[str]:
    """Return the caveats that apply, without repetitions."""
    lines = [_sentence(line) for line in data.row_caveats]
    for own_caveats in (_baseline_caveats, _prediction_caveats, _row_caveats, _search_caveats):
        lines += own_caveats(data)
    return list(dict.fromkeys(lines))


def _sentence(line: str) -> str:
    return line[:1].upper() + line[1:].rstrip(".") + "."


def _join_some(names: list[str]) -> str:
    return join_names(names[:MOST_NAMED] + [f"{len(names) - MOST_NAMED} more"] * (len(names) > MOST_NAMED))


def _baseline_caveats(data: ReportData) -> Iterator[str]:
    yield from worse_warnings(data.finite_baselines, data.task)
    for baseline in data.finite_baselines:
        words = "It may have learned nothing" if baseline.name == "constant" else LINEAR.get(baseline.name)
        if words and verdict(baseline) in VERDICTS[1:3]:
            yield _baseline_sentence(f"{words}: it", baseline, data.task)
    mlp, n = next((other for other in data.finite_baselines if other.name == "MLP"), None), int(data.model.n_parameters_)
    size = np.inf if mlp is None or mlp.n_parameters is None else mlp.n_parameters
    if mlp is not None and n >= LARGE * size and (mlp.gain[1] <= 0 or mlp.gain[0] < SMALL_GAIN):
        yield (
            f"It is large for its score: {count(n)} parameters, {count(n / size)} times those of an MLP, "
            f"and {verdict(mlp)} (difference {decimal(mlp.gain[0])})."
        )


def _prediction_caveats(data: ReportData) -> Iterator[str]:
    scorer, predictions = data.scorer, data.predictions
    if scorer is None or predictions is None:
        return
    if scorer.task == NUMBER:
        for side, sign in (("below", 1.0), ("above", -1.0)):
            beyond = np.where((sign * scorer.y).min(0) >= 0, -sign * predictions.reshape(scorer.y.shape), 0).max(1)
            if n := int((beyond > 0).sum()):
                are, furthest = many(n, "prediction is", "predictions are"), significant(float(-sign * beyond.max()))
                yield f"{are} {side} 0, as far as {furthest}, though no true value is."
    if scorer.task != CLASS:
        return
    rows = np.bincount(scorer.y[scorer.y >= 0], minlength=len(scorer.labels))
    never = np.flatnonzero((rows > 0) & (np.bincount(predictions, minlength=len(scorer.labels)) == 0))
    if len(never):
        names = [f"“{shorten(scorer.labels[c], 40)}” ({many(int(rows[c]), 'row')})" for c in never]
        lower = ": choose a lower threshold, as threshold='best-f1' does (--threshold best-f1)"
        is_positive = len(rows) == 2 and never.tolist() == [getattr(data.model._targets_, "positive", -1)]
        yield f"It never predicts {_join_some(names)}{lower if is_positive else ''}."
    if data.outputs is not None:
        probabilities = np.asarray(data.model._targets_.probabilities(data.outputs), float)
        probability = probabilities.max(1)
        accuracy, expected = float((scorer.y == probabilities.argmax(1)).mean()), float(probability.mean())
        if abs(expected - accuracy) > Z99 * np.sqrt((probability * (1 - probability)).sum()) / len(probability):
            yield (
                f"It is {'overconfident' if expected > accuracy else 'underconfident'}, by more than chance explains: the "
                f"likeliest classes have a mean probability of {tenths_of_percent(expected)}, and "
                f"{tenths_of_percent(accuracy)} of them are right."
            )


def _row_caveats(data: ReportData) -> Iterator[str]:
    facts, score = data.facts, data.finite_score
    if data.n_rows < FEW_ROWS:
        yield f"It is evaluated on {many(data.n_rows, 'row')} only: a few other rows could change the score."
    if score is not None and score["high"] - score["low"] > WIDE.get(score["measure"], np.inf):
        yield f"The 95 % interval is wide: {interval_text(score['low'], score['high'])}."
    if facts:
        rows = facts["rows"]
        lines: list[str] = next((facts[name] for name in ("warnings", "table_warnings", "doubts") if name in facts), [])
        compared = worse_warnings(data.finite_baselines, data.task)  # which stand at the top
        warnings = [line for line in lines if line not in compared]
        yield from map(_sentence, warnings[:MOST_NAMED])
        if (n := len(warnings) - MOST_NAMED) > 0:
            yield f"summary.json has {many(n, 'more warning')} about the table."
        if facts["seconds"].get("ended_the_search"):
            yield "The search was stopped by its time limit; with more time it may find a better model."
        if any("lacks" in baseline for baseline in facts["baselines"].values()):
            yield "Baselines were stopped by the time limit; with more time they may score higher."
        if rows["without_target"] > 0.05 * rows["all"]:
            yield f"{percent(rows['without_target'] / rows['all'])} of the rows had no target and were left out."
        learned = rows.get("learned_from", rows["searched_with"])  # records of earlier versions have one number
        if learned < rows["train"]:
            yield f"It was trained on {count(learned)} of {count(rows['train'])} training rows."
        elif rows["searched_with"] < learned:
            yield f"Its settings were chosen with {count(rows['searched_with'])} of its {count(learned)} training rows."
    names = [f"“{shorten(name, 40)}”" for name, why in data.dropped if why == TOO_MANY_TEXTS]
    if names:
        yield f"Columns with {TOO_MANY_TEXTS} are dropped: {_join_some(names)}. To use one, group its categories."


def _search_caveats(data: ReportData) -> Iterator[str]:
    if not data.is_searched:
        return
    model, chosen, small = data.model, data.chosen, data.model.path_.within_one_se()
    penalties = sorted({point.penalty for point in model.path_.points})
    if len(penalties) > 2 and model.penalty_ in (penalties[0], penalties[-1]):
        end = "lowest" if model.penalty_ == penalties[0] else "highest"
        yield f"The chosen penalty is the {end} that was tried; one beyond it may be better."
    if model.budget is None and chosen is not None and LARGE * small.n_parameters <= chosen.n_parameters:
        yield (
            f"A far smaller network is as good within one standard error: rule “1se” would choose one with "
            f"{count(small.n_parameters)} parameters (penalty {significant(small.penalty)}) instead of "
            f"{count(chosen.n_parameters)} in each fold."
        )
