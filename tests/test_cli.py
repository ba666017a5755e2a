"""The command line as a person meets it: real processes, real files, one clear line for every mistake."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from commanding import Done, meristem, meristem_each

STUDY = ["reproduce", "two-spirals", "--models", "tunnel", "--tasks", "easy", "--seeds", "2", "--max-epochs", "4"]
WITHOUT_EXTRAS = (
    "import sys; sys.modules.update(matplotlib=None, rich=None); from meristem.commands.main import main; sys.exit(main(sys.argv[1:]))"
)
MISTAKES = {
    "--seeds many": "--seeds: invalid int value: 'many'",
    "--seeds 0": "--seeds=0 must be at least 1",
    "--models tunel": "Did you mean 'tunnel'",
    "--models ,": "--models is empty",
    "--tasks medum": "Did you mean 'medium'",
    "--penalty -1": "--penalty=-1.0 must be a finite number of at least 0",
    "--penalty nan": "--penalty=nan",
    "--max-epochs 0": "--max-epochs=0",
    "--sedes 3": "unrecognized arguments: --sedes",
    "--seed 3": "unrecognized arguments: --seed",
}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> tuple[Path, Done]:
    out = tmp_path_factory.mktemp("study") / "new" / "folder"
    return out, meristem(*STUDY, "--out", out, cache=cache)


def test_a_study_says_what_it_found_and_where_it_lies(study):
    out, done = study
    assert done.returncode == 0, done.stderr
    assert "tunnel" in done.stdout and "paper" in done.stdout and str(out) in done.stdout
    assert "zero error at epoch 1" in done.stderr


def test_the_summary_has_the_agreed_schema(study):
    out, _ = study
    summary = json.loads((out / "summary.json").read_text())
    assert summary["experiment"] == "two-spirals" and summary["device"] == "cpu"
    assert summary["paper"]["tunnel/difficult"] == {"zero_error_epoch": 91, "soft_size": 15}
    assert summary["command"].startswith("meristem reproduce two-spirals --models tunnel")
    run = summary["runs"][1]
    for name in [
        "model",
        "task",
        "features",
        "split",
        "seed",
        "penalty",
        "paper_penalty",
        "learning_rate",
        "epochs",
        "zero_error_epoch",
        "best_epoch",
        "train_error",
        "dev_error",
        "test_error",
        "train_macro_f1",
        "dev_macro_f1",
        "test_macro_f1",
        "soft_size",
        "peak_soft_size",
        "best_soft_size",
        "layer_sizes",
        "peak_layer_sizes",
        "hard_size",
        "peak_hard_size",
        "parameters",
        "live_parameters",
        "seconds",
    ]:
        assert name in run, name
    assert (run["seed"], run["epochs"], run["parameters"], run["hard_size"]) == (1, 4, 1231, None)
    assert len(run["layer_sizes"]) == 10 and run["peak_soft_size"] >= run["soft_size"]
    with np.load(out / "history.npz") as history:
        assert history["tunnel/easy/1/layer_sizes"].shape == (4, 10)
        np.testing.assert_allclose(history["tunnel/easy/1/layer_sizes"][-1].sum(), run["soft_size"], rtol=1e-6)
        assert history["tunnel/easy/0/discriminant"].shape == (80, 80)


def test_figures_are_redrawn_from_the_files(study):
    out, _ = study
    assert {path.name for path in out.glob("*.png")} == {"data.png", "tunnel.png", "discriminants.png", "sizes.png"}
    (out / "tunnel.png").unlink()
    done = meristem("figures", out)
    assert done.returncode == 0 and (out / "tunnel.png").stat().st_size > 10_000


def test_compiled_programs_are_kept_for_the_next_run(study, cache):
    assert list((cache / "meristem" / "jax").glob("*")), "no persistent compilation cache"


def test_without_matplotlib_and_rich_it_still_runs(tmp_path, cache):
    done = meristem(*STUDY, "--out", tmp_path, code=WITHOUT_EXTRAS, cache=cache)
    assert done.returncode == 0, done.stderr
    assert "Figures skipped" in done.stderr and (tmp_path / "summary.json").exists()
    assert not list(tmp_path.glob("*.png"))
    redraw = meristem("figures", tmp_path, code=WITHOUT_EXTRAS)
    assert redraw.returncode == 2 and "matplotlib" in redraw.stderr


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Done]]:
    """The folder and the answer of each mistake."""
    outs = [tmp_path_factory.mktemp("mistakes") / "out" for _ in MISTAKES]
    made = zip(MISTAKES, outs, strict=True)
    done = meristem_each(["reproduce", "two-spirals", *mistake.split(), "--out", out] for mistake, out in made)
    return dict(zip(MISTAKES, zip(outs, done, strict=True), strict=True))


@pytest.mark.parametrize(("mistake", "says"), MISTAKES.items())
def test_mistakes_get_one_clear_line_and_nothing_is_written(mistake, says, answers):
    out, done = answers[mistake]
    assert done.returncode == 2
    assert says in done.stderr and len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert not out.exists()


def test_a_mistake_ends_a_process_of_its_own_with_the_same_line(answers, tmp_path):
    done = meristem("reproduce", "two-spirals", "--models", "tunel", "--out", tmp_path / "out")
    _, same = answers["--models tunel"]
    assert (done.returncode, done.stdout, done.stderr) == (same.returncode, same.stdout, same.stderr)


def test_a_folder_that_cannot_be_written_to_is_named_before_anything_runs(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    taken, unnamed, nowhere = meristem_each([*STUDY, "--out", out] for out in (tmp_path / "file", "", "/proc/nowhere"))
    assert taken.returncode == 2 and len(taken.stderr.strip().splitlines()) == 1
    assert "is a file, not a folder" in taken.stderr
    assert "--out names no folder" in unnamed.stderr
    assert nowhere.returncode == 2 and "cannot be written to" in nowhere.stderr


def test_figures_of_a_folder_without_a_study(tmp_path):
    done = meristem("figures", tmp_path)
    assert done.returncode == 2 and "summary.json" in done.stderr and len(done.stderr.strip().splitlines()) == 1


def test_help_has_an_example():
    *helped, version = meristem_each([["reproduce", "two-spirals", "--help"], ["figures", "--help"], ["--version"]])
    for done in helped:
        assert done.returncode == 0 and "example:" in done.stdout
    assert version.stdout.startswith("meristem ")


def test_an_interrupt_leaves_nothing_half_written(tmp_path, cache):
    out = tmp_path / "out"
    start = [
        sys.executable,
        "-m",
        "meristem",
        "reproduce",
        "two-spirals",
        "--models",
        "tunnel",
        "--tasks",
        "difficult",
        "--out",
        str(out),
    ]
    with subprocess.Popen(start, stderr=subprocess.PIPE, text=True, env=os.environ | {"XDG_CACHE_HOME": str(cache)}) as process:
        deadline = time.monotonic() + 120
        while not out.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 130 and "interrupted" in errors and "Traceback" not in errors
    assert list(out.iterdir()) == []
