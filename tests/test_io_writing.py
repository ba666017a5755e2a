"""Files: a writer that fails, is killed or dies in the middle leaves a whole file."""

import os
import random
import signal
import time

import pytest

from filing import alike, complaint, create, launch
from meristem.files import load, save
from meristem.files.atomic_write import clean_leftovers
from meristem.files.document import read


@pytest.fixture
def saved(tmp_path):
    save(tmp_path / "model.safetensors", create("budding"))
    return tmp_path / "model.safetensors"


def test_saving_that_fails_leaves_the_old_file(saved, monkeypatch):
    before = saved.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert "No space left" in complaint(save, saved, create("plain"))
    assert saved.read_bytes() == before and os.listdir(saved.parent) == [saved.name]


def test_a_link_is_written_through(saved, tmp_path):
    (tmp_path / "link").symlink_to(saved)
    save(tmp_path / "link", create("plain"))
    assert (tmp_path / "link").is_symlink() and alike(load(saved), create("plain"))


def test_a_killed_writer_leaves_a_whole_file(tmp_path):
    program = """if True:
        import sys
        import numpy as np
        from meristem.files.atomic_write import write_whole
        from meristem.files.document import packed
        for turn in range(1_000_000):
            write_whole(sys.argv[1], packed("turn", {"turns": np.full(500_000, turn)}, {"turn": turn}))
            print(turn, flush=True)
    """
    writers = [launch(program, str(tmp_path / str(n))) for n in range(3)]
    chance = random.Random()
    try:
        for n, writer in enumerate(writers):
            assert writer.stdout is not None and writer.stdout.readline()
            time.sleep(chance.uniform(0, 0.2))
            writer.send_signal(signal.SIGKILL)
            printed = writer.communicate()[0].split()
            _, header, arrays, _ = read(tmp_path / str(n))
            assert header["turn"] >= int(printed[-1] if printed else 0)
            assert (arrays["turns"] == header["turn"]).all()
    finally:
        for writer in writers:
            with writer:
                writer.kill()
    assert all(path.name in "012" or path.name.startswith(".meristem-") for path in tmp_path.iterdir())


def test_a_writer_that_dies_in_the_middle_leaves_the_old_file(tmp_path):
    """The system ends it at the thousandth byte, to be sure of the moment."""
    program = """if True:
        import resource, signal, sys
        import numpy as np
        from meristem.files.atomic_write import write_whole
        from meristem.files.document import packed
        write_whole(sys.argv[1], packed("old", {}, {}))
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        write_whole(sys.argv[1], packed("new", {"numbers": np.zeros(1000)}, {}))
    """
    with launch(program, str(tmp_path / "file")) as writer:
        writer.communicate()
    assert writer.returncode == -signal.SIGXFSZ
    assert read(tmp_path / "file").kind == "old"
    rest = [path for path in tmp_path.iterdir() if path.name != "file"]
    assert [path.stat().st_size for path in rest] == [1000] and rest[0].name.startswith(".meristem-")


def test_leftovers_are_deleted_once_their_writers_have_ended(tmp_path):
    ended, alive = (tmp_path / f".meristem-{process}-0123456789abcdef" for process in (2**22 + 1, os.getpid()))
    for path in (ended, alive):
        path.write_bytes(b"a part")
    clean_leftovers(tmp_path)
    assert list(tmp_path.iterdir()) == [alive]
