"""The studies on images: from the command to the files and figures on tiny images, and what their figures show."""

import json
from dataclasses import replace

import jax
import numpy as np
import pytest

import meristem
import miniature
from meristem import Data, Recipe
from meristem.commands.main import parser
from meristem.experiments import STUDIES
from meristem.experiments.image_study import ImageOptions, images_network
from meristem.experiments.study import Task
from meristem.pictures.image_files import is_picture
from meristem.pictures.studies import ImagePictures, have_matplotlib
from meristem.pictures.studies.found_networks import runs_with_structure, structure_of
from meristem.pictures.studies.study_figures import load_study
from meristem.show.network_structure import stack_arrays, stages_from, stages_of

FIGURES = {"conv-inverted.png", "sizes.png", "structures.png", "parameters.png"}
SMALL = "--width 3 --depth 1 --max-epochs 5 --batch-size 16 --penalty 0.01 --rate 0.03"


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """The folder of a finished study of two seeds, on clothes of 4 × 6 pixels."""
    folder = miniature.images(tmp_path_factory.mktemp("data"), rows=(90, 30), size=(4, 6), classes=3)
    out = tmp_path_factory.mktemp("fashion") / "out"
    assert study("fashion", folder, out, "--seeds", "2") == 0
    return folder, out


def study(name, folder, out, *options):
    parsed = parser().parse_args(["reproduce", name, *SMALL.split(), *options, "--data", str(folder), "--out", str(out)])
    return parsed.run(parsed)


def test_from_the_command_to_the_figures(done):
    folder, out = done
    summary = json.loads((out / "summary.json").read_text())
    assert summary["experiment"] == "fashion" and not summary["data"]["is_fashion_mnist"] and summary["paper"] == {}
    assert [run["seed"] for run in summary["runs"]] == [0, 1]
    for run in summary["runs"]:
        assert run["epochs"] == 5 and 0 < run["n_parameters"] <= 3 * 9 + 9 * (3 + 1 + 9 + 1 + 3) + 3 * 3 + 3
    drawn = FIGURES if have_matplotlib() else set()
    assert {path.name for path in out.glob("*.png") if is_picture(path)} == drawn
    before = (out / "summary.json").read_bytes()
    assert study("fashion", folder, out, "--seeds", "2", "--resume") == 0
    assert (out / "summary.json").read_bytes() == before, "it was finished"


def test_photographs_and_digits_are_studies_too(tmp_path):
    miniature.photographs(tmp_path / "cifar10")
    size = ["--max-epochs", "2", "--width", "1", "--images", "30", "--augment", "none"]
    assert study("cifar10", tmp_path, tmp_path / "a", *size) == 0
    summary = json.loads((tmp_path / "a/summary.json").read_text())
    assert (summary["data"]["images"], summary["data"]["validation_images"], summary["data"]["test_images"]) == (30, 4, 8)
    assert summary["title"] == "CIFAR-10, 30 images" and len(summary["pictures"]["published"]) == 3
    digits = miniature.images(tmp_path / "mnist", rows=(60, 10), size=(4, 6), classes=3)
    options = ImageOptions(data=digits, max_epochs=7, batch_size=10, width=3, depth=1)
    (task,) = STUDIES["mnist-images"].plan(options).tasks
    assert (task.recipe.augment, task.recipe.batch_size, task.expected_epochs) == (("crop",), 10, 7)
    assert task.data.x.shape == (50, 4, 6) and task.data.x.dtype == np.uint8 and task.n_out == 3


@pytest.mark.parametrize(("shape", "stages"), [((32, 32, 3), 3), ((28, 28), 3), ((8, 8), 2), ((7, 9), 1), ((1, 5), 1)])
def test_stages_keep_four_positions(shape, stages):
    data = Data(np.zeros((4, *shape), np.uint8), np.zeros(4, int))
    task = Task("images", data, 5, Recipe(objective="multiclass"), 2, 1, 3)
    network = jax.eval_shape(lambda: images_network(task, "conv-inverted", key=jax.random.key(0)))
    assert network.input_shape == shape and len(network.axes().trunks) == stages


@pytest.mark.skipif(not have_matplotlib(), reason="matplotlib is not installed (pip install 'meristem-nn[cli]')")
def test_the_network_that_is_drawn_is_the_one_in_the_file(done):
    _, out = done
    results = load_study(out)
    median = results.median_run(results.runs)
    assert runs_with_structure(results) == {("conv-inverted", "fashion"): median}
    (file,) = (out / "networks").iterdir()
    (stage,) = stages_from(structure_of(results, median))
    (own,) = stages_of(meristem.load(file).member(median["seed"]).best)
    np.testing.assert_allclose(stage.structure.values, own.structure.values, rtol=1e-6)
    assert [row.name for row in stage.above] == [row.name for row in own.above] == ["inputs", "trunk"]
    assert [(row.name, row.can_close) for row in stage.below] == [("outputs", False)]
    assert stack_arrays([stage]).keys() == structure_of(results, median).keys()


@pytest.mark.skipif(not have_matplotlib(), reason="matplotlib is not installed (pip install 'meristem-nn[cli]')")
def test_errors_are_drawn_over_live_parameters_beside_published_ones(done):
    _, out = done
    results = load_study(out)
    pictures = replace(results.pictures, published=(("theirs", 5000.0, 0.25),))
    assert ImagePictures.from_json({k: v for k, v in pictures.as_json().items() if k != "kind"}) == pictures
    figure = pictures.drawings(results)["parameters"](results)
    (ax,) = figure.axes
    median = results.median_run(results.runs)
    points = [tuple(map(float, (line.get_xdata()[-1], line.get_ydata()[-1]))) for line in ax.lines]
    assert (5000.0, 0.25) in points and "theirs" in [text.get_text() for text in ax.texts]
    for run in results.runs:
        assert (run["n_parameters"], run["test_error"]) in points
    assert points[0] == (results.series(median, "hard_cost")[-1], results.series(median, "dev_error")[-1])
    figure = pictures.drawings(results)["conv-inverted"](results)
    live = figure.axes[2].lines
    assert any(np.array_equal(line.get_ydata(), results.series(median, "hard_cost")) for line in live)
