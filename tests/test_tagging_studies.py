"""The studies of labels, from the command to the files: photographs, sets of one's own, and the choice of a setting."""

import json
from pathlib import Path

import numpy as np
import pytest

import miniature
from commanding import Done, meristem_here
from meristem.experiments import mirflickr, tagging
from meristem.experiments.options import Options
from meristem.experiments.study import Result, Study
from meristem.experiments.study_training import Trainer, run as run_study
from meristem.show.progress import Progress

SMALL = ["--width", "30", "--depth", "3"]  # what is tested is the way through the study
ONE_EPOCH = ["--seeds", "1", "--max-epochs", "1"]


def carry_out(study: Study, options: Options) -> Result:
    return run_study(study, options, study.plan(options), Trainer(Progress()))


def test_the_miniature_archive_through_every_split_and_both_tasks(tmp_path):
    """The whole MIRFLICKR path: labels, shards, splits, standardized, trained, tested."""
    miniature.archive(tmp_path)
    scores = []
    for split in (1, 2, 3, 4, 5):
        options = mirflickr.MirflickrOptions(data=tmp_path, split=split, models=("tunnel",), max_epochs=2, width=30, depth=3)
        runs = carry_out(mirflickr.STUDY, options).runs
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


def test_photographs_by_their_tags_from_the_command(tmp_path):
    out = tmp_path / "out"
    miniature.tags(tmp_path)
    args = ["--features", "tags", "--models", "tunnel", *SMALL, *ONE_EPOCH, "--data", tmp_path, "--out", out]
    done = meristem_here("reproduce", "mirflickr", *args, draws=False)
    assert done.returncode == 0, done.stderr
    summary = json.loads((out / "summary.json").read_text())
    assert [run["task"] for run in summary["runs"]] == ["10", "24"]
    assert summary["paper"] == {}, "the paper's values are of the images"
    with np.load(out / "history.npz") as history:
        assert history["tunnel/24/0/dev_macro_f1"].shape == (1,)


@pytest.fixture(scope="module")
def of_ones_own(tmp_path_factory) -> tuple[Path, list[Done]]:
    """Two studies of files of one's own: what they said, and the folder that has theirs, `two` and `several`."""
    out = tmp_path_factory.mktemp("own")
    files = [miniature.multilabel(out / "first.npz"), miniature.multilabel(out / "second.npz")]
    two = ["--models", "budding", "--seeds", "2", "--max-epochs", "1", *SMALL, "--data", *files, "--out", out / "two"]
    several = ["--rate", "1e-7,0.003", "--penalty", "1e-3,1e-2,1e-2", "--models", "tunnel,highway", "--seeds", "2", *SMALL]
    several += ["--max-epochs", "3", "--data", miniature.multilabel(out / "own.npz", rows=200), "--out", out / "several"]
    return out, [meristem_here("reproduce", "tagging", *args, draws=args is two) for args in (two, several)]


def test_a_set_of_ones_own_from_the_command(of_ones_own):
    folder, (done, _) = of_ones_own
    out = folder / "two"
    assert done.returncode == 0, done.stderr
    runs = json.loads((out / "summary.json").read_text())["runs"]
    assert [(run["task"], run["seed"]) for run in runs] == [("first", 0), ("first", 1), ("second", 0), ("second", 1)]
    assert all(run["hard_size"] >= 1 and run["layer_sizes"] is None for run in runs)
    assert (out / "budding.png").stat().st_size > 10_000


def test_labels_are_learned(tmp_path):
    """Three epochs on a problem that can be learned: better than chance, and the kept model is the best of them."""
    file = miniature.multilabel(tmp_path / "own.npz", rows=600)
    result = carry_out(
        tagging.STUDY, tagging.TaggingOptions(data=(file,), models=("highway",), seeds=1, max_epochs=3, width=30, depth=3)
    )
    (run,) = result.runs
    assert run["dev_macro_f1"] == pytest.approx(result.history["highway/own/0/dev_macro_f1"].max())
    assert run["dev_macro_f1"] > 0.5 and run["test_macro_f1"] > 0.5


def test_of_several_settings_each_model_keeps_its_best_on_the_validation_part(of_ones_own):
    """A rate at which nothing is learned in three epochs beside one at which much is, as one population."""
    folder, (_, done) = of_ones_own
    out = folder / "several"
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


def test_of_several_ways_to_prepare_the_inputs_each_model_keeps_one(tmp_path):
    """Columns and dropped shares are tried beside rates, and say in every record which they were."""
    options = mirflickr.MirflickrOptions(
        features="tags",
        task=("10",),
        data=miniature.tags(tmp_path, rows=400),
        models=("tunnel",),
        rate=(0.01,),
        input_dropout=(0.0, 0.9),
        standardize=("numbers", "all"),
        max_epochs=4,
        width=30,
        depth=3,
    )
    result = carry_out(mirflickr.STUDY, options)
    tried = result.extra["tried"]
    ways = [("numbers", 0.0), ("numbers", 0.9), ("all", 0.0), ("all", 0.9)]
    assert [(one["standardized"], one["input_dropout"]) for one in tried] == ways
    assert len({one["dev_macro_f1"] for one in tried}) == 4, "four ways, four outcomes"
    (run,) = result.runs
    best = max(tried, key=lambda one: one["dev_macro_f1"])
    assert best["chosen"] and best["input_dropout"] == 0, "nothing is learned from a tenth of the tags"
    assert (run["standardized"], run["input_dropout"]) == (best["standardized"], best["input_dropout"])
    assert run["dev_macro_f1"] == best["dev_macro_f1"]


def runs_of(summary: dict, model: str) -> list[dict]:
    return [run for run in summary["runs"] if run["model"] == model]
