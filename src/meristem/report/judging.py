"""Sections about what was said of the rows: classes that were confused, numbers that were off, and how sure it was.

    confusion(evidence), residuals(evidence), calibration(evidence) → Section, or None where there is nothing of the kind

Imports evidence and the figures; sections imports it.
"""

import numpy as np

from meristem.check import many
from meristem.report.evidence import Evidence
from meristem.report.figures import calibration as calibrated, confusion as confused, residuals as off_by
from meristem.report.figures.calibration import Group
from meristem.report.judge import CLASS, LABELS, NUMBER
from meristem.report.numbers import count, figure, share
from meristem.report.scoring import SURE, share_interval
from meristem.report.section import Section, Table
from meristem.show.elements import cut

GROUPS, MOST_CONFUSIONS = 10, 20


def confusion(evidence: Evidence) -> Section | None:
    """A square of classes, or of many the largest confusions; of labels how often each is there and is said."""
    judge = evidence.judge
    if judge is None or evidence.said is None or judge.kind not in (CLASS, LABELS):
        return None
    if judge.kind == LABELS:
        return _labels(evidence)
    labels = [*judge.labels, *(["(never seen)"] if (judge.y < 0).any() else [])]
    y = np.where(judge.y < 0, len(labels) - 1, judge.y)
    counts = np.zeros((len(labels), len(labels)), int)
    np.add.at(counts, (y, evidence.said), 1)
    wrong = [(counts[a, b], a, b) for a, b in np.argwhere(counts > 0) if a != b]
    wrong.sort(reverse=True)
    n_wrong = int(sum(n for n, _, _ in wrong))
    words = [f"{count(n_wrong)} of {many(len(y), 'row')} are wrong."]
    if wrong:
        n, a, b = wrong[0]
        words.append(f"Most often “{cut(labels[a], 40)}” was taken for “{cut(labels[b], 40)}”, {_times(int(n))}.")
    right = [
        [
            cut(labels[c], 60),
            count(counts[c].sum()),
            _share(counts[c, c], counts[c].sum()),
            _share(counts[c, c], counts[:, c].sum()),
        ]
        for c in range(len(labels))
    ]
    tables = [Table("Each class", ["class", "rows", "found of it", "right where it is said"], right[:200], len(labels) > 10)]
    if len(labels) <= confused.MOST:
        return Section("confusion", "What is taken for what", words, [confused.draw(counts, labels)], tables)
    listed = [
        [cut(labels[a], 60), cut(labels[b], 60), count(n), _share(n, counts[a].sum())] for n, a, b in wrong[:MOST_CONFUSIONS]
    ]
    words.append(f"The {len(listed)} most frequent of {many(len(wrong), 'kind')} of confusion are listed.")
    tables.insert(0, Table("The largest confusions", ["true", "said", "rows", "of the true ones"], listed))
    return Section("confusion", "What is taken for what", words, [], tables)


def _times(n: int) -> str:
    return "once" if n == 1 else f"{n:,} times"


def _share(n: float | np.integer, of: float | np.integer) -> str:
    return share(float(n / of)) if of else "–"


def _labels(evidence: Evidence) -> Section:
    judge, said = evidence.judge, evidence.said
    assert judge is not None and said is not None
    rows = []
    for place, name in enumerate(judge.labels):
        true, given = judge.y[:, place] > 0, said[:, place] > 0
        both = int((true & given).sum())
        rows.append([name, count(true.sum()), count(given.sum()), _share(both, true.sum()), _share(both, given.sum())])
    all_right = float((judge.y == said).all(1).mean())
    wrong = figure(float((judge.y != said).sum(1).mean()))
    words = [f"All labels are right in {share(all_right)} of the rows; {wrong} are wrong on average."]
    return Section(
        "confusion",
        "Which labels are found",
        words,
        [],
        [
            Table(
                "Each label",
                ["label", "rows with it", "said of", "found of it", "right where it is said"],
                rows[:200],
                len(rows) > 12,
            )
        ],
    )


