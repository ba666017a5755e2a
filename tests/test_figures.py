"""Pictures are drawn from the files alone, whatever models, tasks and seeds these hold; bad files are named in one line."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from meristem import Data, Recipe, fit
from meristem.data.spirals import two_spirals
from meristem.nn import Network
from meristem.pictures import studies as figures
from meristem.pictures.figure_style import change_points, model_colors
from meristem.pictures.studies import SolvingPictures
from meristem.pictures.studies.study_figures import CATALOG, load_study
from meristem.pictures.studies.study_results import StudyResults

pytestmark = pytest.mark.skipif(
    not figures.have_matplotlib(), reason="matplotlib is not installed (pip install 'meristem-nn[cli]')"
)

MODELS, TASKS, SEEDS, GRID = ["tunnel", "highway", "budding"], ["easy", "difficult"], [0, 1], 12
PAPER = {"tunnel/easy": {"zero_error_epoch": 2, "soft_size": 2}, "budding/difficult": {"zero_error_epoch": 125, "soft_size": 7}}
Study = tuple[dict[str, Any], dict[str, np.ndarray]]  # summary, history


@pytest.fixture(scope="module")
def study() -> Study:
    """Short training of real networks: easy is solved, difficult is not."""
    history = {f"data/{task}/{name}": np.asarray(a) for task in TASKS for name, a in zip("xy", two_spirals(task), strict=True)}
    runs = [run for model in MODELS for task in TASKS for run in train(model, task, history)]
    return {"experiment": "two-spirals", "runs": runs, "paper": PAPER}, history


def train(model: str, task: str, history: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    runs = []
    for seed in SEEDS:
        start, key = jax.random.split(jax.random.key(seed))
        network = Network.create(model, 2, 1, width=4, key=start, **({"capacity": 4} if model == "budding" else {"depth": 3}))
        options = {
            "recipe": Recipe(patience=3, batch_size=2),
            "max_epochs": 30,
            "max_capacity": 4,
        }  # no more room: one compilation
        result = fit(network, Data(*two_spirals(task)), learning_rate=3e-3, penalty=1e-3, key=key, **options)
        fields = {name: result.history[name] for name in ("error", "loss", "layer_sizes", "hard_size", "stage")}
        fields |= {"discriminant": discriminant(result.best), "discriminant_limit": np.asarray(7.0)}
        history.update({f"{model}/{task}/{seed}/{name}": values for name, values in fields.items()})
        zero = np.flatnonzero(fields["error"] == 0)
        epoch, size = int(zero[0]) + 1 if zero.size else None, float(fields["layer_sizes"][-1].sum())
        runs.append({"model": model, "task": task, "seed": seed, "zero_error_epoch": epoch, "soft_size": size})
    return runs


def discriminant(network: Network) -> np.ndarray:
    return np.asarray(probability(network), np.float16)


@jax.jit
def probability(network: Network) -> jax.Array:
    axis = jnp.linspace(-7, 7, GRID)
    points = jnp.stack(jnp.meshgrid(axis, axis), -1)
    return jax.nn.sigmoid(jax.vmap(jax.vmap(network))(points)[..., 0])


def write(out: Path, study: Study, keep: Callable[[dict[str, Any]], bool] = lambda run: True) -> Path:
    summary, history = study
    (out / "summary.json").write_text(json.dumps(summary | {"runs": [run for run in summary["runs"] if keep(run)]}))
    np.savez(out / "history.npz", **history)  # type: ignore[arg-type]
    return out


def size_of(png: Path) -> tuple[int, int]:
    """Width and height, from the header."""
    head = png.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")


def test_every_picture_is_a_png_of_sensible_size(tmp_path: Path, study: Study) -> None:
    paths = figures.draw(write(tmp_path, study))
    assert [path.name for path in paths] == [
        f"{n}.png" for n in ("data", "tunnel", "highway", "budding", "discriminants", "sizes")
    ]
    for path in paths:
        width, height = size_of(path)
        assert 600 <= width <= 2500
        assert 350 <= height <= 2500
        assert 8_000 < path.stat().st_size < 600_000


SUBSETS: dict[str, tuple[Callable[[dict[str, Any]], bool], set[str]]] = {
    "one run, never at zero": (
        lambda run: (run["model"], run["task"], run["seed"]) == ("tunnel", "difficult", 1),
        {"data", "tunnel", "discriminants", "sizes"},
    ),
    "one run, at zero": (
        lambda run: (run["model"], run["task"], run["seed"]) == ("budding", "easy", 0),
        {"data", "budding", "discriminants", "sizes"},
    ),
    "a model without one of the tasks": (
        lambda run: (run["model"], run["task"]) in (("highway", "easy"), ("highway", "difficult"), ("tunnel", "easy")),
        {"data", "tunnel", "highway", "discriminants", "sizes"},
    ),
}


@pytest.mark.parametrize("subset", SUBSETS)
def test_any_part_of_a_study_can_be_drawn(tmp_path: Path, study: Study, subset: str) -> None:
    keep, names = SUBSETS[subset]
    assert {path.stem for path in figures.draw(write(tmp_path, study, keep))} == names


def test_four_tasks_the_penalized_highway_and_no_discriminants(tmp_path: Path, study: Study) -> None:
    summary, history = study
    runs, arrays = [], {}
    for task in ("classic", "difficult", "medium", "easy"):
        source = "easy" if task == "easy" else "difficult"
        arrays |= {f"data/{task}/{name}": history[f"data/{source}/{name}"] for name in "xy"}
        for run in summary["runs"]:
            if (run["model"], run["task"]) == ("highway", source):
                runs.append(run | {"model": "highway-penalized", "task": task})
                for field in CATALOG["two-spirals"].required().arrays:
                    key = f"{task}/{run['seed']}/{field}"
                    arrays[f"highway-penalized/{key}"] = history[f"highway/{source}/{run['seed']}/{field}"]
    paths = figures.draw(write(tmp_path, (summary | {"runs": runs}, arrays)))
    assert [path.name for path in paths] == ["data.png", "highway-penalized.png", "sizes.png"]
    assert load_study(tmp_path).tasks == ["easy", "medium", "difficult", "classic"]


def labels(axis: Any) -> list[str]:
    """The labels that are seen."""
    low, high = axis.get_view_interval()
    ticks = zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=True)
    return [label.get_text() for place, label in ticks if low <= place <= high and label.get_text()]


SINGLE = {"size": [0.0, 0.4, 1.98, 6.0], "epoch": [None, 1, 3, 30]}


@pytest.mark.parametrize("size", range(4))
@pytest.mark.parametrize("epoch", range(4))
def test_every_axis_of_a_single_seed_can_be_read(study: Study, size: int, epoch: int) -> None:
    """A single value, small or large, leaves each axis three labels at least, all different.

    Sizes and epochs have an axis each; every size and every epoch is drawn for each of the models.
    """
    summary, history = study
    model = MODELS[(size + epoch) % 3]
    (run,) = [run for run in summary["runs"] if (run["model"], run["task"], run["seed"]) == (model, "easy", 0)]
    one = run | {"soft_size": SINGLE["size"][size], "zero_error_epoch": SINGLE["epoch"][epoch]}
    here = StudyResults(CATALOG["two-spirals"], [one], {}, history)
    figure = here.pictures.drawings(here)["sizes"](here)
    figure.draw_without_rendering()
    assert len(figure.axes) == 2
    for ax in figure.axes:
        seen = labels(ax.yaxis)
        assert len(seen) >= 3 and len(set(seen)) == len(seen), (ax.get_title(), seen)


def test_a_model_that_nobody_knows_has_a_picture_and_a_color_of_its_own(tmp_path: Path, study: Study) -> None:
    """Whether it is a stack or a tree is what its runs say; a tree's layer_sizes are null."""
    summary, history = study
    names = {"tunnel": "wide-stack", "budding": "shrub"}
    runs = [run | {"model": names.get(run["model"], run["model"])} for run in summary["runs"] if run["task"] == "easy"]
    runs = [run | {"layer_sizes": None if run["model"] == "shrub" else [1.0]} for run in runs]
    arrays = {name.replace("tunnel", "wide-stack").replace("budding", "shrub"): array for name, array in history.items()}
    paths = figures.draw(write(tmp_path, (summary | {"runs": runs}, arrays)))
    assert [path.stem for path in paths] == ["data", "highway", "wide-stack", "shrub", "discriminants", "sizes"]
    here = load_study(tmp_path)
    assert len({str(color) for color in here.colors.values()}) == 3 and here.colors["highway"] == "#E69F00"
    drawings = here.pictures.drawings(here)
    assert drawings["wide-stack"](here).get_suptitle() == "Wide stack network on two spirals"
    assert drawings["shrub"](here).get_suptitle() == "Shrub perceptron on two spirals"
    units, nodes, _ = drawings["sizes"](here).axes
    assert (units.get_title(), nodes.get_title()) == ("Final soft size, in units", "Final soft size, in tree nodes")
    for ax, models in ((units, {"highway", "wide-stack"}), (nodes, {"shrub"})):
        drawn = {line.get_color() for line in ax.lines if line.get_marker() in "ox"}
        assert drawn == {here.colors[model] for model in models}
    assert [ax.get_ylabel() for ax in drawings["shrub"](here).axes][-1] == "soft size (nodes)"


