"""Pictures of studies with training, validation and test parts: curves, dots, asterisks, rings, cuts are where they belong."""

import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from meristem import Data, Recipe
from meristem.experiments.options import Options
from meristem.experiments.study import Result, Task
from meristem.experiments.study_training import Trainer, train
from meristem.pictures import studies as figures
from meristem.pictures.image_files import MARK
from meristem.pictures.studies import LearningPictures
from meristem.pictures.studies.study_figures import CATALOG, load_study
from meristem.pictures.studies.study_results import Run, StudyResults
from meristem.show.measures import Measure
from meristem.show.progress import Progress
from test_figures import Study, labels, size_of, summary_of, without, write

pytestmark = pytest.mark.skipif(
    not figures.have_matplotlib(), reason="matplotlib is not installed (pip install 'meristem-nn[cli]')"
)

MODELS = {"mnist": ["budding", "tunnel"], "tagging": ["tunnel"]}
CELLS = [(experiment, model) for experiment, models in MODELS.items() for model in models]
SEEDS, EPOCHS = 3, 25
RECIPES: dict[str, dict[str, Any]] = {
    "mnist": {"objective": "multiclass", "watch": "error"},
    "tagging": {"objective": "multilabel", "watch": "macro_f1", "select": "macro_f1"},
}
TASKS = {"mnist": ["ten", "two"], "tagging": ["scene", "birds"]}
PAPER = {
    "mnist": {"tunnel/ten": {"test_error": 0.0167, "epochs": 175}, "budding/ten": {"soft_size": 1.2}},
    "tagging": {"tunnel/scene": {"train_macro_f1": 0.97, "dev_macro_f1": 0.57}},
}
RED, BLUE = "#CC3311", "#0072B2"


def problem(experiment: str, noise: float) -> tuple[Data, Data]:
    """Three directions in the plane: the class is the one that reaches farthest, a label is where one is positive."""
    random = np.random.default_rng(0)
    x = random.standard_normal((180, 2)).astype(np.float32)
    reach = x @ np.array([[1, 0.2], [-0.6, 0.8], [-0.2, -1]], np.float32).T + noise * random.standard_normal((180, 3))
    y = reach.argmax(1) if experiment == "mnist" else (reach > 0).astype(np.float32)
    return Data(x[:90], y[:90], x[90:130], y[90:130]), Data(x[130:], y[130:])


def trained(experiment: str) -> Study:
    """Short training of real networks, as the studies do it; the second task has less noise."""
    result = Result()
    recipe = Recipe(**RECIPES[experiment], batch_size=15, patience=2)
    for model in MODELS[experiment]:
        for name, noise in zip(TASKS[experiment], (0.8, 0.2), strict=True):
            data, test = problem(experiment, noise)
            task = Task(name, data, 3, recipe, width=6, depth=3, expected_epochs=EPOCHS, test=test)
            options = Options(rate=(0.01,), penalty=(1e-3,), seeds=SEEDS, max_epochs=EPOCHS)
            result.add(train(model, task, options, Trainer(Progress())))
    return {"experiment": experiment, "runs": result.runs, "paper": PAPER[experiment]}, result.history


@pytest.fixture(scope="module")
def mnist() -> Study:
    return trained("mnist")


@pytest.fixture(scope="module")
def tagging() -> Study:
    return trained("tagging")


@pytest.fixture(params=list(RECIPES))
def study(request: pytest.FixtureRequest) -> Study:
    return request.getfixturevalue(request.param)


def loaded(study: Study) -> StudyResults:
    summary, arrays = study
    return StudyResults(CATALOG[summary["experiment"]], summary["runs"], summary["paper"], arrays)


DRAWN: dict[tuple[int, str], tuple[Study, Any]] = {}


def picture(study: Study, name: str) -> Any:
    """The figure before it is saved; made once, since tests only look at it."""
    key = id(study), name
    if key not in DRAWN:
        here = loaded(study)
        DRAWN[key] = study, here.pictures.drawings(here)[name](here)  # kept, so that no other study has its id
    return DRAWN[key][1]


def columns(study: Study, model: str) -> dict[str, list[Any]]:
    """Task → its axes, from top to bottom."""
    tasks = loaded(study).tasks
    axes = [ax for ax in picture(study, model).axes if ax.get_label() != "<colorbar>"]
    return {task: axes[place :: len(tasks)] for place, task in enumerate(tasks)}


