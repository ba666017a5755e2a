"""A run is followed from its files: while it runs in another process, when it has ended, and whatever is wrong with them."""

import http.client
import io
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from hypothesis import example, given, strategies as st
from sklearn.datasets import load_iris

from commanding import meristem_here
from killing import SECONDS, start, wait_for
from meristem import TunnelClassifier, TunnelClassifierCV
from meristem.estimators import fit_context
from meristem.show.elements import shorten
from meristem.watch import server
from meristem.watch.log_reader import OPEN
from meristem.watch.server import changes, server_event, serving
from meristem.watch.terminal import follow, renderable
from meristem.watch.view import LONGEST_NAME, View

STUDY = ["reproduce", "two-spirals", "--models", "tunnel", "--task", "easy", "--seeds", "2", "--width", "3", "--depth", "2"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("watched") / "out"
    done = meristem_here(*STUDY, "--max-epochs", "4", "--out", out, draws=False)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture
def out(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "out"))


def under_way(out: Path) -> None:
    """As if its process were still there."""
    (out / "summary.json").unlink()
    (out / ".meristem-run" / "lock").write_text(json.dumps({"pid": os.getpid()}))


def line(member: int, epoch: int, group: str = "tunnel-easy", layers: int = 2) -> str:
    values = {"dev_loss": 1 / epoch, "dev_error": 0.5 / epoch, "soft_size": 1.0 * epoch, "layer_sizes": [0.1 * epoch] * layers}
    return json.dumps({"group": group, "member": member, "epoch": epoch, **values}) + "\n"


def forged(out: Path, lines: str = "", **run: object) -> Path:
    """A folder with these lines; returns their file."""
    own = out / ".meristem-run"
    own.mkdir(parents=True)
    (own / "run.json").write_text(json.dumps({"id": "a1", "command": "meristem", **run}))
    (own / "epochs.jsonl").write_text(lines)
    return own / "epochs.jsonl"


def test_a_finished_run_is_shown_once_and_followed_to_its_end(finished):
    once = meristem_here("watch", finished, "--once")
    assert once.returncode == 0 and once.stdout.startswith("finished\n") and "reproduce two-spirals" in once.stdout
    assert "tunnel-easy: 2 networks, epoch 4" in once.stdout and "layers open" in once.stdout
    assert "\n  λ 0.001, seed 0: epoch 4" in once.stdout and "\n  λ 0.001, seed 1: epoch 4" in once.stdout
    plain = meristem_here("watch", finished)
    assert plain.returncode == 0 and plain.stdout.splitlines()[-1] == f"{shorten(str(finished), LONGEST_NAME)}: finished"


def test_the_picture_says_what_the_lines_say(finished):
    state = View(finished).now()
    told = [json.loads(one) for one in (finished / ".meristem-run" / "epochs.jsonl").read_text().splitlines()]
    (group,) = state["groups"]
    assert group["over"] and group["seconds"] > 0 and [one["member"] for one in group["members"]] == [0, 1]
    for one in group["members"]:
        mine = [each for each in told if each["member"] == one["member"]]
        assert one["curve"]["epoch"] == one["layers"]["epoch"] == [1, 2, 3, 4] and one["epoch"] == 4
        np.testing.assert_allclose(one["curve"]["loss"], [each["dev_loss"] for each in mine], rtol=1e-3)
        np.testing.assert_allclose(one["layers"]["sizes"], [each["layer_sizes"] for each in mine], rtol=1e-2)
        sizes = np.array([[0.0, 0.0], *(each["layer_sizes"] for each in mine)]) >= OPEN
        changed = [[e + 1, j + 1, bool(sizes[e + 1, j])] for e, j in zip(*np.nonzero(sizes[1:] != sizes[:-1]), strict=True)]
        assert one["events"] == changed
    assert any(one["events"] for one in group["members"]), "some layer opened"


