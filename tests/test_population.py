"""The driver of several runs: bits that do not depend on threads, watchers that stop, exceptions that end all."""

import threading
import time

import jax
import numpy as np
import pytest

import meristem
from meristem import Recipe, fit, load, save
from meristem.data.spirals import two_spirals
from meristem.nn import Network
from meristem.train import loop
from meristem.train.callbacks import Watcher, WatcherGroup
from meristem.train.hyperparameters import Knobs
from meristem.train.loop import seed_keys
from meristem.train.run import Run, begin
from meristem.train.training_data import prepare

RECIPE = Recipe(batch_size=32, patience=2)


def networks(n: int) -> Network:
    return jax.vmap(lambda key: Network.create("tunnel", 2, 1, width=3, depth=2, key=key))(seed_keys(range(n), 0))


def run(rate: float, dropout: float | None = None) -> Run:
    network = Network.create("tunnel", 2, 1, width=3, depth=2, key=jax.random.key(0))
    return begin(network, RECIPE, Knobs(rate, 1e-3, dropout=dropout), jax.random.key(1))


def alike(first: Run, second: Run) -> bool:
    leaves = zip(jax.tree.leaves(first.best), jax.tree.leaves(second.best), strict=True)
    return all(np.array_equal(a, b) for a, b in leaves) and np.array_equal(first.history["loss"], second.history["loss"])


def test_alone_each_run_is_the_one_that_it_would_be_by_itself(monkeypatch):
    monkeypatch.setattr(loop, "cores", lambda: 3)
    runs = {m: run(rate, dropout) for m, (rate, dropout) in enumerate([(1e-2, None), (3e-2, 0.2), (1e-1, None), (3e-3, 0.2)])}
    prepared = prepare(two_spirals("easy"), runs[0].last, RECIPE.task)
    together = loop.train_alone(runs, prepared, 6, WatcherGroup([]))
    assert all(alike(together[m], loop.train_until(runs[m], prepared, 6, WatcherGroup([]))) for m in runs)
    halfway = loop.train_alone(runs, prepared, 6, WatcherGroup([]), pause_at=3)
    assert [int(one.epochs) for one in halfway.values()] == [3] * 4 and all(int(one.epochs) == 0 for one in runs.values())
    assert all(alike(one, together[m]) for m, one in loop.train_alone(halfway, prepared, 6, WatcherGroup([])).items())


@pytest.mark.parametrize("together", [False, True])
def test_a_watcher_stops_the_members_of_a_path(together):
    network = Network.create("tunnel", 2, 1, width=3, depth=2, key=jax.random.key(0))
    search = {"penalties": [1e-3, 1e-2], "learning_rates": [1e-2], "cv": 2, "key": jax.random.key(0), "together": together}
    watch = {"watch": lambda member, info: info.epoch >= 3}
    path = meristem.path(network, two_spirals("easy"), **search, **watch, recipe=RECIPE, max_epochs=30)
    assert path.table["epochs"].tolist() == [3] * 4


class Ending(Watcher):
    """Raises in an epoch of a member, and remembers who came later."""

    def __init__(self, member: int):
        self.member, self.has_raised, self.later = member, threading.Event(), []

    def epoch(self, member, info):
        if self.has_raised.is_set():
            self.later.append(member)
        if (member, int(info.epoch)) == (self.member, 3):
            self.has_raised.set()
            raise KeyboardInterrupt


@pytest.mark.parametrize("member", [0, 2])
def test_what_is_raised_in_a_thread_ends_all_and_the_last_epochs_are_saved(member, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "cores", lambda: 3)
    ending, threads = Ending(member), threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        fit(
            networks(4),
            two_spirals("easy"),
            learning_rate=1e-3,
            key=seed_keys(range(4), 1),
            penalty=1e-3,
            recipe=RECIPE,
            max_epochs=40,
            together=False,
            watch=ending,
            save=lambda run: save(tmp_path / "run", run),
        )
    assert threading.active_count() <= threads, "no thread is left"
    assert load(tmp_path / "run").epochs[member] == 2, "the epoch before"
    assert len(ending.later) <= 4, "the others ended with their epoch"


def test_after_an_exception_no_run_begins(monkeypatch):
    """One core, so that nine runs wait for the tenth: a thread may have taken the next of them, and no more."""
    monkeypatch.setattr(loop, "cores", lambda: 1)
    runs, begun = {m: run(1e-2) for m in range(10)}, []

    def train_until(run, *args, **options):
        begun.append(run)
        time.sleep(0.05)
        if len(begun) == 2:
            raise KeyboardInterrupt
        return run

    monkeypatch.setattr(loop, "train_until", train_until)
    prepared = prepare(two_spirals("easy"), runs[0].last, RECIPE.task)
    with pytest.raises(KeyboardInterrupt):
        loop.train_alone(runs, prepared, 6, WatcherGroup([]))
    assert len(begun) <= 4
