"""The regressors: one number per row, or several."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from meristem.estimators.base import Growing
from meristem.estimators.bodies import Bud, Layered
from meristem.estimators.predictability import predictability
from meristem.estimators.scaling import Scaling
from meristem.estimators.targets import Numbers
from meristem.estimators.training import Rows

# Where the inputs tell no more than half of the targets' variance, the prior counts ten times as much; from 0.6 on once.
NOISY, CLEAR, FIRMER = 0.5, 0.6, 10.0


@dataclass(eq=False, repr=False, kw_only=True)
class Regressor(RegressorMixin, Growing):
    """What the three regressors share."""

    def _auto_dropout(self) -> float:
        return 0.0  # dropping inputs would shrink every slope

    def _auto_l2(self, learned: dict[str, Any]) -> float:
        """The prior of ridge regression, with an alpha of 1 to 10."""
        noise = np.clip((CLEAR - learned["predictability_"]) / (CLEAR - NOISY), 0, 1)
        return float(FIRMER**noise / learned["n_samples_seen_"])

    def _look_at(self, rows: Rows, *, goes_on: bool, is_stream: bool) -> dict[str, Any]:
        learned = super()._look_at(rows, goes_on=goes_on, is_stream=is_stream)
        if not isinstance(self.l2, str):
            return learned
        is_known = goes_on and hasattr(self, "predictability_")  # the first rows decide; the first files do not say
        known = self.predictability_ if is_known else predictability(rows.x, rows.y, rows.weight)
        return learned | {"predictability_": known}

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """One epoch over these rows, part of a stream. How features and y are scaled is learned from all rows so far."""
        return self._partial_fit(X, y, sample_weight)

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
