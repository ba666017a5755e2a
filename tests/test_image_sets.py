"""Fashion-MNIST, CIFAR-10 and image files: the real sets where MERISTEM_DATA names them, every layout, and wrong files."""

import hashlib
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import miniature
from meristem.data import cifar10, dataset_files, fashion_mnist
from meristem.data.image_reader import read_image

REAL = os.environ.get("MERISTEM_DATA")


@pytest.fixture(autouse=True)
def nothing_else(tmp_path, monkeypatch):
    monkeypatch.delenv("MERISTEM_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def is_there(name: str, files: list[str]) -> bool:
    places = [Path(REAL), Path(REAL) / name] if REAL else []
    return any((place / file).is_file() for place in places for file in files)


# ---- Fashion-MNIST


@pytest.mark.skipif(not is_there("fashion-mnist", list(fashion_mnist.FILES)), reason="no Fashion-MNIST below MERISTEM_DATA")
def test_the_real_clothes_are_known_by_their_content():
    images = fashion_mnist.read_fashion(Path(str(REAL)))
    assert images.md5 == fashion_mnist.CONTENTS and images.n_classes == 10 and not images.is_mnist
    assert np.bincount(images.train.y).tolist() == [6000] * 10 and np.bincount(images.test.y).tolist() == [1000] * 10


def test_clothes_are_split_as_digits_and_found_in_a_folder_or_the_cache(tmp_path, monkeypatch):
    folder = miniature.images(tmp_path / "datasets" / "fashion-mnist")
    parts = fashion_mnist.fashion_mnist(folder.parent)
    assert [part.x.shape for part in parts] == [(50, 784), (10, 784), (10, 784)]
    assert fashion_mnist.read_fashion(folder.parent).folder == "datasets/fashion-mnist"
    cached = dataset_files.cache_folder() / "fashion-mnist"
    shutil.copytree(folder, cached)
    with pytest.raises(ValueError, match=r"has the checksum .* delete it"):
        fashion_mnist.fashion_mnist()
    actual = {name: hashlib.md5((cached / name).read_bytes()).hexdigest() for name in fashion_mnist.FILES}
    monkeypatch.setattr(fashion_mnist, "FILES", actual)
    np.testing.assert_array_equal(fashion_mnist.fashion_mnist().test.x, parts.test.x)


# ---- CIFAR-10


@pytest.mark.skipif(
    not is_there("cifar10", [cifar10.ARCHIVE, *(f"test_batch{ending}" for ending in cifar10.LABELS)]),
    reason="no CIFAR-10 below MERISTEM_DATA",
)
def test_the_real_photographs_are_balanced():
    parts = cifar10.cifar10(Path(str(REAL)))
    assert [part.x.shape for part in parts] == [(n, 32, 32, 3) for n in (45_000, 5_000, 10_000)]
    assert (np.bincount(parts.train.y) + np.bincount(parts.dev.y)).tolist() == [5000] * 10
    assert parts.test.y[:10].tolist() == [3, 8, 8, 0, 6, 6, 1, 6, 3, 1]


@pytest.mark.parametrize("layout", ["bin", "tar.gz", "png", "webp"])
def test_every_layout_gives_the_same_images(layout, tmp_path):
    x, y = miniature.photographs(tmp_path / "cifar10", layout)
    train, test = cifar10.read_cifar10(tmp_path)
    np.testing.assert_array_equal(train.x, x[:5].reshape(-1, 32, 32, 3))
    np.testing.assert_array_equal(test.x, x[5])
    assert train.y.tolist() == y[:5].reshape(-1).tolist() and test.y.tolist() == y[5].tolist()


def test_a_tenth_is_set_aside_by_the_seed(tmp_path):
    miniature.photographs(tmp_path)
    first, again, other = (cifar10.cifar10(tmp_path, split=split) for split in (0, 0, 1))
    assert [len(part.y) for part in first] == [36, 4, 8]
    np.testing.assert_array_equal(first.dev.x, again.dev.x)
    assert (first.dev.x != other.dev.x).any()
    rows = {image.tobytes() for part in (first.train, first.dev) for image in part.x}
    assert len(rows) == 40


def test_a_download_is_checked_and_without_a_network_one_line_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(cifar10, "URL", "http://127.0.0.1:9/")  # a port on which nobody listens
    with pytest.raises(ValueError, match=r"could not be downloaded .* into .*, or name their folder with --data") as caught:
        cifar10.cifar10()
    assert "\n" not in str(caught.value)
    cached = dataset_files.cache_folder() / "cifar10"
    x, _ = miniature.photographs(cached, "tar.gz")
    with pytest.raises(ValueError, match=r"has the checksum .* delete it"):
        cifar10.cifar10()
    actual = hashlib.md5((cached / cifar10.ARCHIVE).read_bytes()).hexdigest()
    monkeypatch.setattr(cifar10, "FILES", {cifar10.ARCHIVE: actual})
    np.testing.assert_array_equal(cifar10.cifar10().test.x, x[5])


def cut_in_half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2 + 1])


