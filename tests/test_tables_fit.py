"""A model from a table: what it finds, what it says, its file, the two commands, and one line for what is wrong."""

import csv
import io
import json
import os
import re
import resource
import sys
from types import SimpleNamespace

import numpy as np
import pandas
import pytest
from sklearn.datasets import load_iris
from sklearn.neural_network import MLPRegressor

import meristem
from commanding import meristem_here
from filing import write_document
from meristem.files.document import read
from meristem.folders.run_record import is_finished
from meristem.report import from_table, render_page
from meristem.report.baselines import baselines
from meristem.report.task_metrics import DEFAULTS, Outcome, Predicted
from meristem.tables import fitting
from meristem.tables.reading import read_table
from meristem.watch.view import View

QUICK = {"cv": 2, "max_epochs": 30, "depth": 2, "max_width": 8, "penalties": [1e-4], "l2s": [1e-4], "learning_rate": 0.03}
pytestmark = [
    pytest.mark.filterwarnings("ignore::meristem.GrowthWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def mixed(n, seed=0):
    """Rows with strings, dates and holes, whose price follows from size, color and age."""
    rng = np.random.default_rng(seed)
    size, color, day = rng.uniform(0, 10, n), rng.choice(["red", "green", "blue"], n), rng.integers(0, 1000, n)
    price = 3 * size + 10 * (color == "red") + day / 50 + rng.normal(0, 0.5, n)
    rows = [["size", "color", "built", "id", "country", "price"]]
    for place in range(n):
        built = str(np.datetime64("2020-01-01") + day[place])
        row = [f"{size[place]:.4f}", color[place], built, f"order {seed}-{place}", "NL", f"{price[place]:.3f}"]
        rows.append(["" if hole else value for hole, value in zip(rng.random(6) < 0.03, row, strict=True)])
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two tables of prices, iris, and what `fit` made of each: (status, words)."""
    where = tmp_path_factory.mktemp("tables")
    (where / "prices.csv").write_text(mixed(1200))
    (where / "new.csv").write_text(mixed(60, seed=1))
    iris = load_iris(as_frame=True)
    frame = iris.frame.drop(columns="target").assign(species=iris.target_names[iris.target])
    frame.to_csv(where / "iris.csv", index=False)
    return where


@pytest.fixture(scope="module")
def prices(folder):
    return meristem.fit_table(folder / "prices.csv", target="price", **QUICK)


@pytest.fixture(scope="module")
def species(folder):
    return meristem.fit_table(pandas.read_csv(folder / "iris.csv"), target="species", test=0.3, **QUICK)


def test_numbers_of_a_table_with_strings_dates_and_holes(prices, folder):
    facts = prices.facts
    assert prices.task == "number" and facts["why"] == "numbers"
    assert facts["columns"]["built"].startswith("dates, as days; ") and "missing" in facts["columns"]["size"]
    assert facts["dropped"] == {"id": "more than 1,000 categories"} and facts["columns"]["country"].startswith("1 category")
    rows = facts["rows"]
    assert rows["without_target"] > 10 and rows["train"] + rows["test"] + rows["without_target"] == rows["all"] == 1200
    assert rows["test"] == round(0.2 * (rows["all"] - rows["without_target"]))
    score = facts["score"]
    assert score["measure"] == "R²" and score["low"] < score["value"] < score["high"] and score["value"] > 0.8
    assert (
        list(facts["baselines"]) == ["constant", "linear", "boosting", "mlp"] and facts["baselines"]["constant"]["value"] < 0.05
    )
    assert facts["table_sha256"] == read_table(folder / "prices.csv").digest
    assert json.loads(json.dumps(facts)) == facts
    assert prices.score(folder / "new.csv") > 0.8


def test_it_says_of_itself_what_it_is(prices):
    assert repr(prices).startswith("<TableModel: 'price' from 4 columns, ") and " parameters, R² 0." in repr(prices)


def test_classes_keep_their_labels(species, folder):
    frame = pandas.read_csv(folder / "iris.csv")
    assert species.classes.tolist() == ["setosa", "versicolor", "virginica"]
    assert species.facts["rows"]["test"] == 45 and species.score(frame) > 0.85
    assert set(species.predict(frame)) == set(frame["species"])
    chances = species.predict_proba(frame)
    assert chances.shape == (150, 3) and np.allclose(chances.sum(1), 1)
    assert (species.classes[chances.argmax(1)] == species.predict(frame)).all()
    score = species.facts["score"]
    assert 0 < score["low"] < score["value"] <= score["high"] <= 1


def test_the_same_seed_gives_the_same_model(species, folder):
    again = meristem.fit_table(str(folder / "iris.csv"), target="species", test=0.3, **QUICK)
    np.testing.assert_array_equal(again.predict_proba(folder / "iris.csv"), species.predict_proba(folder / "iris.csv"))


def test_a_file_holds_the_whole_of_it_and_forged_ones_are_refused(prices, species, folder, tmp_path):
    for model, table in ((prices, "prices.csv"), (species, "iris.csv")):
        model.save(tmp_path / "model")
        again = meristem.load(tmp_path / "model")
        np.testing.assert_array_equal(again.predict(folder / table), model.predict(folder / table))
        assert again.schema == model.schema and again.facts == model.facts and again.target == model.target
    kind, header, arrays, _ = read(tmp_path / "model")
    columns = header["encoding"]["columns"]
    for wrong in (
        {"task": "number"},
        {"target": 3},
        {"facts": []},
        {"facts": {}},
        {"encoding": header["encoding"] | {"columns": columns[1:]}},
        {"encoding": {"columns": [{}], "dropped": []}},
        {"more": 1},
    ):
        write_document(tmp_path / "forged", kind, arrays, header | wrong)
        with pytest.raises(ValueError, match=r"'.*forged' cannot be loaded: "):
            meristem.load(tmp_path / "forged")


def test_new_tables_may_be_unlike(prices, folder):
    frame = pandas.read_csv(folder / "new.csv").drop(columns="built").assign(more=1)
    frame.loc[0, "color"] = "pink"
    assert prices.table_warnings(frame) == [
        "column 'built' is not there: missing in every row",
        "column 'color': 1 row of unseen categories, such as 'pink'",
    ]
    with (
        pytest.warns(UserWarning, match="the frame lacks 1 of 4 columns, missing in every row: 'built'"),
        pytest.warns(UserWarning, match="column 'color': 1 row of unseen categories, such as 'pink'"),
    ):
        assert np.isfinite(prices.predict(frame)).all()
    with pytest.raises(ValueError, match="has no column 'price', which was to be predicted"):
        prices.score(frame.drop(columns="price"))
    with pytest.raises(ValueError, match="is a number; it has no classes"):
        prices.predict_proba(frame)


def test_a_test_table_of_its_own_with_a_class_that_was_never_seen(folder):
    frame = pandas.read_csv(folder / "iris.csv")
    apart = frame.iloc[::3].assign(species=lambda rows: rows["species"].replace("setosa", "unknown"))
    model = meristem.fit_table(frame, target="species", test=apart, **QUICK)
    rows = {"all": 150, "without_target": 0, "train": 150, "test": 50, "searched_with": 150, "learned_from": 150}
    assert model.facts["rows"] == rows
    assert model.facts["score"]["value"] <= 33 / 50, "what cannot be predicted counts as wrong"
    assert model.facts["baselines"]["constant"]["value"] <= 17 / 50


def test_many_rows_are_drawn_from_and_all_are_scored(folder, monkeypatch):
    monkeypatch.setattr(fitting, "MOST_ROWS", 100)
    model = meristem.fit_table(folder / "prices.csv", target="price", **QUICK | {"max_epochs": 5})
    rows = model.facts["rows"]
    assert rows["searched_with"] == 100 and rows["learned_from"] == rows["train"] > 100 and rows["test"] > 200


def test_more_rows_than_the_search_has_make_the_model_better(monkeypatch):
    """Also with dropout, which helps with few rows, and without which more of them are predicted better."""
    monkeypatch.setattr(fitting, "MOST_ROWS", 300)

    def table(n, seed):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(n, 16))
        score = x[:, :8].sum(1) / 2 + x[:, 0] * x[:, 1] + rng.normal(size=n) / 2
        return pandas.DataFrame(x).add_prefix("x").assign(y=np.digitize(score, [-0.7, 0.7]).astype(str))

    rows, test = table(6000, seed=0), table(4000, seed=1)
    options = QUICK | {"input_dropouts": [0.5], "refit": "one", "test": test}
    few, all_rows = (meristem.fit_table(own, target="y", **options).facts for own in (rows[:300], rows))
    assert few["rows"]["learned_from"] == all_rows["rows"]["searched_with"] == 300 < all_rows["rows"]["learned_from"]
    assert all_rows["test"]["accuracy"] > few["test"]["accuracy"] + 0.12
    assert all_rows["test"]["log_loss"] < 0.7 * few["test"]["log_loss"]


def test_a_class_that_the_search_has_not_seen_is_left_out_of_the_blocks(monkeypatch):
    monkeypatch.setattr(fitting, "MOST_ROWS", 50)
    x = np.arange(800.0)
    table = {"x": x, "side": np.where(x < 2, "rare", np.where(x < 400, "left", "right"))}
    model = meristem.fit_table(table, target="side", test={name: values[5::7] for name, values in table.items()}, **QUICK)
    rows = model.facts["rows"]
    assert model.classes.tolist() == ["left", "right"] and rows["searched_with"] == 50
    assert rows["learned_from"] == 798 - 15 * 5 - 3, (
        "a tenth of each block is held out for the temperature; two rows are in two blocks"
    )


# ---- what it is seen beside


def test_an_mlp_beside_is_as_good_as_scikit_learns():
    """201 rows are a batch and one row: that one must not be the same in every epoch."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(401, 2))
    y = X[:, 0] * X[:, 1]
    own = MLPRegressor(random_state=0).fit(X[:201], y[:201]).score(X[201:], y[201:])
    *_, mlp = baselines("number", X[:201], y[:201], seconds=None, seed=0)
    said = mlp.predict(X[201:])
    assert mlp.name == "mlp" and not mlp.lacks
    assert 1 - ((said - y[201:]) ** 2).mean() / y[201:].var() > own - 0.1 > 0.5


def test_what_time_takes_from_those_beside_is_said(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 8))
    frame = {f"x{place}": column for place, column in enumerate(X.T)} | {"y": np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]}
    cut = {one.name: one.lacks for one in baselines("number", X, frame["y"], seconds=0.05, seed=0)}
    assert cut["constant"] == "" and "epoch" in cut["mlp"] and "of 100 rounds" in cut["boosting"]
    assert all("of 5,000 rows" in cut[name] for name in ("boosting", "mlp"))
    monkeypatch.setattr(fitting, "baselines", hurried)
    model = meristem.fit_table(frame, target="y", **QUICK)
    assert "epoch" in model.facts["baselines"]["mlp"]["lacks"] and "lacks" not in model.facts["baselines"]["constant"]
    page = render_page(from_table(model))
    assert "Of MLP there was time for" in page and "stopped by the time limit" in page