def drawn_run(study: Study, model: str, task: str) -> Run:
    here = loaded(study)
    return here.median_run(here.runs_of(model, task))


def marks(ax: Any, marker: Any, color: str | None = None) -> list[tuple[float, float]]:
    """Where single marks lie."""
    chosen = [line for line in ax.lines if line.get_marker() == marker and len(line.get_xdata()) == 1]
    return [(line.get_xdata()[0], line.get_ydata()[0]) for line in chosen if color in (None, line.get_color())]


def curves(ax: Any, color: str) -> list[np.ndarray]:
    return [line.get_ydata() for line in ax.lines if line.get_color() == color and len(line.get_xdata()) > 2]


def test_every_picture_is_drawn_and_stale_ones_go(tmp_path: Path, study: Study) -> None:
    from matplotlib.image import imread

    for stale in ("data", "discriminants", "highway-penalized"):
        (tmp_path / f"{stale}.png").write_bytes(MARK + b"of an earlier study")
    (tmp_path / "tried.png").write_bytes(b"someone else's")
    paths = figures.draw(write(tmp_path, study))
    assert (tmp_path / "tried.png").read_bytes() == b"someone else's"
    (tmp_path / "tried.png").unlink()
    assert [path.stem for path in paths] == ["tunnel", *(["budding"] if study[0]["experiment"] == "mnist" else []), "sizes"]
    assert sorted(tmp_path.glob("*.png")) == sorted(paths)
    for path in paths:
        width, height = size_of(path)
        assert 600 <= width <= 2500
        assert 350 <= height <= 2500
        inked = (imread(path)[..., :3] < 0.9).any(-1)
        assert 0.01 < inked.mean() < 0.3
        assert all(part.any() for half in np.array_split(inked, 2) for part in np.array_split(half, 2, axis=1))


@pytest.mark.parametrize(("study", "model"), CELLS, indirect=["study"])
def test_curves_dots_and_the_asterisk_of_every_measure(study: Study, model: str) -> None:
    summary, history = study
    measures = {"error": np.min} | ({"macro_f1": np.max} if summary["experiment"] == "tagging" else {})
    for task, axes in columns(study, model).items():
        run = drawn_run(study, model, task)
        for ax, (name, best) in zip(axes, measures.items(), strict=False):
            for prefix, color in (("", RED), ("dev_", BLUE)):
                values = history[f"{model}/{task}/{run['seed']}/{prefix}{name}"]
                (curve,) = curves(ax, color)
                np.testing.assert_array_equal(curve, values)
                ((epoch, height),) = marks(ax, "o", color)
                assert height == best(values) == values[epoch - 1]
            assert marks(ax, (6, 2, 0)) == [(run["best_epoch"], run[f"test_{name}"])]
            low, high = ax.get_ylim()
            assert low < run[f"test_{name}"] < high
        # The measure that selects is best at the kept epoch, ties or not: dot and asterisk stand above one another.
        assert marks(axes[len(measures) - 1], "o", BLUE)[0][0] == run["best_epoch"]


@pytest.mark.parametrize(("study", "model"), CELLS, indirect=["study"])
def test_the_other_seeds_are_behind_and_pale(study: Study, model: str) -> None:
    for axes in columns(study, model).values():
        lines = [line for line in axes[0].lines if len(line.get_xdata()) > 2]
        assert len(lines) == 2 * SEEDS
        pale = [line for line in lines if line.get_color() not in (RED, BLUE)]
        assert len(pale) == 2 * (SEEDS - 1)
        assert max(line.get_zorder() for line in pale) < 2
        assert max(line.get_linewidth() for line in pale) < 1


@pytest.mark.parametrize(("study", "model"), CELLS, indirect=["study"])
def test_the_rate_is_cut_in_every_row_and_sizes_have_a_ring_at_the_kept_epoch(study: Study, model: str) -> None:
    _, history = study
    cut = 0
    for task, axes in columns(study, model).items():
        run = drawn_run(study, model, task)
        arrays = {name: history[f"{model}/{task}/{run['seed']}/{name}"] for name in ("stage", "layer_sizes", "hard_size")}
        stages, total = arrays["stage"], arrays["layer_sizes"].sum(1)
        expected = [epoch + 0.5 for epoch in range(1, len(stages)) if stages[epoch] > stages[epoch - 1]]
        cut += len(expected)
        for ax in axes:
            dashed = [line.get_xdata()[0] for line in ax.lines if line.get_linestyle() == "--"]
            assert dashed == expected
        epoch = run["best_epoch"]
        assert marks(axes[-1], "o") == [(epoch, total[epoch - 1])]
        if model == "budding":
            assert marks(axes[-2], "o") == [(epoch, arrays["hard_size"][epoch - 1])]
        else:
            assert len(axes[-2].lines) - len(expected) == arrays["layer_sizes"].shape[1]
    assert cut, "no rate shrank: the test shows nothing"


