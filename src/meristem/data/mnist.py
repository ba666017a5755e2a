"""MNIST from its four IDX files: 60,000 + 10,000 digits of 28 × 28 bytes; the paper's split, and its 0-versus-1 task.

An IDX file is a magic number (0, 0, 8 for bytes, the rank), the sizes as big-endian integers, then the values; gzipped.
"""

import gzip
import zlib
from pathlib import Path

import numpy as np

from meristem.check import unknown
from meristem.data.files import find
from meristem.data.parts import Part, Parts

URL = "https://ossci-datasets.s3.amazonaws.com/mnist/"
FILES = {
    "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
    "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
    "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
}
TASKS = ["ten", "two"]


def mnist(task: str = "ten", folder: Path | None = None, *, split: int = 0) -> Parts:
    """50,000 / 10,000 / 10,000 digits, split 5:1 at random by the seed `split`; "two" keeps the zeros and ones of each part."""
    if task not in TASKS:
        raise unknown("task", task, TASKS)
    place = find("mnist", FILES, URL, folder)
    images, labels, test_images, test_labels = (read_idx(place / file) for file in FILES)
    order = np.random.default_rng(split).permutation(len(labels))
    train, dev = np.split(order, [len(labels) * 5 // 6])
    parts = Parts(
        train=Part(images[train].reshape(len(train), -1), labels[train]),
        dev=Part(images[dev].reshape(len(dev), -1), labels[dev]),
        test=Part(test_images.reshape(len(test_labels), -1), test_labels),
    )
    return parts if task == "ten" else Parts(*map(_zeros_and_ones, parts))


def _zeros_and_ones(part: Part) -> Part:
    kept = part.y <= 1
    return Part(part.x[kept], part.y[kept])


def read_idx(path: Path) -> np.ndarray:
    """The bytes of a gzipped IDX file, in its shape; raises ValueError that names the file."""
    try:
        raw = gzip.decompress(path.read_bytes())
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(f"{path} is truncated or not a gzip file; get it again from {URL}") from error
    rank = raw[3] if len(raw) > 3 else 0
    if len(raw) < 4 + 4 * rank or raw[:3] != b"\x00\x00\x08" or rank not in (1, 3):
        raise ValueError(f"{path} is not an IDX file of bytes: it starts with {raw[:4].hex()}, not 00000801 or 00000803.")
    shape = tuple(np.frombuffer(raw, ">i4", rank, 4).tolist())
    values = np.frombuffer(raw, np.uint8, offset=4 + 4 * rank)
    if values.size != np.prod(shape):
        raise ValueError(f"{path} holds {values.size} values, but its header says {shape}; get it again from {URL}")
    return values.reshape(shape)
