"""Checkpoints: in the background, for a small share of the time, the newest that can be read; estimators go on, too."""

import time
from pathlib import Path

import jax
import numpy as np
import pytest
from sklearn.datasets import load_iris

from filing import RECIPE, create
from meristem import TunnelClassifier, TunnelClassifierCV, fit, save
from meristem.data.spirals import two_spirals
from meristem.estimators import fit_context
from meristem.folders.checkpoints import Checkpoints
from meristem.train.saving import Saver

KEY = jax.random.key(1)
GIVEN = {"learning_rate": 3e-3, "penalty": 1e-3, "key": KEY, "recipe": RECIPE, "max_epochs": 6}


class StopError(Exception):
    """What ends a training in these tests."""


def stop_after(epoch: int):
    def watch(info):
        if int(info.epoch) == epoch:
            raise StopError

    return watch


def interrupted(folder: Path, at: int) -> None:
    """A training that ends after so many epochs, each of which is kept."""
    checkpoints = Checkpoints(folder, seconds=0)
    with pytest.raises(StopError), checkpoints.keeping():
        fit(create("plain"), two_spirals("easy"), **GIVEN, watch=[lambda info: checkpoints.now(), stop_after(at)])
    checkpoints.now()


def resumed(folder: Path) -> tuple[list[int], list[str], Path]:
    """The epochs that were trained again, what was said, and the run as a file."""
    epochs, said = [], []
    checkpoints = Checkpoints(folder, say=said.append)
    with checkpoints.keeping():
        run = fit(create("plain"), two_spirals("easy"), **GIVEN, watch=lambda info: epochs.append(int(info.epoch)))
    save(folder / "run", run)
    return epochs, said, folder / "run"


def test_the_newest_that_can_be_read_is_used_and_the_last_three_are_kept(tmp_path):
    save(tmp_path / "whole", fit(create("plain"), two_spirals("easy"), **GIVEN))
    folder = tmp_path / "kept"
    interrupted(folder, 6)
    files = sorted(folder.iterdir())
    assert [path.name.split(".")[2] for path in files] == ["000003", "000004", "000005"]
    flipped = bytearray(files[-1].read_bytes())
    flipped[-9] ^= 1
    files[-1].write_bytes(flipped)
    files[-2].write_bytes(files[-2].read_bytes()[:-5])
    epochs, said, run = resumed(folder)
    assert epochs == [4, 5, 6] and run.read_bytes() == (tmp_path / "whole").read_bytes()
    assert "is damaged" in said[0] and "is truncated" in said[1] and all("The one before it is used." in line for line in said)


def test_another_start_finds_nothing(tmp_path):
    interrupted(tmp_path, 4)
    epochs: list[int] = []
    others = [(create("plain", seed=1), "easy", 6), (create("plain"), "medium", 6), (create("plain"), "easy", 5)]
    for network, task, most in others:
        with Checkpoints(tmp_path).keeping():
            given = GIVEN | {"max_epochs": most}
            fit(network, two_spirals(task), **given, watch=lambda info: epochs.append(int(info.epoch)))
    assert epochs == [*range(1, 7), *range(1, 7), *range(1, 6)]


def test_saving_takes_a_small_share_of_the_time_and_says_what_went_wrong():
    saved = []

    def slowly(name, run):
        time.sleep(0.02)
        saved.append(run)

    saver, begin = Saver(slowly, seconds=0.0), time.monotonic()
    while time.monotonic() - begin < 1.0:
        saver.offer("run", lambda: len(saved))  # type: ignore[arg-type, return-value]
        time.sleep(0.001)
    assert 1 <= len(saved) <= 4 and saver.spent < 0.1

    def fail(name, run):
        raise ValueError("the disk is full")

    saver = Saver(fail, seconds=0.0)
    saver.offer("run", lambda: None)  # type: ignore[arg-type, return-value]
    with pytest.raises(ValueError, match="the disk is full"):
        saver.close()


@pytest.mark.filterwarnings("ignore::meristem.GrowthWarning", "ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", [TunnelClassifier, TunnelClassifierCV])
def test_an_estimator_goes_on(kind, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(fit_context, "SECONDS", 0.0)
    X, y = load_iris(return_X_y=True)
    small = {"width": 3, "depth": 2, "max_epochs": 6, "random_state": 0}
    small |= {"cv": 2, "penalties": [1e-3], "l2s": [1e-4]} if kind is TunnelClassifierCV else {"input_dropout": 0.0, "l2": 1e-4}
    whole = kind(**small).fit(X, y)
    folder = {"checkpoint_dir": tmp_path / "kept"}
    with pytest.raises(StopError):
        kind(**small, **folder, callbacks=stop_after(4)).fit(X, y)
    for changed, says in (({}, "resume it with resume=True"), ({"resume": True, "max_epochs": 7}, "settings.max_epochs was")):
        with pytest.raises(ValueError, match=says):
            kind(**small | folder | changed).fit(X, y)
    with pytest.raises(ValueError, match=r"data\.x was"):
        kind(**small, **folder, resume=True).fit(X + 1, y)
    epochs: list[int] = []
    model = kind(**small, **folder, resume=True, callbacks=lambda info: epochs.append(int(info.epoch))).fit(X, y)
    assert "It resumes from there." in capsys.readouterr().err and epochs[0] == 4, "three epochs were kept"
    np.testing.assert_array_equal(model.decision_function(X), whole.decision_function(X))
    with pytest.raises(ValueError, match="checkpoint_dir needs an integer"):
        kind(**small | folder | {"random_state": None}).fit(X, y)
    with pytest.raises(ValueError, match="checkpoint_dir=3 must be the path of a folder"):
        kind(checkpoint_dir=3).fit(X, y)
