"""MNIST: the real files where they lie beside the project, and every way in which files can be wrong."""

import gzip
import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import miniature
from meristem.data import dataset_files as files, mnist
from miniature import idx

REAL = Path(os.environ.get("MERISTEM_DATA") or Path(__file__).parents[2] / "shared" / "data")
needs_mnist = pytest.mark.skipif(
    not any((REAL / sub / next(iter(mnist.FILES))).is_file() for sub in (".", "mnist")),
    reason="the MNIST files are not on this machine (set MERISTEM_DATA to their folder)",
)


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sixty and ten made digits in the four files' layout, and no data but these."""
    monkeypatch.delenv("MERISTEM_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return miniature.images(tmp_path / "mnist")


def in_cache(small: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files where a download would put them, with the checksums that they have."""
    cached = files.cache_folder() / "mnist"
    shutil.copytree(small, cached)
    monkeypatch.setattr(mnist, "FILES", {name: hashlib.md5((cached / name).read_bytes()).hexdigest() for name in mnist.FILES})
    return cached


@needs_mnist
def test_the_real_digits_are_split_five_to_one():
    parts = mnist.mnist("ten", REAL)
    assert [part.x.shape for part in parts] == [(50_000, 784), (10_000, 784), (10_000, 784)]
    assert parts.train.x.dtype == np.uint8
    counts = np.bincount(parts.train.y, minlength=10) + np.bincount(parts.dev.y, minlength=10)
    assert counts.tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    two = mnist.mnist("two", REAL)
    assert set(two.test.y) == {0, 1} and len(two.test.y) == 2115
    # filtered after the split of the whole
    np.testing.assert_array_equal(two.dev.x, parts.dev.x[parts.dev.y <= 1])


def test_parts_are_disjoint_and_depend_on_the_seed_alone(small):
    first, again, other = mnist.mnist("ten", small), mnist.mnist("ten", small.parent), mnist.mnist("ten", small, split=1)
    assert [len(part.y) for part in first] == [50, 10, 10]
    np.testing.assert_array_equal(first.train.x, again.train.x)
    assert (first.train.x != other.train.x).any()
    rows = {row.tobytes() for part in (first.train, first.dev) for row in part.x}
    assert len(rows) == 60


def test_places_are_looked_into_in_order(small, monkeypatch):
    cached = in_cache(small, monkeypatch)
    assert files.find("mnist", mnist.FILES, mnist.URL) == cached
    monkeypatch.setenv("MERISTEM_DATA", str(small.parent))
    assert files.find("mnist", mnist.FILES, mnist.URL) == small
    assert files.find("mnist", mnist.FILES, mnist.URL, cached) == cached


def test_a_download_must_have_its_checksum(small, monkeypatch):
    victim = in_cache(small, monkeypatch) / "train-labels-idx1-ubyte.gz"
    assert len(mnist.mnist("ten").train.y) == 50
    victim.write_bytes(gzip.compress(idx(np.zeros(60))))
    with pytest.raises(ValueError, match=r"train-labels-idx1-ubyte.gz has the checksum .* delete it, it will be") as caught:
        mnist.mnist("ten")
    assert "\n" not in str(caught.value)


# ---- other images of the same layout


def test_any_images_of_the_layout_are_taken_from_a_folder_that_is_named(tmp_path):
    folder = miniature.images(tmp_path / "fashion", rows=(30, 7), size=(5, 4), classes=3)
    images = mnist.read_images(folder)
    assert (images.n_classes, images.is_mnist, images.folder) == (3, False, "fashion")
    parts = mnist.split_images(images)
    assert [part.x.shape for part in parts] == [(25, 20), (5, 20), (7, 20)]
    two = mnist.split_images(images, "two")
    assert {*two.train.y, *two.dev.y, *two.test.y} == {0, 1} and len(two.test.y) == 5


def test_files_may_be_unpacked_and_a_folder_above_does(tmp_path):
    folder = miniature.images(tmp_path / "mine" / "mnist")
    before = mnist.read_images(folder)
    for name in list(mnist.FILES)[::3]:
        (folder / name.removesuffix(".gz")).write_bytes(gzip.decompress((folder / name).read_bytes()))
        (folder / name).unlink()
    after = mnist.read_images(folder.parent)
    assert after.folder == "mine/mnist" and after.md5 == before.md5
    for part, was in zip((after.train, after.test), (before.train, before.test), strict=True):
        np.testing.assert_array_equal(part.x, was.x)
        np.testing.assert_array_equal(part.y, was.y)


@needs_mnist
def test_mnist_is_known_by_its_content_packed_anew_or_not_at_all(tmp_path):
    place = next(REAL / sub for sub in (".", "mnist") if (REAL / sub / next(iter(mnist.FILES))).is_file())
    for name, is_packed in zip(mnist.FILES, (False, True, False, True), strict=True):
        content = gzip.decompress((place / name).read_bytes())
        (tmp_path / (name if is_packed else name.removesuffix(".gz"))).write_bytes(
            gzip.compress(content, 1) if is_packed else content
        )
    assert mnist.read_images(tmp_path).is_mnist and mnist.read_images(REAL).is_mnist


def replaced(name: str, values: np.ndarray) -> Callable[[Path], object]:
    return lambda folder: (folder / f"{name}-ubyte.gz").write_bytes(gzip.compress(idx(values)))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (replaced("train-labels-idx1", np.zeros(59)), r"train-images.* holds 60 images, but train-labels.* holds 59 labels"),
        (replaced("t10k-images-idx3", np.zeros((10, 28, 27))), "must have one size, not 28 × 28 and 28 × 27"),
        (replaced("t10k-images-idx3", np.zeros(10)), r"must hold images \[n, height, width\], not an array of shape \(10,\)"),
        (replaced("t10k-labels-idx1", np.zeros((10, 1, 1))), r"must hold labels \[n\], not an array of shape \(10, 1, 1\)"),
        (replaced("t10k-images-idx3", np.zeros((10, 0, 28))), "holds images of 0 × 28 pixels"),
        (lambda folder: miniature.images(folder, rows=(5, 10)), "holds 5 images; at least 6 are needed"),
        (lambda folder: miniature.images(folder, rows=(60, 0)), "t10k-images-idx3-ubyte.gz holds no images"),
        (lambda folder: miniature.images(folder, classes=1), "are all of class 0"),
        (lambda folder: (folder / "t10k-labels-idx1-ubyte.gz").write_bytes(b"?"), "truncated or not a gzip file"),
    ],
    ids=["counts", "sizes", "no images", "no labels", "no pixels", "few", "no test", "one class", "damaged"],
)
def test_files_that_do_not_fit_together_are_named(small, change, says):
    change(small)
    with pytest.raises(ValueError, match=says) as caught:
        mnist.mnist("ten", small)
    assert "\n" not in str(caught.value)


def test_two_classes_must_be_there(small):
    replaced("t10k-labels-idx1", np.full(10, 7))(small)
    with pytest.raises(ValueError, match="mnist have no 0 and no 1 in the test part; choose --task ten"):
        mnist.mnist("two", small)


# ---- wrong files


def test_missing_files_are_named(small):
    (small / "t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(ValueError, match=r"lacks t10k-labels-idx1-ubyte\.gz; get it from"):
        mnist.mnist("ten", small)
    with pytest.raises(ValueError, match="holds no mnist files"):
        mnist.mnist("ten", small.parent / "cache")
    with pytest.raises(ValueError, match="Did you mean 'two'"):
        mnist.mnist("tow", small)


def test_without_a_network_one_line_says_what_to_do_and_nothing_is_cached(small, monkeypatch):
    # A port of this machine on which nobody listens stands for "no network".
    monkeypatch.setattr(mnist, "URL", "http://127.0.0.1:9/")
    with pytest.raises(ValueError, match=r"could not be downloaded .* into .*, or name their folder with --data") as caught:
        mnist.mnist("ten")
    assert "\n" not in str(caught.value)
    assert not [path for path in files.cache_folder().rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (gzip.compress(idx(np.zeros(5)))[:-6], "truncated or not a gzip file"),
        (b"no gzip at all", "truncated or not a gzip file"),
        (gzip.compress(b"\x00\x00\x0d\x01\x00\x00\x00\x01\x00\x00\x00\x00"), "starts with 00000d01"),
        (gzip.compress(b""), "not an IDX file"),
        (gzip.compress(b"\x00\x00\x08\x01\x00\x00\x00\x07abc"), r"holds 3 values, but its header says \(7,\)"),
        (
            gzip.compress(b"\x00\x00\x08\x01\xff\xff\xff\xffabc"),
            r"holds less than \d+ values, but its header says \(4294967295,\)",
        ),
    ],
    # The bytes hold the time of day; workers must agree on names.
    ids=["cut", "no gzip", "floats", "empty", "short", "overflow"],
)
def test_broken_idx_files_are_named(content, says, tmp_path):
    path = tmp_path / "file.gz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=says) as caught:
        mnist.read_idx(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)
