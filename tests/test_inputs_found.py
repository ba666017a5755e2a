"""What was once found wrong between a model and its files, exports and reports: a test for each.

The models are small and trained for a few epochs: what is compared is one answer with another.
"""

import gzip
import json
import os
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import onnxruntime
import pandas
import pytest
import scipy.sparse

import meristem
from commanding import meristem_here
from meristem import sparse
from meristem.commands.fit import _removing_new_folder
from meristem.report.report_data import from_table
from meristem.report.sections import sections
from meristem.tables.reading import read_table, table_of
from meristem.tables.split import target_values

SEARCH = {"cv": 2, "penalties": [1e-4], "l2s": [1e-4], "input_dropouts": [0.0], "refit": "bag"}
QUICK = SEARCH | {"max_epochs": 8, "depth": 1, "max_width": 4, "learning_rate": 0.03, "random_state": 0}
PLAIN = {"width": 8, "depth": 1, "max_epochs": 8, "random_state": 0}
pytestmark = [
    pytest.mark.filterwarnings("ignore::meristem.GrowthWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:The (number of unique|least populated) class:UserWarning"),
]
RNG = np.random.default_rng


def asked(path, feeds):
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, feeds)


def test_a_padded_category_is_the_same_in_the_graph(tmp_path):
    rng = RNG(0)
    metal = rng.choice(["gold ", "gold", " tin", "iron  "], 400)
    frame = {"metal": metal, "size": rng.normal(size=400), "dear": np.where(np.char.strip(metal) == "gold", "yes", "no")}
    model = meristem.fit_table(frame, target="dear", **QUICK)
    feeds = {"metal": np.array(metal, object)[:, None], "size": frame["size"][:, None]}
    labels, probabilities = asked(model.to_onnx(tmp_path / "model.onnx"), feeds)
    np.testing.assert_allclose(probabilities, model.predict_proba(frame), rtol=0, atol=1e-5)
    assert (labels == model.predict(frame)).all() and len(set(labels)) == 2


@pytest.mark.parametrize("typed", [False, True])
def test_a_frame_with_gaps_is_exported(tmp_path, typed):
    x = RNG(0).normal(size=(60, 13))
    x[3, 2] = np.nan
    frame = pandas.DataFrame(x, columns=[f"c{k}" for k in range(13)])
    frame = frame.convert_dtypes() if typed else frame
    model = meristem.TunnelClassifier(**PLAIN).fit(frame, np.arange(60) % 2)
    session = onnxruntime.InferenceSession(str(model.to_onnx(tmp_path / "model.onnx")), providers=["CPUExecutionProvider"])
    assert session.get_inputs()[0].shape == ["N", 13]
    assert json.loads(session.get_modelmeta().custom_metadata_map["feature_names"]) == list(frame.columns)


def mixed(rows=120, seed=0):
    """Numbers with '?', decimal commas, dates, padded categories: as lines of cells."""
    rng = RNG(seed)
    size, metal = rng.normal(50, 9, rows), rng.choice(["gold", " tin", "NA", "?"], rows, p=[0.5, 0.4, 0.05, 0.05])
    day = np.datetime64("2020-01-01") + rng.integers(0, 900, rows)
    size_text = ["?" if rng.random() < 0.1 else f"{value:.4f}" for value in size]
    dear = np.where((size > 50) ^ (metal == "gold"), "ja", "nein")
    return [["size", "metal", "Größe", "dear"], *map(list, zip(size_text, metal, day.astype(str), dear, strict=True))]


FORMS = {
    "new.csv": lambda lines: "\n".join(",".join(line) for line in lines).encode(),
    "new.csv.gz": lambda lines: gzip.compress("\n".join(",".join(line) for line in lines).encode()),
    "semicolons": lambda lines: "\n".join(";".join([line[0].replace(".", ","), *line[1:]]) for line in lines).encode("cp1252"),
}


