"""How much more data would help is measured on parts of the folds, and not said where it cannot be known."""

import numpy as np
import pytest

import meristem
from meristem.paths.folds import shuffled_folds
from meristem.paths.learning_curve import LearningCurve, can_be_known, part_of
from meristem.report import from_table, render_page
from meristem.report.report_text import learning_curve_text
from meristem.report.sections import learning_curve_section
from meristem.report.task_metrics import METRICS

QUICK = {
    "body": "tunnel",
    "penalties": [1e-4],
    "l2s": [1e-4],
    "max_width": 16,
    "depth": 1,
    "learning_rate": 0.02,
    "max_epochs": 60,
}
pytestmark = [
    pytest.mark.filterwarnings("ignore::meristem.GrowthWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def power_law(scale: float, power: float, noise: float, seed: int, folds: int = 5) -> LearningCurve:
    rows, rng = np.array([100.0, 200.0, 400.0]), np.random.default_rng(seed)
    scores = 0.9 - scale * rows[:, None] ** -power + rng.normal(0, noise, folds) + rng.normal(0, noise, (3, folds))
    return LearningCurve(rows.astype(int).tolist(), scores)


@pytest.mark.parametrize("power", [0.3, 1.0])
def test_the_gain_of_twice_the_rows_is_that_of_a_power_law(power: float) -> None:
    true = 5 * (400**-power - 800**-power)
    assert power_law(5, power, 0, 0).gain() == pytest.approx((true, true, true))
    gains = np.array([power_law(5, power, 0.1 * true, seed).gain() for seed in range(200)])
    assert np.median(gains[:, 0]) == pytest.approx(true, rel=0.15)
    assert ((gains[:, 1] <= true) & (true <= gains[:, 2])).mean() > 0.85, "about 95 % where folds are independent"


def test_without_a_gain_none_is_claimed() -> None:
    gains = np.array([power_law(0, 1, 0.02, seed).gain() for seed in range(200)])
    assert (gains[:, 1] > 0).mean() < 0.1
    text = learning_curve_text({"learning_curve": power_law(0, 1, 0.02, 0).facts(METRICS["r2"])})
    assert text is not None and "may not help" in text


def test_where_lower_is_better_the_curve_is_in_the_unit_of_the_metric_and_a_gain_is_positive() -> None:
    facts = LearningCurve([100, 200, 400], -power_law(5, 1.0, 0.0, 0).scores[::-1]).facts(METRICS["rmse"])
    assert facts is not None and facts["scores"][0] > 0
    assert LearningCurve([1, 2, 4], np.full((3, 3), np.nan)).facts(METRICS["r2"]) is None


def test_parts_are_nested_and_have_every_class() -> None:
    train, classes = np.arange(10, 210), np.repeat([0, 1], [250, 10])[np.random.default_rng(0).permutation(260)]
    quarter, half = (set(part_of(train, classes, share, 3).tolist()) for share in (0.25, 0.5))
    assert quarter < half < set(train.tolist())
    assert {len(quarter), len(half)} <= {50, 51, 52, 100, 101, 102}
    assert set(classes[sorted(quarter)]) == {0, 1}


def test_folds_that_say_nothing() -> None:
    assert can_be_known(shuffled_folds(300, 3, 0))
    assert not can_be_known(shuffled_folds(300, 2, 0)) and not can_be_known(shuffled_folds(200, 3, 0))
    forward = [(np.arange(n), np.arange(n, n + 200)) for n in (200, 400, 600)]
    assert not can_be_known(forward)


@pytest.fixture(scope="module")
def model() -> meristem.TableModel:
    """Few rows of a target without noise, of which more would help."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 4))
    frame = {f"x{i}": x[:, i] for i in range(4)} | {"y": np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2]}
    return meristem.fit_table(frame, target="y", cv=3, **QUICK)


def test_a_fit_says_how_much_more_data_would_help(model: meristem.TableModel, tmp_path: object) -> None:
    curve = model.facts["learning_curve"]
    assert curve["rows"] == [40, 80, 160] and curve["measure"] == "R²"
    assert curve["scores"][0] < curve["scores"][2] and curve["gain"]["low"] <= curve["gain"]["value"] <= curve["gain"]["high"]
    section = learning_curve_section(from_table(model))
    assert section is not None and len(section.figures) == 1 and section.text[0] == learning_curve_text(model.facts)
    assert section.title in render_page(from_table(model))
    model.save(f"{tmp_path}/model.safetensors")
    assert meristem.load(f"{tmp_path}/model.safetensors").facts["learning_curve"] == curve


def test_nothing_is_said_where_it_cannot_be_known(model: meristem.TableModel) -> None:
    frame = {"day": np.arange(60), "y": np.arange(60.0)}
    quick = QUICK | {"max_epochs": 2}
    for how in ({"cv": 2}, {"time_column": "day"}):
        other = meristem.fit_table(frame, target="y", **quick, **how)
        assert other.facts["learning_curve"] is None and learning_curve_section(from_table(other)) is None
    assert learning_curve_text({}) is None, "a file of an earlier version"
