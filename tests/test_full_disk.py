"""A full disk, a real one where it can be had: exit status 1, one line with the user's path, and no part of a file stays.

As root a small disk in memory is mounted; else no file of the process may be larger than the disk would have room for.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from commanding import Done, meristem, meristem_here
from test_tables_commands import people

if sys.platform == "win32":
    pytest.skip("neither can be had", allow_module_level=True)

LIMITED = """
import resource, sys
from meristem.commands.main import main

limit = int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
sys.exit(main())
"""
FIT = ["--body", "tunnel", "--max-epochs", "2", "--budget", "900", "--target", "rich"]
STUDY = ["reproduce", "two-spirals", "--models", "tunnel", "--task", "easy", "--seeds", "1", "--width", "3", "--depth", "1"]
pytestmark = [
    pytest.mark.filterwarnings("ignore::meristem.GrowthWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A folder for the disk."""
    place = tmp_path / "disk"
    place.mkdir()
    yield place
    if os.path.ismount(place):
        subprocess.run(["umount", place], check=True)


def filled(disk: Path, room: int, *args: object) -> Done:
    """What a command answers that has so many bytes of room there."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={room}", "tmpfs", str(disk)]
    if shutil.which("mount") and subprocess.run(mount, capture_output=True, check=False).returncode == 0:
        return meristem_here(*args)
    return meristem(room // 4, *args, code=LIMITED, MERISTEM_CACHE="off", JAX_COMPILATION_CACHE_DIR=None)


def cannot_be_written(done: Done, path: Path) -> None:
    line = done.stderr.splitlines()[-1]
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    assert line.startswith("meristem: ") and str(path) in line and ".meristem-run/." not in line, line
    assert any(words in line for words in ("No space left on device", "File too large", "the disk has")), line


def leftovers(disk: Path) -> list[Path]:
    return [path for path in disk.rglob(".meristem-*") if path.is_file()]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("people") / "people.csv"
    path.write_text(people(120))
    return path


@pytest.fixture(scope="module")
def model(table: Path) -> Path:
    out = table.parent / "out"
    done = meristem_here("fit", table, *FIT, "--out", out)
    assert done.returncode == 0, done.stderr
    return out / "model.safetensors"


@pytest.mark.parametrize("room", [4096, 32 * 1024])
def test_fit(disk, table, room):
    """Before it begins, and at its end."""
    done = filled(disk, room, "fit", table, *FIT, "--out", disk / "out")
    cannot_be_written(done, disk / "out")
    assert leftovers(disk) == [] and not (disk / "out" / "summary.json").exists()
    assert "the disk has" not in done.stderr or list(disk.iterdir()) == [], "found out before anything is written"


def test_fit_of_which_the_model_alone_does_not_fit(disk, table, model):
    room = sum(path.stat().st_size for path in (model.with_name("model.onnx"), model)) // 2
    done = filled(disk, room, "fit", table, *FIT, "--out", disk / "out")
    cannot_be_written(done, disk / "out")
    assert leftovers(disk) == []


def test_predict(disk, tmp_path, model):
    out, table = disk / "said.csv", tmp_path / "people.csv"
    table.write_text(people(1000))
    done = filled(disk, 4096, "predict", model, table, "--out", out)
    cannot_be_written(done, out)
    assert list(disk.iterdir()) == []


def test_export(disk, model):
    out = disk / "model.onnx"
    done = filled(disk, 4096, "export", model, "--onnx", out)
    cannot_be_written(done, out)
    assert list(disk.iterdir()) == []


@pytest.mark.parametrize("room", [4096, 16 * 1024])
def test_reproduce(disk, room):
    done = filled(disk, room, *STUDY, "--max-epochs", 2, "--out", disk / "out")
    cannot_be_written(done, disk / "out")
    assert leftovers(disk) == [] and not (disk / "out" / "summary.json").exists()
    assert "the disk has" not in done.stderr or list(disk.iterdir()) == [], "found out before anything is written"


def test_a_folder_that_is_not_there_is_bad_input(disk, model):
    done = filled(disk, 4096, "export", model, "--onnx", disk / "nowhere" / "model.onnx")
    assert done.returncode == 2 and "is no folder" in done.stderr, done.stderr