@pytest.mark.parametrize("form", [*FORMS, "new.parquet"])
def test_the_code_of_the_report_runs_on_the_table_it_was_made_from(tmp_path, monkeypatch, form):
    monkeypatch.chdir(tmp_path)
    name, lines = "new.csv" if form == "semicolons" else form, mixed()
    if form == "new.parquet":
        frame = pandas.DataFrame(lines[1:], columns=lines[0])
        frame = frame.assign(size=pandas.to_numeric(frame["size"], errors="coerce"), Größe=pandas.to_datetime(frame["Größe"]))
        frame.assign(is_old=np.arange(len(frame)) % 2 == 0).to_parquet(name)
    else:
        Path(name).write_bytes(FORMS[form](lines))
    reading = {"encoding": "cp1252"} if form == "semicolons" else {}
    table = read_table(name, **reading)
    model = meristem.fit_table(table if reading else name, target="dear", **QUICK)
    model.to_onnx("model.onnx")
    (part,) = [part for part in sections(from_table(model)) if part.name == "load"]
    names: dict[str, object] = {}
    exec(part.code[-1], names)
    np.testing.assert_allclose(names["probabilities"], model.predict_proba(table), rtol=0, atol=1e-5)
    assert list(names["labels"]) == model.predict(table).tolist()


def ids(rows, seed):
    """A category of two texts that tell all, among more than a thousand others."""
    rng = RNG(seed)
    key = rng.choice(["a", "b"], rows)
    return pandas.DataFrame({"key": key, "size": rng.normal(size=rows), "y": np.where(key == "a", "yes", "no")})


def test_many_texts_in_a_new_frame_take_no_category_away(tmp_path):
    model = meristem.fit_table(ids(200, 0), target="y", **QUICK | {"max_epochs": 40})
    new = ids(1500, 1)
    new.loc[:1199, "key"] = [f"new {n}" for n in range(1200)]
    with pytest.warns(UserWarning, match=r"column 'key': 1,200 rows of unseen categories, such as 'new "):
        labels = model.predict(new)
    assert (labels == new["y"])[1200:].all()
    new.to_csv(tmp_path / "new.csv", index=False)
    with pytest.warns(UserWarning, match="1,200 rows of unseen categories"):
        assert (model.predict(tmp_path / "new.csv") == labels).all()
    tested = meristem.fit_table(ids(200, 0), target="y", test=new, **QUICK | {"max_epochs": 40})
    assert tested.facts["score"]["value"] == pytest.approx((labels == new["y"]).mean(), abs=0.02)
    ids(200, 0).to_csv(tmp_path / "table.csv", index=False)
    out = ["--out", tmp_path / "out", "--body", "tunnel", "--max-epochs", 2, "--budget", 900]  # there is no price to search for
    done = meristem_here("fit", tmp_path / "table.csv", "--target", "y", "--test-file", tmp_path / "new.csv", *out)
    assert done.returncode == 0 and "1,200 rows of unseen categories" in done.stderr, done.stderr
    score = json.loads((tmp_path / "out" / "summary.json").read_text())["score"]["value"]
    with pytest.warns(UserWarning, match="1,200 rows of unseen categories"):
        assert score == pytest.approx((meristem.load(tmp_path / "out" / "model.safetensors").predict(new) == new["y"]).mean())


def test_a_stray_text_in_the_target_of_a_test_file_is_found_before_the_search(tmp_path):
    rng = RNG(0)
    (tmp_path / "table.csv").write_text("x,y\n" + "".join(f"{x},{x * 2 + 1}\n" for x in rng.normal(size=60)))
    (tmp_path / "test.csv").write_text("x,y\n1,2\n2,dear\n3,4\n")
    begun, files = time.monotonic(), ["--test-file", tmp_path / "test.csv", "--out", tmp_path / "out" / "deep"]
    done = meristem_here("fit", tmp_path / "table.csv", "--target", "y", *files)
    assert done.returncode == 2 and time.monotonic() - begun < 10
    assert "column 'y' holds 'dear' in row 2" in done.stderr and not (tmp_path / "out").exists()


