"""Downloads from a server on this machine: several at once, killed ones, wrong ones; the cache ends with one true file."""

import gc
import hashlib
import os
import re
import signal
import threading
import tracemalloc
import warnings
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from killing import start, wait_for
from meristem.data import dataset_files as files

DATA = bytes(range(256)) * 4096  # a megabyte
MD5 = hashlib.md5(DATA, usedforsecurity=False).hexdigest()
FETCH = """
import sys
from meristem.data.dataset_files import find
try:
    print(find("set", {"data.bin": sys.argv[2]}, sys.argv[1]))
except ValueError as error:
    sys.exit(str(error))
"""


class Server(ThreadingHTTPServer):
    """Sends half of the data, waits until it `may_go_on`, and sends the rest."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked, self.may_go_on = 0, threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}/"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked += 1
        self.send_response(200 if self.path == "/data.bin" else 404)
        self.send_header("Content-Length", str(len(DATA)))
        self.end_headers()
        try:
            self.wfile.write(DATA[: len(DATA) // 2])
            self.server.may_go_on.wait(60)
            self.wfile.write(DATA[len(DATA) // 2 :])
        except OSError:  # whoever asked is gone
            self.close_connection = True

    def log_message(self, *args: object) -> None:
        """Nobody reads it."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as found:
        thread = threading.Thread(target=found.serve_forever)
        thread.start()
        yield found
        found.may_go_on.set()
        found.shutdown()
        thread.join()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.delenv("MERISTEM_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "meristem" / "data" / "set"


def test_two_at_once_end_with_one_true_file(server, cache):
    with start("-c", FETCH, server.url, MD5) as one, start("-c", FETCH, server.url, MD5) as other:
        wait_for(one, lambda: server.asked == 2)  # both are half way
        assert len(os.listdir(cache)) == 2 and not (cache / "data.bin").exists()
        server.may_go_on.set()
        said = [process.communicate(timeout=60) for process in (one, other)]
    assert [process.returncode for process in (one, other)] == [0, 0], said
    assert {out.strip() for out, _ in said} == {str(cache)}
    assert os.listdir(cache) == ["data.bin"] and (cache / "data.bin").read_bytes() == DATA


def test_what_a_killed_download_left_is_taken_away_by_the_next(server, cache):
    with start("-c", FETCH, server.url, MD5) as process:
        wait_for(process, lambda: server.asked == 1 and cache.is_dir() and len(os.listdir(cache)) == 1)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    (left,) = os.listdir(cache)
    assert left.startswith(".meristem-"), "a part is no file of the data set"
    server.may_go_on.set()
    assert files.find("set", {"data.bin": MD5}, server.url) == cache
    assert os.listdir(cache) == ["data.bin"] and (cache / "data.bin").read_bytes() == DATA
    assert files.find("set", {"data.bin": MD5}, server.url) == cache and server.asked == 2, "it is not fetched again"


@pytest.mark.parametrize(("file", "said"), [("data.bin", f"the checksum {MD5}, not 0000"), ("none.bin", "404")])
def test_a_wrong_checksum_and_a_file_that_is_not_there_are_one_line_each(file, said, server, cache):
    server.may_go_on.set()
    with pytest.raises(ValueError, match=rf"{file} could not be downloaded \(.*{said}") as caught:
        files.find("set", {file: "0" * 32}, server.url)
    assert "\n" not in str(caught.value) and re.search(r"download .* into .*, or name their folder", str(caught.value))
    assert os.listdir(cache) == []
    del caught
    with warnings.catch_warnings(action="ignore"):  # requests leaves the connection of a 404 to the garbage collector
        gc.collect()


def test_the_checksum_of_a_large_file_takes_little_memory(tmp_path):
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(100 * 2**20)
    tracemalloc.start()
    found = files._md5(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == "2f282b84e7e608d5852449ed940bfc51" and peak < 2**20
