"""MNIST, or any other images in four IDX files of that layout (Fashion-MNIST, KMNIST): split 5:1, and the 0-versus-1 task.

    train-images-idx3-ubyte [n, height, width]   train-labels-idx1-ubyte [n]     t10k-… the same for testing; .gz or not

An IDX file is a magic number (0, 0, 8 for bytes, the rank), the sizes as big-endian integers, then the values. Only a download
must be MNIST itself; whether files in a user's folder are MNIST is decided by their content.
"""

import gzip
import hashlib
import math
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8

from meristem.check import unknown
from meristem.data.dataset_files import UNPACKED, file_in, find, places, read_block
from meristem.data.parts import Part, Parts

URL = "https://ossci-datasets.s3.amazonaws.com/mnist/"
MD5 = {  # name → md5 of the download, and of the unpacked file
    "train-images-idx3-ubyte.gz": ("f68b3c2dcbeaaa9fbdd348bbdeb94873", "6bbc9ace898e44ae57da46a324031adb"),
    "train-labels-idx1-ubyte.gz": ("d53e105ee54ea40749a09fcbcd1e9432", "a25bea736e30d166cdddb491f175f624"),
    "t10k-images-idx3-ubyte.gz": ("9fb629c4189551a2d022fa330f9573f3", "2646ac647ad5339dbf082846283269ea"),
    "t10k-labels-idx1-ubyte.gz": ("ec29112dd5afa0611ce80d1b7f02629c", "27ae3e4e09519cfbb04c329615203637"),
}
FILES = {name: packed for name, (packed, _) in MD5.items()}
CONTENTS = tuple(unpacked for _, unpacked in MD5.values())
TASKS = ["ten", "two"]
LEAST = 6  # training images: five to train on, one for development


class Images(NamedTuple):
    """The content of the four files, each image as a row."""

    train: Part
    test: Part
    folder: str  # as the user knows it
    md5: tuple[str, ...]  # of the four contents
    is_mnist: bool
    n_classes: int  # labels are 0 … n_classes − 1
    shape: tuple[int, int]  # of an image


def mnist(task: str = "ten", folder: Path | None = None, *, split: int = 0) -> Parts:
    """Return MNIST's 50,000 / 10,000 / 10,000 digits, or the images of a folder of that layout; see `split_images`."""
    if task not in TASKS:
        raise unknown("task", task, TASKS)
    return split_images(read_images(folder), task, split=split)


def read_images(folder: Path | None = None) -> Images:
    """Return the four files of a folder, of MERISTEM_DATA or of the cache; ValueError of one line if they do not fit."""
    return images_in(find("mnist", FILES, URL, folder), "mnist", folder)


def images_in(place: Path, name: str, folder: Path | None = None) -> Images:
    """Return the four files in a place where `find` found the data set of this name, asked for this folder."""
    paths = [file_in(place, file) for file in FILES]
    arrays, md5s = zip(*map(read_idx, paths), strict=True)
    train, test = (_part(paths[k], arrays[k], paths[k + 1], arrays[k + 1]) for k in (0, 2))
    if len(train.y) < LEAST:
        raise ValueError(f"{paths[0]} holds {len(train.y)} images; at least {LEAST} are needed, for a sixth is set aside.")
    if len(test.y) == 0:
        raise ValueError(f"{paths[2]} holds no images.")
    if arrays[0].shape[1:] != arrays[2].shape[1:]:
        sizes = " and ".join(f"{height} × {width}" for _, height, width in (arrays[0].shape, arrays[2].shape))
        raise ValueError(f"{place}: images for training and for testing must have one size, not {sizes}.")
    top, place = places(name, folder)[1][0].resolve(), place.resolve()
    where = place.name if place == top else f"{top.name}/{place.name}"
    n_classes = 1 + int(max(train.y.max(), test.y.max()))
    return Images(train, test, where, md5s, md5s == CONTENTS, n_classes, arrays[0].shape[1:])


def split_images(images: Images, task: str = "ten", *, split: int = 0) -> Parts:
    """Return five sixths for training and one for development, by the seed `split`, and the test part; "two": 0 and 1 alone."""
    n = len(images.train.y)
    train, dev = np.split(np.random.default_rng(split).permutation(n), [n * 5 // 6])
    parts = Parts(images.train.rows(train), images.train.rows(dev), images.test)
    if task == "two":
        parts = Parts(*(part.rows(part.y <= 1) for part in parts))
        for name, part in parts._asdict().items():
            if not len(part.y):
                raise ValueError(f"The images in {images.folder} have no 0 and no 1 in the {name} part; choose --task ten.")
    elif images.n_classes < 2:
        raise ValueError(f"The images in {images.folder} are all of class 0; there is nothing to tell apart.")
    return parts


def _part(x_path: Path, x: UInt8[np.ndarray, "..."], y_path: Path, y: UInt8[np.ndarray, "..."]) -> Part:
    for path, array, axes, expected in ((x_path, x, 3, "images [n, height, width]"), (y_path, y, 1, "labels [n]")):
        if array.ndim != axes:
            raise ValueError(f"{path} must hold {expected}, not an array of shape {array.shape}.")
    if len(x) != len(y):
        raise ValueError(f"{x_path} holds {len(x)} images, but {y_path.name} holds {len(y)} labels.")
    if 0 in x.shape[1:]:
        raise ValueError(f"{x_path} holds images of {x.shape[1]} × {x.shape[2]} pixels.")
    return Part(x.reshape(len(x), math.prod(x.shape[1:])), y)


def read_idx(path: Path) -> tuple[UInt8[np.ndarray, "..."], str]:
    """Return the array of an IDX file, gzipped or not, and the md5 of its content; no more is read than its header says."""
    is_packed = path.suffix == ".gz"
    try:
        with gzip.open(path) if is_packed else path.open("rb") as stream:
            most = path.stat().st_size * (UNPACKED if is_packed else 1)
            magic = read_block(stream, 4)
            if magic not in (b"\0\0\x08\x01", b"\0\0\x08\x03"):
                raise ValueError(f"{path} is not an IDX file of bytes: it starts with {magic.hex()}, not 00000801 or 00000803.")
            sizes = read_block(stream, 4 * magic[3])
            if len(sizes) < 4 * magic[3]:
                raise ValueError(f"{path} ends within its header; get it again.")
            shape = tuple(np.frombuffer(sizes, ">u4").tolist())
            if math.prod(shape) > most:
                raise ValueError(f"{path} holds less than {most} values, but its header says {shape}; get it again.")
            values = read_block(stream, math.prod(shape) + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path} is truncated or not a gzip file; get it again.") from error
    except OSError as error:
        raise ValueError(f"{path} cannot be read ({error.strerror}).") from error
    except MemoryError as error:
        raise ValueError(f"{path} holds more than there is memory for.") from error
    if len(values) != math.prod(shape):
        count = "more" if len(values) > math.prod(shape) else f"{len(values)}"
        raise ValueError(f"{path} holds {count} values, but its header says {shape}; get it again.")
    md5 = hashlib.md5(magic + sizes + values, usedforsecurity=False).hexdigest()
    return np.frombuffer(values, np.uint8).reshape(shape), md5
