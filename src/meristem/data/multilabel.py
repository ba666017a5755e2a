"""A user's data set with several labels per sample: one .npz file with a training and a test part.

    X_train [n, in], Y_train [n, labels] of 0 and 1, X_test, Y_test alike, labels [labels] the names

A random fifth of the training part is the development part.
"""

from pathlib import Path

import numpy as np

from meristem.check import check_size
from meristem.data.array_files import as_features, as_labels, read_npz
from meristem.data.parts import Part, Parts, standardized

KEYS = ["X_train", "Y_train", "X_test", "Y_test", "labels"]


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
