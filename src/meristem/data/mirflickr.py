"""MIRFLICKR-25k, photographs with up to 38 labels each: the paper's image features, or the users' tags.

    images: the released archive, 25,000 × 3,857 in three shards of 2/5, 2/5 and 1/5 of the rows; its five splits
    tags:   tags1386_labels24_20015.npz, X [20015, 1386] and Y [20015, 24] of 0 and 1; split 2:1:2 at random

There is no download: no checksum of the 5 GB archive is known, and nothing goes into the cache unchecked.
"""

from itertools import combinations
from pathlib import Path

import numpy as np
from jaxtyping import Float32, Integer, Num, UInt8

from meristem.check import check_size, unknown
from meristem.data.dataset_files import as_features, as_labels, cache_folder, find_local, read_npy, read_npz
from meristem.data.parts import Part, Parts, standardized

URL = "http://www.cs.toronto.edu/~nitish/multimodal/"
SHARDS = [f"image/labelled/combined-{part}-of-00100.npy" for part in ("00001", "00002", "00003_0")]
SPLITS = range(1, 6)
TAGS = "tags1386_labels24_20015.npz"
FEATURES = ["images", "tags"]
AGAIN = "unpack flickr_data.tar.gz again."

# The paper gives people; sunset under sky is a guess that makes ten. A name's `_r1` goes where the name goes.
COLLAPSE = {
    "animals": ["animals", "bird", "dog"],
    "food": ["food"],
    "indoor": ["indoor"],
    "night": ["night"],
    "people": ["people", "baby", "female", "male", "portrait"],
    "plant_life": ["plant_life", "flower", "tree"],
    "sky": ["sky", "clouds", "sunset"],
    "structures": ["structures"],
    "transport": ["transport", "car"],
    "water": ["water", "lake", "river", "sea"],
}
LABELS24 = sorted(name for members in COLLAPSE.values() for name in members)
WIDE = {"animals", "food", "indoor", "lake", "plant_life", "sky", "structures", "sunset", "transport", "water"}  # have no `_r1`
LABELS38 = sorted([*LABELS24, *(f"{name}_r1" for name in LABELS24 if name not in WIDE)])  # `_r1`: where it is salient
LABELS = {"38": LABELS38, "24": LABELS24, "10": list(COLLAPSE)}  # by task, in the order of y's columns
TASKS = list(LABELS)


def mirflickr(
    task: str = "38", features: str = "images", folder: Path | None = None, *, split: int = 1, columns: str = "numbers"
) -> Parts:
    """Return 10,000 / 5,000 / 10,000 photographs, `standardized`; `split`: 1 to 5 of the archive, or the seed for tags."""
    for name, value, choices in (("task", task, TASKS), ("features", features, FEATURES)):
        if value not in choices:
            raise unknown(name, value, choices)
    check_size("split", split, 0)
    if features == "tags":
        if task == "38":
            raise ValueError("task='38' is not for tags, which come with 24 labels: choose 24 or 10, or features='images'.")
        return standardized(_tags(LABELS[task], folder, split), columns)
    if split not in SPLITS:
        raise ValueError(f"split={split}: MIRFLICKR's archive has the splits 1 to 5; choose one of them.")
    return standardized(_images(LABELS[task], folder, split), columns)


def picked(y: UInt8[np.ndarray, "n labels"], labels: list[str], targets: list[str]) -> UInt8[np.ndarray, "n targets"]:
    """Return the columns `targets` of y, whose columns are `labels`; one of the ten is 1 where any of its members is."""
    if targets != LABELS["10"]:
        return y[:, [labels.index(name) for name in targets]]
    parents = [name.removesuffix("_r1") for name in labels]
    members = [[column for column, parent in enumerate(parents) if parent in COLLAPSE[name]] for name in targets]
    return np.stack([y[:, columns].any(1) for columns in members], 1).astype(np.uint8)


