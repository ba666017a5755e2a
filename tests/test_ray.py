"""A Ray cluster of two nodes on this machine: nodes and workers die, come late, have a full disk; the model is the same.

One cluster for all; each node has one core. Skipped where ray is not installed: pip install ray.
"""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest
from sklearn.datasets import load_iris

import meristem
from meristem.files.document import read
from meristem.train.placement import on_workers
from soak import FACTOR, tell

ray = pytest.importorskip("ray", reason="ray is not installed: pip install ray")
cluster_utils = pytest.importorskip("ray.cluster_utils")

from meristem.workers.ray_executor import RayExecutor  # noqa: E402  (of ray)

pytestmark = pytest.mark.filterwarnings("ignore")  # ray's own
SEARCH = {"width": 4, "depth": 2, "max_epochs": 40, "cv": 2, "penalties": [1e-3, 1e-2], "l2s": [1e-3, 1e-2]}
SEARCH |= {"input_dropouts": [0.0], "random_state": 0}


class Watching(meristem.Watcher):
    """Does something at a moment, once, and counts epochs."""

    def __init__(self, moment=lambda epochs: False, act=lambda: None):
        self.moment, self.act, self.epochs, self.has_acted = moment, act, [], False

    def epoch(self, member, info):
        self.epochs.append((member, int(info.epoch)))
        if not self.has_acted and self.moment(len(self.epochs)):
            self.has_acted = True
            self.act()
        return False


def content(path, watch=None, **options):
    """The arrays of a model's file, and its header without times."""
    model = meristem.TunnelClassifierCV(**SEARCH | options, callbacks=watch).fit(*load_iris(return_X_y=True))
    model.set_params(callbacks=None, executor=None)
    model.save(path)
    return {name: values.tobytes() for name, values in read(path).arrays.items() if "seconds" not in name}


@pytest.fixture(scope="module")
def wanted(tmp_path_factory):
    return content(tmp_path_factory.mktemp("here") / "model.safetensors")


@pytest.fixture(scope="module")
def cluster():
    settings = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 1000, "health_check_failure_threshold": 3}
    cluster = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "_system_config": settings})
    yield cluster
    cluster.shutdown()


@pytest.fixture(scope="module")
def executor(cluster):
    cluster.add_node(num_cpus=1)
    executor = RayExecutor(cluster.address)
    yield executor
    executor.shutdown()


START = [sys.executable, "-m", "ray.scripts.scripts", "start", "--num-cpus=1", "--block", "--disable-usage-stats"]


@pytest.fixture(scope="module")
def late_nodes(cluster):
    processes = []
    yield processes
    for process in processes:
        process.terminate()
        process.wait(30)


def wait_for_two_nodes():
    """Nodes that have come or gone are noticed in seconds."""
    until = time.monotonic() + 60
    while ray.cluster_resources().get("CPU", 0) != 2 and time.monotonic() < until:
        time.sleep(0.1)


def workers():
    """The processes in which tasks run now."""
    processes = {}
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                processes[int(name)] = file.read()
        except OSError:
            continue
    return [pid for pid, command in processes.items() if command.startswith(b"ray::work")]


def test_a_node_that_is_killed_and_one_that_joins_late(tmp_path, cluster, executor, wanted, late_nodes):
    node = next(iter(cluster.worker_nodes))

    def replace():
        cluster.remove_node(node, allow_graceful=False)
        late_nodes.append(subprocess.Popen([*START, f"--address={cluster.address}"], stdout=subprocess.DEVNULL))

    replacing = threading.Thread(target=replace)
    watch = Watching(lambda epochs: epochs > 30, replacing.start)
    assert content(tmp_path / "model.safetensors", watch, executor=executor) == wanted
    assert watch.has_acted and len(watch.epochs) == len(set(watch.epochs))
    replacing.join()
    wait_for_two_nodes()
    assert content(tmp_path / "model.safetensors", executor=executor) == wanted


def test_workers_that_are_killed(tmp_path, executor, wanted):
    """Searches until ten workers are dead (in a soak a hundred), each killed while it trains."""
    times, kills, last = 10 if FACTOR == 1 else 100, [], [time.monotonic()]

    def kill():
        if time.monotonic() - last[0] > 0.1 and (running := workers()):
            last[0] = time.monotonic()
            kills.append(running[0])
            os.kill(running[0], signal.SIGKILL)

    class Killing(Watching):
        def epoch(self, member, info):
            if len(kills) < times:
                kill()
            return super().epoch(member, info)

    turns = 0
    while len(kills) < times and turns < 2 * times:
        assert content(tmp_path / "model.safetensors", Killing(), executor=executor) == wanted
        turns += 1
    assert len(kills) == times
    tell("kills of workers of Ray", kills=len(kills), searches=turns)


@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("mount"), reason="a small disk is mounted")
def test_a_full_disk_on_one_node(tmp_path, cluster, executor, wanted):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a disk")
    try:
        (disk / "all").write_bytes(bytes(60 * 1024))
        node = cluster.add_node(num_cpus=1, env_vars={"JAX_COMPILATION_CACHE_DIR": str(disk), "TMPDIR": str(disk)})
        assert content(tmp_path / "model.safetensors", executor=executor) == wanted
        cluster.remove_node(node)
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def test_an_exception_of_a_task_is_that_of_the_task(executor):
    future = executor.submit(int, "many")
    with pytest.raises(ValueError, match=r"invalid literal .*many"):
        future.result(timeout=60)


def test_a_wrong_address_is_one_line():
    code = "from meristem.train.placement import on_workers\nwith on_workers('ray', '127.0.0.1:1'): pass"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip().splitlines()[-1].startswith("ValueError: address='127.0.0.1:1' is no Ray cluster")


def test_a_cluster_is_joined_by_its_address(cluster, executor):
    """Ray is started already: the executor leaves it as it is."""
    wait_for_two_nodes()
    with on_workers("ray") as trainer:
        assert trainer.executor._max_workers >= 2
    assert ray.is_initialized()


def test_bits_are_those_of_one_thread(executor):
    """XLA's sums of large layers depend on its number of threads; a worker has one."""
    there = executor.submit(eval, PRODUCT).result(timeout=120)
    env = os.environ | {"NPROC": "1"}
    here = subprocess.run([sys.executable, "-c", f"print({PRODUCT})"], capture_output=True, text=True, check=True, env=env)
    assert there == here.stdout.strip()


PRODUCT = (
    "(lambda jax, np: np.asarray(jax.jit(lambda x: x.T @ x)(jax.random.normal(jax.random.key(0), (1024, 64))))"
    ".tobytes().hex())(__import__('jax'), __import__('numpy'))"
)
