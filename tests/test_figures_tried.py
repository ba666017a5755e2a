"""The picture of what was tried: every setting has a row, every model its mean, sd and size on it, the kept ones are filled."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from meristem import Recipe
from meristem.experiments.options import Options
from meristem.experiments.study import Result, Task
from meristem.experiments.study_training import Trainer, train_model
from meristem.experiments.tagging import STUDY
from meristem.pictures import studies as figures
from meristem.pictures.figure_style import COLORS
from meristem.pictures.studies.study_figures import CATALOG, load_study
from meristem.pictures.studies.study_results import StudyResults
from meristem.show.progress import Progress
from test_figures import Study, summary_of, write
from test_figures_learning import RECIPES, problem

pytestmark = pytest.mark.skipif(
    not figures.have_matplotlib(), reason="matplotlib is not installed (pip install 'meristem-nn[cli]')"
)
RATES, PENALTIES = (0.01, 1e-5), (1e-3, 1e-1)


@pytest.fixture(scope="module")
def study() -> Study:
    """Tunnels at four settings and highways, which have no penalty, at two, on two tasks; at one rate nothing is learned."""
    recipe = Recipe(**RECIPES["tagging"], batch_size=15, patience=2)
    tasks = []
    for name, noise in (("scene", 0.8), ("birds", 0.2)):
        data, test = problem("tagging", noise)
        tasks.append(Task(name, data, 3, recipe, width=6, depth=3, expected_epochs=6, test=test))
    options, result = Options(rate=RATES, penalty=PENALTIES, seeds=2, max_epochs=6), Result()
    for model in ("tunnel", "highway"):
        result.join(train_model(STUDY, model, tasks, options, Trainer(Progress())))
    return {"experiment": "tagging", "runs": result.runs, "paper": {}, **result.extra}, result.history


def picture(study: Study) -> Any:
    summary, arrays = study
    here = StudyResults(CATALOG["tagging"], summary["runs"], {}, arrays, summary["tried"])
    return here.pictures.drawings(here)["tried"](here)


def panels(study: Study) -> list[tuple[Any, Any]]:
    """Of each task the axes with its dots, and those with its sizes."""
    axes = picture(study).axes
    return list(zip(axes[::2], axes[1::2], strict=True))


def rows(ax: Any) -> list[str]:
    return [label.get_text() for label in ax.get_yticklabels()]


def dots(ax: Any) -> list[tuple[str, str, float, bool]]:
    """(model, row, value, whether it is filled) of each dot."""
    models = {color: model for model, color in COLORS.items()}
    found = []
    for line in (line for line in ax.lines if line.get_marker() == "o"):
        row = rows(ax)[round(line.get_ydata()[0])]
        found.append((models[line.get_color()], row, line.get_xdata()[0], line.get_markerfacecolor() == line.get_color()))
    return found


def test_every_setting_of_every_model_has_its_dot_and_the_kept_ones_are_filled(study: Study) -> None:
    summary, _ = study
    axes = [dots for dots, _ in panels(study)]
    assert [ax.get_title() for ax in axes] == ["scene", "birds"]
    stacked = [f"rate {rate:g}, penalty {penalty:g}" for rate in RATES for penalty in PENALTIES]
    for ax in axes:
        assert rows(ax) == [*stacked, *(f"rate {rate:g}" for rate in RATES)]
        told = {(model, row): (value, filled) for model, row, value, filled in dots(ax)}
        of_task = [one for one in summary["tried"] if one["task"] == ax.get_title()]
        assert len(of_task) == len(told) == 6
        for one in of_task:
            row = f"rate {one['learning_rate']:g}" + (f", penalty {one['penalty']:g}" if one["model"] == "tunnel" else "")
            assert told[one["model"], row] == (one["dev_macro_f1"], one["chosen"])
        bars = [line.get_xdata() for line in ax.lines if line.get_linewidth() == 2]
        np.testing.assert_allclose(sorted(np.ptp(bar) for bar in bars), sorted(2 * one["sd"] for one in of_task), atol=1e-12)
    assert axes[-1].get_xlabel() == "validation macro-F1" and axes[-1].xaxis.get_major_formatter()(0.5, 0) == "50%"


def test_the_legend_says_by_which_rule_a_setting_was_kept(study: Study) -> None:
    summary, arrays = study
    (legend,) = picture(study).legends
    told = [text.get_text() for text in legend.get_texts()]
    assert told == ["tunnel", "highway", "tried: mean over seeds, ± sd", "kept: the best"]
    other = [one | {"chosen": not one["chosen"]} if one["model"] == "highway" else one for one in summary["tried"]]
    (legend,) = picture((summary | {"tried": other}, arrays)).legends
    assert legend.get_texts()[-1].get_text() == "kept: the smallest of the best"
    for kept, words in ((0, "kept: the best"), (1, "kept: the smallest of the best")):  # of equal ones the best is the first
        places: dict[str, int] = {}
        level = []
        for one in summary["tried"]:
            place = places[one["model"] + one["task"]] = places.get(one["model"] + one["task"], -1) + 1
            level.append(one | {"dev_macro_f1": 0.5, "chosen": place == kept})
        (legend,) = picture((summary | {"tried": level}, arrays)).legends
        assert legend.get_texts()[-1].get_text() == words


def test_it_is_drawn_where_several_settings_were_tried_and_goes_where_none_were(tmp_path: Path, study: Study) -> None:
    summary, arrays = study
    assert [path.stem for path in figures.draw(write(tmp_path, study))] == ["tunnel", "highway", "sizes", "tried"]
    assert (tmp_path / "tried.png").stat().st_size > 10_000
    single = {name: value for name, value in summary.items() if name != "tried"}
    assert [path.stem for path in figures.draw(write(tmp_path, (single, arrays)))] == ["tunnel", "highway", "sizes"]
    assert not (tmp_path / "tried.png").exists()


def test_a_setting_at_which_every_seed_diverged_has_a_row_and_no_dot(study: Study) -> None:
    summary, arrays = study
    lost = [one | {"dev_macro_f1": None, "sd": None} if one["learning_rate"] == 1e-5 else one for one in summary["tried"]]
    for ax, _ in panels((summary | {"tried": lost}, arrays)):
        assert len(rows(ax)) == 6 and len(dots(ax)) == 3


def test_the_mean_size_of_every_setting_stands_beside_it(study: Study) -> None:
    """For a choice may go by it; that of the kept one is bold."""
    summary, _ = study
    for ax, numbers in panels(study):
        assert numbers.get_title() == "mean soft size"
        heads, sizes = ([text for text in numbers.texts if ("(" in text.get_text()) == is_head] for is_head in (True, False))
        assert [text.get_text() for text in heads] == ["tunnel\n(units)", "highway\n(units)"]
        column = {model: head.xy[0] for model, head in zip(("tunnel", "highway"), heads, strict=True)}
        told = {text.get_position(): (text.get_text(), text.get_fontweight() == "bold", text.get_color()) for text in sizes}
        of_task = [one for one in summary["tried"] if one["task"] == ax.get_title()]
        assert len(told) == len(of_task) == 6
        for one in of_task:
            row = f"rate {one['learning_rate']:g}" + (f", penalty {one['penalty']:g}" if one["model"] == "tunnel" else "")
            expected = (f"{one['soft_size']:.1f}", one["chosen"], COLORS[one["model"]])
            assert told[column[one["model"]], rows(ax).index(row)] == expected
        assert numbers.get_ylim() == ax.get_ylim()  # row beside row


def test_files_of_before_are_drawn_as_they_are(study: Study) -> None:
    """They call it "standardised", and the earliest have no sizes."""
    summary, arrays = study
    ways = dict(zip(RATES, ("numbers", "all"), strict=True))
    old = [one | {"standardised": ways[one["learning_rate"]], "learning_rate": 0.1} for one in summary["tried"]]
    unsized = [{name: value for name, value in one.items() if name != "soft_size"} for one in old]
    for ax in picture((summary | {"tried": unsized}, arrays)).axes:
        assert "numbers standardized, penalty 0.001" in rows(ax) and "all standardized" in rows(ax)
    assert rows(panels((summary | {"tried": old}, arrays))[0][0]) == rows(ax)


@pytest.mark.parametrize(
    ("tried", "says"),
    [
        ({"best": 3}, "has 'tried' that are not a list"),
        ([{"model": "tunnel"}], r"lacks 'tried\[0\].task' and 3 more"),
    ],
)
def test_a_bad_list_of_settings_is_named_in_one_line(tmp_path: Path, study: Study, tried: Any, says: str) -> None:
    summary_of(tried=tried)(write(tmp_path, study))
    with pytest.raises(ValueError, match=says) as caught:
        load_study(tmp_path)
    assert "\n" not in str(caught.value)