def test_many_unknown_models_have_different_colors() -> None:
    for count in (2, 4, 5, 12):
        colors = model_colors(["tunnel", *(f"model {i}" for i in range(count))])
        assert len({str(color) for color in colors.values()}) == count + 1


def test_rates_that_were_tried_are_shown_by_the_training_error_from_zero_on(tmp_path: Path, study: Study) -> None:
    summary, history = study
    one = {"model": "tunnel", "task": "easy", "learning_rate": 0.003, "seeds": 2, "sd": 0.0, "soft_size": 4.0, "chosen": True}
    tried = [one | {"dev_error": 0.0}, one | {"dev_error": 0.0, "learning_rate": 0.001, "soft_size": 2.5, "chosen": False}]
    write(tmp_path, (summary | {"tried": tried}, history), lambda run: (run["model"], run["task"]) == ("tunnel", "easy"))
    assert figures.draw(tmp_path)[-1].stem == "tried"
    here = load_study(tmp_path)
    dots, sizes = here.pictures.drawings(here)["tried"](here).axes
    assert dots.get_xlabel() == "training error" and [text.get_text() for text in sizes.texts[1:]] == ["4.0", "2.5"]
    low, high = dots.get_xlim()
    assert -0.001 < low < 0 < high < 0.01 and not any(label.startswith(("-", "\N{MINUS SIGN}")) for label in labels(dots.xaxis))


