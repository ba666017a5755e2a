"""The regressors: one number per row, or several."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from meristem.estimators.base import Growing
from meristem.estimators.bodies import Bud, Layered
from meristem.compact.inference import outputs
from meristem.targets.scaling import Scaling
from meristem.targets.targets import Numbers


@dataclass(eq=False, repr=False, kw_only=True)
class Regressor(RegressorMixin, Growing):
    """What the three regressors share."""

    def _auto_dropout(self) -> float:
        return 0.0  # dropping inputs would shrink every slope

    def _prior(self, rows: int) -> tuple[float, float]:
        return 1 / rows, 10 / rows  # that of ridge regression, with an alpha of 1 and of 10

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """One epoch over these rows, part of a stream. How features and y are scaled is learned from all rows so far."""
        return self._partial_fit(X, y, sample_weight)

    def predict(self, X: Any) -> np.ndarray:
        """The number of each row, or its numbers."""
        x = self._scaled(X)
        return self._targets_.decode(outputs(self._compact_, x))

    def _targets(self, y: np.ndarray, weight: np.ndarray) -> Numbers:
        columns = y.reshape(len(y), -1)
        scaling = Scaling.of(columns, weight) if self.standardize else Scaling.none(columns.shape[1])
        return Numbers(scaling, y.ndim == 1)

    def _targets_with_more(self, y: np.ndarray, weight: np.ndarray) -> Numbers:
        self._targets_.encode(y)
        return replace(self._targets_, scaling=self._targets_.scaling.with_more(y.reshape(len(y), -1), weight))

    def _validated_target(self, y: Any) -> np.ndarray:
        return np.asarray(y, float)


@dataclass(eq=False, repr=False, kw_only=True)
class TunnelRegressor(Layered, Regressor):
    """A regressor whose units open one by one.

    >>> from sklearn.datasets import make_friedman1
    >>> X, y = make_friedman1(200, random_state=0)
    >>> TunnelRegressor(random_state=0, max_epochs=50).fit(X, y).score(X, y) > 0.7
    True
    """

    _body = "tunnel"


@dataclass(eq=False, repr=False, kw_only=True)
class BuddingRegressor(Bud, Regressor):
    """A regressor whose layers become two.

    >>> from sklearn.datasets import make_friedman1
    >>> X, y = make_friedman1(200, random_state=0)
    >>> BuddingRegressor(random_state=0, max_epochs=50).fit(X, y).score(X, y) > 0.7
    True
    """


@dataclass(eq=False, repr=False, kw_only=True)
class HighwayRegressor(Layered, Regressor):
    """The baseline: a highway network of a fixed size.

    >>> from sklearn.datasets import make_friedman1
    >>> X, y = make_friedman1(200, random_state=0)
    >>> HighwayRegressor(random_state=0, max_epochs=50).fit(X, y).score(X, y) > 0.7
    True
    """

    _body = "highway"
