"""SIGTERM, SIGHUP and Ctrl-C, at any moment from meristem's first line on: the status, a checkpoint, no traceback."""

import signal
import sys

import pytest

from killing import Study, lines, start, wait_for
from soak import FACTOR

TINY = ("--task", "easy", "--width", "3", "--depth", "2", "--max-epochs", "2000", "--models", "tunnel", "--seeds", "2")
STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
# Stops where the command begins to import what is large, and says so; the rest waits for the signal.
IMPORTING = """
import sys, time
class Slow:
    def find_spec(self, name, *_):
        if name == "meristem.commands.main":
            print("now", flush=True)
            time.sleep(60)
sys.meta_path.insert(0, Slow())
from meristem.commands.entry import main
main()
"""


def ended(process, number: signal.Signals) -> str:
    """What a process says that gets this signal."""
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == STATUS[number], errors
    assert "Traceback" not in errors and "Exception" not in errors
    return errors


def test_while_it_imports_and_while_it_trains(tmp_path):
    with start("-c", IMPORTING) as process:
        assert process.stdout.readline() == "now\n"
        assert ended(process, signal.SIGINT) == "\nmeristem: interrupted\n"
    study = Study(tmp_path / "out", TINY, every=300.0)
    with study.start() as process:
        wait_for(process, lambda moment=lines(20): moment(study.out))
        errors = ended(process, signal.SIGTERM)
    assert "meristem: terminated; continue with: meristem reproduce two-spirals" in errors and errors.rstrip().endswith(
        "--resume"
    )
    kept = list((study.out / ".meristem-run" / "checkpoints").iterdir())
    assert kept and not (study.out / "summary.json").exists(), "a last checkpoint, five minutes before the first was due"


@pytest.mark.skipif(FACTOR == 1, reason="for make soak")
@pytest.mark.parametrize("number", STATUS)
@pytest.mark.parametrize("moment", range(12))
def test_at_any_moment(tmp_path, number, moment):
    """From the first line on: before that, a signal is Python's."""
    code = "print('now', flush=True); from meristem.commands.entry import main; main()"
    options = ["reproduce", "two-spirals", *TINY[:-4], "--max-epochs", "20", "--models", "tunnel", "--out", str(tmp_path)]
    with start("-c", code, *options) as process:
        assert process.stdout.readline() == "now\n"
        try:
            process.wait(0.05 + moment * 0.7)
        except Exception:
            ended(process, number)
        else:
            assert process.returncode == 0


def test_a_second_signal_ends_at_once():
    code = """
import os, signal, time
from meristem.commands.entry import listen, on_shutdown
listen()
def never():
    print("now", flush=True)
    time.sleep(60)
with on_shutdown(never):
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)
"""
    with start("-c", code) as process:
        assert process.stdout.readline() == "now\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 143


@pytest.mark.skipif(sys.platform == "win32", reason="nohup")
def test_a_signal_that_is_ignored_stays_so():
    code = """
import os, signal
signal.signal(signal.SIGHUP, signal.SIG_IGN)
from meristem.commands.entry import listen
listen()
os.kill(os.getpid(), signal.SIGHUP)
print("still here")
"""
    with start("-c", code) as process:
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 0 and out == "still here\n"