def residuals(evidence: Evidence) -> Section | None:
    """Of numbers; where a row has several the first is drawn."""
    judge, said = evidence.judge, evidence.said
    if judge is None or said is None or judge.kind != NUMBER:
        return None
    true, found = judge.y[:, 0], said.reshape(len(said), -1)[:, 0]
    off = found - true
    words = [
        f"Half of the rows are off by less than {figure(float(np.median(np.abs(off))))}, nine of ten by less than "
        f"{figure(float(np.quantile(np.abs(off), 0.9)))}, in the target’s own unit; "
        f"true numbers go from {figure(true.min())} to {figure(true.max())}."
    ]
    if judge.y.shape[1] > 1:
        words.append(f"Drawn is the first of {judge.y.shape[1]} numbers.")
    rows = [
        ["root mean squared error", figure(float(np.sqrt((off**2).mean())))],
        ["mean absolute error", figure(float(np.abs(off).mean()))],
        ["largest error", figure(float(np.abs(off).max()))],
        ["mean of predicted − true", figure(float(off.mean()))],
    ]
    return Section(
        "residuals",
        "How far off it is",
        words,
        [off_by.draw(true, found, evidence.target)],
        [Table("Errors", ["measure", "value"], rows)],
    )


def calibration(evidence: Evidence) -> Section | None:
    """Of probabilities: what was said and what came; of numbers the mean of groups; of quantiles the share below each."""
    judge, raw = evidence.judge, evidence.raw
    if judge is None or raw is None:
        return None
    if judge.kind in (CLASS, LABELS):
        said, came, words = _probabilities(evidence)
        groups = _grouped(said, came, is_share=True)
        off = sum(one.rows * abs(one.said - one.came) for one in groups) / max(1, sum(one.rows for one in groups))
        words.append(f"On average it is off by {figure(off)}.")
        drawn = calibrated.draw(groups, "probability said", "share that came true", is_share=True)
    elif judge.levels:
        return _levels(evidence)
    elif evidence.said is not None and len(judge.y) >= 2 * GROUPS:
        groups = _grouped(evidence.said[:, 0], judge.y[:, 0], is_share=False)
        words = ["Rows are in groups by the number predicted: on the line the mean that came is the one that was predicted."]
        drawn = calibrated.draw(groups, "mean predicted", "mean that came true", is_share=False)
    else:
        return None
    rows = [[figure(one.said), figure(one.came), f"{figure(one.low)} to {figure(one.high)}", count(one.rows)] for one in groups]
    table = Table("What was said and what came", ["said", "came", "95 % interval", "rows"], rows, is_folded=True)
    return Section("calibration", "Whether it is as sure as it should be", words, [drawn], [table])


def _probabilities(evidence: Evidence) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Of each row a probability that was said, and whether it came true."""
    judge, raw = evidence.judge, evidence.raw
    assert judge is not None and raw is not None and evidence.said is not None
    chances = evidence.model._targets_.probabilities(raw)
    if judge.kind == LABELS:
        return chances.ravel(), judge.y.ravel(), ["The probability of every label of every row, in groups."]
    if len(judge.labels) == 2:
        words = f"The probability of “{cut(judge.labels[1], 40)}”, in groups: on the line it comes as often as is said."
        return chances[:, 1], (judge.y == 1).astype(float), [words]
    words = "The probability of the class that was said, in groups: on the line it is right as often as it says."
    return chances.max(1), (judge.y == evidence.said).astype(float), [words]


def _grouped(said: np.ndarray, came: np.ndarray, *, is_share: bool) -> list[Group]:
    """Groups of about as many rows, ascending."""
    order = np.argsort(said, kind="stable")
    parts = [part for part in np.array_split(order, min(GROUPS, max(1, len(order) // 5))) if len(part)]
    groups = []
    for part in parts:
        mean, n = float(came[part].mean()), len(part)
        half = SURE * float(came[part].std(ddof=1)) / np.sqrt(n) if n > 1 else 0.0
        low, high = share_interval(round(float(came[part].sum())), n) if is_share else (mean - half, mean + half)
        groups.append(Group(float(said[part].mean()), mean, low, high, n))
    return groups


def _levels(evidence: Evidence) -> Section:
    judge = evidence.judge
    assert judge is not None and evidence.raw is not None
    said = np.asarray(evidence.model._targets_.decode(evidence.raw)).reshape(len(judge.y), judge.y.shape[1], -1)
    groups = []
    for place, level in enumerate(judge.levels):
        below = (judge.y <= said[:, :, place]).ravel()
        groups.append(Group(level, float(below.mean()), *share_interval(int(below.sum()), len(below)), len(below)))
    words = ["Of each quantile that was predicted, the share of rows that are not above it: on the line it is its level."]
    rows = [[figure(one.said), figure(one.came), f"{figure(one.low)} to {figure(one.high)}"] for one in groups]
    drawn = calibrated.draw(groups, "level of the quantile", "share of rows below it", is_share=True)
    table = Table("Quantiles", ["level", "share below", "95 % interval"], rows)
    return Section("calibration", "Whether its quantiles are where they should be", words, [drawn], [table])