@pytest.mark.parametrize("size", [1e-60, 1e60])
def test_targets_of_any_size_keep_their_graph(tmp_path, size):
    rng = RNG(0)
    x = rng.normal(size=200)
    frame = {"x": x, "z": rng.normal(size=200), "y": size * (3 + x + 0.1 * rng.normal(size=200))}
    model = meristem.fit_table(frame, target="y", **QUICK)
    model.to_onnx(tmp_path / "model.onnx")
    for level in onnxruntime.GraphOptimizationLevel.__members__.values():
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = level
        session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"), options, providers=["CPUExecutionProvider"])
        got = session.run(None, {name: frame[name][:, None] for name in ("x", "z")})[0]
        np.testing.assert_allclose(got, model.predict(frame), rtol=0, atol=1e-5 * np.std(frame["y"]))


def test_seconds_since_1970_are_exported_in_double_and_large_numbers_too(tmp_path):
    rng = RNG(0)
    x = np.column_stack([1.7e9 + 900 * rng.normal(size=200), rng.normal(size=200)])
    y = (x[:, 0] > 1.7e9).astype(int)
    model = meristem.TunnelClassifier(**PLAIN | {"max_epochs": 60}).fit(x, y)
    path = model.to_onnx(tmp_path / "model.onnx")
    assert onnxruntime.InferenceSession(str(path)).get_inputs()[0].type == "tensor(double)"
    np.testing.assert_allclose(asked(path, {"X": x})[1], model.predict_proba(x), rtol=0, atol=1e-5)
    near = meristem.TunnelClassifier(**PLAIN).fit(x - [1.7e9, 0], y)
    assert onnxruntime.InferenceSession(str(near.to_onnx(path))).get_inputs()[0].type == "tensor(float)"
    numbers = meristem.TunnelRegressor(**PLAIN).fit(x[:, 1:], 1e38 * (1 + x[:, 1]))
    session = onnxruntime.InferenceSession(str(numbers.to_onnx(path)))
    dtype = {"tensor(float)": np.float32, "tensor(double)": float}[session.get_inputs()[0].type]
    (got,) = session.run(None, {"X": x[:, 1:].astype(dtype)})
    np.testing.assert_allclose(got, numbers.predict(x[:, 1:]), rtol=0, atol=1e33)


def test_quantiles_of_a_table(tmp_path):
    rng = RNG(0)
    x = rng.normal(size=150)
    frame = {"x": x, "y": x + rng.normal(size=150)}
    model = meristem.fit_table(frame, target="y", loss="quantile", quantiles=(0.1, 0.5, 0.9), **QUICK | {"max_epochs": 40})
    predicted = model.predict(frame)
    assert predicted.shape == (150, 3) and model.levels == (0.1, 0.5, 0.9)
    assert model.score(frame) == pytest.approx(1 - ((frame["y"] - predicted[:, 1]) ** 2).sum() / 150 / np.var(frame["y"]))
    (got,) = asked(model.to_onnx(tmp_path / "model.onnx"), {"x": x[:, None]})
    np.testing.assert_allclose(got, predicted, rtol=0, atol=1e-5)
    assert f"{model.facts['score']['value']:.3f}" in model.report(tmp_path / "report.html").read_text()
    model.save(tmp_path / "model.safetensors")
    pandas.DataFrame(frame).to_csv(tmp_path / "new.csv", index=False)
    done = meristem_here("predict", tmp_path / "model.safetensors", tmp_path / "new.csv")
    assert done.returncode == 0 and done.stdout.splitlines()[0] == "y (0.1),y (0.5),y (0.9)"
    with pytest.raises(ValueError, match=r"quantiles=\(0.1, 0.9\) must have 0.5 among them"):
        meristem.fit_table(frame, target="y", loss="quantile", quantiles=(0.1, 0.9), **QUICK)


def test_a_date_in_a_frame_of_an_estimator_is_named():
    frame = pandas.DataFrame({"size": [1.0, 2.0, 3.0], "when": pandas.to_datetime(["2020-01-01"] * 3)})
    for columns in (["size", "when"], ["when"]):
        with pytest.raises(ValueError, match=r"^X has type datetime64\[.*\] in column 'when', .*fit_table"):
            meristem.TunnelClassifier(**PLAIN).fit(frame[columns], [0, 1, 0])


