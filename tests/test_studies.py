"""The study of digits, from the command to the files, what all studies answer to mistakes, and a study of one's own."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import miniature
from commanding import Done, meristem_here
from meristem.commands.main import parser
from meristem.data.spirals import two_spirals
from meristem.experiments import STUDIES, mnist
from meristem.experiments.options import Options
from meristem.experiments.study import PARAMETERS, Column, Plan, Study, Task, table
from meristem.experiments.study_training import Trainer, run as run_study, train
from meristem.pictures.studies import LearningPictures, have_matplotlib
from meristem.show.progress import Progress
from meristem.train.hyperparameters import Recipe
from meristem.train.training_data import Data
from test_mnist import REAL, needs_mnist, small  # noqa: F401  (a fixture)

SMALL = ["--width", "20", "--depth", "3"]
ONE_EPOCH = ["--seeds", "1", "--max-epochs", "1"]
MISTAKES = {
    "mnist --task tne": "Did you mean 'ten'",
    "mnist --task ,": "--task is empty",
    "mnist --rate ,": "--rate is empty",
    "mnist --rate 0.001,0": "--rate=0.0 must be a number above 0",
    "mnist --rate fast": "--rate: 'fast' must be a number, or several with commas",
    "mnist --penalty -1": "--penalty=-1.0 must be a number of at least 0",
    "mnist --choose small": "Did you mean 'smallest'",
    "mnist --data nowhere": "holds no mnist files",
    "mnist --models tunel": "Did you mean 'tunnel'",
    "mirflickr --split 6": "--split=6 is not known. Choose one of: 1, 2, 3, 4, 5",
    "mirflickr --features tag": "Did you mean 'tags'",
    "mirflickr --features tags --task 38 --data nowhere": "choose 24 or 10",
    "mirflickr --data nowhere": "flickr_data.tar.gz",
    "tagging": "--data",
    "tagging --data x.npz --input-dropout 0.5,1": "--input-dropout=1.0 must be a number of at least 0",
    "tagging --data x.npz --standardize number": "Did you mean 'numbers'",
    "tagging --data x.npz --standardise number": "--standardize='number' is not known. Did you mean 'numbers'",
    "tagging --data x.npz --split -1": "--split=-1 must be an integer of at least 0",
    "mnist --tasks tne": "--task='tne' is not known. Did you mean 'ten'",
    "tagging --data nowhere.npz": "nowhere.npz",
    "tagging --data a/x.npz b/x.npz": "two files of the same name",
}


@needs_mnist
def test_the_digits_from_the_command_to_the_figures(tmp_path):
    done = meristem_here("reproduce", "mnist", "--task", "two", *SMALL, *ONE_EPOCH, "--data", REAL, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "mnist on cpu, 1 seed" in done.stderr and "steps/s" in done.stderr and "paper" in done.stdout
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert [run["model"] for run in summary["runs"]] == ["tunnel", "budding", "highway"]
    assert summary["paper"]["tunnel/ten"]["test_error"] == 0.0167
    assert summary["title"] == "MNIST" and summary["data"]["is_mnist"]
    for run in summary["runs"]:
        assert run["paper_penalty"] == (0 if run["model"] == "highway" else pytest.approx(0.001))
        assert run["learning_rate"] == 0.0003 and run["epochs"] == 1 and run["test_macro_f1"] is None
        assert 0 <= run["test_error"] < 0.02, "0 and 1 are told apart after one epoch"
    assert {path.name for path in tmp_path.glob("*.png")} == {"tunnel.png", "budding.png", "highway.png", "sizes.png"}


def test_progress_shows_within_the_first_epoch(tmp_path):
    """As many images as MNIST has, of fewer pixels."""
    folder = miniature.images(tmp_path / "many", rows=(60_000, 100), size=(4, 6))
    args = ["--task", "ten", "--models", "tunnel", *SMALL, *ONE_EPOCH, "--data", folder, "--out", tmp_path / "out"]
    done = meristem_here("reproduce", "mnist", *args, draws=False)
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert lines[1] == "tunnel, ten: 1 network" and lines[2].startswith("tunnel, ten: 33% of epoch 1"), lines


def test_digits_are_trained_as_the_paper_says(small):  # noqa: F811
    task = mnist.task_of(mnist.read_images(small), "ten")
    recipe = task.recipe
    assert (recipe.batch_size, recipe.depth_decay) == (32, 0.75)
    assert (recipe.watch, recipe.select, recipe.patience, recipe.scales) == ("error", "error", 20, (1.0, 0.3, 0.1))
    assert (task.width, task.depth, task.n_out, task.data.x.dtype) == (100, 10, 10, np.uint8)
    options = mnist.MnistOptions(models=("highway-penalized", "highway-penalized"), task=("two",), data=small, max_epochs=1)
    assert [(member.learning_rate, member.input_dropout) for member in options.members("tunnel")] == [(0.0003, 0.25)]
    result = run_study(mnist.STUDY, options, mnist.STUDY.plan(options), Trainer(Progress()))
    assert [(run["penalty"], run["input_dropout"]) for run in result.runs] == [(0.001 / 32, 0.25)]
    assert {name.rsplit("/", 1)[0] for name in result.history} == {"highway-penalized/two/0"}


def test_members_are_trained_with_the_knobs_of_their_records(small):  # noqa: F811
    """Rates, penalties, shares of dropped inputs and the paper's L2, in one population."""
    options = Options(rate=(0.01, 0.001), penalty=(0.0, 0.1), seeds=1, max_epochs=1, input_dropout=(0.0, 0.25))
    trained = train(
        "tunnel", replace(mnist.task_of(mnist.read_images(small), "two"), width=3, depth=2), options, Trainer(Progress())
    )
    assert len(trained) == 8
    for one, run in trained:
        wanted = [one[name] for name in ("learning_rate", "penalty", "input_dropout")]
        given = [run.knobs.learning_rate, run.knobs.penalty, run.knobs.dropout]
        np.testing.assert_array_equal(np.float32(wanted), np.float32(given))
        assert run.knobs.l2 == np.float32(1e-5)
    assert len({float(run.history["loss"][-1]) for _, run in trained}) == 8


