"""What a person reads: measures in words, progress while networks are trained, and what a network is made of."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import Any, TextIO

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from meristem.compact import compact
from meristem.nn import Network
from meristem.show.describe import describe, describe_settings
from meristem.show.measures import ERROR, LOSS, MACRO_F1, WRONG_LABELS, Measure, error_measure
from meristem.show.progress import Progress
from meristem.show.time_left import CLOSE, Forecast, middle, trainings
from meristem.tables.time_limit import Deadline
from meristem.train.callbacks import LargerNetworks, WatcherGroup
from meristem.train.objectives import OBJECTIVES
from meristem.train.train_state import EpochInfo
from own_body import own_network

SQUARED = error_measure("squared error", is_share=False)


# Measures and settings ------------------------------------------------------------------------------------------------------


def test_only_shares_are_shown_as_per_cent() -> None:
    for kind in OBJECTIVES.values():
        shown = error_measure(kind.error_name, is_share=kind.error_is_share).show(0.25)
        assert shown.endswith("%") == (kind.name in ("binary", "multiclass")), kind.name
    assert [measure.show(0.5) for measure in (ERROR, MACRO_F1, WRONG_LABELS, LOSS)] == ["50.00 %", "50.0 %", "0.5", "0.5"]
    assert ERROR.show(None) == SQUARED.show(None) == "–"


@pytest.mark.parametrize(("measure", "best", "tied"), [(ERROR, 2, 4), (MACRO_F1, 1, 3)])
def test_the_best_of_a_curve_by_its_direction_and_preferred_where_it_ties(measure: Measure, best: int, tied: int) -> None:
    values = np.array([np.nan, 0.6, 0.2, 0.6, 0.2, np.inf])
    assert (measure.best(values), measure.best(values, prefer=tied), measure.best(values, prefer=5)) == (best, tied, best)
    assert measure.best(values, prefer=-1) == best  # no epoch at all
    assert measure.best(np.full(3, np.nan)) is None
    assert measure.cost(values[best]) == min(map(measure.cost, values)) and measure.cost(None) == np.inf


def test_settings_of_earlier_files_have_the_same_words() -> None:
    new = [{"standardized": columns, "input_dropout": 0.1} for columns in ("all", "numbers")]
    old = [{"standardised": one["standardized"], "input_dropout": one["input_dropout"]} for one in new]
    assert describe_settings(old) == describe_settings(new) == ["all standardized", "numbers standardized"]


# Progress -------------------------------------------------------------------------------------------------------------------


def info(epoch: int, *, rate: float = 0.003, error: float = 0.25, f1: float | None = None, **others: int) -> EpochInfo:
    """An epoch as training tells of it."""
    known: dict[str, Any] = dict.fromkeys(["hard_size", "stage", "opened", "closed", "waited", "most_leaves"], 0)
    known |= dict.fromkeys(["improved", "stopped", "diverged"], False)
    known |= dict.fromkeys(["loss", "error", "dev_loss", "dev_error"], error) | dict.fromkeys(["macro_f1", "dev_macro_f1"], f1)
    known |= {"epoch": epoch, "rate": rate, "layer_sizes": [1.5, 2.0], **others}
    return EpochInfo(**{name: None if value is None else np.asarray(value) for name, value in known.items()})


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[TextIO]:
    """A file in which every call makes a line."""
    monkeypatch.setattr("meristem.show.progress.PLAIN_SECONDS", -1.0)
    with (tmp_path / "lines").open("w+") as file:
        yield file


def written(lines: TextIO) -> list[str]:
    lines.seek(0)
    return lines.read().splitlines()


@pytest.mark.parametrize(
    ("measure", "words"),
    [
        (ERROR, "error 25.00 %"),
        (SQUARED, "squared error 0.25"),
        (WRONG_LABELS, "wrong labels per instance 0.25"),
        (MACRO_F1, "macro-F1 40.0 %"),
        (LOSS, "loss 0.25"),
    ],
)
def test_progress_shows_the_measure_as_what_it_is(lines: TextIO, measure: Measure, words: str) -> None:
    with Progress(lines) as progress, progress.group("tunnel", "easy", 100, measure) as watcher:
        assert not watcher.epoch(0, info(3, f1=0.4))
    assert written(lines) == [f"tunnel, easy: epoch 3, {words}, soft size 3.5, rate 3e-03"]


def test_within_an_epoch_its_number_is_the_one_after_the_last(lines: TextIO) -> None:
    with Progress(lines) as progress:
        progress.plan({("tunnel", "fit"): 10})
        with progress.group("tunnel", "fit", 10, LOSS) as watcher:
            watcher.pulse(0, 0.5)
            assert progress.fraction() == 0.05
            watcher.epoch(0, info(1))
            watcher.pulse(0, 0.25)
            assert progress.fraction() == 0.125
            watcher.epoch(0, info(2))
        assert progress.fraction() == 1
    where = [line.split(": ")[1].split(",")[0] for line in written(lines)]
    assert where == ["50% of epoch 1", "epoch 1", "25% of epoch 2", "epoch 2"]


def test_training_that_goes_on_counts_from_where_it_was(lines: TextIO) -> None:
    with Progress(lines) as progress:
        progress.plan({("tunnel", "fit"): 20})
        with progress.group("tunnel", "fit", 20, LOSS, before=50) as watcher:
            watcher.pulse(0, 0.5)
            watcher.epoch(0, info(51))
            assert progress.fraction() == 1 / 20
    within, after = written(lines)
    assert "50% of epoch 51" in within and ": epoch 51," in after


def test_of_several_members_the_middle_is_shown_and_the_range_of_their_rates(lines: TextIO) -> None:
    with Progress(lines) as progress:
        progress.plan({("tunnel", "easy"): 100})
        with progress.group("tunnel", "easy", 100, ERROR) as watcher:
            for member, (epoch, error, rate) in enumerate([(7, 0.5, 0.003), (9, 0.1, 0.001), (8, 0.2, 0.0001)]):
                watcher.epoch(member, info(epoch, error=error, rate=rate))
            watcher.epoch(1, info(9, error=0.1, rate=0.001))  # one that has stopped is told of again
            assert progress.fraction() == 0.24
    last = written(lines)[-1]
    assert last.startswith("tunnel, easy: epoch 9, error 20.00 %, soft size 3.5, rates 1e-04 to 3e-03")


def test_nothing_is_said_of_a_measure_that_is_not_there(lines: TextIO) -> None:
    with Progress(lines) as progress, progress.group("tunnel", "easy", 100, MACRO_F1) as watcher:
        watcher.epoch(0, info(1))
    assert written(lines)[0].startswith("tunnel, easy: epoch 1, soft size 3.5, rate")


class SearchedByClock:
    """A search whose epochs take 0.1 s, of larger networks 0.25 s, later ones more; settings but the first leave at 16."""

    def __init__(self, watcher: Any, range_left: Callable[[], tuple[float, float] | None], now: list[float]):
        self.watcher, self.range_left, self.now, self.rng = watcher, range_left, now, np.random.default_rng(0)
        self.estimates: list[tuple[float, tuple[float, float] | None]] = []

    def wait(self, seconds: float) -> None:
        for _ in range(round(20 * seconds)):
            self.now[0] += 0.05
            self.estimates.append((self.now[0], self.range_left()))

    def stage(self, settings: int, *, later: float, possible: float = 0, units: int = 20, seconds: float = 0.1) -> None:
        self.watcher.expect(later, possible)
        self.watcher.begin({m: {"penalty": m // 5, "fold": m % 5} for m in range(5 * settings)})
        self.trained(range(5 * settings), range(1, 17), units, seconds)
        self.watcher.leave(range(5, 5 * settings))
        for member in range(5):
            longer = 15 * (settings == 3)  # the first stage trains longest
            self.trained([member], range(17, int(self.rng.integers(75, 100)) + longer), units, seconds)

    def trained(self, members: Sequence[int], epochs: range, units: int, seconds: float) -> None:
        for member, epoch in product(members, epochs):
            self.wait(seconds * (1.5 if epoch > 60 else 1))
            ends = epoch + 1 == epochs.stop != 17
            stage, error = int(epoch > 60), 0.2 if member < 5 else 0.4
            self.watcher.epoch(member, info(epoch, error=error, stopped=ends, stage=stage, hard_size=units))


@pytest.mark.parametrize("enlarges", [False, True])
def test_the_time_left_of_a_search_is_true_after_its_first_third_and_no_line_comes_twice(
    enlarges: bool, tmp_path: Path
) -> None:
    """Compiling takes 5 s, and 7 s for larger networks, of which a second stage has neighboring penalties."""
    now, file = [0.0], tmp_path / "lines"
    with (
        file.open("w") as shown,
        Progress(shown, clock=lambda: now[0]) as progress,
        progress.group("CV", "fit", 30 * 90, LOSS) as watcher,
    ):
        search = SearchedByClock(watcher, progress.range_left, now)
        watcher.may_enlarge(LargerNetworks(4.0, 1.4))
        watcher.part("search")
        search.wait(5)
        search.stage(3, later=trainings(4, 5) + 1)
        if not enlarges:
            watcher.may_enlarge(None)
        search.stage(4, later=1, units=50 if enlarges else 20)
        if enlarges:
            watcher.part("room-1")
            search.wait(7)
            search.stage(1, later=1, possible=5, units=100, seconds=0.25)
            search.stage(1, later=1, units=100, seconds=0.25)
        watcher.may_enlarge(None)
        watcher.expect(0)
        watcher.part("replay")
        search.trained([0], range(1, 90), 20, 0.25 if enlarges else 0.1)
    late = [(now[0] - at, ends) for at, ends in search.estimates if now[0] - at < 2 / 3 * now[0] and now[0] - at > 2]
    assert all(ends is not None for _, ends in late)
    single = [(real, middle(*ends)) for real, ends in late if ends is not None and ends[1] <= CLOSE * ends[0]]
    ranges = [(real, *ends) for real, ends in late if ends is not None and ends[1] > CLOSE * ends[0]]
    assert np.mean([abs(np.log(left / real)) < np.log(1.5) for real, left in single]) > 0.95 and len(single) > len(late) / 2
    assert not ranges or np.mean([low / 1.5 < real < 1.5 * high for real, low, high in ranges]) > 0.95
    lines = file.read_text().splitlines()
    assert len(lines) < 16 and all(line != after for line, after in pairwise(lines)) and "nearly" not in "".join(lines)
    assert next(line for line in lines if "15 networks" in line) == "CV, fit, search: 15 networks"
    second = next(line for line in lines if "20 networks" in line)
    assert (" to " in second) is enlarges, "it is a range while larger networks are possible"
    assert second.endswith(" left") and (enlarges or ", about " in second)


def test_no_more_time_is_left_than_a_limit_leaves(lines: TextIO) -> None:
    now = [0.0]
    with Progress(lines, clock=lambda: now[0]) as progress, progress.group("tunnel", "easy", 1000, ERROR) as watcher:
        for epoch in range(1, 21):
            now[0] += 1
            watcher.epoch(0, info(epoch))
        assert progress.range_left() is not None and progress.range_left()[0] > 500  # type: ignore[index]
        progress.ends_at = 50.0
        assert progress.range_left() == (30, 30)
    soon, late = (Deadline(at) for at in (7.0, 9.0))
    assert WatcherGroup([late, WatcherGroup([soon])]).ends_at() == 7 and WatcherGroup([]).ends_at() == np.inf


def forecast_of(size: float, *, folds: int = 3, l2s: Sequence[float] = (1e-5, 1e-3), most_epochs: float = np.inf) -> Forecast:
    """A search that has begun: two settings of l2 at one penalty, of which a third is announced."""
    forecast = Forecast(1000, most_epochs)
    forecast.larger = LargerNetworks(size, 1.4) if size > 1 else None
    forecast.announced = folds + 1.0, 0.0
    settings = {m: {"penalty": 0.1, "l2": l2s[m // folds], "dropout": 0.0, "fold": m % folds} for m in range(folds * len(l2s))}
    forecast.begin(settings, 0.0, part="search")
    return forecast


def train(forecast: Forecast, member: int, losses: Sequence[float], now: float, **values: Any) -> float:
    """Report epochs of 0.1 s; return the time at their end."""
    for epoch, loss in enumerate(losses, 1):
        now += 0.1
        ends = epoch == len(losses) and values.get("ends", True)
        own = info(epoch, error=loss, stopped=ends, stage=int(epoch > 20), hard_size=20, improved=True)
        forecast.update(member, epoch, now, own)
    return now


FALLING, FLAT = list(np.geomspace(1, 0.1, 30)), list(np.linspace(1, 0.9, 30))


def seconds_left(forecast: Forecast, now: float) -> float:
    """Return the upper end of a range whose lower end has fewer trainings alone."""
    ends = forecast.range(now)
    assert ends is not None and 0.7 * ends[1] - 1e-9 <= ends[0] <= ends[1]
    return ends[1]


def test_larger_networks_make_a_range_until_it_is_known_whether_they_follow() -> None:
    forecast, now = forecast_of(4.0), 5.0
    for member in range(6):
        now = train(forecast, member, FALLING, now)
    ends = forecast.range(now)
    assert ends is not None and ends[1] > 3 * ends[0]
    forecast.larger = None
    less = seconds_left(forecast, now)
    assert less == pytest.approx(4 * 3 * 0.7, rel=0.3), "three folds of a setting, and a final network"
    forecast.larger = LargerNetworks(4.0, 1.4, is_sure=True)
    sure = forecast.range(now)
    assert sure is not None and ends[0] < sure[0] < sure[1] == ends[1], "neighboring penalties may follow"


def test_members_of_different_folds_do_not_compete() -> None:
    """A learning curve has folds of its own for each share of the rows; none of its trainings leaves."""
    forecast, now = forecast_of(1.0), 5.0
    for member in range(6):
        now = train(forecast, member, FLAT, now)
    forecast.announced = 0.0, 0.0
    settings = {m: {"penalty": 0.1, "l2": 1e-5 * (1 + m // 3), "dropout": 0.0, "fold": m} for m in range(6)}
    forecast.begin(settings, now, part="more-rows")
    assert seconds_left(forecast, now) == pytest.approx(6 * 3 * 0.7, rel=0.2)


def test_trainings_that_may_follow_make_a_range_and_those_of_the_stage_before_count() -> None:
    forecast, now = forecast_of(4.0), 5.0
    for member in range(6):
        now = train(forecast, member, FLAT, now)
    for possible in (6.0, 0.0):
        forecast.announced = 1.0, possible
        forecast.begin({m: {"penalty": 0.1, "l2": 1e-5, "dropout": 0.0, "fold": m} for m in range(3)}, now)
        for member in range(3):
            now = train(forecast, member, FLAT[:15], now)
        ends = forecast.range(now)
        assert ends is not None and ends[0] == pytest.approx(1.5, rel=0.2), "a final network"
        forecast.larger = None
    assert seconds_left(forecast, now) == pytest.approx(1.5, rel=0.2)


def test_a_program_with_dropout_compiles_anew_and_later_programs_do_not_take_longer_for_it() -> None:
    forecast, now = forecast_of(1.0), 5.0
    for member in range(6):
        now = train(forecast, member, FLAT, now)
    forecast.announced = 1.0, 0.0
    forecast.begin({m: {"penalty": 0.1, "l2": 1e-5, "dropout": 0.2, "fold": m} for m in range(3)}, now)
    assert seconds_left(forecast, now) == pytest.approx(5 + 3 * 4 * 0.7, rel=0.3)
    gaps, now = forecast.parts[0].gaps, now + 5
    train(forecast, 0, FLAT, now)
    assert forecast.parts[0].gaps == gaps and forecast.seconds_per_epoch == pytest.approx(0.09, rel=0.3)


def test_a_training_that_reaches_the_most_epochs_has_ended() -> None:
    forecast = forecast_of(1.0, most_epochs=30)
    now = train(forecast, 0, FLAT, 5.0, ends=False)
    assert len(forecast.ended) == 1
    train(forecast, 1, FLAT[:29], now, ends=False)
    assert len(forecast.ended) == 1


# Descriptions ---------------------------------------------------------------------------------------------------------------


def network(kind: str, **options: Any) -> Network:
    return Network.create(kind, 2, 1, width=4, key=jax.random.key(0), **options)


@pytest.mark.parametrize("kind", ["tunnel", "highway", "plain", "residual"])
def test_the_parameters_are_those_of_the_compact_form(kind: str) -> None:
    full = network(kind, depth=3)
    (first, second), *_ = describe(full)
    assert first == f"{kind} network: 2 inputs → width 4 → 1 output"
    floats = sum(leaf.size for leaf in jax.tree.leaves(compact(full)) if jnp.issubdtype(leaf.dtype, jnp.floating))
    held = sum(leaf.size for leaf in jax.tree.leaves(full))
    assert second.startswith(f"{floats:,} parameters in its compact form (") and second.endswith(
        f"{held:,} while it is trained"
    )


def test_a_tunnels_table_has_its_layers_and_their_sum() -> None:
    full = network("tunnel", depth=2)
    full = eqx.tree_at(lambda n: n.body.gate.value, full, jnp.array([[0.5, 0.25, 0, 0], [0, 0, 0, 0]]))
    assert describe(full)[1:] == (
        ["layer", "open units", "soft size", "widest gate"],
        [["1", "2 of 4", "0.75", "0.50"], ["2", "0 of 4", "0.00", "0.00"], ["all", "2 of 8", "0.75", "0.50"]],
    )


def test_tables_of_bodies_without_gates_of_their_own() -> None:
    assert describe(network("plain", depth=2))[1:] == (["layer", "units"], [["1", "4"], ["2", "4"]])
    columns, rows = describe(network("highway", depth=2))[1:]
    assert columns[-1] == "mean gate at input 0" and [row[-1] for row in rows] == ["0.12", "0.12"]


@pytest.mark.parametrize("root", ["layer", "identity"])
def test_a_trees_table_has_every_node_and_what_stands_above_the_root(root: str) -> None:
    full = network("budding", root=root)
    full = eqx.tree_at(
        lambda n: (n.body.depth, n.body.leafness.value),
        full,
        (jnp.array([-1, 1, 0, -1], jnp.int32), jnp.array([1, 0.5, 1, 0.25, 1, 1, 1])),
    )
    if root == "identity":
        full = eqx.tree_at(lambda n: n.body.identity.value, full, jnp.array(0.125))
    columns, rows = describe(full)[1:]
    assert columns == ["place", "kind", "depth", "leafness γ"]
    above = [["above the root", "identity", "–", "0.125"]] if root == "identity" else []
    assert rows == [
        *above,
        ["layer 1", "    leaf", "2", "1.000"],
        ["node 1", "  inner", "1", "0.500"],
        ["layer 2", "    leaf", "2", "1.000"],
        ["node 2", "inner", "0", "0.250"],
        ["layer 3", "  leaf", "1", "1.000"],
    ]


def test_a_body_of_ones_own_is_described() -> None:
    lines, columns, rows = describe(own_network())
    assert lines == ["shifts network: 2 inputs → width 4 → 1 output", "21 parameters; it has no compact form"]
    assert columns[1] == "open units" and rows[0] == ["1", "3 of 4", "2.00", "1.00"]


def test_a_population_is_refused_in_one_line() -> None:
    with pytest.raises(ValueError, match=r"describe\(\) takes one network, got a population of 1") as caught:
        describe(jax.tree.map(lambda a: a[None], network("tunnel", depth=2)))
    assert "\n" not in str(caught.value)
