"""What a report says in words: what to doubt, what left the search early, and what its words mean."""

import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from meristem.report.doubting import doubts
from meristem.report.evidence import Beside, of_estimator
from meristem.report.glossary import WORDS
from meristem.report.judge import Judge
from meristem.report.numbers import rate
from meristem.report.page import page_of
from meristem.report.scoring import in_words
from meristem.report.sections import sections
from reporting import Page, fitted, judged

pytestmark = [
    pytest.mark.filterwarnings("ignore::meristem.GrowthWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


@pytest.fixture(scope="module")
def classes():
    """What is known of a search, by a few rows."""
    return of_estimator(fitted("TunnelClassifierCV"), *judged("TunnelClassifierCV"))


@pytest.fixture(scope="module")
def numbers():
    """The same of one network that predicts numbers."""
    return of_estimator(fitted("TunnelRegressor"), *judged("TunnelRegressor"))


def left_early(model, *finished):
    """The same model with a path of these settings' ends: the losses of those that left are the least."""
    path = model.path_
    ends = np.repeat(finished, len(path.table["loss"]) // len(finished))
    loss = np.where(ends, path.table["loss"], path.table["loss"] / 10)
    found = copy.copy(model)
    found.path_ = replace(path, table=path.table | {"finished": ends, "loss": loss, "epochs": np.where(ends, 90, 16)})
    chosen = found.path_.best()
    found.penalty_, found.l2_, found.input_dropout_ = chosen.penalty, chosen.l2, chosen.dropout
    return found


def test_settings_that_left_early_are_listed_apart(classes):
    evidence = replace(classes, model=left_early(classes.model, True, False))
    parts = {part.name: part for part in sections(evidence)}
    done, left = parts["tried"].tables
    assert [row[-1] for row in done.rows] == ["chosen"] and "90" in done.rows[0] and "to its end" in done.caption
    assert len(left.rows) == 1 and left.rows[0][-1] == "16" and "not comparable" in left.caption
    assert "1 setting left early: behind the others when settings were compared." in " ".join(parts["tried"].words)
    said = " ".join(parts["path"].words)
    assert (
        "by the least held-out loss of the settings that were trained to their end" in said and "among the sizes alone" in said
    )
    assert [row[1] for row in parts["path"].tables[0].rows][1] == "–"
    whole = {part.name: part for part in sections(classes)}
    assert "early" not in " ".join(whole["tried"].words + whole["path"].words) and len(whole["tried"].tables) == 1
    cut_short = {part.name: part for part in sections(replace(classes, model=left_early(classes.model, False, False)))}
    assert [table.caption for table in cut_short["tried"].tables] == ["What was tried but not to its end, best first"]


def test_a_far_smaller_network_that_is_as_good_is_told(classes):
    model = copy.copy(classes.model)
    path = model.path_
    is_low = path.table["penalty"] == path.table["penalty"].min()
    loss = np.where(is_low, [0.5, 0.7, 0.5, 0.7], [0.4, 0.81, 0.4, 0.81])
    sizes = {"n_parameters": np.where(is_low, 1000, 100), "loss": loss}
    model.path_ = replace(path, table=path.table | sizes)
    model.penalty_ = path.table["penalty"].min()
    evidence = replace(classes, model=model)
    assert any("“1se” would choose one of 100 parameters" in line and "1,000" in line for line in doubts(evidence))
    model.path_ = replace(path, table=path.table | sizes | {"n_parameters": np.where(is_low, 1000, 101)})
    assert not any("1se" in line for line in doubts(evidence))


def test_a_model_that_is_large_for_its_gain_is_doubted(numbers):
    n = int(numbers.model.n_parameters_)
    for size, gain, is_doubted in (
        (n // 10, (0.1, -0.1, 0.3), True),
        (n // 9, (0.1, -0.1, 0.3), False),
        (1, (0.2, 0.1, 0.3), False),
    ):
        beside = (Beside("MLP of default size", {"value": 0.5}, gain, size),)
        assert any("large for what it gains" in line for line in doubts(replace(numbers, beside=beside))) == is_doubted


def test_classes_that_are_never_said_are_doubted(classes):
    judge = Judge("class", np.arange(40) % 4, ("a", "b", "c", "d", "e"))
    lines = doubts(replace(classes, judge=judge, said=np.arange(40) % 2, raw=None))
    assert "It never says “c” (10 rows) and “d” (10 rows), though they are among the rows." in lines
    assert not any("never says" in line for line in doubts(replace(classes, judge=judge, said=judge.y, raw=None)))


def test_numbers_beyond_zero_are_doubted(numbers):
    y, said = np.array([[1.0], [0.0], [5.0]]), np.array([[1.0], [-2.5], [-0.5]])
    lines = doubts(replace(numbers, judge=Judge("number", y), said=said))
    assert "2 rows are predicted below 0, as far as −2.5, where no true number is." in lines
    lines = doubts(replace(numbers, judge=Judge("number", -y), said=-said[:2].repeat(2, 0)[:3]))
    assert "1 row is predicted above 0, as far as 2.5, where no true number is." in lines
    assert not any("where no true" in line for line in doubts(replace(numbers, judge=Judge("number", y - 1), said=said)))


def test_probabilities_that_are_off_by_more_than_chance_are_doubted(classes):
    judge = Judge("class", np.arange(400) % 2, classes.judge.labels)
    raw = np.full((400, *classes.raw.shape[1:]), 3.0)  # as sure as 0.95
    lines = doubts(replace(classes, judge=judge, said=np.ones(400, int), raw=raw))
    assert any("surer than it should be" in line and "95 % on average, and 50 %" in line for line in lines)
    fair = np.zeros_like(raw)
    assert not any("should be" in line for line in doubts(replace(classes, judge=judge, said=np.ones(400, int), raw=fair)))


def test_a_score_of_nothing_has_no_sign():
    assert rate(-0.0001) == "0.000" and in_words({"measure": "R²", "value": -1e-9, "low": -0.0, "high": 0.0}).count("-") == 0


def test_words_are_explained_as_in_the_docs(numbers):
    page = Page(page_of(numbers))
    guide = (Path(__file__).parent.parent / "docs" / "report.md").read_text()
    for word in ("soft size", "hard size", "penalty, price", "l2", "temperature", "left early", "rate"):
        assert WORDS[word] in page.said
    assert all(f"| {word} | {meaning} |" in guide for word, meaning in WORDS.items())