def test_a_large_sparse_table_has_a_report(monkeypatch, tmp_path):
    monkeypatch.setattr(sparse, "DENSE", 4000)
    x = np.zeros((100, 40))
    x[:, [3, 17]] = RNG(0).normal(size=(100, 2))
    y = (x[:, 3] > 0).astype(int)
    model = meristem.TunnelClassifier(**PLAIN | {"feature_gates": True}).fit(scipy.sparse.csr_array(x), y)
    assert model._inputs_.n_inputs == 2 and model._inputs_.n_features == 40
    page = model.report(tmp_path / "report.html", scipy.sparse.csr_array(x), y).read_text()
    assert "column 3" in page


def test_whole_numbers_that_a_float_merges_are_two_labels(tmp_path):
    rng = RNG(0)
    x = rng.normal(size=90)
    label = 2**53 + (x > 0)
    for frame in (pandas.DataFrame({"x": x, "y": label}), {"x": x, "y": label}):
        model = meristem.fit_table(frame, target="y", task="class", **QUICK | {"max_epochs": 60})
        assert model.classes.tolist() == [2**53, 2**53 + 1]
        assert model.score(frame) == (model.predict(frame) == label).mean() > 0.9
    values, rows = target_values(table_of({"y": label}), "y", "class", model.classes)
    assert (values[rows] == (x > 0)).all()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"": [1.0, 2.0] * 15, "y": list("ab") * 15}, "column 1 of 2 has no name"),
        ({"a": ["x\udc80", "z"] * 15, "y": list("ab") * 15}, "[Cc]olumn 'a' holds"),
        ({"a\udc80": [1.0, 2.0] * 15, "y": list("ab") * 15}, r"a\\udc80"),
        (
            {"a": [1e200, 2e200, 3e200] * 10, "b": [1.0, 2.0] * 15, "y": list("ab") * 15},
            "column 'a' .* whose squares",
        ),
    ],
    ids=["no name", "surrogate", "name", "squares"],
)
def test_what_no_format_holds_is_refused_before_anything_is_trained(columns, message):
    with pytest.raises(ValueError, match=message) as error:
        meristem.fit_table(columns, target="y", **QUICK)
    assert "\n" not in str(error.value)


def test_bytes_and_texts_that_no_file_holds_are_no_labels():
    x = np.arange(20.0)[:, None]
    for labels, message in (
        ([b"a", b"b"], r"y holds the bytes b'a' in row 0"),
        (["a\udc80", "b"], "UTF-8"),
    ):
        with pytest.raises(ValueError, match=message):
            meristem.TunnelClassifier(**PLAIN).fit(x, labels * 10)


