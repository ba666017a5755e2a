"""Run folders that no run left so: one line, in little time and memory, and nothing outside the folder is touched."""

import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from commanding import meristem_here
from meristem import TunnelClassifier
from meristem.folders.run_folder import RunFolder
from meristem.folders.run_record import MOST_NETWORKS, read_record
from meristem.watch.server import serving
from meristem.watch.view import View

STUDY = ["reproduce", "two-spirals", "--models", "tunnel", "--task", "easy", "--seeds", "1", "--width", "3", "--depth", "1"]
QUICK = [*STUDY, "--max-epochs", "2"]
MEMORY = 1500 << 20  # bytes of address space beyond what a process has when it has imported everything
SECONDS = 60.0
LINE = '{"group": "%s", "member": %d, "epoch": 1}\n'


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("hostile") / "out"
    done = meristem_here(*QUICK, "--out", out, draws=False)
    assert done.returncode == 0, done.stderr
    (out / "summary.json").unlink()  # interrupted just before its end
    return out


@pytest.fixture
def out(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "out"))


# What is put in the place of a file ------------------------------------------------------------------------------------------


def pipe(path: Path) -> None:
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.mkdir()


def link(path: Path) -> None:
    aside = path.parent.parent.parent / f"aside-{path.name}"
    aside.write_text("mine")
    path.symlink_to(aside)


def link_to_zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")


def link_to_full(path: Path) -> None:
    path.symlink_to("/dev/full")


def device(path: Path) -> None:
    try:
        os.mknod(path, 0o600 | 0o020000, os.makedev(1, 5))  # as /dev/zero
    except OSError:
        pytest.skip("devices are made by root alone")


def listening(path: Path) -> None:
    before = os.getcwd()
    os.chdir(path.parent)  # the name of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(before)


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(64 << 30)


NOT_PLAIN = [pipe, folder, link, link_to_zeros, link_to_full, device, listening, sparse]


def one_line(done: subprocess.CompletedProcess[str], *words: str) -> None:
    lines = done.stderr.splitlines()
    assert done.returncode == 2 and len(lines) == 1 and lines[0].startswith("meristem: "), done.stderr
    assert len(lines[0]) < 600 and all(word in lines[0] for word in words), lines[0]


def watched_and_resumed(out: Path, *words: str) -> None:
    """All that reads a run folder says one line."""
    begin = time.monotonic()
    one_line(meristem_here("watch", out, "--once"), *words)
    one_line(meristem_here("watch", out), *words)
    one_line(meristem_here("watch", out, "--serve"), *words)
    resumed = meristem_here(*QUICK, "--out", out, "--resume", draws=False)
    assert resumed.returncode == 2 and "Traceback" not in resumed.stderr, resumed.stderr
    assert all(word in resumed.stderr.splitlines()[-1] for word in words), resumed.stderr
    assert time.monotonic() - begin < SECONDS


@pytest.mark.parametrize("make", NOT_PLAIN)
@pytest.mark.parametrize("name", ["epochs.jsonl", "run.json"])
def test_what_is_no_plain_file_of_a_bounded_length_is_refused(out, name, make: Callable[[Path], None]):
    path = out / ".meristem-run" / name
    path.unlink()
    make(path)
    watched_and_resumed(out, str(path), "delete it")
    if make is link:
        assert (out.parent / f"aside-{name}").read_text() == "mine"


@pytest.mark.parametrize("make", [pipe, link, link_to_zeros, listening])
def test_a_lock_that_is_no_plain_file_is_refused_and_not_waited_for(out, make):
    path = out / ".meristem-run" / "lock"
    path.unlink()
    make(path)
    assert meristem_here("watch", out, "--once").returncode == 0, "who looks on takes no lock"
    done = meristem_here(*QUICK, "--out", out, "--resume", draws=False)
    assert done.returncode == 2 and f"{str(path)!r} is " in done.stderr.splitlines()[-1], done.stderr


@pytest.mark.parametrize("make", [pipe, link_to_zeros, sparse])
def test_a_summary_that_is_no_plain_file_is_not_read_and_not_replaced(out, make):
    path = out / "summary.json"
    make(path)
    assert meristem_here("watch", out, "--once").returncode == 0
    begin = time.monotonic()
    done = meristem_here(*QUICK, "--out", out, "--resume", draws=False)
    assert time.monotonic() - begin < SECONDS / 4
    assert done.returncode == 2 and str(path) in done.stderr.splitlines()[-1], done.stderr


