"""The code of docs/tuners.md, run where Optuna or Ray Tune is installed: pip install optuna, pip install 'ray[tune]'."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

BLOCKS = re.findall(r"```py\n(.*?)```", (Path(__file__).parent.parent / "docs" / "tuners.md").read_text(), re.DOTALL)


@pytest.mark.parametrize("module", ["optuna", "ray.tune"])
def test_the_code_of_the_page_runs(module, tmp_path):
    pytest.importorskip(module, reason=f"{module} is not installed", exc_type=ImportError)
    (block,) = [block for block in BLOCKS if f"import {module.rpartition('.')[2]}\n" in block]
    env = os.environ | {"RAY_ADDRESS": "local"}  # not a cluster of another test
    command = [sys.executable, "-W", "ignore", "-c", block]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=env)
    assert done.returncode == 0 and "'penalty': " in done.stdout, done.stderr


def test_the_page_has_code_for_both():
    for block in BLOCKS:
        compile(block, "a page", "exec")
    assert len(BLOCKS) == 2