def test_a_run_in_another_process_is_followed_while_it_runs_and_not_disturbed(tmp_path):
    out = tmp_path / "out"
    view, states = View(out), [View(out).now()]
    assert states[0]["run"]["status"] == "waiting"
    with start("-m", "meristem", *STUDY, "--max-epochs", "150", "--out", str(out)) as process:

        def is_over() -> bool:
            states.append(view.now())
            return states[-1]["run"]["status"] == "finished"

        wait_for(process, is_over)
        _, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, errors
    states.append(view.now())
    assert states[-1]["run"]["status"] == "finished" and states[-1]["run"]["share"] == 1.0
    statuses = list(dict.fromkeys(state["run"]["status"] for state in states))
    assert statuses == ["waiting", "running", "finished"]
    seen = [state["groups"][0]["members"][0]["epoch"] for state in states if state["groups"]]
    assert len(set(seen)) > 2 and seen[-1] == max(seen), "curves grew while one looked"
    shares = [state["run"]["share"] for state in states if state["run"]["share"] is not None]
    assert shares == sorted(shares) and any(0 < share < 1 for share in shares)


def test_following_writes_and_locks_nothing(out):
    under_way(out)
    for path in [out, *out.rglob("*")]:
        path.chmod(stat.S_IRUSR | (stat.S_IXUSR if path.is_dir() else 0))
    before = {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in out.rglob("*")}
    # What it opens, as Python's audit tells: none of it for writing.
    code = (
        "import os, sys; from pathlib import Path; from meristem.watch.view import View\n"
        "opened, writing = [], os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND\n"
        "sys.addaudithook(lambda event, args: opened.append((event, args)) if event in "
        "('open', 'fcntl.flock', 'os.mkdir', 'os.remove', 'os.rename') else None)\n"
        "view = View(Path(sys.argv[1])); view.now(); view.now()\n"
        "assert opened and all(event == 'open' and not args[2] & writing for event, args in opened), opened\n"
    )
    subprocess.run([sys.executable, "-c", code, str(out)], check=True)
    assert {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in out.rglob("*")} == before
    for path in [out, *out.rglob("*")]:
        path.chmod(0o700)


def test_only_whole_lines_count_and_what_is_told_again_counts_once(tmp_path):
    file = forged(tmp_path / "out", line(0, 1) + line(0, 2) + line(0, 3)[:20])
    view = View(tmp_path / "out")

    def epochs(member: int = 0) -> list[int]:
        return view.now()["groups"][0]["members"][member]["curve"]["epoch"]

    assert epochs() == [1, 2] and epochs() == [1, 2]
    with file.open("a") as more:
        more.write(line(0, 3)[20:] + "not a line\n" + '{"group": 3}\n[]\n\xff\n' + line(0, 4))
    assert epochs() == [1, 2, 3, 4] and view.now()["run"]["damaged"] == 4
    with file.open("a") as more:
        more.write(line(0, 3) + line(1, 1))  # killed, and gone on from the second epoch
    assert epochs() == [1, 2, 3] and epochs(1) == [1]
    file.write_text(line(0, 1))
    assert epochs() == [1] and view.now()["run"]["damaged"] == 0, "it is shorter: another one"
    beside = file.with_name("beside")
    beside.write_text(line(0, 1) + line(0, 2) + line(0, 3))
    os.replace(beside, file)
    assert epochs() == [1, 2, 3]
    (file.parent / "run.json").write_text('{"id": "b2"')
    assert view.now()["run"]["id"] == "a1", "it is being written"
    (file.parent / "run.json").write_text('{"id": "b2"}')
    file.unlink()
    assert view.now()["groups"] == [] and view.now()["run"]["id"] == "b2"


def test_a_line_without_an_end_is_passed_over(tmp_path):
    file = forged(tmp_path / "out", line(0, 1) + "x" * (5 << 20))
    view = View(tmp_path / "out")
    view.now()
    with file.open("a") as more:
        more.write("y" * (2 << 20) + "\n" + line(0, 2))
    state = view.now()
    assert state["groups"][0]["members"][0]["epoch"] == 2 and state["run"]["damaged"] == 1


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda out: None, "holds no run; give the folder of a run, or leave out --once"),
        (lambda out: out.mkdir(), "holds no run"),
        (lambda out: out.write_text("x"), "is a file"),
        (lambda out: (out.mkdir(), (out / "summary.json").write_text("{}")), "without their epoch log"),
        (
            lambda out: ((out / ".meristem-run").mkdir(parents=True), (out / ".meristem-run" / "run.json").write_text("[]")),
            "no run",
        ),
    ],
)
def test_a_folder_without_a_run_is_one_line(tmp_path, make, says):
    make(tmp_path / "out")
    done = meristem_here("watch", tmp_path / "out", "--once")
    assert done.returncode == 2 and says in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--once", "--serve"], "--once and --serve exclude each other"),
        (["--port", "80"], "--port=80 needs --serve"),
        (["--serve", "--port", "70000"], "--port=70000 must be"),
    ],
)
def test_options_that_do_not_fit(finished, args, says):
    done = meristem_here("watch", finished, *args)
    assert done.returncode == 2 and says in done.stderr, done.stderr


