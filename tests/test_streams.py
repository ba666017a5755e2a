"""Output that cannot be written: one line, status 1, and nothing lost; paths and platforms that are not there: one line, 2."""

import os
import stat
import subprocess
import sys

import numpy as np
import pytest

import meristem
from commanding import meristem_here
from meristem.files.atomic_write import write_whole
from reporting import SHORT_SEARCH

LONG = "a" * 300
QUICK = SHORT_SEARCH | {"max_epochs": 2, "penalties": [1e-4], "input_dropouts": [0.0]}
pytestmark = [
    pytest.mark.filterwarnings("ignore::meristem.GrowthWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def run(*args, variables=None, **streams):
    command = [sys.executable, "-m", "meristem", *map(str, args)]
    env = {name: value for name, value in os.environ.items() if name != "HOME"} | (variables or {})
    return subprocess.run(command, env=env, timeout=200, check=False, text=True, **{"stderr": subprocess.PIPE} | streams)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_full_standard_output_is_one_line():
    with open("/dev/full", "w") as full:
        done = run("--help", stdout=full)
    assert (done.returncode, done.stderr) == (1, "meristem: standard output cannot be written (No space left on device).\n")


def test_a_character_that_the_terminal_lacks_is_a_question_mark():
    done = run("reproduce", "two-spirals", "--help", stdout=subprocess.PIPE, variables={"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "?" in done.stdout


@pytest.mark.parametrize("args", [("show", LONG), ("figures", LONG), ("reproduce", "two-spirals", "--out", LONG)])
def test_a_path_that_is_too_long_is_one_line(args):
    done = meristem_here(*args)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "File name too long" in done.stderr


def test_a_pipe_is_not_replaced_by_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="is no plain file"):
        write_whole(tmp_path / "pipe", b"data")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@pytest.mark.skipif(sys.platform == "win32", reason="a shell that closes streams")
@pytest.mark.parametrize("command", ["fit - --target y --out {folder}/out", "predict {folder}/model.safetensors -"])
def test_a_closed_standard_input_is_one_line(table_model, command):
    args = command.format(folder=table_model)
    line = f"{sys.executable} -m meristem {args} 0<&-"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 2 and done.stderr.startswith("meristem: standard input is closed; give the path of a table")
    assert len(done.stderr.splitlines()) == 1 and not (table_model / "out").exists()


@pytest.fixture(scope="module")
def table_model(tmp_path_factory):
    """A folder with the model of a table."""
    folder, x = tmp_path_factory.mktemp("model"), np.arange(40)
    meristem.fit_table({"x": x, "y": 2 * x}, target="y", **QUICK).save(folder / "model.safetensors")
    return folder
