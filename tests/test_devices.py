"""The members of a population on several devices: forced here, in a process each, as they cannot be changed later."""

import os
from pathlib import Path

import jax
import pytest

import meristem
from killing import start
from meristem.data.spirals import two_spirals
from meristem.nn import Network
from meristem.train import devices
from meristem.train.callbacks import Watcher
from meristem.train.hyperparameters import Knobs
from meristem.train.run import begin
from meristem.train.training_data import prepare

CODE = """
import sys
import jax, numpy as np
import meristem
from meristem.data.spirals import two_spirals
from meristem.nn import Network
from meristem.train import devices
from meristem.train.callbacks import Watcher
from meristem.train.loop import seed_keys

class Listener(Watcher):
    lines, epochs = [], []
    def epoch(self, member, info):
        self.epochs.append((member, int(info.epoch)))
        return False
    def say(self, line):
        self.lines.append(line)

MEMBERS = 3

def trained(watch=None, **options):
    body = {"depth": 2} if sys.argv[1] == "tunnel" else {}
    create = jax.vmap(lambda key: Network.create(sys.argv[1], 2, 1, width=3, key=key, **body))
    knobs = {"learning_rate": 3e-3, "penalty": np.array([1e-4, 1e-3, 1e-2]), "key": seed_keys(range(MEMBERS), 1)}
    data, recipe = two_spirals("easy"), meristem.Recipe(batch_size=32, patience=3)
    start = create(seed_keys(range(MEMBERS), 0))
    return meristem.fit(start, data, **knobs, recipe=recipe, max_epochs=6, together=True, watch=watch, **options)

everywhere = trained(Listener())
n = len(jax.local_devices())
assert n == int(sys.argv[2]), n
assert f"{MEMBERS} networks on {n} devices, in 1 group" in Listener.lines, Listener.lines
ran = [(m, e + 1) for m in range(MEMBERS) for e in range(int(everywhere.epochs[m]))]
assert sorted(Listener.epochs) == ran, "copies of a member are not shown"
with jax.default_device(jax.local_devices()[0]):
    here = trained()
assert (here.epochs == everywhere.epochs).all()
for own, other in zip(jax.tree.leaves(here.best), jax.tree.leaves(everywhere.best)):
    np.testing.assert_allclose(np.asarray(other), np.asarray(own), rtol=1e-4, atol=1e-5)
    assert len(other.devices()) == 1, "what comes back is on one device"
np.testing.assert_allclose(everywhere.history["loss"], here.history["loss"], rtol=1e-4)
print("equal")
"""


@pytest.mark.parametrize(("body", "n"), [("tunnel", 2), ("budding", 4)])
def test_several_devices_give_what_one_gives_and_do_not_talk(tmp_path, body, n, monkeypatch):
    dump = f"--xla_dump_to={tmp_path} --xla_dump_hlo_as_text --xla_dump_hlo_module_re=.*epoch.*"
    monkeypatch.setenv("XLA_FLAGS", f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={n} {dump}")
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)  # a program that is found is not dumped
    monkeypatch.setenv("MERISTEM_CACHE", "off")
    with start("-c", CODE, body, str(n)) as process:
        out, errors = process.communicate(timeout=300)
    assert out == "equal\n", errors
    programs = [path.read_text() for path in tmp_path.glob("*jit_epoch*after_optimizations.txt")]
    divided = [text for text in programs if f"num_partitions={n}" in text]
    assert divided
    for word in ("all-reduce", "all-gather", "all-to-all", "collective-permute"):
        assert not any(word in text for text in divided), word


def test_members_are_planned_into_as_few_groups_as_fit(monkeypatch):
    network = Network.create("tunnel", 2, 1, width=3, depth=2, key=jax.random.key(0))
    run = begin(network, meristem.Recipe(), Knobs(1e-3, 1e-3), jax.random.key(0))
    prepared = prepare(two_spirals("easy"), run.last, run.recipe.task)
    lines = []

    class Listener(Watcher):
        def say(self, line):
            lines.append(line)

    monkeypatch.setattr(devices, "memory", lambda: 1_000_000)
    most = devices.most_members(run, prepared)
    members = range(2 * most + 1)
    assert devices.groups_that_fit([members], dict.fromkeys(members, run), prepared, Listener()) == [
        [*members[:most]],
        [*members[most : 2 * most]],
        [2 * most],
    ]
    assert len(lines) == 1 and "1 device, in 3 groups" in lines[0]


SHORTAGE = """
import gc, resource
import jax, numpy as np
import meristem
from meristem.nn import Network
from meristem.train.callbacks import Watcher
from meristem.train.loop import seed_keys

MEMBERS, ROWS = 4, 16384
x = np.random.default_rng(0).normal(size=(ROWS, 8)).astype(np.float32)
y = (x[:, 0] > 0).astype(np.int32)
create = jax.jit(jax.vmap(lambda key: Network.create("tunnel", 8, 2, width=64, depth=2, key=key)))
recipe = meristem.Recipe(objective="multiclass", batch_size=ROWS, compile_fast=True)

class Listener(Watcher):
    lines = []
    def say(self, line):
        self.lines.append(line)

def kilobytes(name):
    return int(next(line for line in open("/proc/self/status") if line.startswith(name)).split()[1])

def trained(watch=None):
    knobs = {"learning_rate": 1e-3, "penalty": np.full(MEMBERS, 1e-4), "key": seed_keys(range(MEMBERS), 1)}
    start = create(seed_keys(range(MEMBERS), 0))
    return meristem.fit(start, (x, y), **knobs, recipe=recipe, max_epochs=2, together=True, watch=watch)

enough = trained()
gc.collect()
size, peak = kilobytes("VmSize:"), kilobytes("VmPeak:")
resource.setrlimit(resource.RLIMIT_AS, (1024 * (size + int(0.85 * (peak - size))),) * 2)
short = trained(Listener())
assert "4 networks need more memory than there is: half of them at a time" in Listener.lines, Listener.lines
np.testing.assert_allclose(short.history["loss"], enough.history["loss"], rtol=1e-4)
print("halved")
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks /proc for the memory that a process takes")
def test_a_population_that_does_not_fit_goes_on_in_halves(monkeypatch):
    """A real shortage: the process may have a little less memory than it has just needed."""
    monkeypatch.setenv("NPROC", "1")
    with start("-c", SHORTAGE) as process:
        out, errors = process.communicate(timeout=300)
    assert out == "halved\n", errors