def test_a_process_that_is_gone_is_told_of(out):
    under_way(out)
    assert View(out).now()["run"]["status"] == "running"
    (out / ".meristem-run" / "lock").write_text(json.dumps({"pid": 2**22 + 1}))
    assert "run the same command with --resume" in meristem_here("watch", out, "--once").stdout.splitlines()[0]
    place = out / ".meristem-run" / "run.json"
    place.write_text(json.dumps(json.loads(place.read_text()) | {"goes_on_with": None}))
    assert "nothing was saved" in meristem_here("watch", out, "--once").stdout.splitlines()[0]


def test_ctrl_c_ends_it_with_130(out):
    under_way(out)
    with start("-m", "meristem", "watch", str(out)) as process:
        try:
            assert process.stdout is not None and any("running" in process.stdout.readline() for _ in range(2))
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=SECONDS)
        finally:
            process.kill()
    assert process.returncode == 130 and errors.strip() == "meristem: interrupted"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_is_drawn_on_and_what_files_say_cannot_write_elsewhere(tmp_path):
    rich = pytest.importorskip("rich.console")
    evil = "\x1b[2Jname [bold]"
    forged(tmp_path / "out", "".join(line(m, e, evil) for m in range(40) for e in (1, 2)), over=True)
    screen = Terminal()
    follow(View(tmp_path / "out"), screen, seconds=0.01)
    assert "�[2Jname [bold]: 40 networks" in screen.getvalue() and "\x1b[2J" not in screen.getvalue()
    console = rich.Console(file=io.StringIO(), width=80, height=24)
    console.print(renderable(View(tmp_path / "out").now(), 23, 80))
    text = console.file.getvalue().splitlines()
    assert len(text) <= 24 and max(map(len, text)) <= 80 and "more networks" in "".join(text)


def test_networks_are_named_by_what_they_are_and_by_numbers_where_nothing_says_it(tmp_path):
    """Old folders say nothing, and what is no number is passed over."""
    lines = "".join(line(m, e) for m in range(4) for e in (1, 2))
    known = {
        "0": {"penalty": 0.00417, "l2": 3.125e-5, "dropout": 0.0, "fold": 0},
        "1": {"penalty": 0.0417, "l2": 1e-3, "fold": 12},
    }
    known |= {"2": {"penalty": "\x1b[2J", "fold": -1, "seed": True}, "three": {"penalty": 1.0}, "²": {}, "3": [1]}
    forged(tmp_path / "out", lines, members={"tunnel-easy": known, "other": 3}, over=True)
    state = View(tmp_path / "out").now()
    names = ["λ 0.00417, l2 3.13e-05, dropout 0, fold 0", "λ 0.0417, l2 0.001, fold 12", None, None]
    assert [one["name"] for one in state["groups"][0]["members"]] == names
    for width in (70, 80, 130):
        console = pytest.importorskip("rich.console").Console(file=io.StringIO(), width=width, height=24)
        console.print(renderable(state, 23, width))
        text = console.file.getvalue()
        assert all(f"│ {name} " in text for name in [*names[:2], "2", "3"]), "a name is never cut"
    for members in (3, {"tunnel-easy": 3}, {}):
        forged(tmp_path / str(members), lines, members=members)
        assert {one["name"] for one in View(tmp_path / str(members)).now()["groups"][0]["members"]} == {None}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab", max_size=1), inner, max_size=3),
    max_leaves=20,
)


def patched(before, change):
    """The value after a change, as page.html computes it."""
    if change is None:
        return before
    if isinstance(change, list):
        return change[0]
    if isinstance(before, list):
        remaining = before[: len(before) - len(change.get("without", []))]
        after = patched(dict(zip(map(str, range(len(remaining))), remaining, strict=True)), {"at": change["at"]})
        return [after[str(index)] for index in range(len(after))]
    remaining = {name: value for name, value in before.items() if name not in change.get("without", [])}
    return remaining | {name: patched(remaining.get(name), each) for name, each in change["at"].items()}


