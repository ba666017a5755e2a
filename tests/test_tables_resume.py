"""`meristem fit` that is interrupted: what is said and kept, and that --resume comes to the same model, to the bit."""

import re
import shutil
import signal

import pytest

from commanding import meristem_here
from killing import lines, start, wait_for
from meristem.files.document import read
from soak import FACTOR
from test_tables_commands import people

HOW = ["--max-epochs", "9", "--budget", "900", "--target", "rich"]
HOW += ["--body", "tunnel"] if FACTOR == 1 else []  # a tree takes twice as long
pytestmark = [
    pytest.mark.filterwarnings("ignore::meristem.GrowthWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def arrays(out):
    return {name: (values.dtype.str, values.tobytes()) for name, values in read(out / "model.safetensors")[2].items()}


def test_one_interrupt_and_resume_give_the_model_of_a_run_that_was_not_interrupted(tmp_path):
    table, out = tmp_path / "people.csv", tmp_path / "out"
    table.write_text(people(120))
    fit = ["fit", str(table), *HOW, "--out", str(out)]
    with start("-m", "meristem", *fit) as process:
        wait_for(process, lambda moment=lines(6): moment(out))
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and "Traceback" not in errors and "the best model" not in errors
    command = f"meristem {' '.join(fit)}"
    assert errors.splitlines()[-1] == f"meristem: interrupted; no model was written yet; continue with: {command} --resume"
    assert [path.name for path in out.iterdir()] == [".meristem-run"]
    assert "run the same command with --resume" in meristem_here("watch", out, "--once").stdout

    shutil.copytree(out, tmp_path / "whole")
    other = meristem_here(*fit, "--seed", "1", "--resume")
    assert other.returncode == 2 and "holds another run: settings.random_state was 0 and is 1; choose" in other.stderr
    resumed = meristem_here(*fit, "--resume")
    assert resumed.returncode == 0 and f"{out} holds this run, interrupted: search at epoch " in resumed.stderr
    again = meristem_here(*fit, "--resume")
    assert again.returncode == 0 and again.stderr == f"{out} holds this run, and it is finished: nothing is left to do.\n"
    whole = meristem_here(*fit[:-1], tmp_path / "whole")
    assert whole.returncode == 0 and f"{tmp_path / 'whole'} held an interrupted run (search at epoch " in whole.stderr
    assert arrays(out) == arrays(tmp_path / "whole"), "begun anew, it is the same"
    told = [(place / ".meristem-run" / "epochs.jsonl").read_bytes() for place in (out, tmp_path / "whole")]
    assert told[0] == told[1]


def test_a_kill_before_anything_is_saved_is_said_and_it_begins_anew(tmp_path):
    table, out = tmp_path / "people.csv", tmp_path / "out"
    table.write_text(people(120))
    fit = ["fit", str(table), *HOW, "--max-epochs", "1", "--out", str(out)]
    with start("-m", "meristem", *fit) as process:
        wait_for(process, (out / ".meristem-run" / "run.json").exists)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert process.returncode == -signal.SIGKILL
    resumed = meristem_here(*fit, "--resume")
    assert resumed.returncode == 0
    assert resumed.stderr.startswith(f"{out} holds this run, interrupted: nothing was saved yet; it starts again.\n")
    page = (out / "report.html").read_text()
    assert re.search(r"\b1 epoch\b", page) and re.search(r"\b1 epochs", page) is None