def _tags(names: list[str], folder: Path | None, split: int) -> Parts:
    layout = "X [photographs, 1386] and Y [photographs, 24], of 0 and 1"
    advice = f"put {TAGS} ({layout}) into {cache_folder() / 'mirflickr'}, or name its folder with --data."
    path = find_local("mirflickr", [TAGS], TAGS, advice, folder) / TAGS
    x, y = read_npz(path, ["X", "Y"])
    x, y = as_labels(f"{path}: X", x), as_labels(f"{path}: Y", y)
    if len(x) != len(y) or y.shape[1] != 24:
        raise ValueError(f"{path} must hold {layout}, not X {x.shape} and Y {y.shape}.")
    if (n := len(y)) < 5:
        raise ValueError(f"{path} holds {n} photographs; at least 5 are needed for the parts, 2:1:2.")
    data = Part(x, picked(y, LABELS24, names))
    return Parts(*map(data.rows, np.split(np.random.default_rng(split).permutation(n), [n * 2 // 5, n * 3 // 5])))


def _images(names: list[str], folder: Path | None, split: int) -> Parts:
    split_files = [f"splits/{part}_indices_{split}.npy" for part in ("train", "valid", "test")]
    download = f"download flickr_data.tar.gz (about 5 GB) from {URL}, unpack it"
    advice = f"{download} into {cache_folder() / 'mirflickr'}, or name its folder with --data."
    layout = "labels.npy, splits/*.npy, image/labelled/combined-*.npy"
    place = find_local("mirflickr", ["labels.npy", *split_files, *SHARDS], layout, advice, folder)
    labels = as_labels(str(place / "labels.npy"), read_npy(place / "labels.npy", AGAIN))
    if labels.shape[1] != len(LABELS38):
        raise ValueError(f"{place / 'labels.npy'} has {labels.shape[1]} columns, not the {len(LABELS38)} labels; {AGAIN}")
    y, n, paths = picked(labels, LABELS38, names), len(labels), [place / file for file in SHARDS]
    sizes = [n * 2 // 5, n * 2 // 5, n - 2 * (n * 2 // 5)]
    shards = [as_features(str(path), read_npy(path, AGAIN)) for path in paths]  # memory-mapped
    for path, shard, size in zip(paths, shards, sizes, strict=True):
        if len(shard) != size:
            raise ValueError(f"{path} has {len(shard)} rows, not its {size} of the {n} in labels.npy; {AGAIN}")
        if shard.shape[1] != shards[0].shape[1]:
            raise ValueError(f"{path} has {shard.shape[1]} features, but {paths[0].name} has {shards[0].shape[1]}; {AGAIN}")
    splits = _splits([place / file for file in split_files], n)
    return Parts(*(Part(_rows(shards, rows), y[rows]) for rows in splits))


def _splits(paths: list[Path], n: int) -> list[Integer[np.ndarray, " part"]]:
    """Return the rows of each part, after a check that none is there twice."""
    parts = [read_npy(path, AGAIN) for path in paths]
    for path, rows in zip(paths, parts, strict=True):
        if rows.ndim != 1 or rows.dtype.kind not in "iu" or rows.size == 0:
            raise ValueError(f"{path} must be a row of integers, not {rows.dtype} of shape {rows.shape}; {AGAIN}")
        outside = rows[(rows < 0) | (rows >= n)]
        if outside.size:
            raise ValueError(f"{path} holds the index {outside[0]}, but labels.npy has the rows 0 to {n - 1}; {AGAIN}")
        if len(np.unique(rows)) != len(rows):
            raise ValueError(f"{path} holds {len(rows) - len(np.unique(rows))} indices twice; {AGAIN}")
    for (path, rows), (other, others) in combinations(zip(paths, parts, strict=True), 2):
        shared = np.intersect1d(rows, others)
        if shared.size:
            raise ValueError(f"{path} and {other.name} share {shared.size} indices, {shared[0]} for one; {AGAIN}")
    return [rows.astype(np.int64) for rows in parts]


def _rows(shards: list[Num[np.ndarray, "_ in"]], rows: Integer[np.ndarray, " part"]) -> Float32[np.ndarray, "part in"]:
    x, start = np.empty((len(rows), shards[0].shape[1]), np.float32), 0
    for shard in shards:
        in_shard = (rows >= start) & (rows < start + len(shard))
        x[in_shard] = shard[rows[in_shard] - start]
        start += len(shard)
    return x
