"""The command line as a person meets it: real processes, real files, one clear line for every mistake."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest

from commanding import Done, meristem, meristem_each, meristem_here
from meristem import Data, Recipe, fit, load, save
from meristem.compact import n_parameters
from meristem.data.spirals import two_spirals
from meristem.experiments.options import FEATURE_MODELS
from meristem.experiments.two_spirals import SpiralsOptions
from meristem.nn import Network
from meristem.train.loop import seed_keys

STUDY = ["reproduce", "two-spirals", "--models", "tunnel", "--tasks", "easy", "--seeds", "2", "--max-epochs", "4"]
RECORD = Path(__file__).parent.parent / "results" / "two-spirals" / "history.npz"
WITHOUT_EXTRAS = "import sys; sys.modules.update(matplotlib=None, rich=None, safetensors=None, onnx=None)"
MISTAKES = {
    "--seeds many": "--seeds: invalid int value: 'many'",
    "--seeds 0": "--seeds=0 must be an integer of at least 1",
    "--models tunel": "Did you mean 'tunnel'",
    "--models ,": "--models is empty",
    "--tasks medum": "Did you mean 'medium'",
    "--penalty -1": "--penalty=-1.0 must be a number of at least 0",
    "--penalty nan": "--penalty=nan",
    "--rate 0.003,0": "--rate=0.0 must be a number above 0",
    "--rate ,": "--rate is empty",
    "--choose small": "Did you mean 'smallest'",
    "--max-epochs 0": "--max-epochs=0",
    "--sedes 3": "unrecognized arguments: --sedes",
    "--seed 3": "unrecognized arguments: --seed",
}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    out = tmp_path_factory.mktemp("study") / "new" / "folder"
    return out, meristem_here(*STUDY, "--out", out)


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
        "n_parameters",
        "seconds",
    ]:
        assert name in run, name
    assert (run["seed"], run["epochs"], run["parameters"], run["hard_size"]) == (1, 4, 1231, None)
    assert len(run["layer_sizes"]) == 10 and run["peak_soft_size"] >= run["soft_size"]
    with np.load(out / "history.npz") as history:
        assert history["tunnel/easy/1/layer_sizes"].shape == (4, 10)
        np.testing.assert_allclose(history["tunnel/easy/1/layer_sizes"][-1].sum(), run["soft_size"], rtol=1e-6)
        assert history["tunnel/easy/0/discriminant"].shape == (80, 80)


def test_first_epochs_are_those_of_the_recorded_study(study):
    """Seeds mean the same networks, and each online step does what it did; the suite compiles without optimizations."""
    out, _ = study
    with np.load(out / "history.npz") as history, np.load(RECORD) as record:
        for name in ("loss", "error", "layer_sizes"):
            for seed in range(2):
                key = f"tunnel/easy/{seed}/{name}"
                np.testing.assert_allclose(history[key], record[key][:4], rtol=1e-4, atol=1e-6)


def test_figures_are_redrawn_from_the_files(study):
    out, _ = study
    assert {path.name for path in out.glob("*.png")} == {"data.png", "tunnel.png", "discriminants.png", "sizes.png"}
    (out / "tunnel.png").unlink()
    done = meristem_here("figures", out)
    assert done.returncode == 0 and (out / "tunnel.png").stat().st_size > 10_000


def test_compiled_programs_are_kept_for_the_next_run(tmp_path):
    code = "import jax, meristem.commands.main as m; m.main(['figures', '?']); print(jax.config.jax_compilation_cache_dir)"
    done = meristem(code=code, JAX_COMPILATION_CACHE_DIR=None, XDG_CACHE_HOME=tmp_path)
    assert Path(done.stdout.strip()).is_relative_to(tmp_path / "meristem" / "jax")


@pytest.fixture(scope="module")
def without_extras(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Done]]:
    """The folder and the answers of five commands: a study, its figures, a file shown, drawn and exported."""
    out = tmp_path_factory.mktemp("without")
    model = out / "model.safetensors"
    save(model, Network.create("tunnel", 2, 1, width=3, depth=2, key=jax.random.key(0)))
    commands = [[*STUDY, "--out", out], ["figures", out], ["show", model], ["show", model, "--png", out / "model.png"]]
    commands += [["export", model, "--onnx", out / "model.onnx"]]
    return out, meristem_each(commands, before=WITHOUT_EXTRAS)


def test_without_matplotlib_and_rich_it_still_runs(without_extras):
    out, (done, redraw, *_) = without_extras
    assert done.returncode == 0, done.stderr
    assert "Figures skipped" in done.stderr and (out / "summary.json").exists()
    assert not list(out.glob("*.png"))
    assert redraw.returncode == 2 and "matplotlib" in redraw.stderr


def test_a_package_that_is_missing_is_named_in_one_line(without_extras):
    """A file is read without any, drawn and exported not."""
    _, (*_, shown, drawn, exported) = without_extras
    assert shown.returncode == 0 and "matplotlib" not in shown.stderr and "parameters" in shown.stdout
    for done in (drawn, exported):
        assert done.returncode == 2 and len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert "matplotlib" in drawn.stderr and "pip install 'meristem-nn[cli]'" in drawn.stderr and not drawn.stdout
    assert "onnx" in exported.stderr and "pip install 'meristem-nn[onnx]'" in exported.stderr


@pytest.fixture(scope="module")
def all_answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Done]]:
    """The folder and the answer of every command that trains nothing, by a name."""
    folders = {name: tmp_path_factory.mktemp("answers") for name in [*MISTAKES, "a file", "nothing in it"]}
    commands = {name: ["reproduce", "two-spirals", *name.split(), "--out", folders[name] / "out"] for name in MISTAKES}
    (folders["a file"] / "file").write_text("not a folder")
    outs = {"a file": folders["a file"] / "file", "no name": "", "nowhere": "/proc/nowhere"}
    commands |= {name: [*STUDY, "--out", out] for name, out in outs.items()}
    commands |= {
        "nothing in it": ["figures", folders["nothing in it"]],
        "help": ["reproduce", "two-spirals", "--help"],
        "help for figures": ["figures", "--help"],
        "version": ["--version"],
    }
    return {name: (folders.get(name, Path()) / "out", meristem_here(*command)) for name, command in commands.items()}


@pytest.fixture
def answers(all_answers) -> dict[str, Done]:
    return {name: done for name, (_, done) in all_answers.items()}


@pytest.mark.parametrize(("mistake", "says"), MISTAKES.items())
def test_mistakes_get_one_clear_line_and_nothing_is_written(mistake, says, all_answers):
    out, done = all_answers[mistake]
    assert done.returncode == 2
    assert says in done.stderr and len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert not out.exists()


def test_a_mistake_ends_a_process_of_its_own_with_the_same_line(answers, tmp_path):
    done = meristem("reproduce", "two-spirals", "--models", "tunel", "--out", tmp_path / "out")
    same = answers["--models tunel"]
    assert (done.returncode, done.stdout, done.stderr) == (same.returncode, same.stdout, same.stderr)


def test_a_folder_that_cannot_be_written_to_is_named_before_anything_runs(answers):
    taken, unnamed, nowhere = (answers[name] for name in ("a file", "no name", "nowhere"))
    assert taken.returncode == 2 and len(taken.stderr.strip().splitlines()) == 1
    assert "is a file, not a folder" in taken.stderr
    assert "--out names no folder" in unnamed.stderr
    assert nowhere.returncode == 2 and "cannot be written to" in nowhere.stderr


def test_figures_of_a_folder_without_a_study(answers):
    done = answers["nothing in it"]
    assert done.returncode == 2 and "summary.json" in done.stderr and len(done.stderr.strip().splitlines()) == 1


def test_help_has_an_example(answers):
    for done in (answers["help"], answers["help for figures"]):
        assert done.returncode == 0 and "example:" in done.stdout
    assert answers["version"].stdout.startswith("meristem ")


def test_an_interrupt_leaves_nothing_half_written(tmp_path):
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
    with subprocess.Popen(start, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 120
        while not out.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 130 and "interrupted" in errors and "Traceback" not in errors
    assert [path.name for path in out.iterdir()] == [".meristem-run"]


# ---- settings of the spirals: lists as in all studies, and the paper's rule


SHORT = ["reproduce", "two-spirals", "--models", "tunnel", "--task", "easy", "--seeds", "2"]


def test_of_several_rates_and_penalties_each_model_keeps_one(tmp_path):
    args = ["--rate", "1e-7,0.003", "--penalty", "0.001,1", "--choose", "smallest", "--max-epochs", "4", "--out", tmp_path]
    done = meristem_here(*SHORT, *args, draws=False)
    assert done.returncode == 0, done.stderr
    assert "tunnel, easy: tried rate 1e-07, penalty 0.001 → training error" in done.stderr
    summary = json.loads((tmp_path / "summary.json").read_text())
    tried = [(one["learning_rate"], one["penalty"]) for one in summary["tried"]]
    assert tried == [(1e-7, 0.001), (1e-7, 1), (0.003, 0.001), (0.003, 1)]
    (kept,) = [one for one in summary["tried"] if one["chosen"]]
    assert kept["learning_rate"] == 0.003 and kept["dev_error"] == min(one["dev_error"] for one in summary["tried"])
    as_good = [one for one in summary["tried"] if one["dev_error"] == kept["dev_error"]]
    assert kept["soft_size"] == min(one["soft_size"] for one in as_good)
    for run in summary["runs"]:
        assert (run["learning_rate"], run["penalty"]) == (kept["learning_rate"], kept["penalty"])


def test_a_path_of_penalties_is_one_population_and_a_picture(tmp_path):
    done = meristem_here(*SHORT, "--penalties", "3", "--max-epochs", "4", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    path = json.loads((tmp_path / "summary.json").read_text())["path"]
    assert [(one["penalty"], one["seed"]) for one in path] == [
        (pytest.approx(penalty), seed) for penalty in (1e-4, 10**-2.5, 0.1) for seed in (0, 1)
    ]
    assert all(one["n_parameters"] > 0 and one["train_error"] >= 0 for one in path)
    assert (tmp_path / "frontier.png").stat().st_size > 5000
    for wrong, said in (
        (["--penalties", "1"], "--penalties=1 must be an integer of at least 2"),
        (["--penalties", "3", "--penalty", "0.1,1"], "give a single --penalty"),
        (["--penalties", "3", "--budget", "90"], "finds its own; give one"),
    ):
        done = meristem_here(*SHORT, *wrong, "--out", tmp_path / "wrong")
        assert done.returncode == 2 and said in done.stderr


def test_the_papers_rule_keeps_the_smallest_rate_that_solves_every_task(tmp_path):
    """At the first of three rates nothing is learned; the second solves the task; the third is not tried."""
    args = ["--select-rate", "--rate", "0.01,0.003,1e-7", "--max-epochs", "4", "--out", tmp_path]
    done = meristem_here(*SHORT, *args, draws=False)
    assert done.returncode == 0, done.stderr
    assert "tunnel: rate 0.003 is the one that is kept" in done.stderr
    summary = json.loads((tmp_path / "summary.json").read_text())
    known = {"model": "tunnel", "task": "easy", "seeds": 2}
    assert summary["rates"] == [known | {"learning_rate": 1e-7, "solved": 0}, known | {"learning_rate": 0.003, "solved": 2}]
    assert "tried" not in summary and {run["learning_rate"] for run in summary["runs"]} == {0.003}


def test_without_rates_of_its_own_the_papers_four_are_tried():
    options = SpiralsOptions(select_rate=True)
    assert options.rates_of("budding") == (0.0001, 0.0003, 0.001, 0.003)
    assert [SpiralsOptions().rates_of(model) for model in FEATURE_MODELS] == [(0.003,), (0.001,), (0.003,), (0.003,)]


# ---- runs in files


@pytest.fixture(scope="module")
def saved_runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Done]]:
    """A run of one network, and of a population of three, before they are over; what is said of them."""
    folder, data = tmp_path_factory.mktemp("runs"), Data(*two_spirals("easy"))
    keys = seed_keys(range(3), 0)
    networks = jax.vmap(lambda key: Network.create("tunnel", 2, 1, width=3, depth=2, key=key))(keys)
    options = {"learning_rate": np.array([1e-3, 1e-2, 3e-2]), "penalty": 1e-3, "recipe": Recipe(batch_size=32)}
    run = fit(networks, data, **options, key=keys, max_epochs=3)
    save(folder / "three.safetensors", run)
    save(folder / "one.safetensors", run.member(1))
    one, three = folder / "one.safetensors", folder / "three.safetensors"
    commands: list[list[object]] = [
        ["show", one, "--png", folder],
        ["export", one, "--onnx", folder / "one.onnx"],
        ["show", one, "--member", 0],
        ["show", three],
        ["show", three, "--member", 1],
        ["export", three, "--onnx", folder / "three.onnx"],
        ["show", three, "--member", 3],
        ["export", three, "--onnx", folder / "three.onnx", "--member", 2],
        ["show", three, "--png", folder],
    ]
    return folder, [meristem_here(*command) for command in commands]


def test_a_run_is_shown_and_exported_by_its_best_network(saved_runs):
    pytest.importorskip("onnx")
    folder, (shown, exported, extra, *_) = saved_runs
    one, onnx = folder / "one.safetensors", folder / "one.onnx"
    assert shown.returncode == 0, shown.stderr
    run = load(one)
    first, *rest = shown.stdout.splitlines()
    assert first == f"Run: 3 epochs, best epoch {run.best_epoch}, unfinished; learning rate 0.01, penalty 0.001, l2 1e-05"
    assert rest[0] == "tunnel network: 2 inputs → width 3 → 1 output"
    assert rest[1].startswith(f"{n_parameters(run.best)} parameters in its compact form")
    assert any(line.startswith(f"The last network: {n_parameters(run.last)} parameters") for line in rest)
    assert one.with_suffix(".png").stat().st_size > 1000
    assert exported.returncode == 0 and onnx.stat().st_size > 0, exported.stderr
    x = np.array([[0.5, -1.0], [3.0, 2.0]], np.float32)
    (outputs,) = pytest.importorskip("onnxruntime").InferenceSession(onnx.read_bytes()).run(None, {"X": x})
    np.testing.assert_allclose(outputs, jax.vmap(run.best)(x), rtol=1e-5, atol=1e-6)
    assert extra.returncode == 2 and "leave out --member" in extra.stderr


def test_of_a_population_a_member_is_chosen(saved_runs):
    folder, (*_, table, second, none, beyond, written, drawn) = saved_runs
    assert table.returncode == 0 and table.stdout.startswith("A population of 3; --member 0 … 2 shows one of them.")
    rows = [line.split() for line in table.stdout.splitlines()[-3:]]
    assert [row[:4] for row in rows] == [["0", "0.001", "0.001", "3"], ["1", "0.01", "0.001", "3"], ["2", "0.03", "0.001", "3"]]
    assert "learning rate 0.01" in second.stdout and second.returncode == 0
    assert none.returncode == 2 and "choose one with --member 0 … 2" in none.stderr
    assert beyond.returncode == 2 and "--member=3 must be one of 0 … 2" in beyond.stderr
    assert written.returncode == 0 and (folder / "three.onnx").exists()
    assert drawn.returncode == 2 and "--png draws one network" in drawn.stderr and not (folder / "three.png").exists()
