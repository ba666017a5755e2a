"""Populations on a pool of spawned processes: the arrays of one process, whatever dies; one display.

The pool is started once; its workers find the programs of this process on disk (conftest.py).
"""

import multiprocessing
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import jax
import numpy as np
import pytest

import meristem
from killing import Study, left_by, survive, wait_for
from meristem.data.spirals import two_spirals
from meristem.files.run_file import pack_run
from meristem.folders.checkpoints import Checkpoints
from meristem.nn import Network
from meristem.train.loop import seed_keys
from meristem.train.placement import TRAINER, on_workers
from meristem.workers.connection import Client, ConnectionLostError, Server
from meristem.workers.executors import connected
from meristem.workers.messages import ArrayShelf, pack_data, pack_epochs, pack_runs, unpack_data, unpack_epochs, unpack_runs
from meristem.workers.remote_trainer import DEATHS, workers_of
from test_survival import STUDIES, whole  # noqa: F401  (a fixture)

MEMBERS, EPOCHS = 3, 12
SPAWN = multiprocessing.get_context("spawn")


def population(**options):
    create = jax.vmap(lambda key: Network.create("tunnel", 2, 1, width=3, depth=2, key=key))
    knobs = {"learning_rate": 3e-3, "penalty": np.geomspace(1e-4, 1e-2, MEMBERS), "key": seed_keys(range(MEMBERS), 1)}
    options = {"recipe": meristem.Recipe(batch_size=32), "max_epochs": EPOCHS} | knobs | options
    return meristem.fit(create(seed_keys(range(MEMBERS), 0)), two_spirals("easy"), **options)


def content(run):
    header, arrays = pack_run(run)
    return header, {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in arrays.items()}


@pytest.fixture(scope="module")
def alone():
    return population()


@pytest.fixture(scope="module")
def pool():
    with ProcessPoolExecutor(2, SPAWN) as executor:
        yield executor


def test_a_population_has_the_bits_of_one_process_and_each_epoch_is_shown_once(alone, pool):
    epochs = []
    run = population(executor=pool, watch=lambda member, info: epochs.append((member, int(info.epoch))))
    assert content(run) == content(alone)
    assert sorted(epochs) == [(m, e + 1) for m in range(MEMBERS) for e in range(int(run.epochs[m]))]


def test_a_killed_worker_costs_nothing_but_time(alone):
    """Each time that some members had another epoch; the pool is replaced by one like it."""
    kills, killed_at = [], set()

    def kill(member, info):
        if int(info.epoch) in (3, 6) and int(info.epoch) not in killed_at and len(kills) < 2:
            killed_at.add(int(info.epoch))
            victims = [child for child in multiprocessing.active_children() if child.name.startswith("SpawnProcess")]
            kills.append(victims[0].pid)
            os.kill(victims[0].pid, signal.SIGKILL)

    with connected(ProcessPoolExecutor(1, SPAWN)) as trainer:
        run = population(watch=kill)
        trainer.executor.shutdown(cancel_futures=True)
    assert len(set(kills)) >= 1
    assert content(run) == content(alone)


def test_a_path_is_that_of_one_process(pool):
    network = Network.create("tunnel", 2, 1, width=3, depth=2, key=jax.random.key(0))
    settings = {"penalties": [1e-3, 1e-1], "learning_rates": [1e-2], "cv": 2, "key": jax.random.key(1), "max_epochs": 40}
    options = settings | {"recipe": meristem.Recipe(batch_size=32), "halving": True}
    here, there = (meristem.path(network, two_spirals("easy"), executor=executor, **options) for executor in (None, pool))
    for name, column in here.table.items():
        np.testing.assert_array_equal(there.table[name], column, err_msg=name)
    for own, other in zip(jax.tree.leaves(here.networks), jax.tree.leaves(there.networks), strict=True):
        np.testing.assert_array_equal(own, other)


