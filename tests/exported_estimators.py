"""A handful of trained estimators, for the tests that export them."""

import functools
import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, make_multilabel_classification

from meristem.estimators import BuddingClassifier, HighwayRegressor, TunnelClassifier, TunnelRegressor


@functools.cache
def iris() -> tuple[pd.DataFrame, np.ndarray]:
    data = load_iris(as_frame=True)
    return data.data, data.target_names[data.target]


def two_targets() -> tuple[np.ndarray, np.ndarray]:
    x, y = load_diabetes(return_X_y=True, scaled=False)
    return x, np.stack([y, 1e4 + 1e3 * x[:, 2]], 1)


def counts() -> tuple[np.ndarray, np.ndarray]:
    """How often something happened, on a scale of hundreds."""
    x, y = load_diabetes(return_X_y=True, scaled=False)
    return x, np.random.default_rng(0).poisson(10 * y).astype(float)


FEW = {"max_epochs": 10}
SMALL = {"width": 16, "settle": False} | FEW  # of the shapes of estimating.py
TUNNEL = SMALL | {"depth": 2}
CASES: dict[str, tuple[Any, Any]] = {
    "iris": (BuddingClassifier(**SMALL, max_leaves=2, activation="gelu"), iris),
    "breast-cancer": (TunnelClassifier(width=16, depth=2, **FEW), lambda: load_breast_cancer(return_X_y=True)),
    "digits": (TunnelClassifier(**TUNNEL | {"max_epochs": 5}), lambda: load_digits(return_X_y=True)),
    "multi-label": (TunnelClassifier(**TUNNEL), lambda: make_multilabel_classification(random_state=0)),
    "diabetes": (TunnelRegressor(**TUNNEL), lambda: load_diabetes(return_X_y=True, scaled=False)),
    "two-targets": (HighwayRegressor(**TUNNEL), two_targets),
    "counts": (TunnelRegressor(**TUNNEL, loss="poisson"), counts),
    "quantiles": (
        TunnelRegressor(**TUNNEL, loss="quantile", quantiles=(0.1, 0.5, 0.9)),
        lambda: load_diabetes(return_X_y=True, scaled=False),
    ),
}


@functools.cache
def trained(name: str) -> tuple[Any, Any]:
    """The estimator and its X."""
    estimator, load = CASES[name]
    x, y = load()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few epochs are not meant to be enough
        return estimator.set_params(random_state=0).fit(x, y), x


def batch(x: Any, n: int) -> Any:
    rows = np.random.default_rng(n).integers(len(x), size=n)
    return x.iloc[rows] if isinstance(x, pd.DataFrame) else x[rows]