@pytest.mark.filterwarnings("ignore::meristem.GrowthWarning", "ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_does_not_go_on_from_what_no_run_left(tmp_path):
    """`meristem fit --resume`, and `resume=True` of an estimator: what is there stays."""
    table, out = tmp_path / "table.csv", tmp_path / "fit"
    table.write_text("x,y\n" + "".join(f"{n},{2 * n}\n" for n in range(40)))
    fit = ["fit", table, "--target", "y", "--body", "tunnel", "--max-epochs", "1", "--budget", "500", "--out", out]
    assert meristem_here(*fit).returncode == 0
    X, y = np.arange(40.0)[:, None], np.arange(40) // 20
    model = TunnelClassifier(max_epochs=1, depth=1, random_state=0, checkpoint_dir=tmp_path / "own", resume=True)
    model.fit(X, y)
    for make, name in ((pipe, "epochs.jsonl"), (link_to_zeros, "run.json"), (sparse, "epochs.jsonl"), (link, "lock")):
        for place in (out, tmp_path / "own"):
            path = place / ".meristem-run" / name
            before = path.read_bytes()
            path.unlink()
            make(path)
            if place == out:
                one_line(meristem_here(*fit, "--resume"), str(path), "delete it")
            else:
                with pytest.raises(ValueError, match="delete it, or choose another folder"):
                    model.fit(X, y)
            path.rmdir() if path.is_dir() else path.unlink()
            path.write_bytes(before)
    assert meristem_here(*fit, "--resume").returncode == 0


def test_the_folder_of_a_run_is_no_link(out, tmp_path):
    own = out / ".meristem-run"
    own.rename(tmp_path / "elsewhere")
    own.symlink_to(tmp_path / "elsewhere")
    watched_and_resumed(out, f"{str(own)!r} is a link, not a folder")


@pytest.mark.parametrize("name", ["groups", "checkpoints"])
def test_models_elsewhere_are_not_deleted_through_a_link(out, tmp_path, name):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "model.safetensors").write_text("mine")
    place = out / ".meristem-run" / name
    shutil.rmtree(place)
    place.symlink_to(mine)
    for more in ([], ["--resume"]):
        done = meristem_here(*QUICK, "--out", out, *more, draws=False)
        assert done.returncode == 2 and f"{str(place)!r} is a link" in done.stderr.splitlines()[-1], done.stderr
    assert (mine / "model.safetensors").read_text() == "mine"


# What files hold --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"id": "a1", "plan": {"easy": NaN}}', "NaN"),
        ('{"id": "a1", "plan": {"easy": -Infinity}}', "Infinity"),
        ('{"id": "a1", "plan": {"easy": 1e999}}', "Infinity"),
        ('{"id": "a1", "plan": {"easy": %s}}' % ("9" * 400), "it holds 9999"),
        ('{"id": "a1", "described": %s1%s}' % ("[" * 100, "]" * 100), "nested"),  # noqa: UP031
        ("[" * 100_000, "holds no run"),
        ('{"id": "a1", "groups": {%s}}' % ", ".join(f'"g{n}": {{}}' for n in range(20_000)), "more than 5,000"),  # noqa: UP031
        (json.dumps({"id": "a1", "members": {"easy": {str(n): {} for n in range(20_000)}}}), "more than 5,000"),
        ("\xff\xfe", "holds no run"),
        ("", "holds no run"),
        ("3", "not an object"),
    ],
)
def test_a_record_that_no_run_wrote_is_refused(out, text, says):
    path = out / ".meristem-run" / "run.json"
    path.write_text(text, encoding="latin-1")
    watched_and_resumed(out, str(path), "holds no run", says)


def test_a_record_of_the_wrong_form_goes_on_with_nothing(out):
    """Each entry in turn is something else: one line, or it is passed over."""
    path = out / ".meristem-run" / "run.json"
    record = json.loads(path.read_text())
    odd = [None, 3, -1, "text", [], [3], {"x": 3}, {"x": None}, {"x": []}, {"../x": {"sha256": "0" * 64}}, {"x": {"sha256": 3}}]
    for name in record:
        for value in odd:
            if name in ("described", "command") and isinstance(value, str | dict):
                continue  # another run, and another command
            path.write_text(json.dumps(record | {name: value}))
            words = ""
            try:
                with RunFolder.take(out) as taken:
                    taken.begin(record["described"], "meristem", resume=True)
                    taken.seconds("tunnel-easy")
                    taken.finished("tunnel-easy")
            except ValueError as error:
                words = str(error)
            assert len(words.splitlines()) <= 1 and len(words) < 600
            View(out).now()


def test_a_run_deletes_and_overwrites_nothing_outside_its_folder(out, tmp_path):
    """A forged ledger names a file elsewhere, with its right digest: it would be deleted as what an earlier run wrote."""
    mine = tmp_path / "mine.txt"
    mine.write_text("mine")
    digest = hashlib.sha256(b"mine").hexdigest()
    (out / "summary.json").write_text(json.dumps({"files": {"../mine.txt": digest, str(mine): digest}}))
    shutil.rmtree(out / ".meristem-run")
    for file in [*out.iterdir()]:
        shutil.rmtree(file) if file.is_dir() else file.unlink()
    done = meristem_here(*QUICK, "--out", out, draws=False)
    assert done.returncode == 0 and mine.read_text() == "mine", done.stderr
    path = out / ".meristem-run" / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"wrote": {"../mine.txt": [digest]}}))
    done = meristem_here(*QUICK, "--out", out, draws=False)
    assert done.returncode == 2 and "wrote.../mine.txt" in done.stderr and mine.read_text() == "mine", done.stderr


