"""Reports: every estimator has one, it says what is to be doubted, escapes what it is given, and stays small."""

import copy
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import meristem
from meristem.inputs.schema import inputs_in_words
from meristem.report import render_page
from meristem.report.baselines import Comparison, compare, cross_predict
from meristem.report.formatting import significant
from meristem.report.importance import Importance, permutation_importance
from meristem.report.metric_formulas import Predicted
from meristem.report.report_data import from_estimator, from_table
from meristem.report.report_text import caveats, summary, verdict
from meristem.report.scoring import Scorer
from meristem.report.sections import calibration_chart, error_chart, score_chart, sections
from meristem.report.sections_inputs import importance_chart
from meristem.tables.reading import read_table
from meristem.tables.split import TableSplit
from reporting import EVIL, LABELS, NAMES, QUICK, SEARCHES, Page, fitted, framed, judged, rows

pytestmark = [
    pytest.mark.filterwarnings("ignore::meristem.GrowthWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
MOST = 2**20  # bytes
SLOW = {
    "cv": 2,
    "max_epochs": 3,
    "depth": 2,
    "max_width": 8,
    "penalties": [1e-3, 1e-1],
    "l2s": [1e-4],
    "learning_rate": 0.03,
    "refit": "bag",
}


@pytest.fixture(scope="module")
def models():
    """Every estimator, fitted on a frame with names; the plain ones are of the bags."""
    found = {name: fitted(name) for name in (*SEARCHES, "HighwayClassifier", "HighwayRegressor")}
    return found | {name.removesuffix("CV"): found[name].estimators_[0] for name in SEARCHES}


def page_of(model, path, *data, **how):
    return Page(model.report(path / "report.html", *data, **how).read_text())


@pytest.mark.parametrize("name", NAMES + SEARCHES)
def test_every_estimator_has_one(models, name, tmp_path):
    model = models[name]
    page = page_of(model, tmp_path, *judged(name))
    wanted = {"score", "growth", "calibration"}
    wanted |= {f"network-{place}" for place in range(1, 1 + len(getattr(model, "estimators_", [model])))}
    wanted |= {"confusion", "roc", "precision-recall"} if "Classifier" in name else {"residuals"}
    wanted |= {"path"} if name.endswith("CV") else set()
    assert set(page.figures) - {"importance", "dependence"} == wanted and all(page.figures.values())
    assert "importance" in page.figures or "4 inputs make no difference" in page.said
    assert all(
        page.said.count(text)
        for text in ("How to use the model", "SHA-256", "meristem", "Search" if name.endswith("CV") else "Training")
    )
    assert page.headings[0] == 1 and set(page.headings[1:]) == {2}
    assert len(page.text.encode()) < MOST // 8
    for bad in ("<script", "<img", 'onerror=alert(1)>"', "nan", "inf ", "None", "http:", "https:", "src="):
        assert bad not in page.text.replace(EVIL.replace("<", "&lt;"), "").replace("&lt;img src=x", ""), bad
    assert ("&lt;script&gt;alert(1)&lt;/script&gt;" in page.text) and ("x" * 90 in page.text)


def test_what_is_said_first(models):
    model = models[name := "TunnelClassifierCV"]
    evidence = from_estimator(model, *judged(name))
    words = " ".join(summary(evidence))
    score = evidence.score
    assert score["low"] < score["value"] < score["high"] and f"{score['value']:.3f}" in words
    assert f"{model.n_parameters_:,} parameters" in words and "40 rows" in words and "95 % interval" in words
    assert {one.name for one in evidence.baselines} == {"constant", "logistic regression", "gradient boosting", "MLP"}
    assert score["value"] == pytest.approx(model.score(*judged(name)))


def test_numbers_are_scored_as_the_estimator_scores_them(models):
    for name in ("TunnelRegressor", "BuddingRegressorCV"):
        assert from_estimator(models[name], *judged(name)).score["value"] == pytest.approx(models[name].score(*judged(name)))


def test_a_loaded_model_has_the_same_report(models, tmp_path):
    model = models[name := "BuddingClassifierCV"]
    model.save(tmp_path / "model.safetensors")
    before, after = (from_estimator(one, *judged(name)) for one in (model, meristem.load(tmp_path / "model.safetensors")))
    assert before.score == after.score and before.digest == after.digest and before.columns == after.columns
    kept = [[part for part in sections(one) if part.name != "score"] for one in (before, after)]
    assert kept[0] == kept[1] and len(kept[0]) == 10  # baselines take the time there is


def test_few_rows_one_class_and_classes_never_seen(models, tmp_path):
    model = models["TunnelClassifier"]
    X, y = judged("TunnelClassifier", 5)
    page = page_of(model, tmp_path, X, y)
    assert "evaluated on 5 rows" in page.said and "wide" in page.said
    page = page_of(model, tmp_path, X, np.full(5, "no"))
    assert "same class" in page.said
    page = page_of(model, tmp_path, X, np.array(["no", "new", "new", "no", "no"], object))
    assert "2 of the rows have a class that was not in the training data" in page.said and "(unknown class)" in page.said
    page_of(model, tmp_path, X[:1], y[:1])
    numbers = models["TunnelRegressor"]
    page = page_of(numbers, tmp_path, X, np.ones(5))
    assert "R² is undefined" in page.said and "score" not in page.figures


def test_the_rows_that_it_learned_from_are_known_again(models):
    X, side = rows()
    evidence = from_estimator(models["TunnelClassifierCV"], framed(X), LABELS[side.astype(int)])
    assert any("trained on" in line for line in caveats(evidence))
    X[0, 1] += 1
    evidence = from_estimator(models["TunnelClassifierCV"], framed(X), LABELS[side.astype(int)])
    assert not any("trained on" in line for line in caveats(evidence))


def test_a_model_that_learned_nothing_says_so(models, tmp_path):
    model = models["TunnelClassifier"]
    X, _ = rows(200, seed=2)
    y = LABELS[np.random.default_rng(0).integers(0, 2, 200)]
    page = page_of(model, tmp_path, framed(X), y, train=(framed(X), y))
    assert "It may have learned nothing" in page.said and "rows given as" in page.said


def test_verdicts_follow_from_the_interval_of_the_difference():
    said = {
        verdict(Comparison("constant", {}, gain, 1))
        for gain in [(0.1, 0.05, 0.2), (0.1, -0.1, 0.2), (-0.1, -0.2, 0.1), (-1, -2, -0.5)]
    }
    assert said == {"clearly better", "not clearly better", "no better", "clearly worse"}
    judge = Scorer("class", np.zeros(400, int), ("a", "b"))
    right, wrong = judge.losses(np.zeros(400, int)), judge.losses(np.arange(400) % 2)
    gain, low, high = judge.gain(right, wrong)
    assert gain == pytest.approx(0.5) and 0.4 < low < 0.5 < high < 0.6


def test_many_inputs_and_many_classes_are_bounded(models):
    evidence = from_estimator(models[name := "HighwayClassifier"], *judged(name))
    told = Importance(np.arange(1.0, 46), np.full(45, 0.5), 40, 5)
    some = replace(evidence, columns=tuple(f"column {place}" for place in range(45)), importance=told)
    y, said = np.arange(100) % 25, np.arange(100) // 4
    labels = tuple(map(str, range(25)))
    page = Page(render_page(replace(some, scorer=Scorer("class", y, labels), predictions=said, outputs=None)))
    assert "The 30 most important columns are drawn; 15 less important columns" in page.said
    assert "confusion" not in page.figures and "Most frequent confusions" in page.said
    assert len(page.text.encode()) < MOST // 4


def test_inputs_that_are_closed_are_listed(models):
    model = copy.copy(models[name := "TunnelClassifierCV"])
    model.estimators_ = [copy.copy(one) for one in model.estimators_]
    gaps = model._inputs_.gaps  # a column is read as long as its gaps are
    closed = np.array([1, 2, *(4 + np.flatnonzero(np.isin(gaps, [1, 2])))])
    for one in model.estimators_:
        gates = jnp.ones_like(one.network_.features.value).at[closed].set(0.0)
        one.network_ = eqx.tree_at(lambda network: network.features.value, one.network_, gates)
    evidence = from_estimator(model, *judged(name))
    names = list(judged(name)[0].columns)
    assert list(evidence.unused) == names[1:3] and list(evidence.columns) == [names[0], names[3]]
    assert len(evidence.importance.mean) == 2 and "2 columns are not used" in Page(render_page(evidence)).said


def test_shuffling_tells_what_matters():
    X = np.random.default_rng(0).normal(size=(300, 3))
    y = X[:, 0] + 0.1 * X[:, 2]
    judge = Scorer("number", y[:, None])
    groups = [np.array([column]) for column in range(3)]

    def cost(x, some):
        return judge.subset(some).losses(x[:, 0] + 0.1 * x[:, 2])

    found = permutation_importance(cost, X, judge.reference_losses, groups, limit=None)
    assert found.repeats == 5 and found.rows == 300
    assert found.mean[0] > 1 > 0.1 > found.mean[2] > 0 == found.mean[1] and found.half[0] > 0 == found.half[1]
    assert found.matters.tolist() == [True, False, True]


def test_models_whose_answers_are_the_same_have_no_interval(models, tmp_path):
    model = models[name := "TunnelClassifier"]
    X, _ = judged(name)
    answers = model.predict(X)
    X, answers = X[answers == answers[0]], answers[answers == answers[0]]
    y = np.where(np.arange(len(X)) % 3 > 0, answers, LABELS[answers[0] != LABELS])
    page = page_of(model, tmp_path, X, y)
    told = f"the predictions are the same on all {len(X)} rows"
    assert f"no better than always predicting the most frequent class ({told})" in page.said and "same predictions" in page.said
    assert "0.000 to 0.000" not in page.said
    judge = Scorer("class", np.array([0, 1, 1]), ("a", "b", "c"))
    others = {"constant": Predicted(np.array([0, 2, 2]))}
    assert compare(judge, np.array([0, 0, 0]), others, {"constant": {}}, 0)[0].same == ("scores", 3)


def test_labels_and_quantiles(tmp_path):
    X, side = rows()
    X = np.nan_to_num(X)
    many = np.stack([side, X[:, 1] > 0, X[:, 2] > 1], 1).astype(int)
    page = page_of(meristem.TunnelClassifier(**QUICK, depth=2).fit(X, many), tmp_path, X[::-1], many[::-1])
    assert "share of right labels" in page.said and "label 2" in page.said and "logistic regression" in page.said
    two = X[:, :2] * [1, 100]
    quantiles = meristem.TunnelRegressor(**QUICK, depth=2, loss="quantile", quantiles=(0.1, 0.9)).fit(X, two)
    page = page_of(quantiles, tmp_path, X[::-1], two[::-1])
    assert "quantile skill" in page.said and "Calibration of quantiles" in page.said


def test_several_numbers_beside_others():
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = X[:, :2] * [1, 100]
    judge = Scorer("number", y)
    scores = {
        name: judge.score(judge.losses(said.values))["value"]
        for name, said in cross_predict(judge, X, seconds=1.0, seed=0)[0].items()
    }
    assert scores["constant"] < 0.1 and scores["linear"] > 0.9 and set(scores) == {"constant", "linear", "mlp"}
    assert judge.score(judge.losses(y))["value"] == 1.0


def test_a_constant_says_what_the_sentence_names(models, tmp_path):
    """Of thirds that are predicted from the others each would have another commonest class, and score below it."""
    X, _ = judged("TunnelClassifier", 45)
    y = LABELS[np.arange(45) % 2]
    page = page_of(models["TunnelClassifier"], tmp_path, X, y)
    assert f"most frequent class ({23 / 45:.3f})" in page.said and "best one for these very rows" in page.said
    X, y = judged("TunnelRegressor")
    assert "always predicting the mean (0.000)" in page_of(models["TunnelRegressor"], tmp_path, X, y).said
    page = page_of(models["TunnelClassifier"], tmp_path, X[:5], LABELS[[0, 0, 0, 1, 1]])
    assert "most frequent class (0.600)" in page.said and "two thirds" not in page.said


def test_what_does_not_fit_is_one_line(models, tmp_path):
    model = models["TunnelRegressor"]
    X, y = judged("TunnelRegressor")
    with pytest.raises(ValueError, match="predicts 1"):
        model.report(tmp_path / "report.html", X, np.stack([y, y], 1))
    with pytest.raises(ValueError, match=r"^X and y are not given; .*report\(path, X, y\)\.$"):
        model.report(tmp_path / "report.html")
    with pytest.raises(ValueError, match="y is not given"):
        model.report(tmp_path / "report.html", X)
    with pytest.raises(ValueError, match="must be a pair"):
        model.report(tmp_path / "report.html", X, y, train=X)
    with pytest.raises(ValueError, match="is no folder"):
        model.report(tmp_path / "nowhere" / "report.html", X, y)
    assert list(tmp_path.iterdir()) == []


# ---- tables


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A file, and the model of it."""
    path = tmp_path_factory.mktemp("table") / "people.csv"
    X, side = rows(150)
    color = np.array(["red", "<b>blue</b>", "green"])[np.arange(150) % 3]
    lines = [f"{EVIL},color,same,y"] + [
        f"{x:.4f},{c},1,{'yes' if s else 'no'}" for (x, *_), c, s in zip(X, color, side, strict=True)
    ]
    path.write_text("\n".join(lines).replace("nan", ""))
    return path, meristem.fit_table(str(path), target="y", **SLOW)


def test_a_table_is_judged_by_what_was_held_out(table, tmp_path):
    model = table[1]
    page = Page(model.report(tmp_path / "report.html").read_text())
    assert {"score", "path", "growth", "network-1", "confusion", "calibration"} <= set(page.figures)
    assert f"{model.facts['score']['value']:.3f} on 30 held-out rows" in page.said
    assert (
        model.facts["table_sha256"] in page.said
        and "the same in every row: '1'" in page.said
        and "reading the table" in page.said
    )
    evidence = from_table(model)
    assert evidence.columns == (EVIL, "color") and len(evidence.scorer.y) == 30
    assert 1 - evidence.scorer.losses(evidence.predictions).mean() == pytest.approx(model.facts["score"]["value"])


def test_a_loaded_table_knows_its_file_again(table, tmp_path):
    path, model = table
    model.save(tmp_path / "model.safetensors")
    loaded = meristem.load(tmp_path / "model.safetensors")
    again = from_table(loaded, str(path))
    assert again.scorer.y.tolist() == from_table(model).scorer.y.tolist() and again.score == model.facts["score"]
    gains = [[(one.name, one.gain) for one in known.baselines] for known in (again, from_table(model))]
    assert gains[0] == gains[1] and again.is_paired, "the differences are in the file"
    for scores in loaded.facts["baselines"].values():
        del scores["gain"]
    wide = Page(loaded.report(tmp_path / "again.html", str(path)).read_text())
    assert "as on independent rows" in wide.said and "not stored in the model’s file" in wide.said
    bare = Page(loaded.report(tmp_path / "report.html").read_text())
    assert {"score", "path", "growth", "network-1"} <= set(bare.figures) and "importance" not in bare.figures
    assert "<b>blue" not in bare.text


@pytest.mark.filterwarnings("ignore:column .code.* unseen categories:UserWarning")
def test_the_code_for_onnxruntime_says_what_the_model_says(tmp_path, monkeypatch):
    """As the page has it, of every kind of column; the guide has the same lines."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    day, code = np.datetime64("2020-01-01") + rng.integers(0, 900, 80), rng.choice(["1", "2", "x5"], 80)
    frame = {"a<b": rng.normal(size=80), "day": day, "code": code, "y": np.where(code == "1", 3.0, 0.0) + rng.normal(size=80)}
    model = meristem.fit_table(frame, target="y", **SLOW)
    model.to_onnx("model.onnx")
    Path("new.csv").write_text("a<b,day,code,more\n1.5,2020-05-01,x5,x\n,,,\n-2,2021-01-01,1,x\n0,2022-01-01,9,x\n")
    (part,) = [part for part in sections(from_table(model)) if part.name == "load"]
    said: dict[str, Any] = {}
    exec(part.code[-1], said)
    np.testing.assert_allclose(said["predictions"], model.predict("new.csv"), rtol=0, atol=1e-4)
    assert "ship that" in " ".join(part.text)
    body = part.code[-1].rstrip().rpartition("\n")[0]
    assert body in (Path(__file__).parent.parent / "docs" / "first-fit.md").read_text()


def test_inputs_are_counted_alike(table):
    model = table[1]
    marks = len(model.estimator._inputs_.gaps)
    words = inputs_in_words(len(model.schema.features), marks)
    assert marks == 1 == model.facts["marks_of_missing_values"] and words == "4 inputs and 1 mark of missing values, 5 in all"
    page = Page(render_page(from_table(model)))
    assert f"{words}, from 2 columns" in page.said and "Of 5 inputs, 1 marks missing values." in page.said
    known = TableSplit.of(read_table(str(table[0])), target="y", seed=0)
    assert any(line.endswith(words) for line in known.words())


def test_another_table_is_judged_as_a_whole(table, tmp_path):
    model = table[1]
    other = {"color": ["red", "pink", "green"] * 10, "y": ["yes", "no"] * 15}
    page = Page(model.report(tmp_path / "report.html", other).read_text())
    assert "on 30 rows (95 %" in page.said and "is not there: missing in every row" in page.said
    assert "unseen categories, such as 'pink'" in page.said and "not on the rows of this report" in page.said


def test_numbers_have_three_digits():
    for value in np.exp(np.random.default_rng(0).uniform(-20, 20, 300)):
        text = significant(float(value))
        digits = re.sub(r"[^\d]", "", text.split(" ×")[0]).lstrip("0")
        assert len(digits.rstrip("0")) <= 3, (value, text)


@pytest.mark.parametrize("value", [np.nan, np.inf, -1e308, 1e308, 1e-320, 0.0])
def test_values_of_any_size_are_drawn(value):
    rows = np.array([[0.5, 0.4, 0.6], [value, np.nan, np.nan]])
    figures = [importance_chart("R²", ["a", "b"], rows, ""), score_chart("R²", ["a", "b"], rows, "")]
    figures.append(error_chart(rows[:, 0], rows[::-1, 0], "$y$", ""))
    bins = [(value, value, -value, value, 3), (0.5, 0.5, 0.6, 0.4, 3)]
    figures += [calibration_chart(bins, "x", "y", "", is_share=is_share) for is_share in (True, False)]
    assert all("nan" not in figure and "inf" not in figure and figure.endswith("</svg>") for figure in figures)
