"""The folder of a run: one run's at a time, finished by one switch, and nothing in it touched that is not ours."""

import errno
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from commanding import Done, meristem_here
from filing import create
from killing import left_by
from meristem import load, save
from meristem.folders import run_record
from meristem.folders.run_folder import RunFolder

STUDY = ["reproduce", "two-spirals", "--models", "tunnel", "--task", "easy", "--seeds", "2", "--max-epochs", "3"]
SMALL = ["--width", "3", "--depth", "2"]


def reproduce(out: Path, *more: object, draws: bool = False) -> Done:
    return meristem_here(*STUDY, *SMALL, *more, "--out", out, draws=draws)


def refused(done: Done, *says: str, status: int = 2) -> None:
    line = done.stderr.splitlines()[-1]
    assert done.returncode == status and line.startswith("meristem: ") and "Traceback" not in done.stderr, done.stderr
    assert all(words in line for words in says), line


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("finished") / "out"
    done = reproduce(out, draws=True)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture
def out(finished: Path, tmp_path: Path) -> Path:
    """A copy of a finished study."""
    return Path(shutil.copytree(finished, tmp_path / "out"))


def test_the_summary_binds_all_other_files(finished):
    summary = json.loads((finished / "summary.json").read_text())
    assert set(summary["files"]) == {
        *("history.npz", "networks/tunnel-easy.safetensors", ".meristem-run/epochs.jsonl"),
        *("data.png", "tunnel.png", "discriminants.png", "sizes.png"),
    }
    assert all(run_record.sha256(finished / name) == digest for name, digest in summary["files"].items())
    assert summary["digest"] == run_record.self_digest(summary) and run_record.is_finished(finished, summary["run"])
    assert sorted(path.name for path in (finished / ".meristem-run").iterdir()) == [
        *("checkpoints", "epochs.jsonl", "groups", "lock", "run.json")
    ]
    lines = [json.loads(line) for line in (finished / ".meristem-run" / "epochs.jsonl").read_text().splitlines()]
    assert sorted((line["member"], line["epoch"]) for line in lines) == [(m, e) for m in (0, 1) for e in (1, 2, 3)]
    run = load(finished / "networks" / "tunnel-easy.safetensors")
    np.testing.assert_array_equal(
        [line["loss"] for line in sorted(lines, key=lambda line: (line["epoch"], line["member"]))], run.history["loss"].ravel()
    )


def test_trained_networks_are_shown(out):
    done = meristem_here("show", out / "networks" / "tunnel-easy.safetensors", "--member", 1)
    assert done.returncode == 0 and "Run: 3 epochs" in done.stdout


def test_a_finished_run_has_nothing_left_to_do_and_another_takes_its_place(out):
    before = (out / "summary.json").read_bytes()
    done = reproduce(out, "--resume")
    assert done.returncode == 0 and "finished: nothing is left to do" in done.stderr
    assert (out / "summary.json").read_bytes() == before
    refused(reproduce(out, "--resume", "--seeds", "3"), "settings.seeds was 2 and is 3")
    again = reproduce(out)
    assert again.returncode == 0 and not list(out.glob("*.png")), "pictures of the earlier run are gone"
    assert json.loads((out / "summary.json").read_text())["run"] != json.loads(before)["run"]


def test_other_data_are_named(out):
    state = json.loads((out / ".meristem-run" / "run.json").read_text())
    state["described"]["data"]["0: easy"]["training"] = "0123456789abcdef"
    (out / ".meristem-run" / "run.json").write_text(json.dumps(state))
    refused(reproduce(out, "--resume"), "data.0: easy.training was")


def test_a_second_run_is_refused_by_name(tmp_path):
    tmp_path.joinpath("out").mkdir()
    with RunFolder.take(tmp_path / "out"):
        refused(reproduce(tmp_path / "out"), f"process {os.getpid()}", "is writing to this folder")
    assert reproduce(tmp_path / "out").returncode == 0


def test_what_is_not_ours_stays(tmp_path):
    """A picture, a history and a summary of someone else's; a file of ours that someone has changed."""
    for name in ("tunnel.png", "history.npz", "summary.json"):
        out = tmp_path / name / "out"
        out.mkdir(parents=True)
        (out / name).write_bytes(b"mine")
        refused(reproduce(out), name, "move it away")
        assert (out / name).read_bytes() == b"mine" and {path.name for path in out.iterdir()} == {name, ".meristem-run"}
        (out / name).rename(out / "kept")
        (out / "highway.png").write_bytes(b"mine, too")
        assert reproduce(out).returncode == 0 and (out / "highway.png").read_bytes() == b"mine, too"