def hurried(task, X, y, **how):
    """Those that have next to no time, whatever the limit."""
    return baselines(task, X, y, **how | {"seconds": 0.05})


def test_settings_that_left_early_are_told_from_those_that_did_not():
    x = np.linspace(0, 1, 60)
    quick = {"cv": 2, "batch_size": 2, "max_epochs": 40, "depth": 1, "max_width": 4, "penalties": [1e-4], "learning_rate": 0.03}
    model = meristem.fit_table({"x": x, "y": 3 * x}, target="y", l2s=[1e-5, 30.0], input_dropouts=[0.0], **quick)
    assert [(point["l2"], point["finished"]) for point in model.facts["path"]] == [(1e-5, True), (30.0, False)]


def scored(task, y, said):
    return DEFAULTS[task].score(Outcome(task, y, Predicted(said), 2))


def test_intervals_hold_what_they_should():
    rng = np.random.default_rng(0)
    for task, y, said in (
        ("class", np.ones(400, int), (rng.random((200, 400)) < 0.9).astype(int)),
        ("number", rng.normal(size=100), None),
    ):
        if said is not None:
            found = [scored(task, y, each) for each in said]
            assert 0.9 < np.mean([one["low"] <= 0.9 <= one["high"] for one in found]) < 0.99
        else:
            one = scored(task, y, y + rng.normal(0, 0.5, 100))
            assert one["low"] < one["value"] < one["high"] and scored(task, y, y)["value"] == 1