def test_other_images_are_called_by_their_folder_and_stand_alone(tmp_path):
    """Four files of MNIST's layout, of another size and with three classes: no paper, and everything says what they are."""
    folder, out = miniature.images(tmp_path / "fashion", rows=(300, 60), size=(4, 6), classes=3), tmp_path / "out"
    args = ["--task", "ten,two", "--models", "tunnel", "--rate", "0.01", *SMALL, *ONE_EPOCH, "--data", folder, "--out", out]
    done = meristem_here("reproduce", "mnist", *args)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("IDX images in fashion, 1 seed: mean ± sd\n") and "paper" not in done.stdout
    summary = json.loads((out / "summary.json").read_text())
    assert (summary["title"], summary["paper"]) == ("IDX images in fashion", {})
    assert summary["data"]["folder"] == "fashion" and summary["data"]["is_mnist"] is False
    assert summary["pictures"]["subject"] == "IDX images in fashion" and summary["pictures"]["tasks"]["ten"] == "3 classes"
    all_of_them, two = summary["runs"]
    assert all_of_them["parameters"] == 24 * 20 + 3 * (20 * 20 + 2 * 20) + 20 * 3 + 3, "24 pixels in, three classes out"
    assert two["parameters"] == all_of_them["parameters"] - 2 * 21 and two["test_error"] < 0.3
    assert (out / "tunnel.png").stat().st_size > 10_000


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Done]:
    """To every mistake, and to `--help` of every study."""
    out = tmp_path_factory.mktemp("mistakes") / "out"
    commands = {mistake: ["reproduce", *mistake.split(), "--out", out] for mistake in MISTAKES}
    commands |= {f"{study} --help": ["reproduce", study, "--help"] for study in STUDIES}
    return {name: meristem_here(*command) for name, command in commands.items()}


@pytest.mark.parametrize(("mistake", "says"), MISTAKES.items())
def test_mistakes_get_one_clear_line(mistake, says, answers):
    done = answers[mistake]
    assert done.returncode == 2
    assert says in done.stderr and len([line for line in done.stderr.splitlines() if " on cpu," not in line]) == 1, done.stderr


def test_every_study_has_help_with_an_example(answers):
    for study in STUDIES:
        done = answers[f"{study} --help"]
        assert done.returncode == 0 and f"example:\n  meristem reproduce {study}" in done.stdout
        assert "--tasks" not in done.stdout and "standardise" not in done.stdout, "older spellings are accepted, not shown"


