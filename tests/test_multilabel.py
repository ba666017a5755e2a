"""Sets of one's own: a small one that the test makes, Mulan's where they lie beside the project, and every wrong file."""

import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

import miniature
from meristem.data.parts import KEYS, multilabel

REAL = Path(os.environ.get("MERISTEM_DATA") or Path(__file__).parents[2] / "shared" / "data") / "multilabel"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return miniature.multilabel(tmp_path / "own.npz")


def changed(file: Path, **arrays: np.ndarray | None) -> Path:
    """The file with some arrays replaced, or left out where None."""
    with np.load(file) as before:
        kept = {**before, **arrays}
    np.savez(file, **{key: array for key, array in kept.items() if array is not None})
    return file


def test_a_fifth_of_the_training_part_is_for_development(file):
    first, again, other = multilabel(file), multilabel(file), multilabel(file, split=1)
    assert [part.x.shape for part in first] == [(80, 8), (20, 8), (50, 8)]
    assert [part.y.shape for part in first] == [(80, 4), (20, 4), (50, 4)]
    np.testing.assert_array_equal(first.dev.x, again.dev.x)
    assert (first.dev.x != other.dev.x).any()
    np.testing.assert_allclose(first.train.x.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(first.train.x.std(0), 1, atol=1e-5)
    with np.load(file) as raw:
        np.testing.assert_array_equal(first.test.y, raw["Y_test"])
        order = np.argsort(raw["X_train"][:, 0])
        labels = raw["Y_train"][order]
    # Every training sample is in one of the two parts, with its own labels.
    x, y = (np.concatenate(pair) for pair in zip(first.train, first.dev, strict=True))
    np.testing.assert_array_equal(y[np.argsort(x[:, 0])], labels)


@pytest.mark.skipif(not (REAL / "scene.npz").is_file(), reason="Mulan's sets are not on this machine (set MERISTEM_DATA)")
@pytest.mark.parametrize(
    ("name", "rows", "columns", "labels"),
    [("scene", (968, 243, 1196), 294, 6), ("corel5k", (3600, 900, 500), 499, 374), ("yeast", (1200, 300, 917), 103, 14)],
)
def test_real_sets(name, rows, columns, labels):
    parts = multilabel(REAL / f"{name}.npz")
    assert tuple(len(part.x) for part in parts) == rows
    assert parts.test.x.shape[1] == columns and parts.test.y.shape[1] == labels
    # corel5k's features are zeros and ones.
    assert parts.train.x.dtype == (np.uint8 if name == "corel5k" else np.float32)
    assert np.isfinite(parts.test.x).all()


def complaint(file: Path, **kwargs) -> str:
    with pytest.raises(ValueError) as caught:
        multilabel(file, **kwargs)
    assert str(file) in str(caught.value) and "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("key", KEYS)
def test_a_missing_array_is_named(file, key):
    assert f"lacks {key} (it holds " in complaint(changed(file, **{key: None}))


def test_what_is_no_npz_is_named(file, tmp_path):
    assert "is not there; name an .npz file (np.savez) with X_train, Y_train" in complaint(tmp_path / "nothing.npz")
    assert "is not there" in complaint(tmp_path)
    whole = file.read_bytes()
    for content in (b"", b"no archive", whole[:50], whole[:-50]):
        file.write_bytes(content)
        assert "is truncated or not an .npz file" in complaint(file)
    damaged = bytearray(whole)
    damaged[1000] ^= 255
    file.write_bytes(damaged)
    assert "X_train cannot be read (Bad CRC-32" in complaint(file)
    with file.open("wb") as stream:
        np.save(stream, np.eye(3))
    assert "is a single array, not an .npz file" in complaint(file)


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({"X_train": np.array([[{}]])}, "X_train cannot be read (Object arrays cannot be loaded"),
        ({"labels": np.array(["a", "b", "c", "d"], object)}, "labels cannot be read (Object arrays cannot be loaded"),
        ({"X_train": np.zeros(100)}, "X_train must be a matrix of numbers, samples × features, not float64 of shape (100,)"),
        ({"X_test": np.full((50, 8), "a")}, "X_test must be a matrix of numbers, samples × features, not <U1"),
        ({"X_test": np.zeros((0, 8))}, "X_test must be a matrix of numbers, samples × features, not float64 of shape (0, 8)"),
        ({"X_train": np.full((100, 8), np.nan)}, "X_train holds nan, inf or a number beyond float32 in row 0"),
        ({"X_test": np.full((50, 8), np.inf)}, "X_test holds nan, inf or a number beyond float32 in row 0"),
        ({"Y_train": np.full((100, 4), -1)}, "Y_train must hold 0 and 1 alone, not -1"),
        ({"Y_test": np.full((50, 4), 2)}, "Y_test must hold 0 and 1 alone, not 2"),
        ({"Y_train": np.zeros(100)}, "Y_train must be a matrix of 0 and 1, samples × labels, not float64 of shape (100,)"),
        ({"Y_train": np.zeros((99, 4))}, "must have a row for each sample, not X_train (100, 8), Y_train (99, 4)"),
        (
            {"Y_test": np.zeros((51, 4))},
            "must have a row for each sample, not X_train (100, 8), Y_train (100, 4), X_test (50, 8)",
        ),
        ({"X_test": np.zeros((50, 7))}, "both parts must have the same columns, and Y one for each of 4 labels, not X_train"),
        ({"Y_test": np.zeros((50, 5))}, "both parts must have the same columns, and Y one for each of 4 labels, not X_train"),
        ({"labels": np.array(["a"])}, "both parts must have the same columns, and Y one for each of 1 labels, not X_train"),
        ({"labels": np.arange(4)}, "labels must be a row of names, not int64 of shape (4,)"),
        ({"X_train": np.eye(4, 8), "Y_train": np.eye(4)}, "has 4 training samples; at least 5 are needed"),
    ],
)
def test_wrong_arrays_are_named(file, arrays, says):
    assert says in complaint(changed(file, **arrays))


def test_the_seed_is_checked(file):
    with pytest.raises(ValueError, match="split=-1 must be an integer of at least 0"):
        multilabel(file, split=-1)


def test_a_member_that_is_no_array_is_named(file):
    changed(file, labels=None)
    with zipfile.ZipFile(file, "a") as members:
        members.writestr("labels", "sky, sea")
    assert "labels cannot be read (it is not an array)" in complaint(file)