# ---- commands


@pytest.fixture(scope="module")
def commands(folder):
    """A fit of each kind from the command line, and predictions by it."""
    done = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("meristem.show.progress.PLAIN_SECONDS", 0.0)  # it says where it stands, however quick it is
        for name, target in (("prices", "price"), ("iris", "species")):
            out = folder / "out" / name
            fit = ["fit", folder / f"{name}.csv", "--target", target, "--max-epochs", "3", "--out", out, "--body", "tunnel"]
            done[name] = meristem_here(*fit)
    return done


def test_fit_says_and_writes_what_it_found(commands, folder):
    for name, said in (("prices", "target 'price': numbers"), ("iris", "target 'species': 3 classes: it holds texts")):
        done, out = commands[name], folder / "out" / name
        assert done.returncode == 0, done.stderr
        assert said in done.stderr and "search: 15 networks" in done.stderr, "progress, stage by stage"
        assert f"In {out}: model.onnx, model.safetensors, report.html, summary.json" in done.stdout and "linear" in done.stdout
        files = [".meristem-run", "model.onnx", "model.safetensors", "report.html", "summary.json"]
        assert sorted(path.name for path in out.iterdir()) == files
        summary = json.loads((out / "summary.json").read_text())
        assert summary["command"].startswith("meristem fit") and summary["seconds"]["all"] > 0
        assert summary["onnx"]["rows"] == summary["rows"]["test"] and summary["onnx"]["furthest"] < 1e-5
        own = {"command", "run", "files", "digest"}
        assert meristem.load(out / "model.safetensors").facts == {k: v for k, v in summary.items() if k not in own}
        assert is_finished(out, summary["run"]) and set(summary["files"]) == {*files[1:4], ".meristem-run/epochs.jsonl"}
        lines = [json.loads(line) for line in (out / ".meristem-run" / "epochs.jsonl").read_text().splitlines()]
        groups = {"search", "room-1", "more-rows", "distill-1", "distill-2", "distill-3"}
        assert {line["group"] for line in lines} <= groups and len({line["member"] for line in lines}) >= 5
        for group in View(out).now()["groups"]:
            called = [member["name"] for member in group["members"]]
            assert len(set(called)) == len(called), "no two have the same name"
            if group["name"].startswith("distill"):  # one network
                continue
            folds = "[0-9]" if group["name"] == "more-rows" else "[0-4]"  # those with a quarter of the rows, then with half
            assert all(re.fullmatch(rf"λ \S+(, l2 \S+)?(, dropout \S+)?, fold {folds}", name) for name in called), called
    assert "dropped column 'id': more than 1,000 categories" in commands["prices"].stderr
    assert "without a target are dropped" in commands["prices"].stderr


