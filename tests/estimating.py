"""What the tests of the estimators share: real data, small networks, and a count of compiled programs."""

from collections.abc import Iterator
from contextlib import contextmanager

import jax
import numpy as np
from sklearn.datasets import load_diabetes, load_digits, load_iris, load_wine, make_friedman1
from sklearn.model_selection import train_test_split

import meristem

SMALL = {"width": 16, "settle": False, "random_state": 0}  # how sizes settle is in test_settle.py
CLASSIFIERS = [
    meristem.TunnelClassifier(**SMALL, depth=2),
    meristem.BuddingClassifier(**SMALL, max_leaves=2),
    meristem.HighwayClassifier(**SMALL, depth=2),
]
REGRESSORS = [
    meristem.TunnelRegressor(**SMALL, depth=2),
    meristem.BuddingRegressor(**SMALL, max_leaves=2),
    meristem.HighwayRegressor(**SMALL, depth=2),
]

COMPILED: list[str] = []


def _note(name: str, _: float, **about: object) -> None:
    if name == "/jax/core/compile/backend_compile_duration":
        COMPILED.append(str(about["fun_name"]))


jax.monitoring.register_event_duration_secs_listener(_note)


@contextmanager
def programs() -> Iterator[list[str]]:
    """The names of the programs that are compiled inside."""
    before, new = len(COMPILED), []
    yield new
    new += COMPILED[before:]


def tunnel(**parameters: object) -> meristem.TunnelClassifier:
    return meristem.TunnelClassifier(**SMALL | {"depth": 2} | parameters)


def tunnel_regressor(**parameters: object) -> meristem.TunnelRegressor:
    return meristem.TunnelRegressor(**SMALL | {"depth": 2} | parameters)


def iris() -> tuple[np.ndarray, np.ndarray]:
    return load_iris(return_X_y=True)


def two_irises() -> tuple[np.ndarray, np.ndarray]:
    """The two species that are hard to tell apart."""
    X, y = iris()
    return X[y > 0], y[y > 0] - 1


def split(name: str) -> list[np.ndarray]:
    """Training and test rows: X, X, y, y."""
    load = {"iris": load_iris, "wine": load_wine, "digits": load_digits, "diabetes": load_diabetes}
    X, y = make_friedman1(600, noise=0.5, random_state=0) if name == "friedman" else load[name](return_X_y=True)
    return train_test_split(X, y, test_size=0.3, random_state=0)