def test_titles_and_legends_explain_everything(mnist: Study, tagging: Study) -> None:
    assert picture(mnist, "tunnel").get_suptitle() == "Tunnel network on MNIST"
    assert picture(mnist, "budding").get_suptitle() == "Budding perceptron on MNIST"
    assert picture(tagging, "tunnel").get_suptitle() == "Tunnel network on multi-label tagging"
    assert [axes[0].get_title() for axes in columns(mnist, "tunnel").values()] == ["two classes (0 or 1)", "ten classes"]
    (legend,) = picture(tagging, "tunnel").legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "training",
        "validation",
        "best of its curve",
        "kept model's test figure",
        "kept model's size",
        "other seeds",
        "learning rate shrinks",
    ]
    labels = [axes.get_ylabel() for axes in columns(tagging, "tunnel")["scene"]]
    assert labels == ["wrong labels\nper instance", "macro-F1", "soft size per layer", "total soft size"]
    run = drawn_run(mnist, "tunnel", "ten")
    (heading,) = columns(mnist, "tunnel")["ten"][0].texts
    told = f"test error {100 * run['test_error']:.2f} % at epoch {run['best_epoch']}"
    assert heading.get_text() == f"seed {run['seed']} (median of 3): {told}"


def test_percent_stands_on_the_axes_of_fractions(mnist: Study, tagging: Study) -> None:
    for study, row, percent in ((mnist, 0, True), (tagging, 0, False), (tagging, 1, True)):
        ax = next(iter(columns(study, "tunnel").values()))[row]
        assert (ax.yaxis.get_major_formatter()(0.015, 0) == "1.5%") == percent


def test_the_overview_has_every_seed_the_mean_and_the_paper(study: Study) -> None:
    summary, _ = study
    figure, here = picture(study, "sizes"), loaded(study)
    field, titles = ("test_error", ["Test error"] * 2) if here.subject == "MNIST" else ("dev_macro_f1", ["Validation macro-F1"])
    panels = [ax for ax in figure.axes if ax.get_title() in titles]
    assert len(panels) == len(titles)
    assert sorted(y for ax in panels for _, y in marks(ax, "o")) == sorted(run[field] for run in summary["runs"])
    bars = sorted(line.get_ydata()[0] for ax in panels for line in ax.lines if line.get_linewidth() == 3)
    means = [statistics.fmean(run[field] for run in here.runs_of(m, t)) for m in here.models for t in here.tasks]
    np.testing.assert_allclose(bars, sorted(means))
    assert [y for ax in panels for _, y in marks(ax, "D")] == [one[field] for one in summary["paper"].values() if field in one]
    (units,) = (ax for ax in figure.axes if ax.get_title() == "Final soft size, in units")
    sizes = [run["soft_size"] for run in summary["runs"] if run["model"] != "budding"]
    assert sorted(y for _, y in marks(units, "o")) == sorted(sizes)
    for nodes in (ax for ax in figure.axes if ax.get_title() == "Final soft size, in tree nodes"):
        assert len(marks(nodes, "o")) == len(summary["runs"]) - len(sizes)
        assert nodes.get_ylim()[0] == pytest.approx(1, abs=0.2)


def test_validation_and_test_share_a_scale(tagging: Study) -> None:
    scales = [ax.get_ylim() for ax in picture(tagging, "sizes").axes if "macro-F1" in ax.get_title()]
    assert len(scales) == 2
    assert scales[0] == scales[1]