@pytest.mark.usefixtures("commands")
def test_predict_writes_labels_and_probabilities(folder, monkeypatch):
    model = folder / "out" / "iris" / "model.safetensors"
    done = meristem_here("predict", model, folder / "iris.csv")
    assert done.returncode == 0 and done.stderr == ""
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert len(rows) == 150 and list(rows[0]) == ["species", "species=setosa", "species=versicolor", "species=virginica"]
    assert [row["species"] for row in rows] == meristem.load(model).predict(folder / "iris.csv").tolist()
    assert sum(float(row["species=setosa"]) for row in rows) > 1
    text = (folder / "iris.csv").read_text().replace("sepal width", "other")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
    done = meristem_here("predict", model, "-", "--out", folder / "said.csv")
    assert done.returncode == 0 and done.stdout == ""
    assert done.stderr == "meristem: column 'sepal width (cm)' is not there: missing in every row\n"
    assert len((folder / "said.csv").read_text().splitlines()) == 151
    numbers = meristem_here("predict", folder / "out" / "prices" / "model.safetensors", folder / "new.csv")
    assert numbers.stdout.startswith("price\n") and len(numbers.stdout.splitlines()) == 61
    assert np.isfinite([float(line) for line in numbers.stdout.splitlines()[1:]]).all()


