"""MNIST: the real files where they lie beside the project, and every way in which files can be wrong."""

import gzip
import hashlib
import os
import struct
from pathlib import Path

import numpy as np
import pytest

from meristem.data import files, mnist

REAL = Path(os.environ.get("MERISTEM_DATA") or Path(__file__).parents[2] / "shared" / "data")
needs_mnist = pytest.mark.skipif(
    not any((REAL / sub / next(iter(mnist.FILES))).is_file() for sub in (".", "mnist")),
    reason="the MNIST files are not on this machine (set MERISTEM_DATA to their folder)",
)


def idx(values: np.ndarray) -> bytes:
    return gzip.compress(struct.pack(f">BBBB{values.ndim}i", 0, 0, 8, values.ndim, *values.shape) + values.tobytes())


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sixty and ten made digits in the four files' layout, with checksums to match."""
    random = np.random.default_rng(0)
    folder = tmp_path / "mnist"
    folder.mkdir()
    for name, n in zip(mnist.FILES, (60, 60, 10, 10), strict=True):
        values = random.integers(0, 256, (n, 28, 28)) if "images" in name else np.arange(n) % 10
        (folder / name).write_bytes(idx(values.astype(np.uint8)))
    sums = {name: hashlib.md5((folder / name).read_bytes()).hexdigest() for name in mnist.FILES}
    monkeypatch.setattr(mnist, "FILES", sums)
    monkeypatch.delenv("MERISTEM_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


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
    cached = files.cache_folder() / "mnist"
    cached.mkdir(parents=True)
    for file in small.iterdir():
        (cached / file.name).write_bytes(file.read_bytes())
    assert files.find("mnist", mnist.FILES, mnist.URL) == cached
    monkeypatch.setenv("MERISTEM_DATA", str(small.parent))
    assert files.find("mnist", mnist.FILES, mnist.URL) == small
    assert files.find("mnist", mnist.FILES, mnist.URL, cached) == cached


def test_a_wrong_checksum_is_named(small):
    victim = small / "train-labels-idx1-ubyte.gz"
    victim.write_bytes(victim.read_bytes()[:-1] + b"x")
    with pytest.raises(ValueError, match=r"train-labels-idx1-ubyte.gz has the checksum .* get it again") as caught:
        mnist.mnist("ten", small)
    assert "\n" not in str(caught.value)


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
        (idx(np.zeros(5, np.uint8))[:-6], "truncated or not a gzip file"),
        (b"no gzip at all", "truncated or not a gzip file"),
        (gzip.compress(b"\x00\x00\x0d\x01\x00\x00\x00\x01\x00\x00\x00\x00"), "starts with 00000d01"),
        (gzip.compress(b""), "not an IDX file"),
        (gzip.compress(b"\x00\x00\x08\x01\x00\x00\x00\x07abc"), r"holds 3 values, but its header says \(7,\)"),
    ],
    ids=["cut", "no gzip", "floats", "empty", "short"],  # the bytes hold the time of day; workers must agree on names
)
def test_broken_idx_files_are_named(content, says, tmp_path):
    path = tmp_path / "file.gz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=says) as caught:
        mnist.read_idx(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)