@given(before=JSON, after=JSON)
@example(before=[True], after=[1])
def test_what_changed_leads_from_one_picture_to_the_other(before, after):
    change = json.loads(json.dumps(changes(before, after)))
    assert json.dumps(patched(before, change), sort_keys=True) == json.dumps(after, sort_keys=True)


def test_little_is_sent_of_many_members(tmp_path):
    """64 networks of ten layers: a picture below 300 kB, which more epochs do not change, an epoch of all below 30 kB."""
    lines = "".join(line(m, e, layers=10) for e in range(1, 201) for m in range(64))
    file = forged(tmp_path / "out", lines)
    view = View(tmp_path / "out")
    state = view.now()
    assert len(server_event("state", state)) < 300_000
    with file.open("a") as more:
        more.write("".join(line(m, 201, layers=10) for m in range(64)))
    after = view.now()
    assert len(server_event("change", changes(state, after))) < 30_000 and changes(after, view.now()) is None
    alone = forged(tmp_path / "alone", "".join(line(0, e) for e in range(1, 1001)))
    assert alone and len(View(tmp_path / "alone").now()["groups"][0]["members"][0]["curve"]["epoch"]) <= 256


def test_the_page_is_served_on_this_machine_to_those_who_ask_for_it(finished):
    with serving(finished) as url:
        place = urlsplit(url)
        assert place.hostname == "127.0.0.1" and place.port

        def ask(path: str, host: str, method: str = "GET") -> tuple[int, http.client.HTTPResponse]:
            connection = http.client.HTTPConnection("127.0.0.1", place.port, timeout=10)
            connection.request(method, path, headers={"Host": host})
            answer = connection.getresponse()
            opened.append(connection)
            return answer.status, answer

        opened: list[http.client.HTTPConnection] = []
        status, answer = ask("/", f"127.0.0.1:{place.port}")
        policy = answer.headers["Content-Security-Policy"]
        assert status == 200 and "default-src 'none'" in policy and "connect-src 'self'" in policy
        page = answer.read().decode()
        assert "http://" not in page.replace("http://www.w3.org/2000/svg", "") and "https://" not in page
        assert ask("/", f"localhost:{place.port}")[0] == 200
        for path in ("/", "/events"):
            assert ask(path, f"evil.example:{place.port}")[0] == 400, "a name that was rebound"
        assert ask("/run.json", "127.0.0.1")[0] == 404 and ask("/", "127.0.0.1", "POST")[0] == 405
        status, answer = ask("/events", "localhost")
        first = answer.readline() + answer.readline()
        assert status == 200 and first.startswith(b"event: state\ndata: {") and answer.headers["Cache-Control"] == "no-store"
        assert json.loads(first.partition(b"data: ")[2]) == View(finished).now()
        with pytest.raises(ValueError, match=f"--port={place.port} cannot be used"), serving(finished, place.port):
            pass
        for connection in opened:
            connection.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "meristem-page"]


def connected(url: str, sent: bytes) -> socket.socket:
    """A caller that has sent this."""
    place = urlsplit(url)
    assert place.hostname and place.port
    caller = socket.create_connection((place.hostname, place.port), timeout=30)
    caller.sendall(sent)
    return caller


WHOLE, HALF = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET / HTTP/1.1\r\nHost: loc"


