"""The data sets of the estimators' comparison: a name and a number of a split → rows to learn from and rows to judge by.

    load("digits", split=3, data=Path("../shared/data")) → Split(x, y, test_x, test_y)

A quarter of the rows is judged by; generated sets are drawn anew for every split. `LISTED` are those of the comparison;
`OTHERS` are there to see whether a setting also holds elsewhere; some guided the choice of the prior, on splits from 100 on.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn import datasets
from sklearn.model_selection import train_test_split

from meristem.data.spirals import RADIUS, TURNS_AND_RHO

TEST_SHARE = 0.25


class Split(NamedTuple):
    x: np.ndarray
    y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray


@dataclass(frozen=True)
class DataSet:
    """`kind`: "classes", "labels" (an indicator matrix) or "numbers"."""

    kind: str
    draw: Callable[[int, Path | None], tuple[np.ndarray, np.ndarray]]  # of a split and of the folder of files


def load(name: str, split: int, data: Path | None = None) -> Split:
    """The split of a data set; the same for every model."""
    x, y = SETS[name].draw(split, data)
    by = y if SETS[name].kind == "classes" else None
    x, test_x, y, test_y = train_test_split(x, y, test_size=TEST_SHARE, random_state=split, stratify=by)
    return Split(x, y, test_x, test_y)


def _whole(loader: Callable) -> Callable:
    return lambda split, data: loader(return_X_y=True)


def _drawn(make: Callable, **options: object) -> Callable:
    """A generated set; another one for every split, as its seed."""
    return lambda split, data: make(random_state=split, **options)


def _labels(name: str) -> Callable:
    def draw(split: int, data: Path | None) -> tuple[np.ndarray, np.ndarray]:
        if data is None:
            raise SystemExit(f"{name} needs its file: --data DIR or MERISTEM_DATA, a folder with multilabel/{name}.npz.")
        parts = np.load(data / "multilabel" / f"{name}.npz")
        x, y = (np.concatenate([parts[f"{key}_train"], parts[f"{key}_test"]]) for key in "XY")
        return x.astype(float), y.astype(int)

    return draw


def spirals(n_samples: int, turns: float, rho: float, noise: float, random_state: int) -> tuple[np.ndarray, np.ndarray]:
    """Points anywhere along two spirals, moved by `noise` (of a radius of 6.5)."""
    rng = np.random.default_rng(random_state)
    t, y = rng.uniform(size=n_samples), rng.integers(2, size=n_samples)
    radius, angle = RADIUS * (rho + (1 - rho) * t), 2 * np.pi * turns * t + np.pi * y
    x = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)
    return x + rng.normal(scale=noise, size=x.shape), y


def parity(random_state: int) -> tuple[np.ndarray, np.ndarray]:
    """Which of two: three bits decide, nine others do not."""
    x = np.random.default_rng(random_state).integers(2, size=(800, 12)).astype(float)
    return x, x[:, :3].sum(1).astype(int) % 2


def steps(random_state: int) -> tuple[np.ndarray, np.ndarray]:
    """A number with jumps, as trees like it; tails in the features."""
    rng = np.random.default_rng(random_state)
    x = np.exp(rng.normal(size=(800, 8)))
    y = 2.0 * (x[:, 0] > 1) + (x[:, 1] > 1.5) * (x[:, 2] > 0.7) + np.minimum(x[:, 3], 3) + rng.normal(scale=0.3, size=800)
    return x, y


def prices(random_state: int) -> tuple[np.ndarray, np.ndarray]:
    """A skewed positive number of mixed features, as house prices are."""
    rng = np.random.default_rng(random_state)
    x = rng.normal(size=(1500, 8))
    x[:, 5:] = rng.integers(4, size=(1500, 3))
    log = 0.5 * x[:, 0] + 0.3 * np.sin(2 * x[:, 1]) + 0.2 * x[:, 2] * (x[:, 5] > 1) + 0.1 * x[:, 6]
    return x, np.exp(log + rng.normal(scale=0.2, size=1500))


def waves(random_state: int) -> tuple[np.ndarray, np.ndarray]:
    """One feature, a sine: as nonlinear as it gets with little noise."""
    rng = np.random.default_rng(random_state)
    x = rng.uniform(-3, 3, size=(300, 1))
    return x, np.sin(2 * x[:, 0]) + 0.1 * rng.normal(size=300)


def few_digits(random_state: int) -> tuple[np.ndarray, np.ndarray]:
    """Three hundred of the digits."""
    x, y = datasets.load_digits(return_X_y=True)
    rows = np.random.default_rng(random_state).permutation(len(y))[:300]
    return x[rows], y[rows]


_MEDIUM, _DIFFICULT = ({"turns": turns, "rho": rho} for turns, rho in map(TURNS_AND_RHO.get, ["medium", "difficult"]))

LISTED = {
    "digits": DataSet("classes", _whole(datasets.load_digits)),
    "breast cancer": DataSet("classes", _whole(datasets.load_breast_cancer)),
    "wine": DataSet("classes", _whole(datasets.load_wine)),
    "moons": DataSet("classes", _drawn(datasets.make_moons, n_samples=400, noise=0.25)),
    "spirals medium": DataSet("classes", _drawn(spirals, n_samples=400, noise=0.3, **_MEDIUM)),
    "spirals difficult": DataSet("classes", _drawn(spirals, n_samples=400, noise=0.3, **_DIFFICULT)),
    "diabetes": DataSet("numbers", _whole(datasets.load_diabetes)),
    "friedman1": DataSet("numbers", _drawn(datasets.make_friedman1, n_samples=500, noise=1.0)),
    "friedman2": DataSet("numbers", _drawn(datasets.make_friedman2, n_samples=500, noise=125.0)),
    "friedman3": DataSet("numbers", _drawn(datasets.make_friedman3, n_samples=500, noise=0.1)),
    "emotions": DataSet("labels", _labels("emotions")),
    "scene": DataSet("labels", _labels("scene")),
    "yeast": DataSet("labels", _labels("yeast")),
    "corel5k": DataSet("labels", _labels("corel5k")),
}

_classes = datasets.make_classification
OTHERS = {
    "iris": DataSet("classes", _whole(datasets.load_iris)),
    "few digits": DataSet("classes", _drawn(few_digits)),
    "circles": DataSet("classes", _drawn(datasets.make_circles, n_samples=400, noise=0.15, factor=0.5)),
    "clusters": DataSet("classes", _drawn(_classes, n_samples=1000, n_features=20, n_informative=6, n_classes=4, flip_y=0.05)),
    "imbalanced": DataSet(
        "classes", _drawn(_classes, n_samples=1000, n_features=12, n_informative=5, weights=[0.9], flip_y=0.02)
    ),
    "wide": DataSet("classes", _drawn(_classes, n_samples=200, n_features=500, n_informative=20)),
    "noisy": DataSet("classes", _drawn(_classes, n_samples=400, n_features=30, n_informative=3, flip_y=0.3)),
    "parity": DataSet("classes", _drawn(parity)),
    "linear": DataSet("numbers", _drawn(datasets.make_regression, n_samples=300, n_features=20, n_informative=10, noise=50.0)),
    "wide linear": DataSet(
        "numbers", _drawn(datasets.make_regression, n_samples=150, n_features=200, n_informative=10, noise=20.0)
    ),
    "friedman1 clean": DataSet("numbers", _drawn(datasets.make_friedman1, n_samples=1000)),
    "friedman3 clean": DataSet("numbers", _drawn(datasets.make_friedman3, n_samples=300)),
    "steps": DataSet("numbers", _drawn(steps)),
    "prices": DataSet("numbers", _drawn(prices)),
    "waves": DataSet("numbers", _drawn(waves)),
    "labels": DataSet("labels", _drawn(datasets.make_multilabel_classification, n_samples=600, n_features=30, n_classes=6)),
}
SETS = LISTED | OTHERS
