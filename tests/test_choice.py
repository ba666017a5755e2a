"""Which setting is kept: by averages over seeds of the development measure, and by size among those as good as the best."""

import pytest

from meristem.experiments.study_training import select_setting
from meristem.show.measures import ERROR, MACRO_F1, Measure


def runs(figures: dict[float, tuple[list[float], float]], name: str = "dev_error") -> list[tuple[dict, None]]:
    """Of each penalty: a development figure for each seed, and the size. Test figures would choose the other way."""
    return [
        ({"model": "tunnel", "task": "ten", "penalty": p, "soft_size": size, name: value, "test_error": 1 - value}, None)
        for p, (values, size) in figures.items()
        for value in values
    ]


def kept(figures: dict[float, tuple[list[float], float]], choose: str, measure: Measure = ERROR) -> float:
    chosen, tried = select_setting(runs(figures, f"dev_{measure.name}"), measure, choose)
    (penalty,) = {one["penalty"] for one, _ in chosen}
    assert [one["penalty"] for one in tried if one["chosen"]] == [penalty] and len(tried) == len(figures)
    assert len(chosen) == len(figures[penalty][0]), "every seed of it"
    return penalty


# The best: a mean of 0.02, a variance of 4 · 0.002² / 3, and so, of four seeds, a standard error of 0.002 / √3 = 0.00115.
BEST = [0.018, 0.018, 0.022, 0.022]


@pytest.mark.parametrize(
    ("other", "size", "smallest"),
    [
        (0.0211, 50, 0.1),  # as good, smaller
        (0.0212, 50, 0.01),  # smaller, but worse by more than a standard error
        (0.0211, 150, 0.01),  # as good, larger
    ],
)
def test_the_smallest_of_those_within_one_standard_error(other, size, smallest):
    figures = {0.01: (BEST, 100.0), 0.1: ([other] * 4, size)}
    assert kept(figures, "smallest") == smallest
    assert kept(figures, "best") == 0.01


def test_macro_f1_is_better_when_it_is_higher():
    figures = {0.01: ([0.5, 0.7], 100.0), 0.1: ([0.55, 0.55], 50.0), 1.0: ([0.2, 0.2], 1.0)}
    assert kept(figures, "best", MACRO_F1) == 0.01
    assert kept(figures, "smallest", MACRO_F1) == 0.1


def test_one_seed_has_no_spread_so_only_equals_count():
    assert kept({0.01: ([0.02], 100.0), 0.1: ([0.0201], 1.0), 1.0: ([0.02], 50.0)}, "smallest") == 1.0


def test_a_run_that_never_got_a_figure_is_not_kept():
    trained = runs({0.01: ([0.02], 100.0)})
    lost = {**trained[0][0], "penalty": 0.1, "dev_error": None, "soft_size": 1.0}
    for choose in ("best", "smallest"):
        chosen, _ = select_setting([(lost, None), *trained], ERROR, choose)
        assert chosen[0][0]["penalty"] == 0.01
