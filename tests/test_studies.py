"""The studies on digits and photographs, from the command to the files: real processes where a person would start one."""

import json
from pathlib import Path

import numpy as np
import pytest

import miniature
from meristem.experiments import mirflickr, mnist, tagging
from meristem.progress import Progress
from test_cli import meristem
from test_mnist import REAL, needs_mnist, small  # noqa: F401  (a fixture)

ONE_EPOCH = ["--seeds", "1", "--max-epochs", "1"]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


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


def test_the_miniature_archive_through_every_split_and_both_tasks(tmp_path):
    """The whole MIRFLICKR path: labels, shards, splits, standardised, trained, tested."""
    miniature.archive(tmp_path)
    scores = []
    for split in (1, 2, 3, 4, 5):
        study = mirflickr.Study(data=tmp_path, split=split, models=("tunnel",), max_epochs=2)
        runs = mirflickr.run(study, Progress()).runs
        assert [(run["task"], run["features"], run["split"]) for run in runs] == [
            ("10", "images", split),
            ("38", "images", split),
        ]
        for run in runs:
            assert run["paper_penalty"] == pytest.approx(0.1)
            parts = ("train", "dev", "test")
            assert all(0 <= run[f"{part}_macro_f1"] <= 1 and run[f"{part}_error"] > 0 for part in parts)
        scores.append(runs[0]["test_macro_f1"])
    assert len(set(scores)) == 5, "every split is another one"


def test_photographs_by_their_tags_from_the_command(tmp_path, cache):
    out = tmp_path / "out"
    miniature.tags(tmp_path)
    args = ["--features", "tags", "--models", "tunnel", *ONE_EPOCH, "--data", tmp_path, "--out", out]
    done = meristem("reproduce", "mirflickr", *args, cache=cache)
    assert done.returncode == 0, done.stderr
    summary = json.loads((out / "summary.json").read_text())
    assert [run["task"] for run in summary["runs"]] == ["10", "24"]
    assert summary["paper"] == {}, "the paper's values are of the images"
    with np.load(out / "history.npz") as history:
        assert history["tunnel/24/0/dev_macro_f1"].shape == (1,)


def test_a_set_of_ones_own_from_the_command(tmp_path, cache):
    files = [miniature.multilabel(tmp_path / "first.npz"), miniature.multilabel(tmp_path / "second.npz", labels=3)]
    out = tmp_path / "out"
    args = ["--models", "budding", "--seeds", "2", "--max-epochs", "3", "--data", *files, "--out", out]
    done = meristem("reproduce", "tagging", *args, cache=cache)
    assert done.returncode == 0, done.stderr
    runs = json.loads((out / "summary.json").read_text())["runs"]
    assert [(run["task"], run["seed"]) for run in runs] == [("first", 0), ("first", 1), ("second", 0), ("second", 1)]
    assert all(run["hard_size"] >= 1 and run["layer_sizes"] is None for run in runs)
    assert (out / "budding.png").stat().st_size > 10_000


def test_labels_are_learned(tmp_path):
    """Three epochs on a problem that can be learned: better than chance, and the kept model is the best of them."""
    study = tagging.Study(
        data=(miniature.multilabel(tmp_path / "own.npz", rows=600),), models=("highway",), seeds=1, max_epochs=3
    )
    result = tagging.run(study, Progress())
    (run,) = result.runs
    assert run["dev_macro_f1"] == pytest.approx(result.history["highway/own/0/dev_macro_f1"].max())
    assert run["dev_macro_f1"] > 0.5 and run["test_macro_f1"] > 0.5


def test_of_several_settings_each_model_keeps_its_best_on_the_validation_part(tmp_path, cache):
    """A rate at which nothing is learned in three epochs beside one at which much is, as one population."""
    file, out = miniature.multilabel(tmp_path / "own.npz", rows=600), tmp_path / "out"
    args = ["--rate", "1e-7,0.003", "--penalty", "1e-3,1e-2,1e-2", "--models", "tunnel,highway", "--seeds", "2"]
    done = meristem("reproduce", "tagging", *args, "--max-epochs", "3", "--data", file, "--out", out, cache=cache)
    assert done.returncode == 0, done.stderr
    assert "tunnel, own: tried rate 1e-07, penalty 0.001 → validation macro-F1" in done.stderr
    assert done.stderr.count("(kept)") == 2, "one setting for each model"
    assert "paper" not in done.stdout, "no empty columns"
    summary = json.loads((out / "summary.json").read_text())
    tried = {model: [one for one in summary["tried"] if one["model"] == model] for model in ("tunnel", "highway")}
    assert [(one["learning_rate"], one["penalty"]) for one in tried["highway"]] == [(1e-7, 0), (0.003, 0)]
    assert len(tried["tunnel"]) == 4, "every rate with every penalty, each once"
    for model, all_of_it in tried.items():
        best = max(all_of_it, key=lambda one: one["dev_macro_f1"])
        assert best["chosen"] and sum(one["chosen"] for one in all_of_it) == 1 and best["learning_rate"] == 0.003
        runs = runs_of(summary, model)
        assert [run["seed"] for run in runs] == [0, 1]
        assert {(run["learning_rate"], run["penalty"]) for run in runs} == {(best["learning_rate"], best["penalty"])}
        assert np.mean([run["dev_macro_f1"] for run in runs]) == pytest.approx(best["dev_macro_f1"])
    with np.load(out / "history.npz") as history:
        assert history["tunnel/own/1/dev_macro_f1"].max() == pytest.approx(runs_of(summary, "tunnel")[1]["dev_macro_f1"])


def runs_of(summary: dict, model: str) -> list[dict]:
    return [run for run in summary["runs"] if run["model"] == model]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["mnist", "--task", "tne"], "Did you mean 'ten'"),
        (["mnist", "--task", ","], "--task is empty"),
        (["mnist", "--rate", ","], "--rate is empty"),
        (["mnist", "--rate", "0.001,0"], "--rate=0.0 must be a finite number above 0"),
        (["mnist", "--rate", "fast"], "--rate: 'fast' must be a number, or several with commas"),
        (["mnist", "--penalty", "-1"], "--penalty=-1.0 must be a finite number of at least 0"),
        (["mnist", "--data", "nowhere"], "holds no mnist files"),
        (["mnist", "--models", "tunel"], "Did you mean 'tunnel'"),
        (["mirflickr", "--split", "6"], "--split=6 must be one of 1, 2, 3, 4, 5"),
        (["mirflickr", "--features", "tag"], "Did you mean 'tags'"),
        (["mirflickr", "--features", "tags", "--task", "38", "--data", "nowhere"], "choose 24 or 10"),
        (["mirflickr", "--data", "nowhere"], "flickr_data.tar.gz"),
        (["tagging"], "--data"),
        (["tagging", "--data", "nowhere.npz"], "nowhere.npz"),
        (["tagging", "--data", "a/x.npz", "b/x.npz"], "two files of the same name"),
    ],
)
def test_mistakes_get_one_clear_line(args, says, tmp_path):
    done = meristem("reproduce", *args, "--out", tmp_path / "out")
    assert done.returncode == 2
    assert says in done.stderr and len([line for line in done.stderr.splitlines() if " on cpu," not in line]) == 1, done.stderr


def test_every_study_has_help_with_an_example():
    for study in ("mnist", "mirflickr", "tagging"):
        done = meristem("reproduce", study, "--help")
        assert done.returncode == 0 and f"example:\n  meristem reproduce {study}" in done.stdout
