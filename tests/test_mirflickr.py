"""MIRFLICKR: a miniature of the released archive, the real labels and tags where they lie beside the project, wrong files."""

import os
import pickle
from pathlib import Path

import numpy as np
import pytest

import miniature
from meristem.data import dataset_files as files
from meristem.data.mirflickr import COLLAPSE, LABELS, LABELS24, LABELS38, SHARDS, TAGS, mirflickr, picked

REAL = Path(os.environ.get("MERISTEM_DATA") or Path(__file__).parents[2] / "shared" / "data") / "mirflickr"


def needs(file: str) -> pytest.MarkDecorator:
    reason = f"{file} is not on this machine (set MERISTEM_DATA to the folder above its folder mirflickr)"
    return pytest.mark.skipif(not (REAL / file).is_file(), reason=reason)


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No data but what a test puts there."""
    monkeypatch.delenv("MERISTEM_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return miniature.archive(tmp_path / "mirflickr")


@pytest.fixture
def tags(tmp_path: Path) -> Path:
    return miniature.tags(tmp_path / "mirflickr")


def complaint(*args, **kwargs) -> str:
    with pytest.raises(ValueError) as caught:
        mirflickr(*args, **kwargs)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# ---- labels


def test_the_names_of_each_task():
    assert [len(LABELS[task]) for task in ("38", "24", "10")] == [38, 24, 10]
    assert sorted(LABELS38) == LABELS38
    assert {name.removesuffix("_r1") for name in LABELS38} == set(LABELS24)
    with pytest.raises(ValueError, match=r"task='39' is not known.*38"):
        mirflickr("39")


def test_each_label_goes_to_one_of_the_ten():
    members = [member for group in COLLAPSE.values() for member in group]
    assert sorted(members) == LABELS24
    assert all(name in group for name, group in COLLAPSE.items())


@pytest.mark.parametrize("column", range(38))
def test_a_label_and_its_r1_raise_the_same_one_of_the_ten(column):
    (only,) = picked(np.eye(38, dtype=np.uint8)[[column]], LABELS38, LABELS["10"])
    (name,) = [name for name, there in zip(LABELS["10"], only, strict=True) if there]
    assert LABELS38[column].removesuffix("_r1") in COLLAPSE[name]


@needs("labels38_25000.npz")
def test_ten_labels_are_their_members_joined_on_the_real_labels():
    with np.load(REAL / "labels38_25000.npz") as file:
        y, names = file["Y"], file["names"].tolist()
    assert names == LABELS38
    ten = picked(y, LABELS38, LABELS["10"])
    for column, members in zip(ten.T, COLLAPSE.values(), strict=True):
        columns = [k for k, name in enumerate(names) if name in members or name.removesuffix("_r1") in members]
        np.testing.assert_array_equal(column, np.bitwise_or.reduce(y[:, columns], axis=1))
    counts = dict(zip(LABELS["10"], ten.sum(0).tolist(), strict=True))
    assert (counts["food"], counts["indoor"], counts["structures"]) == (990, 8313, 9992)


# ---- image features


@pytest.mark.parametrize("split", range(1, 6))
@pytest.mark.parametrize("task", ["38", "24", "10"])
def test_every_split_picks_its_rows_from_every_shard(archive, task, split):
    stacked = np.concatenate([np.load(archive / file) for file in SHARDS]).astype(np.float64)
    labels = np.load(archive / "labels.npy")
    rows = [np.load(archive / f"splits/{name}_indices_{split}.npy") for name in ("train", "valid", "test")]
    train = stacked[rows[0]]
    parts = mirflickr(task, folder=archive, split=split)
    assert [part.x.shape for part in parts] == [(100, 12), (50, 12), (100, 12)]
    for part, picks in zip(parts, rows, strict=True):
        assert part.x.dtype == np.float32 and part.y.dtype == np.uint8
        np.testing.assert_allclose(part.x, (stacked[picks] - train.mean(0)) / train.std(0), atol=1e-4)
        np.testing.assert_array_equal(part.y, picked(labels[picks], LABELS38, LABELS[task]))


def test_the_miniature_can_be_learned(archive):
    parts = mirflickr("10", folder=archive)
    weights, *_ = np.linalg.lstsq(parts.train.x, parts.train.y - parts.train.y.mean(0), rcond=None)
    guess = parts.test.x @ weights + parts.train.y.mean(0) > 0.5
    often = parts.train.y.mean(0) > 0.5
    assert (guess != parts.test.y).mean() < 0.75 * (often != parts.test.y).mean()


@pytest.mark.parametrize("dtype", [np.float64, np.int32, bool])
def test_labels_and_features_of_other_types_are_the_same(archive, dtype):
    labels = np.load(archive / "labels.npy")
    before = mirflickr("38", folder=archive)
    np.save(archive / "labels.npy", labels.astype(dtype))
    for file in SHARDS:
        np.save(archive / file, np.load(archive / file).astype(np.float64))
    for part, was in zip(mirflickr("38", folder=archive), before, strict=True):
        np.testing.assert_array_equal(part.x, was.x)
        np.testing.assert_array_equal(part.y, was.y)


def test_features_of_zeros_and_ones_stay(archive):
    for file in SHARDS:
        x = np.load(archive / file)
        np.save(archive / file, x > np.median(x, 0))
    assert set(np.unique(mirflickr("10", folder=archive).train.x)) == {0, 255}


# ---- places


def test_places_are_looked_into_in_order(archive, tmp_path, monkeypatch):
    cached = miniature.archive(files.cache_folder() / "mirflickr", features=3)
    assert mirflickr().train.x.shape[1] == 3
    monkeypatch.setenv("MERISTEM_DATA", str(archive.parent))
    assert mirflickr().train.x.shape[1] == 12
    assert mirflickr(folder=cached).train.x.shape[1] == 3
    # A folder that is named is meant.
    assert complaint(folder=tmp_path / "cache").startswith("--data=")


@pytest.mark.parametrize("features", ["images", "tags"])
@pytest.mark.parametrize("named", ["--data", "MERISTEM_DATA", None])
def test_when_nothing_is_found_one_line_says_what_to_get_and_where_to_put_it(features, named, tmp_path, monkeypatch):
    if named == "MERISTEM_DATA":
        monkeypatch.setenv(named, str(tmp_path))
    said = complaint("10", features, tmp_path if named == "--data" else None)
    assert said.startswith(f"{named}='{tmp_path}' holds no mirflickr files" if named else "mirflickr (")
    assert str(files.cache_folder() / "mirflickr") in said and "with --data." in said
    if features == "images":
        assert "download flickr_data.tar.gz (about 5 GB) from http://www.cs.toronto.edu/~nitish/multimodal/, unpack it" in said
    else:
        assert f"put {TAGS} (X [photographs, 1386] and Y [photographs, 24], of 0 and 1)" in said
    assert not files.cache_folder().exists()


def test_missing_files_are_named(archive):
    for file in (SHARDS[1], "splits/valid_indices_3.npy"):
        (archive / file).unlink()
    assert f"{archive} lacks splits/valid_indices_3.npy, {SHARDS[1]}; download" in complaint(folder=archive, split=3)
    assert f"{archive} lacks {SHARDS[1]}; download" in complaint(folder=archive)


def test_arguments_are_checked(archive):
    assert "task='100' is not known. Did you mean '10'?" in complaint("100", folder=archive)
    assert "features='image' is not known. Did you mean 'images'?" in complaint("10", "image", archive)
    assert "split=6: MIRFLICKR's archive has the splits 1 to 5" in complaint(folder=archive, split=6)
    assert "split=0: MIRFLICKR's archive has the splits 1 to 5" in complaint(folder=archive, split=0)
    assert "split=-1 must be an integer of at least 0" in complaint("10", "tags", archive, split=-1)
    assert "tags, which come with 24 labels: choose 24 or 10" in complaint("38", "tags", archive)


# ---- broken files


@pytest.mark.parametrize("file", ["labels.npy", "splits/test_indices_1.npy", *SHARDS])
@pytest.mark.parametrize("keep", [0, 5, 100, -1])
def test_truncated_files_are_named(archive, file, keep):
    (archive / file).write_bytes((archive / file).read_bytes()[:keep])
    said = complaint(folder=archive)
    assert said.startswith(f"{archive / file} is truncated or not a .npy file") and "unpack flickr_data.tar.gz again" in said


def test_a_damaged_header_is_named(archive):
    (archive / SHARDS[0]).write_bytes((archive / SHARDS[0]).read_bytes().replace(b"(100, 12)", b"(100, 12 "))
    assert f"{SHARDS[0]} is truncated or not a .npy file" in complaint(folder=archive)


def test_no_pickle_is_opened(archive):
    (archive / "labels.npy").write_bytes(pickle.dumps([1, 2, 3]))
    assert "labels.npy is truncated or not a .npy file of numbers" in complaint(folder=archive)
    np.save(archive / "labels.npy", np.array([{}, None]), allow_pickle=True)
    assert "labels.npy is truncated or not a .npy file of numbers (Array can't be memory-mapped" in complaint(folder=archive)
    with (archive / "labels.npy").open("wb") as stream:
        np.savez(stream, y=np.zeros((250, 38)))
    assert "labels.npy is truncated or not a .npy file of numbers (the magic string" in complaint(folder=archive)


def zeros(*shape: int, value: float | None = None, dtype: type = np.float32) -> np.ndarray:
    array = np.zeros(shape, dtype)
    if value is not None:
        array[-3, 0] = value
    return array


WRONG = {
    "labels of rank 1": ("labels.npy", zeros(250), r"must be a matrix of 0 and 1.* not float32 of shape \(250,\)"),
    "names for labels": ("labels.npy", np.full((250, 38), "sky"), "must be a matrix of 0 and 1.* not <U3"),
    "24 columns": ("labels.npy", zeros(250, 24), "has 24 columns, not the 38 labels"),
    "a label of -1": ("labels.npy", zeros(250, 38, value=-1), "must hold 0 and 1 alone, not -1.0"),
    "a label of nan": ("labels.npy", zeros(250, 38, value=np.nan), "must hold 0 and 1 alone, not nan"),
    "no labels": ("labels.npy", zeros(0, 38), r"must be a matrix of 0 and 1.* shape \(0, 38\)"),
    "rank 3": (SHARDS[0], zeros(100, 3, 4), r"must be a matrix of numbers.* shape \(100, 3, 4\)"),
    "complex": (SHARDS[2], zeros(50, 12, dtype=complex), "must be a matrix of numbers.* not complex128"),
    "rows of shard 1": (SHARDS[0], zeros(93, 12), "has 93 rows, not its 100 of the 250 in labels.npy"),
    "rows of shard 2": (SHARDS[1], zeros(101, 12), "has 101 rows, not its 100 of the 250"),
    "rows of shard 3": (SHARDS[2], zeros(1, 12), "has 1 rows, not its 50 of the 250"),
    "columns": (SHARDS[1], zeros(100, 11), "has 11 features, but combined-00001-of-00100.npy has 12"),
    "nan": (SHARDS[1], zeros(100, 12, value=np.nan), "holds nan, inf or a number beyond float32 in row 97"),
    "inf": (SHARDS[2], zeros(50, 12, value=-np.inf), "holds nan, inf or a number beyond float32 in row 47"),
    "beyond": (SHARDS[0], zeros(100, 12, value=1e39, dtype=float), "beyond float32 in row 97"),
    "split of floats": ("splits/train_indices_1.npy", zeros(100), "must be a row of integers, not float32"),
    "split of rank 2": ("splits/valid_indices_1.npy", zeros(5, 1, dtype=int), r"must be a row of integers.*\(5, 1\)"),
    "empty split": ("splits/test_indices_1.npy", zeros(0, dtype=int), r"must be a row of integers.*\(0,\)"),
    "250": ("splits/test_indices_1.npy", np.array([250]), "holds the index 250, but labels.npy has the rows 0 to 249"),
    "-1": ("splits/train_indices_1.npy", np.array([0, -1]), "holds the index -1, but labels.npy has the rows 0 to 249"),
    "twice": ("splits/train_indices_1.npy", np.array([4, 7, 4]), "holds 1 indices twice"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arrays_are_named(archive, case):
    file, array, says = WRONG[case]
    np.save(archive / file, array)
    with pytest.raises(ValueError, match=says) as caught:
        mirflickr(folder=archive)
    assert str(caught.value).startswith(str(archive / file)) and "\n" not in str(caught.value)


@pytest.mark.parametrize(("one", "other"), [("train", "valid"), ("train", "test"), ("valid", "test")])
def test_parts_that_overlap_are_named(archive, one, other):
    rows = np.load(archive / f"splits/{one}_indices_2.npy")
    others = np.load(archive / f"splits/{other}_indices_2.npy")
    others[:3] = rows[:3]
    np.save(archive / f"splits/{other}_indices_2.npy", others)
    said = complaint(folder=archive, split=2)
    assert said.startswith(f"{archive}/splits/{one}_indices_2.npy and {other}_indices_2.npy share 3 indices")


# ---- tags


def test_tags_are_split_two_one_two_by_the_seed(tags):
    first, again, other = (
        mirflickr("24", "tags", folder, split=split) for folder, split in ((tags, 1), (tags.parent, 1), (tags, 0))
    )
    assert [part.x.shape for part in first] == [(80, 30), (40, 30), (80, 30)]
    assert {part.x.dtype for part in first} == {np.dtype(np.uint8)} and set(np.unique(first.train.x)) == {0, 255}
    np.testing.assert_array_equal(first.test.x, again.test.x)
    assert (first.test.x != other.test.x).any()
    with np.load(tags / TAGS) as file:
        x, y = file["X"], file["Y"]
    rows = np.concatenate([np.hstack([part.x // 255, part.y]) for part in first])
    assert sorted(map(bytes, rows)) == sorted(map(bytes, np.hstack([x, y])))
    ten = mirflickr("10", "tags", tags)
    np.testing.assert_array_equal(ten.dev.y, picked(first.dev.y, LABELS24, LABELS["10"]))


BAD_TAGS = {
    "no Y": ({"X": np.eye(30)}, r"lacks Y \(it holds 'X'\)"),
    "38 labels": (
        {"X": zeros(30, 5), "Y": zeros(30, 38)},
        r"Y \[photographs, 24\], of 0 and 1, not X \(30, 5\) and Y \(30, 38\)",
    ),
    "rows differ": ({"X": zeros(30, 5), "Y": zeros(29, 24)}, r"not X \(30, 5\) and Y \(29, 24\)"),
    "a count": ({"X": zeros(30, 5, value=2), "Y": zeros(30, 24)}, r": X must hold 0 and 1 alone, not 2.0"),
    "a share": ({"X": zeros(30, 5), "Y": zeros(30, 24, value=0.5)}, r": Y must hold 0 and 1 alone, not 0.5"),
    "rank 1": ({"X": zeros(30), "Y": zeros(30, 24)}, r": X must be a matrix of 0 and 1"),
    "objects": ({"X": np.array([[None]]), "Y": zeros(1, 24)}, r": X cannot be read \(Object arrays cannot be loaded"),
    "four rows": ({"X": zeros(4, 5), "Y": zeros(4, 24)}, "holds 4 photographs; at least 5"),
}


@pytest.mark.parametrize("case", BAD_TAGS)
def test_wrong_tags_are_named(tmp_path, case):
    arrays, says = BAD_TAGS[case]
    np.savez(tmp_path / TAGS, **arrays)
    with pytest.raises(ValueError, match=says) as caught:
        mirflickr("24", "tags", tmp_path)
    assert str(caught.value).startswith(str(tmp_path / TAGS)) and "\n" not in str(caught.value)


@needs(TAGS)
def test_the_real_tags():
    parts = mirflickr("24", "tags", REAL)
    assert [part.x.shape for part in parts] == [(8006, 1386), (4003, 1386), (8006, 1386)]
    assert parts.train.x.dtype == np.uint8 and parts.train.y.shape == (8006, 24)
    assert mirflickr("10", "tags", REAL.parent).test.y.shape == (8006, 10)