# ---- the shape of a study


@pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES)
def test_every_option_is_explained_and_columns_know_the_papers_values(study):
    given = study.options.arguments()
    assert {"models", "seeds", "max_epochs", "rate", "penalty", "choose"} <= set(given)
    assert all(argument["help"] for argument in given.values())
    assert all(
        "(default: " in argument["help"] for argument in given.values() if "type" in argument and "nargs" not in argument
    )
    if study.paper:
        assert {column.paper for column in study.columns if column.paper} <= {
            name for values in study.paper.values() for name in values
        }


RESULTS = Path(__file__).parent.parent / "results"


@pytest.mark.parametrize("name", [name for name in STUDIES if (RESULTS / name / "summary.json").exists()])
def test_old_records_keep_their_column_of_parameters(name):
    runs = json.loads((RESULTS / name / "summary.json").read_text())["runs"]
    old = [{key: value for key, value in one.items() if key != "n_parameters"} for one in runs]
    columns, rows = table(STUDIES[name].columns, old, STUDIES[name].paper)
    assert columns[-1] == "live parameters" and "parameters" not in columns and rows[0][-1] != "–"
    columns, rows = table(STUDIES[name].columns, [one | {"n_parameters": 7} for one in old], STUDIES[name].paper)
    assert columns[-1] == "parameters" and "live parameters" not in columns
    assert {row[-1].split(" ")[0] for row in rows} == {"7"}


@dataclass(frozen=True, kw_only=True)
class OwnOptions(Options):
    """With rates of its own."""

    default_rate: ClassVar[float] = 0.01

    penalty: tuple[float, ...] = (1e-3,)


def own_plan(options: OwnOptions) -> Plan:
    x, y = two_spirals("easy")
    data, test = Data(x[::2], y[::2], x[1::4], y[1::4]), Data(x[3::4], y[3::4])
    return Plan([Task("arcs", data, 1, Recipe(batch_size=16), 4, 2, 10, test)], "Arcs", is_papers_data=False)


OWN = Study(
    name="arcs",
    help="arcs",
    description="Arcs.",
    example="--width 3",
    options=OwnOptions,
    plan=own_plan,
    columns=(Column("test error", "test_error", 2, line="test error {}"), *PARAMETERS),
    averages="mean ± sd",
    pictures=LearningPictures("arcs", {"arcs": "two arcs"}),
)


def test_a_study_of_ones_own_is_one_record(tmp_path, monkeypatch, capsys):
    """Its options, table, summary and pictures come from the record: nothing else knows of it."""
    monkeypatch.setitem(STUDIES, "arcs", OWN)
    args = ["--models", "tunnel", "--width", "3", "--rate", "0.03,1e-6", "--max-epochs", "5", "--out", str(tmp_path)]
    commands = parser()
    parsed = commands.parse_args(["reproduce", "arcs", *args])
    parsed.run(parsed)
    shown = capsys.readouterr()
    assert shown.out.startswith("Arcs, 1 seed: mean ± sd\n") and "tunnel, arcs: test error 0." in shown.err
    assert "tunnel, arcs: tried rate 0.03 → validation error" in shown.err
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert [one["learning_rate"] for one in summary["tried"]] == [0.03, 1e-6]
    (one,) = summary["runs"]
    assert one["parameters"] == 2 * 3 + 2 * (3 * 3 + 3 + 3) + 3 + 1, "two layers of three units"
    assert 0 < one["n_parameters"] <= one["parameters"]
    drawn = {"tunnel.png", "sizes.png", "tried.png"} if have_matplotlib() else set()
    assert {path.name for path in tmp_path.glob("*.png")} == drawn
    parsed = commands.parse_args(["reproduce", "arcs", "--width", "0"])
    with pytest.raises(ValueError, match="--width=0 must be an integer of at least 1"):
        parsed.run(parsed)


def test_options_of_a_study_are_checked_where_they_are_made():
    with pytest.raises(ValueError, match="--width=0 must be an integer of at least 1"):
        replace(OwnOptions(), width=0)
    with pytest.raises(ValueError, match="--rate=-1 must be a number above 0"):
        OwnOptions(rate=(-1,))
    assert OwnOptions(models=["tunnel", "tunnel"]).models == ("tunnel",)