def test_a_file_that_ends_while_it_is_read_is_refused(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("x,y\n" + "".join(f"{n},{n % 2}\n" for n in range(400_000)))
    size, is_over = path.stat().st_size, threading.Event()

    def shorten():
        """As a program does that writes the file anew."""
        for part in range(1, 200):
            if is_over.is_set():
                return
            os.truncate(path, size - part * 16)
            time.sleep(0.001)

    writer = threading.Thread(target=shorten)
    writer.start()
    try:
        with pytest.raises(ValueError, match="changed while it was read"):
            read_table(path)
    finally:
        is_over.set()
        writer.join()


def test_a_search_that_is_refused_late_leaves_no_folder(tmp_path):
    """A limit of time in which nothing can be compiled is found out only by trying."""
    (tmp_path / "table.csv").write_text("x,y\n" + "".join(f"{n},{n % 3}\n" for n in range(300)))
    out = tmp_path / "out" / "deep"
    done = meristem_here("fit", tmp_path / "table.csv", "--target", "y", "--seconds", "0.5", "--out", out)
    assert done.returncode == 2 and done.stderr.splitlines()[-1].startswith("meristem: --seconds=0.5"), done.stderr
    assert not (tmp_path / "out").exists()


def test_nothing_is_said_of_a_table_like_the_one_that_was_learned_from():
    frame = ids(200, 0)
    model = meristem.fit_table(frame, target="y", **QUICK)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(frame)


# ---- found by attacking it


def test_a_typed_value_is_the_category_that_it_is_written_as(tmp_path):
    """1 is "1" and not "01"; in the graph and in predict alike."""
    texts = np.array(["1", "01", "1.0", "A1", "2020-01-01"])[np.arange(100) % 5]
    frame = {"k": texts, "y": np.array(["p", "q", "r", "s", "t"])[np.arange(100) % 5]}
    model = meristem.fit_table(frame, target="y", **QUICK | {"max_epochs": 60, "max_width": 8})
    path = model.to_onnx(tmp_path / "model.onnx")
    for typed, text in (
        (np.array([1, 1]), "1"),
        (np.array([1.0, np.nan]), "1.0"),
        (pandas.array([1, None], "Int64"), "1"),
        (np.array(["2020-01-01"] * 2, "datetime64[D]"), "2020-01-01"),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            probabilities = model.predict_proba({"k": typed})[:1]
        got = asked(path, {"k": np.array([[text]], object)})[1]
        np.testing.assert_allclose(got, probabilities, rtol=0, atol=1e-5, err_msg=text)
    coded = meristem.fit_table({"k": ["01", "02", "A1"] * 30, "y": list("pqr") * 30}, target="y", **QUICK)
    with pytest.warns(UserWarning, match="2 rows of unseen categories"):
        coded.predict({"k": [1, 2]})


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([1.0, 2.0, 1e19], ["1.0", "1e+19", "2.0"]),
        ([0.5, 1.0], ["0.5", "1.0"]),
        (["inf", "-inf"], ["-inf", "inf"]),
        (["a", "a b"], ["a", "a b"]),
    ],
)
def test_labels_that_no_integer_holds_are_texts(labels, classes):
    y = (labels * 30)[:60]
    model = meristem.fit_table({"x": RNG(0).normal(size=60), "y": y}, target="y", task="class", **QUICK)
    assert model.classes.tolist() == classes and set(model.predict({"x": [0.0, 1.0]})) <= set(classes)


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e8])
def test_a_scale_that_a_float_takes_for_one_is_not_left_out(tmp_path, offset):
    x = RNG(0).normal(size=200)
    y = (x - x.mean()) / x.std() * 1.00000005 + offset
    model = meristem.TunnelRegressor(**PLAIN).fit(x[:, None], y)
    path = model.to_onnx(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    dtype = {"tensor(float)": np.float32, "tensor(double)": float}[session.get_inputs()[0].type]
    np.testing.assert_allclose(
        session.run(None, {"X": x[:, None].astype(dtype)})[0], model.predict(x[:, None]), rtol=0, atol=1e-5
    )


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("1,x\n2,z\n", "no row of column 'y' is of a class that is learned, such as 'a', 'b'"),
        ("1,a\n", "has 1 row with a target; give at least 2"),
    ],
)
def test_classes_of_a_test_file_are_looked_at_before_the_search(tmp_path, rows, message):
    (tmp_path / "table.csv").write_text("x,y\n" + "".join(f"{n},{'ab'[n % 2]}\n" for n in range(60)))
    (tmp_path / "test.csv").write_text("x,y\n" + rows)
    files = ["--test-file", tmp_path / "test.csv", "--out", tmp_path / "out"]
    done = meristem_here("fit", tmp_path / "table.csv", "--target", "y", *files)
    assert done.returncode == 2 and message in done.stderr and len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_numbers_that_cannot_be_judged_or_told_apart_are_refused():
    x = RNG(0).normal(size=60)
    with pytest.raises(ValueError, match=r"test: the frame: column 'y' holds 1e\+200, whose square no float holds"):
        meristem.fit_table({"x": x, "y": x}, target="y", test={"x": x, "y": 1e200 + x}, **QUICK)
    with pytest.raises(ValueError, match=r"y varies by .* about 1, less than float precision"):
        meristem.TunnelRegressor(**PLAIN).fit(x[:, None], 1 + 1e-13 * x)


