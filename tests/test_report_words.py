"""The text of a report: caveats, and settings that stopped early."""

import copy
from dataclasses import replace

import numpy as np
import pytest

from meristem.report.baselines import Comparison
from meristem.report.formatting import decimal
from meristem.report.report_data import from_estimator
from meristem.report.report_text import caveats
from meristem.report.scoring import Scorer, in_words
from meristem.report.sections import sections
from meristem.targets import Classes
from reporting import fitted, judged

pytestmark = [
    pytest.mark.filterwarnings("ignore::meristem.GrowthWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


@pytest.fixture(scope="module")
def classes():
    """What is known of a search, by a few rows."""
    return from_estimator(fitted("TunnelClassifierCV"), *judged("TunnelClassifierCV"))


@pytest.fixture(scope="module")
def numbers():
    """The same of one network that predicts numbers."""
    return from_estimator(fitted("TunnelRegressor"), *judged("TunnelRegressor"))


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
    assert [row[-1] for row in done.rows] == ["chosen"] and "90" in done.rows[0] and "to the end" in done.caption
    assert len(left.rows) == 1 and left.rows[0][-1] == "16" and "not comparable" in left.caption
    assert "1 setting stopped early" in " ".join(parts["tried"].text)
    said = " ".join(parts["path"].text)
    assert "lowest held-out loss among the settings trained to the end" in said and "not comparable" in said
    assert [row[1] for row in parts["path"].tables[0].rows][1] == "–"
    whole = {part.name: part for part in sections(classes)}
    assert "early" not in " ".join(whole["tried"].text + whole["path"].text) and len(whole["tried"].tables) == 1
    cut_short = {part.name: part for part in sections(replace(classes, model=left_early(classes.model, False, False)))}
    assert [table.caption for table in cut_short["tried"].tables] == ["Settings trained but not to the end, best first"]


def test_a_far_smaller_network_that_is_as_good_is_told(classes):
    model = copy.copy(classes.model)
    path = model.path_
    is_low = path.table["penalty"] == path.table["penalty"].min()
    loss = np.where(is_low, [0.5, 0.7, 0.5, 0.7], [0.4, 0.81, 0.4, 0.81])
    sizes = {"n_parameters": np.where(is_low, 1000, 100), "loss": loss}
    model.path_ = replace(path, table=path.table | sizes)
    model.penalty_ = path.table["penalty"].min()
    evidence = replace(classes, model=model)
    assert any("“1se” would choose one with 100 parameters" in line and "1,000" in line for line in caveats(evidence))
    model.path_ = replace(path, table=path.table | sizes | {"n_parameters": np.where(is_low, 1000, 101)})
    assert not any("1se" in line for line in caveats(evidence))


def test_a_model_that_is_large_for_its_gain_is_doubted(numbers):
    n = int(numbers.model.n_parameters_)
    for size, gain, is_doubted in (
        (n // 10, (0.1, -0.1, 0.3), True),
        (n // 9, (0.1, -0.1, 0.3), False),
        (1, (0.2, 0.1, 0.3), False),
    ):
        beside = (Comparison("MLP", {"value": 0.5}, gain, size),)
        assert any("large for its score" in line for line in caveats(replace(numbers, baselines=beside))) == is_doubted


def test_classes_that_are_never_said_are_doubted(classes):
    judge = Scorer("class", np.arange(40) % 4, ("a", "b", "c", "d", "e"))
    lines = caveats(replace(classes, scorer=judge, predictions=np.arange(40) % 2, outputs=None))
    assert "It never predicts “c” (10 rows) and “d” (10 rows)." in lines
    two, y = copy.copy(classes.model), np.arange(40) % 2
    two._targets_ = Classes(np.array(["no", "yes"]))
    some = replace(classes, model=two, scorer=Scorer("class", y, ("no", "yes")), predictions=0 * y, outputs=None)
    assert any(line.startswith("It never predicts “yes” (20 rows): choose a lower threshold") for line in caveats(some))
    assert not any(
        "never predicts" in line for line in caveats(replace(classes, scorer=judge, predictions=judge.y, outputs=None))
    )


def test_numbers_beyond_zero_are_doubted(numbers):
    y, said = np.array([[1.0], [0.0], [5.0]]), np.array([[1.0], [-2.5], [-0.5]])
    lines = caveats(replace(numbers, scorer=Scorer("number", y), predictions=said))
    assert any("2 predictions are below 0, as far as −2.5" in line for line in lines)
    lines = caveats(replace(numbers, scorer=Scorer("number", -y), predictions=-said[:2].repeat(2, 0)[:3]))
    assert any("1 prediction is above 0, as far as 2.5" in line for line in lines)
    assert not any(
        "no true value" in line for line in caveats(replace(numbers, scorer=Scorer("number", y - 1), predictions=said))
    )


def test_probabilities_that_are_off_by_more_than_chance_are_doubted(classes):
    judge = Scorer("class", np.arange(400) % 2, classes.scorer.labels)
    raw = np.full((400, *classes.outputs.shape[1:]), 3.0)  # as sure as 0.95
    lines = caveats(replace(classes, scorer=judge, predictions=np.ones(400, int), outputs=raw))
    assert any("overconfident" in line and "95.3 %" in line and "50.0 %" in line for line in lines)
    fair = np.zeros_like(raw)
    assert not any(
        "confident" in line for line in caveats(replace(classes, scorer=judge, predictions=np.ones(400, int), outputs=fair))
    )


def test_a_score_of_nothing_has_no_sign():
    assert decimal(-0.0001) == "0.000" and in_words({"measure": "R²", "value": -1e-9, "low": -0.0, "high": 0.0}).count("-") == 0
