"""After a search nothing is lost: what cannot be written then is said with how to make it, and the model is kept."""

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

import meristem
from test_full_disk import FIT, disk  # noqa: F401  (a fixture)
from test_tables_mistakes import people

COMMAND = [sys.executable, "-m", "meristem", "fit"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text(people(120))
    return path


def fill_up(path: Path) -> None:
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(2**16))


def test_an_export_that_fails_takes_no_model_with_it(tmp_path, table):
    """Onnxruntime is installed, and broken: libraries are."""
    broken = tmp_path / "site" / "onnxruntime"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise RuntimeError('libonnxruntime.so: cannot open shared object file')\n")
    out = tmp_path / "out"
    places = os.pathsep.join([str(broken.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [*COMMAND, table, *map(str, FIT), "--out", out]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": places}, check=False)
    line = done.stderr.splitlines()[-1]
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    assert line.startswith("meristem: model.onnx was not written: libonnxruntime.so") and "meristem export " in line
    assert sorted(path.name for path in out.iterdir() if path.is_file()) == ["model.safetensors", "report.html", "summary.json"]
    assert len(meristem.load(out / "model.safetensors").predict(table)) == 120


def test_a_disk_that_fills_up_during_the_search_loses_no_model(tmp_path, table, disk):  # noqa: F811
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    spare = tmp_path / "spare"
    spare.mkdir()
    command = [*COMMAND, table, *map(str, FIT), "--out", disk / "out"]
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | {"TMPDIR": str(spare)})
    while running.poll() is None and not (disk / "out" / ".meristem-run" / "run.json").exists():
        time.sleep(0.01)
    fill_up(disk / "full")
    said = running.communicate()[1]
    line = said.splitlines()[-1]
    assert running.returncode == 1 and "Traceback" not in said, said
    assert str(disk / "out") in line and f"The model is saved in '{spare}" in line, said
    (saved,) = spare.glob("*.safetensors")
    assert len(meristem.load(saved).predict(table)) == 120
