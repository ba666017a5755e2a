"""Loggers write what the history says, epoch by epoch: lines of JSON, and event files read back record by record."""

import copy
import json
import pickle
import struct
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris

from filing import create
from meristem import TunnelClassifier, fit, load, save
from meristem.data.spirals import two_spirals
from meristem.loggers import JSONLines, TensorBoard
from meristem.train.loop import seed_keys
from meristem.train.run import Run

EPOCHS = 3


def trained(watch: object) -> Run:
    """A population of two."""
    networks = jax.tree.map(lambda *leaves: jnp.stack(leaves), create("tunnel"), create("tunnel", seed=1))
    given = {"learning_rate": 3e-3, "penalty": 1e-3, "key": seed_keys([0, 1], 1)}
    return fit(networks, two_spirals("easy"), **given, max_epochs=EPOCHS, watch=watch)


def scalars(folder: Path) -> dict[str, dict[int, float]]:
    """Tag → step → value, from the records of all event files: length, its checksum, data, their checksum."""
    from tensorboardX.proto.event_pb2 import Event

    found: dict[str, dict[int, float]] = {}
    for path in folder.glob("events.out.tfevents.*"):
        data, place = path.read_bytes(), 0
        while place < len(data):
            (length,) = struct.unpack_from("<Q", data, place)
            event = Event.FromString(data[place + 12 : place + 12 + length])
            for value in event.summary.value:
                found.setdefault(value.tag, {})[event.step] = value.simple_value
            place += 16 + length
        assert place == len(data), "whole records"
    return found


def test_a_population_is_read_back_from_both(tmp_path):
    pytest.importorskip("tensorboardX")
    with TensorBoard(tmp_path / "logs") as board:
        run = trained([JSONLines(tmp_path / "run.jsonl"), board])
    lines = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    assert sorted((line["member"], line["epoch"]) for line in lines) == [(m, e) for m in (0, 1) for e in range(1, EPOCHS + 1)]
    events = scalars(tmp_path / "logs")
    for name, values in run.history.items():
        for line in lines:
            said = values[line["epoch"] - 1, line["member"]]
            np.testing.assert_array_equal(line[name], said)
            tag = f"{name}/{line['member']}"
            tags = [tag] if said.ndim == 0 else [f"{tag}/{layer}" for layer in range(1, len(said) + 1)]
            np.testing.assert_allclose([events[one][line["epoch"]] for one in tags], np.ravel(said).astype(float), rtol=1e-6)


@pytest.mark.filterwarnings("ignore::meristem.GrowthWarning", "ignore::sklearn.exceptions.ConvergenceWarning")
def test_an_estimator_with_loggers_is_cloned_pickled_and_saved(tmp_path):
    pytest.importorskip("tensorboardX")
    X, y = load_iris(return_X_y=True)
    loggers = [JSONLines(tmp_path / "run.jsonl"), TensorBoard(tmp_path / "logs")]
    model = TunnelClassifier(width=3, depth=2, max_epochs=EPOCHS, l2=1e-4, input_dropout=0.0, random_state=0, callbacks=loggers)
    model.fit(X, y)
    lines = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    mine = [line["loss"] for line in lines if line["group"] == "train"]
    np.testing.assert_array_equal(mine, model.history_["loss"])
    np.testing.assert_allclose(list(scalars(tmp_path / "logs")["train/loss/0"].values()), mine, rtol=1e-6)
    for other in (clone(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert repr(other.callbacks) == repr(loggers) and other.callbacks[1]._writer is None, "no open file is shared"
        other.callbacks[0].part("again").epoch(0, _info())
        other.callbacks[1].epoch(0, _info())
        other.callbacks[1].close()
    assert len((tmp_path / "run.jsonl").read_text().splitlines()) == len(lines) + 3
    with pytest.warns(UserWarning, match="callbacks"):
        save(tmp_path / "model.safetensors", model)
    assert load(tmp_path / "model.safetensors").callbacks is None
    loggers[1].close()


def _info():
    seen = []
    fit(
        create("tunnel"),
        two_spirals("easy"),
        learning_rate=3e-3,
        penalty=1e-3,
        key=jax.random.key(0),
        max_epochs=1,
        watch=seen.append,
    )
    return seen[0]


def test_what_cannot_be_written_is_said_at_once(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="give the path of a file in a folder that exists"):
        JSONLines(tmp_path / "nowhere" / "run.jsonl")
    with pytest.raises(ValueError, match="give the path of a file"):
        JSONLines(tmp_path)
    (tmp_path / "file").write_text("")
    pytest.importorskip("tensorboardX")
    with pytest.raises(ValueError, match="that is a file; give a folder"):
        TensorBoard(tmp_path / "file")
    monkeypatch.setitem(__import__("sys").modules, "tensorboardX", None)
    with pytest.raises(ImportError, match=r"pip install 'meristem-nn\[tensorboard\]'"):
        TensorBoard(tmp_path / "logs")


def test_a_disk_that_is_full_is_a_warning():
    """/dev/full takes nothing."""
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    with pytest.warns(RuntimeWarning, match="epoch 1 is not in it"):
        JSONLines("/dev/full").epoch(0, _info())