def test_a_port_can_be_used_again_at_once(finished):
    """The server ends while a browser listens: its side of the connection is then waiting for the other's last words."""
    with serving(finished) as url:
        port = urlsplit(url).port or 0
        caller = connected(url, b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert caller.recv(15) == b"HTTP/1.1 200 OK"
    with serving(finished, port) as url, caller, connected(url, WHOLE) as another:
        assert another.recv(15) == b"HTTP/1.1 200 OK"
        with pytest.raises(ValueError, match=f"--port={port} cannot be used"), serving(finished, port):
            pass


def test_who_sends_half_a_request_is_disconnected_and_keeps_nobody_out(finished, monkeypatch):
    """Those who send nothing, half, a byte at a time, or half after a whole; of more than may wait, the oldest goes at once."""
    monkeypatch.setattr(server, "REQUEST_SECONDS", 2.0)
    with serving(finished) as url, ExitStack() as stack:
        begin = time.monotonic()
        waiting = [stack.enter_context(connected(url, sent)) for sent in (b"", HALF, WHOLE + HALF)]
        slow = stack.enter_context(connected(url, HALF[:1]))
        while time.monotonic() - begin < 20:
            try:
                slow.sendall(b"E")
                time.sleep(0.2)
            except OSError:
                break
        assert time.monotonic() - begin < 15
        for caller in waiting:
            with suppress(ConnectionResetError):
                while caller.recv(65536):
                    pass
        assert time.monotonic() - begin < 15
    monkeypatch.setattr(server, "REQUEST_SECONDS", 60.0)
    with serving(finished) as url, ExitStack() as stack:
        many = [stack.enter_context(connected(url, HALF)) for _ in range(2 * server.MOST_WAITING)]
        with connected(url, WHOLE) as caller:
            assert caller.recv(15) == b"HTTP/1.1 200 OK"
        with suppress(ConnectionResetError):
            assert many[0].recv(1) == b""


def test_pages_that_were_closed_make_room_for_others(finished, monkeypatch):
    monkeypatch.setattr(server, "MOST_CLIENTS", 3)
    events = b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n"

    def status(caller: socket.socket) -> bytes:
        return caller.recv(12)[-3:]

    with serving(finished) as url, ExitStack() as stack:
        for _ in range(3):
            assert status(stack.enter_context(connected(url, events))) == b"200"
        with connected(url, events) as caller:
            assert status(caller) == b"503"
        stack.close()
        begin = time.monotonic()
        while time.monotonic() - begin < 30:
            with connected(url, events) as caller:
                if status(caller) == b"200":
                    break
                time.sleep(0.1)
        else:
            raise AssertionError("they are still counted")


def test_without_the_extra_one_line_says_what_to_install(finished):
    code = "import sys; sys.modules['uvicorn'] = None\nfrom meristem.commands.main import main\nsys.exit(main(sys.argv[1:]))"
    done = subprocess.run([sys.executable, "-c", code, "watch", str(finished), "--serve"], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr == "meristem: uvicorn is not installed: pip install 'meristem-nn[live]'\n"


class StopError(Exception):
    pass


@pytest.mark.filterwarnings("ignore::meristem.GrowthWarning", "ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", [TunnelClassifier, TunnelClassifierCV])
def test_a_fit_of_an_estimator_is_followed_and_its_lines_are_the_same_however_often_interrupted(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(fit_context, "SECONDS", 0.0)
    X, y = load_iris(return_X_y=True)
    small = {"width": 3, "depth": 2, "max_epochs": 6, "random_state": 0}
    small |= {"cv": 2, "penalties": [1e-3], "l2s": [1e-4], "refit": "one"} if kind is TunnelClassifierCV else {"l2": 1e-4}
    kind(**small, checkpoint_dir=tmp_path / "whole").fit(X, y)
    count = iter(range(10**6))

    def stop(info) -> None:
        if next(count) == 4:
            raise StopError

    with pytest.raises(StopError):
        kind(**small, checkpoint_dir=tmp_path / "cut", callbacks=stop).fit(X, y)
    assert View(tmp_path / "cut").now()["run"]["status"] == "running", "this process is there"
    kind(**small, checkpoint_dir=tmp_path / "cut", resume=True).fit(X, y)
    files = [tmp_path / name / ".meristem-run" / "epochs.jsonl" for name in ("whole", "cut")]
    assert files[0].read_bytes() == files[1].read_bytes() != b""
    state = View(tmp_path / "cut").now()
    names = {group["name"] for group in state["groups"]}
    assert state["run"]["status"] == "finished"
    called = {one["name"] for group in state["groups"] for one in group["members"]}
    assert called == ({"λ 0.001, fold 0", "λ 0.001, fold 1", None} if kind is TunnelClassifierCV else {None})
    assert names == (
        {"search", "replay"}
        if kind is TunnelClassifierCV
        else {"train", *(n for n in names if "dropout" in n or "replay" in n)}
    )


def test_a_picture_of_nothing_is_one(tmp_path):
    assert View(tmp_path).now()["groups"] == []
