"""The regressors: one number per row, or several."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from meristem.estimators.base import Growing
from meristem.estimators.bodies import Bud, Layered
from meristem.estimators.scaling import Scaling
from meristem.estimators.targets import Numbers


@dataclass(eq=False, repr=False, kw_only=True)
class Regressor(RegressorMixin, Growing):
    """What the three regressors share."""

    def _targets(self, y: Any) -> Numbers:
        columns = np.asarray(y, float).reshape(len(y), -1)
        scaling = Scaling.of(columns) if self.standardize else Scaling.none(columns.shape[1])
        return Numbers(scaling, np.ndim(y) == 1)

    def _validated(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:
        X, y = super()._validated(X, y, reset=reset)
        return X, np.asarray(y, float)


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