OWN = SolvingPictures("my spirals", {"difficult": "the hard one", "easy": "the easy one"})


def test_a_study_that_nobody_knows_says_what_is_drawn_of_it(tmp_path: Path, study: Study) -> None:
    summary, history = study
    write(
        tmp_path, (summary | {"experiment": "mine", "pictures": OWN.as_json()}, history), lambda run: run["model"] == "tunnel"
    )
    assert [path.stem for path in figures.draw(tmp_path)] == ["data", "tunnel", "discriminants", "sizes"]
    here = load_study(tmp_path)
    assert here.pictures == OWN and here.tasks == ["difficult", "easy"]
    figure = here.pictures.drawings(here)["tunnel"](here)
    assert figure.get_suptitle() == "Tunnel network on my spirals" and figure.axes[0].get_title() == "the hard one"


def test_data_that_are_no_points_in_the_plane_are_not_drawn(tmp_path: Path, study: Study) -> None:
    summary, history = study
    arrays = {name: array for name, array in history.items() if not name.startswith("data/")}
    own = SolvingPictures("parity", is_planar=False)
    write(tmp_path, (summary | {"pictures": own.as_json()}, arrays), lambda run: run["task"] == "easy")
    assert [path.stem for path in figures.draw(tmp_path)] == ["tunnel", "highway", "budding", "sizes"]


@pytest.mark.parametrize(
    "named", [{"kind": "painting"}, {"subject": "x"}, {"kind": "solving"}, {"kind": "solving", "subject": "x", "frame": 3}, [3]]
)
def test_pictures_that_are_not_known_are_named_in_one_line(tmp_path: Path, study: Study, named: Any) -> None:
    summary_of(pictures=named)(write(tmp_path, study))
    with pytest.raises(ValueError, match="'pictures'") as caught:
        figures.draw(tmp_path)
    assert "\n" not in str(caught.value) and "StudyPictures.as_json()" in str(caught.value)


def test_redrawing_gives_the_same_pictures_and_leaves_matplotlib_as_it_was(tmp_path: Path, study: Study) -> None:
    import matplotlib

    write(tmp_path, study, lambda run: (run["model"], run["task"]) == ("tunnel", "easy"))
    before, had_pyplot = dict(matplotlib.rcParams.copy()), "matplotlib.pyplot" in sys.modules
    first = {path: path.read_bytes() for path in figures.draw(tmp_path)}
    for path in first:
        path.unlink()
    assert {path: path.read_bytes() for path in figures.draw(tmp_path)} == first
    assert dict(matplotlib.rcParams.copy()) == before
    assert ("matplotlib.pyplot" in sys.modules) == had_pyplot


