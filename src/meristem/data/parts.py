"""A data set in three parts, its columns standardized with those of the training part; a user's own, from an .npz file.

    standardized(parts):  x → (x − mean) / sd
    multilabel(file):     X_train [n, in], Y_train [n, labels] of 0 and 1, X_test, Y_test alike, labels [labels] the names

A column that is constant in the training part becomes 0 in every part. A column of zeros and ones is left as it is, unless
columns="all": a tag that one row in a thousand has would become 32 there. Rows are processed in blocks, so the only large array
is the result.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Integer, Num

from meristem.check import check_size, unknown
from meristem.data.dataset_files import as_features, as_labels, read_npz

ROWS = 1024
COLUMNS = ["numbers", "all"]
KEYS = ["X_train", "Y_train", "X_test", "Y_test", "labels"]


class Part(NamedTuple):
    """Samples, and the class or the labels (0 and 1) of each."""

    x: Num[np.ndarray, "n in ..."]
    y: Num[np.ndarray, "n *labels"]

    def rows(self, rows: Integer[np.ndarray, " k"] | Bool[np.ndarray, " n"]) -> "Part":
        return Part(self.x[rows], self.y[rows])


class Parts(NamedTuple):
    train: Part
    dev: Part
    test: Part


def standardized(parts: Parts, columns: str = "numbers") -> Parts:
    """Return columns of mean 0 and sd 1 as float32: those of "numbers" other than 0 and 1, or "all".

    Where all parts hold only 0 and 1, and keep them, they become bytes, 0 and 255, which the training step takes as exactly
    0.0 and 1.0.

    >>> parts = Parts(*(Part(np.array([[2.0, 1, 7], [4.0, 0, 7]]), np.array([0, 1])) for _ in range(3)))
    >>> standardized(parts).dev.x.tolist()
    [[-1.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    >>> standardized(parts, "all").dev.x.tolist()
    [[-1.0, 1.0, 0.0], [1.0, -1.0, 0.0]]
    """
    if columns not in COLUMNS:
        raise unknown("columns", columns, COLUMNS)
    train = parts.train.x
    varies = train.min(0) != train.max(0)
    if columns == "numbers" and all(_binary(part.x).all() for part in parts):
        factor = np.where(varies, 255, 0).astype(np.uint8)
        return Parts(*(Part(part.x.astype(np.uint8) * factor, part.y) for part in parts))
    mean = train.mean(0, dtype=np.float64)
    sd = np.sqrt(sum(((rows - mean) ** 2).sum(0) for rows in _blocks(train)) / len(train))
    binary = _binary(train) & (columns == "numbers")
    shift, scale = np.where(binary, 0, mean), np.where(binary, 1, sd)
    scaled = Parts(*(Part(np.zeros(part.x.shape, np.float32), part.y) for part in parts))
    for part, out in zip(parts, scaled, strict=True):
        for rows, scaled_rows in zip(_blocks(part.x), _blocks(out.x), strict=True):
            np.divide(rows - shift, scale, out=scaled_rows, where=varies & (scale > 0), casting="same_kind")
    return scaled


def _blocks(x: Num[np.ndarray, "n in"]) -> Iterator[Num[np.ndarray, "rows in"]]:
    return (x[start : start + ROWS] for start in range(0, len(x), ROWS))


def _binary(x: Num[np.ndarray, "n in"]) -> Bool[np.ndarray, " in"]:
    is_binary = np.ones(x.shape[1], bool)
    for rows in _blocks(x):
        is_binary &= ((rows == 0) | (rows == 1)).all(0)
    return is_binary


def multilabel(file: Path, *, split: int = 0, columns: str = "numbers") -> Parts:
    """Return four fifths of the training part, the other fifth by the seed `split`, and the test part; `standardized`."""
    check_size("split", split, 0)
    x_train, y_train, x_test, y_test, names = arrays = read_npz(file, KEYS)
    if names.ndim != 1 or names.dtype.kind != "U":
        raise ValueError(f"{file}: labels must be a row of names, not {names.dtype} of shape {names.shape}.")
    train = Part(as_features(f"{file}: X_train", x_train), as_labels(f"{file}: Y_train", y_train))
    test = Part(as_features(f"{file}: X_test", x_test), as_labels(f"{file}: Y_test", y_test))
    shapes = ", ".join(f"{key} {array.shape}" for key, array in zip(KEYS[:4], arrays, strict=False))
    if len(train.x) != len(train.y) or len(test.x) != len(test.y):
        raise ValueError(f"{file}: X and Y of a part must have a row for each sample, not {shapes}.")
    if train.x.shape[1] != test.x.shape[1] or {train.y.shape[1], test.y.shape[1]} != {len(names)}:
        expected = f"both parts must have the same columns, and Y one for each of {len(names)} labels"
        raise ValueError(f"{file}: {expected}, not {shapes}.")
    n = len(train.y)
    if n < 5:
        raise ValueError(f"{file} has {n} training samples; at least 5 are needed, for a fifth is the development part.")
    first, second = np.split(np.random.default_rng(split).permutation(n), [n * 4 // 5])
    return standardized(Parts(train.rows(first), train.rows(second), test), columns)
