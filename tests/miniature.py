"""Small data sets in the layout of the real ones, with labels that can be learned from the features."""

import gzip
import io
import json
import struct
import tarfile
from pathlib import Path

import numpy as np
from PIL import Image

from meristem.data import cifar10, mirflickr, mnist


def idx(values: np.ndarray) -> bytes:
    """An IDX file of bytes, before it is gzipped."""
    return struct.pack(f">BBBB{values.ndim}i", 0, 0, 8, values.ndim, *values.shape) + values.astype(np.uint8).tobytes()


def images(folder: Path, rows: tuple[int, int] = (60, 10), size: tuple[int, int] = (28, 28), classes: int = 10) -> Path:
    """MNIST's four files: the class is the row of the image that is bright, in turns."""
    random = np.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)
    for name, n in zip(mnist.FILES, np.repeat(rows, 2), strict=True):
        y = np.arange(n) % classes
        x = random.integers(0, 100, (n, *size))
        x[np.arange(n), y % size[0]] += 100
        (folder / name).write_bytes(gzip.compress(idx(x if "images" in name else y)))
    return folder


def archive(folder: Path, rows: int = 250, features: int = 12) -> Path:
    """MIRFLICKR's released archive: a label is where a direction of the features is high, its `_r1` where it is very high."""
    random = np.random.default_rng(0)
    z = random.standard_normal((rows, features))
    direction = dict(zip(mirflickr.LABELS24, random.standard_normal((24, features)) / features**0.5, strict=True))
    heights = np.stack([z @ direction[name.removesuffix("_r1")] for name in mirflickr.LABELS38], 1)
    least = np.array([1.0 if name.endswith("_r1") else 0.5 for name in mirflickr.LABELS38])
    x = (z * random.uniform(0.1, 10, features) + random.uniform(-100, 100, features)).astype(np.float32)
    for sub in ("splits", "image/labelled"):
        (folder / sub).mkdir(parents=True, exist_ok=True)
    np.save(folder / "labels.npy", (heights > least).astype(np.uint8))
    for name, shard in zip(mirflickr.SHARDS, np.split(x, [rows * 2 // 5, rows * 2 // 5 * 2]), strict=True):
        np.save(folder / name, shard)
    for split in mirflickr.SPLITS:
        parts = np.split(random.permutation(rows), [rows * 2 // 5, rows * 3 // 5])
        for name, part in zip(("train", "valid", "test"), parts, strict=True):
            np.save(folder / f"splits/{name}_indices_{split}.npy", part)
    return folder


def tags(folder: Path, rows: int = 200, features: int = 30) -> Path:
    """The tags' npz: a label is where one of two tags is."""
    random = np.random.default_rng(0)
    x = (random.random((rows, features)) < 0.2).astype(np.uint8)
    pairs = random.integers(0, features, (24, 2))
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / mirflickr.TAGS, X=x, Y=x[:, pairs].max(2))
    return folder


def multilabel(file: Path, rows: int = 100, features: int = 8, labels: int = 4) -> Path:
    """A set of one's own: a label is where a direction of the features is high."""
    random = np.random.default_rng(0)
    x = random.standard_normal((rows + rows // 2, features)) * 3 + 7
    y = ((x - 7) @ random.standard_normal((features, labels)) > 1).astype(np.uint8)
    names = np.array([f"label {k}" for k in range(labels)])
    np.savez(file, X_train=x[:rows], Y_train=y[:rows], X_test=x[rows:], Y_test=y[rows:], labels=names)
    return file


def photographs(folder: Path, layout: str = "bin", rows: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """CIFAR-10's files, `rows` images in each of the six, in one of its layouts; returns all images and their classes."""
    random = np.random.default_rng(0)
    names = [*cifar10.TRAIN, *cifar10.TEST]
    x = random.integers(0, 256, (6, rows, 32, 32, 3)).astype(np.uint8)
    y = (np.arange(6 * rows).reshape(6, rows) % 10).astype(np.uint8)
    folder.mkdir(parents=True, exist_ok=True)
    if layout in ("bin", "tar.gz"):
        contents = {
            f"{name}.bin": np.concatenate([y[k][:, None], x[k].transpose(0, 3, 1, 2).reshape(rows, -1)], 1).tobytes()
            for k, name in enumerate(names)
        }
        if layout == "bin":
            for name, content in contents.items():
                (folder / name).write_bytes(content)
        else:
            with tarfile.open(folder / cifar10.ARCHIVE, "w:gz") as archive:
                for name, content in contents.items():
                    entry = tarfile.TarInfo(f"{cifar10.FOLDER}/{name}")
                    entry.size = len(content)
                    archive.addfile(entry, io.BytesIO(content))
        return x, y
    for name, images in zip(names, x, strict=True):
        tiles = images.reshape(2, rows // 2, 32, 32, 3).transpose(0, 2, 1, 3, 4).reshape(64, -1, 3)
        strip = images.reshape(rows, 1024, 3)
        Image.fromarray(strip if layout == "png" else tiles).save(folder / f"{name}.{layout}", lossless=True)
    if layout == "png":
        for name, labels in zip(cifar10.LABELS[".png"], (y[:5], y[5]), strict=True):
            (folder / name).write_text(json.dumps(labels.reshape(-1).tolist()))
    else:
        np.savez(folder / "labels.npz", train=y[:5].reshape(-1), test=y[5])
    return x, y