def test_a_file_that_someone_changed_is_not_ours_any_more(out):
    (out / "history.npz").write_bytes(b"changed")
    refused(reproduce(out), "history.npz")
    assert (out / "history.npz").read_bytes() == b"changed"


def test_an_interrupted_run_is_not_lost_by_beginning_anew(out):
    """As after a kill between the last group and the summary: the networks are there."""
    whole = left_by(out)
    (out / "summary.json").unlink()
    (out / "sizes.png").unlink()
    refused(reproduce(out), "tunnel-easy is finished", "--resume")
    (out / f".meristem-{2**22 + 1}-0123456789abcdef").write_bytes(b"a part")
    done = reproduce(out, "--resume", draws=True)
    assert done.returncode == 0 and "interrupted: tunnel-easy is finished. It resumes from there." in done.stderr
    assert left_by(out) == whole and not (out / f".meristem-{2**22 + 1}-0123456789abcdef").exists()


def test_figures_are_those_of_the_run(out, tmp_path):
    (out / "sizes.png").unlink()
    assert meristem_here("figures", out).returncode == 0 and (out / "sizes.png").exists()
    assert run_record.is_finished(out, json.loads((out / "summary.json").read_text())["run"])
    (out / "tunnel.png").write_bytes(b"mine")
    (out / "highway.png").write_bytes(b"mine, too")
    refused(meristem_here("figures", out), "tunnel.png", "not a figure drawn by meristem")
    (out / "tunnel.png").unlink()
    assert meristem_here("figures", out).returncode == 0 and (out / "highway.png").read_bytes() == b"mine, too"
    with np.load(out / "history.npz") as history:
        np.savez(tmp_path / "other.npz", **{name: values + 0 for name, values in history.items()})
    (tmp_path / "other.npz").replace(out / "history.npz")
    refused(meristem_here("figures", out), "not the one that summary.json was written with")


def test_a_full_disk_is_one_line(out, monkeypatch):
    """Whatever was being written: a checkpoint is missed, the files of the end are asked for again."""

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    refused(reproduce(out), "No space left on device", status=1)
    refused(meristem_here("figures", out), "No space left on device", status=1)
    network = out / "networks" / "tunnel-easy.safetensors"
    refused(meristem_here("show", network, "--member", 0, "--png", out / "shown.png"), "No space left on device", status=1)
    assert not [path for path in out.rglob(".meristem-*") if path.is_file()]


def test_a_full_disk_takes_names_and_not_the_training(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with RunFolder.take(tmp_path) as folder:
        folder.begin({}, "meristem", resume=False)
        watcher = folder.epochs.watcher("fit").part("search")
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            watcher.begin({0: {"penalty": 1.0}})
        assert "members" not in json.loads((tmp_path / ".meristem-run" / "run.json").read_text())
        watcher.begin({1: {"penalty": 2.0}})
    told = json.loads((tmp_path / ".meristem-run" / "run.json").read_text())["members"]
    assert told == {"search": {"0": {"penalty": 1.0}, "1": {"penalty": 2.0}}}, "there is room again"


def test_a_picture_never_takes_the_place_of_a_model(tmp_path):
    model = tmp_path / "model.png"
    save(model, create("plain"))
    before = model.read_bytes()
    done = meristem_here("show", model)
    assert done.returncode == 0 and list(tmp_path.iterdir()) == [model], "nothing is drawn that nobody asked for"
    refused(meristem_here("show", model, "--png", model), "--png=", "not a figure drawn by meristem")
    refused(meristem_here("export", model, "--onnx", model), "no ONNX file of meristem's")
    assert model.read_bytes() == before
    (tmp_path / "folder").mkdir()
    drawn = tmp_path / "folder" / "model.png.png"
    for _ in range(2):  # a picture of ours is drawn again
        done = meristem_here("show", model, "--png", tmp_path / "folder")
        assert done.returncode == 0 and f"Drawn: {drawn}" in done.stdout and drawn.stat().st_size > 1000
    assert not (tmp_path / "folder.png").exists()
    refused(meristem_here("show", model, "--png", tmp_path / "picture.pdf"), "must be a file that ends in .png")