def test_far_off_first_epochs_leave_through_the_top(mnist: Study) -> None:
    summary, history = mnist
    run = next(run for run in summary["runs"] if run["model"] == "tunnel")
    epochs = np.arange(1, 101)
    error = 0.015 + 0.9 * np.exp(-epochs / 1.5)
    arrays = {"error": error - 0.014, "dev_error": error, "stage": np.zeros(100, int)}
    arrays |= {"layer_sizes": np.ones((100, 3)), "hard_size": np.ones(100)}
    run |= {"best_epoch": 100, "dev_error": 0.015, "test_error": 0.02}
    history = {f"{run['model']}/{run['task']}/{run['seed']}/{name}": values for name, values in arrays.items()}
    (axes,) = columns((summary | {"runs": [run]}, history), "tunnel").values()
    assert 0.02 < axes[0].get_ylim()[1] < 0.05


def test_the_middle_seed_is_the_lower_median_of_the_validation_measure() -> None:
    for name, field in (("mnist", "dev_error"), ("mirflickr", "dev_macro_f1"), ("tagging", "dev_macro_f1")):
        runs = [{"seed": seed, field: value} for seed, value in enumerate([0.4, 0.1, None, 0.2])]
        middle = StudyResults(CATALOG[name], runs, {}, {}).median_run
        assert middle(runs)["seed"] == 3
        assert middle(runs[:2])["seed"] == 1
        assert middle(runs[2:3])["seed"] == 2


def test_mirflickr_says_what_it_was_learned_from(tmp_path: Path, tagging: Study) -> None:
    """Its files are like those of tagging, a tree's like a stack's but for the sizes of its layers, of which it has none."""
    summary, history = tagging
    tasks, models = {"scene": "38", "birds": "10"}, ["tunnel", "budding"]
    copied = {"features": "tags", "split": 1}
    runs = [run | copied | {"model": model, "task": tasks[run["task"]]} for model in models for run in summary["runs"]]
    runs = [run | {"layer_sizes": None} if run["model"] == "budding" else run for run in runs]
    arrays = {}
    for name, values in history.items():
        _, task, rest = name.split("/", 2)
        arrays |= {f"{model}/{tasks[task]}/{rest}": values for model in models}
    study = summary | {"experiment": "mirflickr", "runs": runs, "paper": {}}, arrays
    assert len(figures.draw(write(tmp_path, study))) == 3
    assert picture(study, "tunnel").get_suptitle() == "Tunnel network on MIRFLICKR, from tags"
    assert [axes[0].get_title() for axes in columns(study, "tunnel").values()] == ["10 labels", "38 labels"]
    labels = [ax.get_ylabel() for ax in columns(study, "budding")["10"]]
    assert labels == ["wrong labels\nper instance", "macro-F1", "hard size (nodes)", "soft size (nodes)"]


def test_all_four_models_have_a_picture_and_a_color(tmp_path: Path, mnist: Study) -> None:
    """A highway's files are like a tunnel's."""
    summary, history = mnist
    stacks = ["highway-penalized", "highway"]
    runs = [run for run in summary["runs"] if run["task"] == "ten"]
    tunnels = [run for run in runs if run["model"] == "tunnel"]
    runs += [run | {"model": model} for model in stacks for run in tunnels]
    arrays = {name.replace("tunnel", model): values for model in ("tunnel", *stacks) for name, values in history.items()}
    study = summary | {"runs": runs}, arrays
    names = ["tunnel", "highway", "highway-penalized", "budding"]
    assert [path.stem for path in figures.draw(write(tmp_path, study))] == [*names, "sizes"]
    assert picture(study, "highway-penalized").get_suptitle() == "Penalized highway network on MNIST"
    (legend,) = picture(study, "sizes").legends
    told = [text.get_text() for text in legend.get_texts()]
    assert told == ["tunnel", "highway", "penalized highway", "budding", "one seed", "mean", "paper"]


@pytest.mark.parametrize("size", [0.0, 0.3, 1.0, 2.9, 40.0, 900.0])
@pytest.mark.parametrize("model", ["tunnel", "budding"])
def test_every_axis_of_a_single_seed_can_be_read(mnist: Study, model: str, size: float) -> None:
    """A single value, small or large, leaves each axis three labels at least, all different, and is seen."""
    summary, history = mnist
    run = next(run for run in summary["runs"] if run["model"] == model) | {"soft_size": size, "test_error": size / 1000}
    figure = picture((summary | {"runs": [run], "paper": {}}, history), "sizes")
    figure.draw_without_rendering()
    for ax, value in zip(figure.axes, (size / 1000, size), strict=True):
        seen = labels(ax.yaxis)
        assert len(seen) >= 3 and len(set(seen)) == len(seen), (ax.get_title(), seen)
        assert ax.get_ylim()[0] < value < ax.get_ylim()[1]