MISTAKES = {
    "prices.csv --target prise": "target='prise' is not known. Did you mean 'price'",
    "prices.csv --target country": "column 'country' is 'NL' in every row that has one; there is nothing to predict",
    "nowhere.csv --target price": "nowhere.csv' does not exist",
    "empty.csv --target price": "is empty",
    "ragged.csv --target price": "line 3 has 1 field",
    "hollow.csv --target y": "column 'y' is missing in every row",
    "out/iris/model.safetensors --target price": "is a model file, not a table",
    "prices.csv --target price --task sort": "task='sort' is not known",
    "prices.csv --target color --task number": "task='number', but column 'color' holds texts",
    "prices.csv --target price --body tunel": "Did you mean 'tunnel'",
    "prices.csv --target price --rule best": "rule='best' is not known",
    "prices.csv --target price --budget 0": "budget=0 must be an integer of at least 1",
    "prices.csv --target price --test 1": "test=1.0 must be a number above 0 and below 1",
    "prices.csv --target price --seconds 0": "seconds=0.0 must be a number above 0",
    "prices.csv --target price --seed -1": "--seed=-1 must be an integer of at least 0",
    "prices.csv --target price --max-epochs 0": "--max-epochs=0",
    "prices.csv --target price --test 0.1 --test-file new.csv": "exclude each other",
    "prices.csv --target price --test-file iris.csv": "iris.csv' has no column 'price'",
    "few.csv --target y": "has 4 rows with a target, of which test=0.2 holds out too few",
}


@pytest.mark.usefixtures("commands")
@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_is_wrong_is_one_line_and_nothing_is_written(mistake, folder, monkeypatch):
    (folder / "empty.csv").write_text("")
    (folder / "ragged.csv").write_text("x,price\n1,2\n3\n")
    (folder / "hollow.csv").write_text("x,y\n1,\n2,NA\n")
    (folder / "few.csv").write_text("x,y\n1,a\n2,b\n1,a\n2,b\n")
    monkeypatch.chdir(folder)
    done = meristem_here("fit", *mistake.split(), "--out", "wrong")
    assert done.returncode == 2 and done.stdout == ""
    assert MISTAKES[mistake] in done.stderr and len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert not (folder / "wrong").exists()


@pytest.mark.usefixtures("commands")
def test_mistakes_of_predict(folder, tmp_path):
    model = folder / "out" / "iris" / "model.safetensors"
    meristem.save(tmp_path / "other", meristem.load(model).estimator)
    for args, said in (
        ([tmp_path / "other", folder / "iris.csv"], "holds no model of `meristem fit`"),
        ([model, folder / "prices.csv"], "has none of the model's columns: 'sepal length (cm)'"),
        ([folder / "iris.csv", folder / "iris.csv"], "is not a safetensors file"),
        ([model, model], "is a model file, not a table"),
        ([model, folder / "iris.csv", "--out", tmp_path / "no" / "said.csv"], "is no folder"),
    ):
        done = meristem_here("predict", *args)
        assert done.returncode == 2 and said in done.stderr and len(done.stderr.strip().splitlines()) == 1, done.stderr
        assert done.stdout == ""


def test_a_disk_that_is_full_leaves_nothing_half_written(species, tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))  # a file may not grow beyond, as on a disk that is full
    try:
        with pytest.raises(ValueError, match="model' cannot be written"):
            species.save(tmp_path / "model")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_plain_file_is_never_replaced(species, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="pipe' is no plain file; give the path of a file"):
        species.save(tmp_path / "pipe")
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"] and (tmp_path / "pipe").is_fifo()


def test_help_has_examples():
    for name in ("fit", "predict"):
        done = meristem_here(name, "--help")
        assert done.returncode == 0 and "example:" in done.stdout
