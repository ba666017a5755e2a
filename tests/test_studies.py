"""The study of digits, from the command to the files, and what all studies answer to mistakes: in real processes."""

import json

import numpy as np
import pytest

from commanding import Done, meristem, meristem_each
from meristem.experiments import mnist
from meristem.show.progress import Progress
from test_mnist import REAL, needs_mnist, small  # noqa: F401  (a fixture)

ONE_EPOCH = ["--seeds", "1", "--max-epochs", "1"]
MISTAKES = {
    "mnist --task tne": "Did you mean 'ten'",
    "mnist --task ,": "--task is empty",
    "mnist --rate ,": "--rate is empty",
    "mnist --rate 0.001,0": "--rate=0.0 must be a finite number above 0",
    "mnist --rate fast": "--rate: 'fast' must be a number, or several with commas",
    "mnist --penalty -1": "--penalty=-1.0 must be a finite number of at least 0",
    "mnist --choose small": "Did you mean 'smallest'",
    "mnist --data nowhere": "holds no mnist files",
    "mnist --models tunel": "Did you mean 'tunnel'",
    "mirflickr --split 6": "--split=6 must be one of 1, 2, 3, 4, 5",
    "mirflickr --features tag": "Did you mean 'tags'",
    "mirflickr --features tags --task 38 --data nowhere": "choose 24 or 10",
    "mirflickr --data nowhere": "flickr_data.tar.gz",
    "tagging": "--data",
    "tagging --data x.npz --input-dropout 0.5,1": "--input-dropout=1.0 must be a finite number of at least 0",
    "tagging --data x.npz --standardise number": "Did you mean 'numbers'",
    "tagging --data nowhere.npz": "nowhere.npz",
    "tagging --data a/x.npz b/x.npz": "two files of the same name",
}


@needs_mnist
def test_the_digits_from_the_command_to_the_figures(tmp_path, cache):
    done = meristem("reproduce", "mnist", "--task", "two", *ONE_EPOCH, "--data", REAL, "--out", tmp_path, cache=cache)
    assert done.returncode == 0, done.stderr
    assert "mnist on cpu, 1 seed" in done.stderr and "steps/s" in done.stderr and "paper" in done.stdout
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert [run["model"] for run in summary["runs"]] == ["tunnel", "budding", "highway"]
    assert summary["paper"]["tunnel/ten"]["test_error"] == 0.0167
    for run in summary["runs"]:
        assert run["paper_penalty"] == (0 if run["model"] == "highway" else pytest.approx(0.001))
        assert run["learning_rate"] == 0.0003 and run["epochs"] == 1 and run["test_macro_f1"] is None
        assert 0 <= run["test_error"] < 0.02, "0 and 1 are told apart after one epoch"
    assert {path.name for path in tmp_path.glob("*.png")} == {"tunnel.png", "budding.png", "highway.png", "sizes.png"}


@needs_mnist
def test_progress_shows_within_the_first_epoch(tmp_path, cache):
    args = ["--task", "ten", "--models", "tunnel", *ONE_EPOCH, "--data", REAL, "--out", tmp_path]
    done = meristem("reproduce", "mnist", *args, cache=cache)
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert lines[1].startswith("tunnel, ten: 33% of epoch 1"), lines


def test_digits_are_trained_as_the_paper_says(small):  # noqa: F811
    task = mnist.load("ten", small)
    recipe = task.recipe
    assert (recipe.batch_size, recipe.input_dropout, recipe.l2, recipe.depth_decay) == (32, 0.25, 1e-5, 0.75)
    assert (recipe.watch, recipe.select, recipe.patience, recipe.scales) == ("error", "error", 20, (1.0, 0.3, 0.1))
    assert (task.width, task.depth, task.n_out, task.data.x.dtype) == (100, 10, 10, np.uint8)
    study = mnist.Study(models=("highway-penalized", "highway-penalized"), task=("two",), data=small, max_epochs=1)
    result = mnist.run(study, Progress())
    assert [run["penalty"] for run in result.runs] == [0.001 / 32]
    assert {name.rsplit("/", 1)[0] for name in result.history} == {"highway-penalized/two/0"}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Done]:
    out = tmp_path_factory.mktemp("mistakes") / "out"
    return dict(
        zip(MISTAKES, meristem_each(["reproduce", *mistake.split(), "--out", out] for mistake in MISTAKES), strict=True)
    )


@pytest.mark.parametrize(("mistake", "says"), MISTAKES.items())
def test_mistakes_get_one_clear_line(mistake, says, answers):
    done = answers[mistake]
    assert done.returncode == 2
    assert says in done.stderr and len([line for line in done.stderr.splitlines() if " on cpu," not in line]) == 1, done.stderr


def test_every_study_has_help_with_an_example():
    studies = ("mnist", "mirflickr", "tagging")
    for study, done in zip(studies, meristem_each(["reproduce", study, "--help"] for study in studies), strict=True):
        assert done.returncode == 0 and f"example:\n  meristem reproduce {study}" in done.stdout