@pytest.mark.parametrize(
    "lines",
    [
        "".join(LINE % ("easy", n) for n in range(20_000)),
        "".join(LINE % (f"g{n}", 0) for n in range(20_000)),
    ],
)
def test_more_networks_than_can_be_followed_are_one_line(out, lines):
    (out / ".meristem-run" / "epochs.jsonl").write_text(lines)
    begin = time.monotonic()
    for how in (["--once"], [], ["--serve"]):
        one_line(meristem_here("watch", out, *how), "epochs.jsonl", f"more than {MOST_NETWORKS:,} networks")
    assert time.monotonic() - begin < SECONDS
    done = meristem_here(*QUICK, "--out", out, "--resume", draws=False)
    assert done.returncode == 0, "lines are for those who follow"


def test_as_many_networks_as_can_be_are_shown_at_once(out):
    text = "".join(LINE % ("easy", n) for n in range(MOST_NETWORKS))
    (out / ".meristem-run" / "epochs.jsonl").write_text(text)
    begin = time.monotonic()
    done = meristem_here("watch", out, "--once")
    assert done.returncode == 0 and len(done.stdout.splitlines()) > MOST_NETWORKS
    assert time.monotonic() - begin < SECONDS


@pytest.mark.parametrize(
    "text",
    [
        '{"group": "easy", "member": 0, "epoch": %s}' % ("9" * 400),
        '{"group": "easy", "member": %s, "epoch": 1}' % ("9" * 400),
        '{"group": "easy", "member": 0, "epoch": 1, "dev_loss": NaN}',
        '{"group": "easy", "member": 0, "epoch": 1, "layer_sizes": %s%s}' % ("[" * 500, "]" * 500),  # noqa: UP031
        "[" * 100_000,
        '{"group": "%s", "member": 0, "epoch": 1}' % ("e" * 100_000),
    ],
)
def test_a_line_that_no_run_wrote_is_passed_over(out, text):
    path = out / ".meristem-run" / "epochs.jsonl"
    path.write_text(f"{text}\n{path.read_text()}")
    state = View(out).now()
    assert state["run"]["damaged"] == 1 and len(state["groups"]) == 1
    assert "1 damaged line" in meristem_here("watch", out, "--once").stdout.splitlines()[0]
    done = meristem_here(*QUICK, "--out", out, "--resume", draws=False)
    assert done.returncode == 0, done.stderr


def test_a_run_that_becomes_hostile_while_it_is_served_ends_with_one_line(out):
    problems: list[ValueError] = []
    with serving(out, on_problem=problems.append) as url:
        place = url.removeprefix("http://").rstrip("/").split(":")
        (out / ".meristem-run" / "epochs.jsonl").unlink()
        pipe(out / ".meristem-run" / "epochs.jsonl")
        with socket.create_connection((place[0], int(place[1])), timeout=20) as caller:
            caller.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            while caller.recv(4096):
                pass
    assert len(problems) == 1 and "is a pipe, not a plain file" in str(problems[0])


CODE = """
import resource, sys
from meristem.commands import main, watch  # all is imported
import jax
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
sys.exit(main.main(sys.argv[2:]))
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="the system does not say how large a process is")
@pytest.mark.parametrize("size", [900 << 20, 64 << 30])
def test_zeros_without_end_take_little_memory(out, size):
    """A sparse file within what is read, and one far beyond."""
    path = out / ".meristem-run" / "epochs.jsonl"
    with path.open("r+b") as file:
        file.truncate(size)
    args = [sys.executable, "-c", CODE, str(MEMORY), "watch", str(out), "--once"]
    done = subprocess.run(args, capture_output=True, text=True, timeout=300, check=False)
    if size > 1 << 30:
        one_line(done, str(path), "bytes")
    else:
        assert done.returncode == 0 and "1 damaged line" in done.stdout, done.stderr


def test_what_a_run_writes_of_itself_can_be_read(tmp_path):
    """Numbers that JSON lacks are texts."""
    described = {"settings": {"rates": [float("inf"), float("nan"), 10**30], "penalty": 0.5}}
    with RunFolder.take(tmp_path) as taken:
        taken.begin(described, "meristem", resume=False)
        taken.describe("search", {n: {"penalty": float("inf")} for n in range(MOST_NETWORKS + 7)})
    record = read_record(tmp_path / ".meristem-run" / "run.json")
    assert record is not None and record["described"]["settings"] == {"rates": ["inf", "nan", str(10**30)], "penalty": 0.5}
    assert len(record["members"]["search"]) == MOST_NETWORKS
    with RunFolder.take(tmp_path) as taken:
        assert "interrupted" in taken.begin(described, "meristem", resume=True)[0]