def test_many_features_that_round_alike_are_taken_in_double(tmp_path):
    x = 9 + RNG(0).normal(size=(100, 600))
    model = meristem.TunnelRegressor(**PLAIN | {"standardize": True}).fit(x, x.sum(1))
    rounds_up = np.nextafter(x.astype(np.float32), np.float32(np.inf)).astype(float) * (1 - 2**-25)
    path = model.to_onnx(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    dtype = {"tensor(float)": np.float32, "tensor(double)": float}[session.get_inputs()[0].type]
    got = session.run(None, {"X": rounds_up.astype(dtype)})[0]
    assert np.abs(got - model.predict(rounds_up)).max() <= 1e-5 * x.sum(1).std()


def test_categories_longer_than_a_file_holds_are_refused_before_the_search():
    texts = [f"x{n:0>90000}" for n in range(600)]  # 54 MB
    with pytest.raises(ValueError, match=r"the categories of column 'k' have .* characters in all"):
        meristem.fit_table({"k": texts * 3, "y": ["a", "b"] * 900}, target="y", **QUICK)


def test_names_of_a_frame_are_read_as_those_of_a_file(tmp_path):
    x = RNG(0).normal(size=40)
    model = meristem.fit_table(pandas.DataFrame({" x": x, "y ": np.where(x > 0, "a", "b")}), target="y", **QUICK)
    (tmp_path / "new.csv").write_text("x\n1\n-1\n")
    assert len(model.predict(tmp_path / "new.csv")) == 2


@pytest.mark.parametrize("kind", ["Int128", "Object", "lazy"])
def test_frames_of_polars_that_cannot_be_read_are_one_line(kind):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"y": ["a", "b"] * 10})
    if kind == "lazy":
        frame, message = frame.lazy(), r"^A LazyFrame holds no rows yet; give frame\.collect\(\)\.$"
    else:
        values = [object()] * 20 if kind == "Object" else [1] * 20
        frame = frame.with_columns(polars.Series("c", values, dtype=getattr(polars, kind)))
        message = rf"column 'c' has the type {kind}"
    with pytest.raises(ValueError, match=message) as error:
        meristem.fit_table(frame, target="y", **QUICK)
    assert "\n" not in str(error.value)


def test_a_codec_that_reads_no_file_in_parts_is_one_line(tmp_path):
    (tmp_path / "table.csv").write_text("x,y\n1,ä\n")
    with pytest.raises(ValueError, match=r"encoding='idna'"):
        read_table(tmp_path / "table.csv", encoding="idna")


def test_names_of_a_parquet_file_are_read_as_those_of_a_header(tmp_path):
    x = RNG(0).normal(size=40)
    pandas.DataFrame({" x": x, "y ": np.where(x > 0, "a", "b")}).to_parquet(tmp_path / "table.parquet")
    model = meristem.fit_table(tmp_path / "table.parquet", target="y", **QUICK)
    assert model.schema.names == ["x"] and len(model.predict({"x": [1.0, -1.0]})) == 2


def refused(out: Path, *, has_checkpoint: bool, is_trained: bool) -> None:
    with _removing_new_folder(out) as keep_folder:
        out.mkdir(parents=True)
        if has_checkpoint:
            (out / "checkpoint.safetensors").touch()
        if is_trained:
            keep_folder()
        raise ValueError("refused")


@pytest.mark.parametrize(("has_checkpoint", "is_trained"), [(False, False), (True, False), (False, True)])
def test_a_refusal_removes_no_folder_in_which_something_was_trained(tmp_path, has_checkpoint, is_trained):
    out = tmp_path / "new" / "out"
    with pytest.raises(ValueError, match="refused"):
        refused(out, has_checkpoint=has_checkpoint, is_trained=is_trained)
    assert out.exists() is (has_checkpoint or is_trained)