def test_a_study_of_ones_own_gives_its_pictures_with_its_files(tmp_path: Path, tagging: Study) -> None:
    """No name of it is known here, and its measure is one of its own."""
    summary, history = tagging
    hamming = Measure("error", "Hamming distance", digits=2)
    own = LearningPictures("my photographs", {"birds": "photographs of birds"}, (hamming,), ("dev",), panel_per_task=True)
    write(tmp_path, (summary | {"experiment": "mine", "pictures": own.as_json(), "paper": {}}, history))
    assert [path.stem for path in figures.draw(tmp_path)] == ["tunnel", "sizes"]
    here = load_study(tmp_path)
    assert here.pictures == own and here.tasks == ["birds", "scene"]
    figure = here.pictures.drawings(here)["tunnel"](here)
    assert figure.get_suptitle() == "Tunnel network on my photographs"
    assert figure.axes[0].get_title() == "photographs of birds" and figure.axes[0].get_ylabel() == "Hamming\ndistance"
    titles = [ax.get_title() for ax in here.pictures.drawings(here)["sizes"](here).axes]
    assert titles == ["Validation Hamming distance"] * 2 + ["Final soft size, in units"]


def one_run(run: Run) -> bool:
    return (run["model"], run["seed"]) == ("tunnel", 1) and run["task"] in ("ten", "scene")


def test_one_run_of_one_epoch_can_be_drawn(tmp_path: Path, study: Study) -> None:
    summary, history = study
    runs = [run | {"best_epoch": 1} for run in summary["runs"] if one_run(run)]
    short = summary | {"runs": runs}, {name: values[:1] for name, values in history.items()}
    assert [path.stem for path in figures.draw(write(tmp_path, short))] == ["tunnel", "sizes"]


def test_a_run_without_a_good_epoch_is_not_drawn(tmp_path: Path, study: Study) -> None:
    """The others are; where there are none, that is said."""
    summary, history = study
    measured = [name for name in summary["runs"][0] if name.endswith(("_error", "_macro_f1", "_size"))]
    runs = [run | ({"best_epoch": 0} | dict.fromkeys(measured) if one_run(run) else {}) for run in summary["runs"]]
    assert figures.draw(write(tmp_path, (summary | {"runs": runs}, history)))
    lost = [run for run in runs if not run["best_epoch"]]
    with pytest.raises(ValueError, match="holds no run with a good epoch, all diverged; there is nothing to draw"):
        figures.draw(write(tmp_path, (summary | {"runs": lost}, history)))


def run_without(name: str) -> Callable[[Path], None]:
    def remove(out: Path) -> None:
        file = out / "summary.json"
        summary = json.loads(file.read_text())
        del summary["runs"][0][name]
        file.write_text(json.dumps(summary))

    return remove


BAD: dict[str, tuple[str, Callable[[Path], Any], str]] = {
    "no history": ("mnist", lambda out: (out / "history.npz").unlink(), "history.npz is missing"),
    "no runs": ("tagging", summary_of(runs=[]), "summary.json holds no 'runs'"),
    "no best epoch": ("mnist", run_without("best_epoch"), r"summary.json lacks 'runs\[0\].best_epoch'"),
    "no test error": ("mnist", run_without("test_error"), r"summary.json lacks 'runs\[0\].test_error'"),
    "no macro-F1": ("tagging", run_without("dev_macro_f1"), r"summary.json lacks 'runs\[0\].dev_macro_f1'"),
    "no validation curve": ("mnist", without("tunnel/ten/1/dev_error"), "history.npz lacks 'tunnel/ten/1/dev_error'"),
    "no macro-F1 curve": ("tagging", without("tunnel/birds/0/macro_f1"), "history.npz lacks 'tunnel/birds/0/macro_f1'"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_named_in_one_line_with_advice(tmp_path: Path, name: str, request: pytest.FixtureRequest) -> None:
    experiment, spoil, message = BAD[name]
    spoil(write(tmp_path, request.getfixturevalue(experiment)))
    with pytest.raises(ValueError, match=message) as caught:
        load_study(tmp_path)
    assert "\n" not in str(caught.value)
    assert f"run `meristem reproduce {experiment} --out {tmp_path}` first" in str(caught.value)