def test_the_middle_seed_is_the_lower_median_and_never_is_last() -> None:
    runs = [{"seed": seed, "zero_error_epoch": epoch} for seed, epoch in enumerate([None, 30, 10, None])]
    median_run = StudyResults(CATALOG["two-spirals"], runs, {}, {}).median_run
    assert median_run(runs)["seed"] == 1
    assert median_run(runs[:1])["seed"] == 0
    assert median_run(runs[:3])["seed"] == 1
    assert median_run([runs[0], runs[3], runs[1]])["seed"] == 0


def test_a_cut_of_the_rate_lies_between_two_epochs() -> None:
    assert change_points(np.asarray([0, 0, 1, 1, 2])).tolist() == [2.5, 4.5]


def without(key: str) -> Callable[[Path], None]:
    def remove(out: Path) -> None:
        with np.load(out / "history.npz") as archive:
            arrays = {name: archive[name] for name in archive.files if name != key}
        np.savez(out / "history.npz", **arrays)  # type: ignore[arg-type]

    return remove


def summary_of(**changes: Any) -> Callable[[Path], None]:
    def change(out: Path) -> None:
        file = out / "summary.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | changes))

    return change


def shortened(out: Path) -> None:
    file = out / "history.npz"
    file.write_bytes(file.read_bytes()[:2000])


BAD: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no summary": (lambda out: (out / "summary.json").unlink(), "summary.json is missing"),
    "no history": (lambda out: (out / "history.npz").unlink(), "history.npz is missing"),
    "not JSON": (lambda out: (out / "summary.json").write_text("{runs"), "summary.json is not readable JSON"),
    "bytes that are no text": (
        lambda out: (out / "summary.json").write_bytes(b"\xff\xfe\x00"),
        "summary.json is not readable JSON",
    ),
    "a JSON list": (lambda out: (out / "summary.json").write_text("[]"), "summary.json is not a JSON object"),
    "no experiment": (lambda out: (out / "summary.json").write_text("{}"), "summary.json lacks 'experiment' and 1 more"),
    "no runs": (summary_of(runs=[]), "summary.json holds no 'runs'"),
    "a run without a seed": (
        summary_of(runs=[{"model": "tunnel", "task": "easy", "zero_error_epoch": 1, "soft_size": 1.0}]),
        r"summary.json lacks 'runs\[0\].seed'",
    ),
    "a run without a size": (
        summary_of(runs=[{"model": "tunnel", "task": "easy", "seed": 0, "zero_error_epoch": None, "soft_size": None}]),
        r"summary.json lacks 'runs\[0\].soft_size'",
    ),
    "a cut history": (shortened, "history.npz is not a readable NumPy archive"),
    "no error rates": (without("tunnel/easy/1/error"), "history.npz lacks 'tunnel/easy/1/error'"),
    "no data": (without("data/easy/x"), "history.npz lacks 'data/easy/x'"),
    "no limit": (without("budding/easy/0/discriminant_limit"), "history.npz lacks 'budding/easy/0/discriminant_limit'"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_named_in_one_line_with_advice(tmp_path: Path, study: Study, name: str) -> None:
    spoil, message = BAD[name]
    spoil(write(tmp_path, study))
    with pytest.raises(ValueError, match=message) as caught:
        figures.draw(tmp_path)
    assert "\n" not in str(caught.value)
    assert f"run `meristem reproduce two-spirals --out {tmp_path}` first" in str(caught.value)
    assert not list(tmp_path.glob("*.png"))


@pytest.mark.parametrize("name", ["mnits", ["mnist"], None])
def test_an_unknown_experiment_is_one_line_with_the_known_ones(tmp_path: Path, study: Study, name: Any) -> None:
    summary_of(experiment=name)(write(tmp_path, study))
    with pytest.raises(ValueError, match="drawn for: two-spirals, mnist, mirflickr, tagging") as caught:
        figures.draw(tmp_path)
    assert f"summary.json is of the experiment {name!r}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_array_of_the_wrong_rank_is_named(tmp_path: Path, study: Study) -> None:
    summary, history = study
    write(tmp_path, (summary, history | {"tunnel/easy/0/error": np.zeros((3, 2))}))
    with pytest.raises(ValueError, match=r"history.npz holds 'tunnel/easy/0/error' of shape \(3, 2\)"):
        figures.draw(tmp_path)
