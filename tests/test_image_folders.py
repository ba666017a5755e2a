"""A folder or a list of pictures: what is read, what is refused, and the way from files to a model, predictions and exports."""

import csv
import io
import json
import re
import shutil
import signal
import time

import numpy as np
import pytest
from PIL import Image

import meristem
from c_programs import COMPILER, run_c
from commanding import meristem_here
from killing import lines, start, wait_for
from meristem.files.document import read
from meristem.images.image_fit import plan_images, read_list
from meristem.images.image_list import list_folder, list_table
from meristem.images.image_time import LEAST_EPOCHS, fit_into
from meristem.images.pixels import choose_size, read_pixels
from test_image_classifier import stripes

QUICK = ["--max-epochs", "3", "--image-size", "7x5", "--test", "0.3"]
pytestmark = pytest.mark.filterwarnings("ignore::meristem.GrowthWarning")


def write_folder(folder, n=60, **options):
    x, y = stripes(n, **options)
    for number, (image, label) in enumerate(zip(x, y, strict=True)):
        (folder / label).mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(folder / label / f"{number:03d}.png")
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("stripes"))


@pytest.fixture(scope="module")
def fitted(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("fitted")
    (folder / "down" / "bad.jpg").write_text("no picture")
    try:
        done = meristem_here("fit", folder, "--out", out, *QUICK)
    finally:
        (folder / "down" / "bad.jpg").unlink()
    assert done.returncode == 0, done.stderr
    return out, done


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_a_folder_becomes_a_model_with_all_its_files(fitted):
    out, done = fitted
    assert {path.name for path in out.iterdir()} >= {"model.safetensors", "model.onnx", "report.html", "summary.json"}
    facts = json.loads((out / "summary.json").read_text())
    assert facts["classes"] == ["across", "down", "none"] and facts["size"] == [7, 5] and facts["gray"] is True
    assert facts["rows"]["train"] == 42 and facts["rows"]["test"] == 18 and facts["rows"]["all"] == 61
    assert set(facts["baselines"]) == {"constant", "linear", "mlp"}
    assert facts["onnx"]["furthest"] < 1e-5 and facts["onnx"]["rows"] == 18
    [line] = [line for line in done.stderr.splitlines() if "bad.jpg" in line]
    assert line.startswith("warning: 1 file") and facts["warnings"]


def test_predictions_of_a_folder_and_of_a_list_are_the_same(fitted, folder, tmp_path):
    out, _ = fitted
    done = meristem_here("predict", out / "model.safetensors", folder)
    rows = rows_of(done.stdout)
    assert (
        done.returncode == 0
        and len(rows) == 60
        and list(rows[0]) == ["file", "class", "class=across", "class=down", "class=none"]
    )
    assert all(abs(sum(float(row[f"class={name}"]) for name in ("across", "down", "none")) - 1) < 1e-4 for row in rows)
    (folder.parent / "list.csv").write_text(
        "id,file\n" + "".join(f"{k},{folder.name}/{row['file']}\n" for k, row in enumerate(rows))
    )
    listed = meristem_here("predict", out / "model.safetensors", folder.parent / "list.csv", "--images", "file", "--keep", "id")
    assert [row["class"] for row in rows_of(listed.stdout)] == [row["class"] for row in rows]
    assert [row["id"] for row in rows_of(listed.stdout)] == [str(k) for k in range(60)]
    model = meristem.load(out / "model.safetensors")
    assert model.predict(folder).tolist() == [row["class"] for row in rows]
    assert model.predict([folder / rows[3]["file"]]).tolist() == [rows[3]["class"]]


def test_a_file_that_cannot_be_read_is_left_out_and_named(fitted, folder, tmp_path):
    out, _ = fitted
    Image.open(next((folder / "down").iterdir())).save(tmp_path / "fine.png")
    (tmp_path / "cut.png").write_bytes((tmp_path / "fine.png").read_bytes()[:40])
    done = meristem_here("predict", out / "model.safetensors", tmp_path)
    assert [row["file"] for row in rows_of(done.stdout)] == ["fine.png"]
    assert len(done.stderr.splitlines()) == 1 and "cut.png" in done.stderr
    with pytest.raises(ValueError, match=r"cut\.png"):
        meristem.load(out / "model.safetensors").predict(tmp_path)


def test_export_and_show_take_the_model(fitted, folder, tmp_path):
    out, _ = fitted
    runtime = pytest.importorskip("onnxruntime")
    done = meristem_here("export", out / "model.safetensors", "--onnx", tmp_path / "own.onnx")
    assert done.returncode == 0, done.stderr
    model, (x, _) = meristem.load(out / "model.safetensors"), stripes()
    _, probabilities = runtime.InferenceSession(tmp_path / "own.onnx").run(None, {"X": x.astype(np.float32)})
    np.testing.assert_allclose(probabilities, model.estimator.predict_proba(x), atol=1e-5)
    assert (out / "model.onnx").read_bytes() == model.onnx_bytes()
    exact = ["--c", tmp_path / "own.c", "--pixels", "uint8"]
    for options in (exact, [*exact, "--bits", "8", "--rows", folder]):
        done = meristem_here("export", out / "model.safetensors", *options)
        assert done.returncode == 0, done.stderr
        if COMPILER is not None:
            returned, _ = run_c(tmp_path / "own.c", x.reshape(len(x), -1))
            assert (model.classes[returned] == model.estimator.predict(x)).mean() >= 0.95
    shown = meristem_here("show", out / "model.safetensors")
    assert shown.returncode == 0 and "TunnelImageClassifier" in shown.stdout


def test_the_report_shows_what_is_confused(fitted):
    out, _ = fitted
    page, facts = (out / "report.html").read_text(), json.loads((out / "summary.json").read_text())
    wrong = round((1 - facts["test"]["accuracy"]) * facts["rows"]["test"])
    assert page.count('src="data:image/png;base64,') == min(wrong, 24, page.count("<li><img")) > 0
    assert all(
        f'<section id="{name}"' in page for name in ("score", "confused", "confusion", "network", "channels", "path", "made")
    )
    assert "<script" not in page and not re.search(r'(src|href)="https?:', page)


def test_a_model_from_a_file_has_a_report_on_other_pictures(fitted, folder, tmp_path):
    model = meristem.load(fitted[0] / "model.safetensors")
    with pytest.raises(ValueError, match="source=None"):
        model.report(tmp_path / "report.html")
    page = model.report(tmp_path / "report.html", folder).read_text()
    assert "60 pictures" in page and 'id="caveats"' in page and '<section id="confused"' in page
    (folder / "again.csv").write_text(
        "file,class\n" + "".join(f"{p.relative_to(folder)},{p.parent.name}\n" for p in folder.rglob("*.png"))
    )
    assert page.count("<li><img") == model.page(folder / "again.csv", images="file").count("<li><img") > 0


def test_a_list_with_groups_and_a_test_list(folder, tmp_path):
    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.png"))
    lines_of = [f"{name};{name.partition('/')[0]};{k // 3}" for k, name in enumerate(files)]
    for name, some in (("list", lines_of[::2]), ("test", lines_of[1::2])):
        (folder / f"{name}.csv").write_text("\n".join(["file;kind;who", *some, ";down;1", "x.png;;1"]))
    how = ["--images", "file", "--target", "kind", "--out", tmp_path / "out", *QUICK[:4]]
    done = meristem_here(
        "fit", folder / "list.csv", *how, "--test-file", folder / "test.csv", "--budget", "400", "--metric", "f1"
    )
    assert done.returncode == 0, done.stderr
    facts = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert facts["target"] == "kind" and facts["rows"]["train"] == facts["rows"]["test"] == 30
    assert facts["score"]["measure"] == "F1" and facts["n_parameters"] <= 400 + 20
    assert (
        "class"
        not in meristem_here("predict", tmp_path / "out" / "model.safetensors", folder / "test.csv").stdout.splitlines()[0]
    )
    columns = {"images": "file", "target": "kind", "group_column": "who"}
    plan = planned(read_list(folder / "list.csv", **columns), **columns)
    who = dict(line.split(";")[::2] for line in lines_of)
    own = {who[name] for name in plan.test_names}
    assert own and not own & {who[name] for name in files[::2] if name not in plan.test_names}
    assert not any(set(plan.groups[train]) & set(plan.groups[test]) for train, test in plan.search.folds)


def planned(files, **columns):
    """The plan of a fit without it."""
    own = {"images": None, "target": None, "group_column": None, "image_size": "7x5", "test": 0.3, "drop_duplicates": False}
    return plan_images(files, None, **own | {"metric": None, "random_state": 0, "channels": 8} | columns)


def test_an_interrupted_fit_resumes_to_the_same_model(folder, tmp_path):
    out = tmp_path / "out"
    fit = ["fit", str(folder), "--out", str(out), "--max-epochs", "6", "--image-size", "7x5", "--budget", "300"]
    with start("-m", "meristem", *fit) as process:
        wait_for(process, lambda moment=lines(4): moment(out))
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and errors.splitlines()[-1].endswith("--resume") and "Traceback" not in errors
    resumed = meristem_here(*fit, "--resume")
    assert resumed.returncode == 0 and "interrupted: search at epoch " in resumed.stderr
    again = meristem_here(*fit[:3], tmp_path / "whole", *fit[4:])
    assert again.returncode == 0
    one, other = (
        {name: values.tobytes() for name, values in read(place / "model.safetensors")[2].items()}
        for place in (out, tmp_path / "whole")
    )
    assert one == other


def test_a_time_limit_is_kept_by_fewer_folds_penalties_and_epochs(folder, tmp_path):
    plan = planned(list_folder(folder, needs_classes=True))
    assert len(plan.search.folds) == 5 and plan.search.epochs > 100
    shorter = fit_into(plan.estimator, plan.search, None, 1.0, time.monotonic())  # which is over
    assert len(shorter.folds) == 1 and shorter.epochs == LEAST_EPOCHS and len(plan.estimator.penalties) == 1
    done = meristem_here("fit", folder, "--out", tmp_path / "out", *QUICK, "--seconds", "300")
    assert done.returncode == 0, done.stderr
    facts = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert facts["seconds"]["limit"] == 300 and not facts["seconds"]["ended_the_search"]


def test_pictures_of_several_sizes_and_colors_become_alike(tmp_path):
    gray, color = np.full((30, 60), 200, np.uint8), np.full((20, 80, 3), (255, 0, 0), np.uint8)
    Image.fromarray(gray).save(tmp_path / "a.png")
    Image.fromarray(np.stack([gray] * 3, -1)).save(tmp_path / "b.png")
    Image.fromarray(color).save(tmp_path / "c.png")
    paths = [tmp_path / f"{name}.png" for name in "abc"]
    assert choose_size(paths[:2]) == (30, 60) and choose_size(paths) == (30, 60)
    Image.fromarray(np.zeros((400, 200), np.uint8)).save(tmp_path / "large.png")
    assert choose_size([tmp_path / "large.png"]) == (64, 32)
    assert read_pixels(paths[:2], (6, 6)).pixels.shape == (2, 6, 6), "equal channels are gray"
    assert read_pixels(paths, (6, 6)).pixels.shape == (3, 6, 6, 3)
    as_gray = read_pixels(paths, (6, 6), is_gray=True).pixels
    assert as_gray.shape == (3, 6, 6) and (as_gray[2] == round(0.299 * 255)).all()


def test_the_same_picture_is_never_on_both_sides_and_two_classes_have_a_report(tmp_path):
    write_folder(tmp_path, 30)
    shutil.rmtree(tmp_path / "none")
    for path in sorted(tmp_path.rglob("*.png"))[::2]:
        (path.parent / f"copy-{path.name}").write_bytes(path.read_bytes())
    quick = {"image_size": "7x5", "cv": 2, "epochs": 1, "penalties": [1e-4]}
    model = meristem.fit_images(tmp_path, **quick)
    assert model.evaluation is not None and model.facts["rows"]["train"] + model.facts["rows"]["test"] == 30
    assert model.facts["positive_class"] == "down" and '<section id="confusion"' in model.page()
    held_out = set(model.evaluation.names)
    both = [name for name in held_out if "copy-" in name and name.replace("copy-", "") not in held_out]
    assert both == []
    plan = planned(list_folder(tmp_path, needs_classes=True))
    pictures = [image.tobytes() for image in plan.pixels]
    for train, test in plan.search.folds:
        assert not {pictures[row] for row in train} & {pictures[row] for row in test}, "in folds neither"
    once = planned(list_folder(tmp_path, needs_classes=True), drop_duplicates=True)
    assert len(once.labels) + len(once.test_labels) == 20


def test_hidden_files_and_loose_ones_are_passed_over(tmp_path):
    write_folder(tmp_path, 9)
    (tmp_path / "down" / ".hidden.png").write_text("")
    (tmp_path / "down" / "notes.txt").write_text("")
    (tmp_path / "empty").mkdir()
    Image.new("L", (5, 7)).save(tmp_path / "loose.png")
    files = list_folder(tmp_path, needs_classes=True)
    assert len(files) == 9 and len(files.remarks) == 2
    assert len(list_folder(tmp_path)) == 10


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["{folder}", "--target", "kind"], "target='kind' is for a list"),
        (["{folder}", "--task", "number"], "--task=number"),
        (["{folder}", "--threshold", "0.3"], "--threshold=0.3"),
        (["{folder}", "--image-size", "0"], "--image-size=0"),
        (["{folder}", "--image-size", "9999"], "--image-size=9999"),
        (["{folder}", "--body", "tunnel"], "--body='tunnel'"),
        (["{folder}", "--max-epochs", "0"], "--max-epochs=0"),
        (["{folder}", "--metric", "r2"], "r2"),
        (["{folder}/down"], "no folders of classes"),
        (["{empty}"], "holds no pictures"),
        (["{list}", "--images", "file"], "--target=None must name"),
        (["{list}", "--images", "other", "--target", "kind"], "--images="),
        (["{list}", "--target", "kind", "--image-size", "8"], "--images COLUMN"),
    ],
)
def test_what_does_not_fit_is_one_line_and_makes_no_folder(args, says, folder, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "list.csv").write_text("file,kind\na.png,x\nb.png,y\n")
    places = {"folder": folder, "empty": tmp_path / "empty", "list": tmp_path / "list.csv"}
    done = meristem_here("fit", *(arg.format(**places) for arg in args), "--out", tmp_path / "out")
    assert done.returncode == 2 and says in done.stderr.splitlines()[-1], done.stderr
    assert "Traceback" not in done.stderr and not (tmp_path / "out").exists()


def test_a_list_says_which_rows_it_leaves_out(tmp_path):
    (tmp_path / "list.csv").write_text("file,kind\na.png,x\n,y\nc.png,\n")
    files = list_table(str(tmp_path / "list.csv"), images="file", target="kind")
    assert files.names == ("a.png",) and len(files.remarks) == 2