@pytest.mark.parametrize(
    ("layout", "change", "says"),
    [
        ("bin", lambda folder: cut_in_half(folder / "data_batch_3.bin"), r"data_batch_3\.bin does not hold 3,073 bytes"),
        ("bin", lambda folder: (folder / "test_batch.bin").write_bytes(b"\x0a" + bytes(3072)), "not a label from 0 to 9"),
        ("bin", lambda folder: (folder / "test_batch.bin").unlink(), "holds no cifar10 files"),
        ("tar.gz", lambda folder: cut_in_half(folder / cifar10.ARCHIVE), "truncated or not CIFAR-10's archive"),
        ("png", lambda folder: cut_in_half(folder / "test_batch.png"), "cannot be read as an image"),
        ("png", lambda folder: cut_in_half(folder / "test_lables.json"), "no JSON list of labels"),
        ("png", lambda folder: (folder / "test_lables.json").write_text("[1, 2]"), "holds 8 images, and not a label"),
        ("webp", lambda folder: np.savez(folder / "labels.npz", train=np.zeros(40)), "lacks test"),
        ("webp", lambda folder: Image.new("RGB", (40, 64)).save(folder / "test_batch.webp"), "no images of 32"),
    ],
    ids=["cut", "label", "missing", "archive", "picture", "json", "few labels", "npz", "size"],
)
def test_files_that_do_not_fit_are_named(layout, change, says, tmp_path):
    miniature.photographs(tmp_path, layout)
    change(tmp_path)
    with pytest.raises(ValueError, match=says) as caught:
        cifar10.cifar10(tmp_path)
    assert str(tmp_path) in str(caught.value) and "\n" not in str(caught.value)


# ---- image files


def test_pixels_of_gray_color_and_transparent_files(tmp_path):
    gray, color = np.arange(12, dtype=np.uint8).reshape(3, 4), np.arange(36, dtype=np.uint8).reshape(3, 4, 3)
    deep = (gray.astype(np.uint16) * 257).astype(np.uint16)
    for name, pixels in (("gray", gray), ("color", color), ("deep", deep)):
        Image.fromarray(pixels).save(tmp_path / f"{name}.png")
    np.testing.assert_array_equal(read_image(tmp_path / "gray.png"), gray[..., None])
    np.testing.assert_array_equal(read_image(tmp_path / "deep.png"), gray[..., None])
    np.testing.assert_array_equal(read_image(tmp_path / "color.png"), color)
    Image.new("RGBA", (2, 2), (9, 9, 9, 0)).save(tmp_path / "clear.png")
    assert (read_image(tmp_path / "clear.png") == 255).all()
    assert read_image(tmp_path / "color.png", (6, 5)).shape == (6, 5, 3)


def test_a_photograph_is_turned_as_the_camera_was_held(tmp_path):
    image, tags = Image.new("RGB", (8, 4), "red"), Image.Exif()
    tags[0x0112] = 6  # a quarter turn
    image.save(tmp_path / "turned.jpg", exif=tags)
    assert read_image(tmp_path / "turned.jpg").shape == (8, 4, 3)


@pytest.mark.parametrize("content", [b"", b"no image", b"\x89PNG\r\n\x1a\n" + bytes(40)], ids=["empty", "text", "damaged"])
def test_what_is_no_image_is_named(content, tmp_path):
    (tmp_path / "file.png").write_bytes(content)
    with pytest.raises(ValueError, match=r"file\.png cannot be read as an image") as caught:
        read_image(tmp_path / "file.png")
    assert "\n" not in str(caught.value)


def test_without_pillow_one_line_says_so(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "PIL", None)
    with pytest.raises(ValueError, match=r"needs Pillow.*meristem-nn\[images\]"):
        read_image(Path("picture.png"))