def test_checkpoints_serve_with_workers_and_without(tmp_path, alone, pool):
    """Half of the epochs here, then on workers; the checkpoint is found by what the training starts from."""
    checkpoints = Checkpoints(tmp_path, seconds=0.0)
    with checkpoints.keeping("run"), pytest.raises(InterruptedError):
        population(watch=interrupted_at(EPOCHS // 2))
    checkpoints.now()
    assert checkpoints.stands()["run"]
    epochs = []
    with checkpoints.keeping("run"):
        run = population(executor=pool, watch=lambda member, info: epochs.append(int(info.epoch)))
    assert content(run) == content(alone)
    assert len(epochs) < MEMBERS * EPOCHS, "some were not trained again"


def interrupted_at(epoch):
    def watch(member, info):
        if info.epoch == epoch and member == MEMBERS - 1:
            raise InterruptedError

    return watch


def test_a_watcher_ends_members_or_raises(pool):
    run = population(executor=pool, max_epochs=10**6, recipe=meristem.Recipe(batch_size=32, patience=10**6), watch=past(3))
    assert (run.epochs >= 3).all() and (run.epochs < 10**6).all()
    with pytest.raises(InterruptedError):
        population(executor=pool, max_epochs=10**6, watch=interrupted_at(2))


def past(epoch):
    return lambda member, info: info.epoch >= epoch


class Unmakeable:
    """What a worker cannot make: as classes of one's own that it does not find, or that raise."""

    def __reduce__(self):
        return fails, ()


def fails():
    raise ValueError("no worker can make this")


def test_a_task_that_fails_for_its_own_reason_fails_once(pool):
    class Failing(Counted):
        def submit(self, function, address, key, task, classes):
            return super().submit(function, address, key, task, classes | {"optimizer": Unmakeable()})

    executor = Failing(ThreadPoolExecutor(1))
    executor.executor = Pickling(executor.executor)
    with pytest.raises(ValueError, match="no worker can make this"):
        population(executor=executor)
    assert executor.submitted <= MEMBERS


class Pickling:
    """Threads that get what they are given as processes do, in bytes."""

    def __init__(self, executor):
        self.executor = executor

    def submit(self, function, *args):
        data = pickle.dumps(args)
        return self.executor.submit(lambda: function(*pickle.loads(data)))


class Counted:
    """An executor of one's own: what has `submit` will do."""

    def __init__(self, executor):
        self.executor, self.submitted = executor, 0

    def submit(self, *args):
        self.submitted += 1
        return self.executor.submit(*args)


def test_members_whose_workers_always_die_are_named():
    class Dying:
        _max_workers = 1

        def submit(self, function, address, key, task, classes):
            Client(address, key).ask("take", {"task": task})  # and is never heard of again
            return Future()

    with pytest.raises(RuntimeError, match=rf"{DEATHS} workers in a row .* members \d,"):
        population(executor=Dying())
    assert workers_of(Dying()) == 1


def test_a_worker_in_a_thread_will_do_too(alone):
    with ThreadPoolExecutor(2) as threads:
        assert content(population(executor=Counted(threads))) == content(alone)
    assert TRAINER.get() is None


@pytest.mark.parametrize(
    ("executor", "address", "words"),
    [
        ("proceses", None, "executor='proceses'.*processes"),
        (3, None, "executor=3 must be"),
        ("processes", "auto", "address='auto'"),
        (ProcessPoolExecutor(1, multiprocessing.get_context("fork")), None, "spawn"),
    ],
)
def test_what_is_no_executor_is_named_in_one_line(executor, address, words):
    with pytest.raises(ValueError, match=words) as error, on_workers(executor, address):
        pass
    assert "\n" not in str(error.value)


def test_who_does_not_know_the_key_learns_nothing():
    asked = []
    server = Server("127.0.0.1", lambda peer, message: asked.append(message), lambda peer: None)
    with pytest.raises(multiprocessing.AuthenticationError):
        Client(server.address, b"another key")
    with socket.create_connection(server.address) as plain:
        plain.sendall(b"\x00\x00\x00\x04what")
    server.close()
    assert asked == []
    with pytest.raises(ConnectionLostError):
        Client(server.address, server.key)


def test_runs_data_and_epochs_travel_to_the_bit(alone):
    weight = jax.device_put(np.arange(2, 196, dtype=np.float32))
    member = alone.member(1)
    member = meristem.train.run.replace(member, knobs=member.knobs._replace(weight=weight))
    shelf = ArrayShelf()
    digest = shelf.add(weight)
    header, arrays = pack_runs({7: member}, shelf)
    assert header["7"]["rows"] == {"weight": digest} and "7.knobs.weight" not in arrays
    (number, again), *_ = unpack_runs(header, arrays, shelf.__getitem__, {}).items()
    assert number == 7 and again.knobs.weight is weight and content(again) == content(member)
    prepared = meristem.train.training_data.prepare(two_spirals("easy"), member.last, member.recipe.task)
    for own, other in zip(prepared.data, unpack_data(pack_data(prepared, shelf), shelf.__getitem__).data, strict=True):
        assert (own is None and other is None) or np.asarray(own).tobytes() == np.asarray(other).tobytes()
    infos = []
    population(max_epochs=2, watch=lambda m, info: infos.append((m, info)))
    for (m, info), (n, other) in zip(sorted(infos, key=lambda own: own[0]), unpack_epochs(*pack_epochs(infos)), strict=True):
        assert m == n and {name: np.asarray(info[name]).tobytes() for name in info.keys()} == {  # noqa: SIM118  (of an EpochInfo)
            name: np.asarray(other[name]).tobytes()
            for name in other.keys()  # noqa: SIM118
        }


POPULATION = (*STUDIES["population"], "--executor", "processes")


@pytest.mark.skipif(sys.platform != "linux", reason="its children are looked up in /proc")
def test_a_study_whose_driver_is_killed_or_interrupted_is_resumed_without_workers(tmp_path, whole):  # noqa: F811
    """Killed, then ended by Ctrl-C, while it has workers: they end with it. The last part needs none."""
    out = tmp_path / "out"
    for number in (signal.SIGKILL, signal.SIGINT):
        workers: set[int] = set()
        with Study(out, POPULATION).start() as process:
            wait_for(process, lambda process=process, workers=workers: workers.update(children(process.pid)) or workers)
            process.send_signal(number)
            _, errors = process.communicate(timeout=60)
            assert process.returncode == (-9 if number == signal.SIGKILL else 130), errors
        deadline = time.monotonic() + 60
        while any(map(is_alive, workers)):
            assert time.monotonic() < deadline, "a worker outlived its driver"
            time.sleep(0.05)
    assert "continue with" in errors and "Traceback" not in errors
    survive(Study(out, STUDIES["population"]), [])
    wanted, resumed = whole("population"), left_by(out)
    for name in ("summary", "lines", "arrays", "files"):
        assert resumed[name] == wanted[name], name


def children(pid):
    """Those that were spawned by it, and not what multiprocessing needs besides."""
    own = []
    for place in filter(lambda place: place.name.isdecimal(), Path("/proc").iterdir()):
        with suppress(OSError):
            parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == pid and b"spawn_main" in (place / "cmdline").read_bytes():
                own.append(int(place.name))
    return own


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_without_ray_nothing_needs_it():
    code = (
        "import sys; sys.modules['ray'] = None\n"
        "import meristem; from meristem import TunnelClassifierCV, fit, path\n"
        "from meristem.train.placement import on_workers\n"
        "with on_workers('processes', None): pass\n"
        "with on_workers('ray'): pass"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip().splitlines()[-1].startswith("ImportError: executor='ray' needs Ray"), done.stderr
