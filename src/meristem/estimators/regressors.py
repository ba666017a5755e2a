"""The regressors: one number per row, or several; by any loss whose targets are numbers (`losses`)."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from meristem.estimators import features
from meristem.estimators.base import PENALTY, Growing
from meristem.estimators.bodies import Bud, Fixed, Layered
from meristem.estimators.docstrings import documented
from meristem.estimators.estimator_file import registered
from meristem.estimators.given import check_numbers, to_score
from meristem.estimators.settings import Loss
from meristem.targets import Counts, Numbers, losses
from meristem.train.objectives import OBJECTIVES, Objective, Quantile

LEAST_PRICE, LEAST_NOISE = 0.1, 0.01


@dataclass(eq=False, repr=False, kw_only=True)
class Regressor(RegressorMixin, Loss, Growing):
    """What the three regressors share."""

    _ridge: ClassVar[float] = 5.0  # alpha where the inputs tell nothing
    _stops = True

    def _objective(self) -> Objective:
        kind = OBJECTIVES[self.loss]
        return kind(tuple(map(float, self.quantiles))) if issubclass(kind, Quantile) else kind()

    def _auto_dropout(self, numbers: int) -> float:
        return 0.0  # dropping inputs would shrink every slope

    def _price(self, told: float) -> float:
        return PENALTY * max(LEAST_PRICE, self._left(told))

    def _prior(self, rows: int, targets: Any, told: float, *, are_alike: bool) -> float:
        # That of ridge regression; more where counts are so rare that few rows say much.
        return max(self._ridge, 3 * (targets.relative_variance - 1)) * max(LEAST_NOISE, self._left(told)) / rows

    def _left(self, told: float) -> float:
        """Of the loss of a constant, where the inputs tell so much of the variance: prices are relative to what is left."""
        return max(0.0, 1 - told) ** OBJECTIVES[self.loss].noise_power

    def _asks_what_is_told(self) -> bool:
        return isinstance(self.l2, str) or isinstance(self.penalty, str)

    def _permanent(self) -> dict[str, tuple[Any, Any]]:
        made = self._targets_.objective
        permanent = super()._permanent() | {"loss": (self.loss, made.name)}
        if isinstance(made, Quantile):
            permanent["quantiles"] = (tuple(map(float, self.quantiles)), made.levels)
        return permanent

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """One epoch over these rows, part of a stream. How features and y are scaled is learned from all rows so far."""
        return self._partial_fit(X, y, sample_weight)

    def predict(self, X: Any) -> np.ndarray:
        """The number of each row, or its numbers; of several quantiles a column each."""
        return self._answers(X, lambda x: self._targets_.decode(self._predictor_.outputs(x)))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the prediction, whatever the loss; of several quantiles that of the median, if it is among them."""
        check_is_fitted(self)
        y, weight = to_score(self, X, y, sample_weight, check_numbers)
        said, objective = self.predict(X), self._targets_.objective
        if isinstance(objective, Quantile) and len(objective.levels) > 1:
            if 0.5 not in objective.levels:
                raise ValueError(
                    f"score is of the median, and quantiles={objective.levels} have none; add 0.5, or use "
                    "sklearn.metrics.mean_pinball_loss(y, predicted[:, i], alpha=quantiles[i])."
                )
            said = said[:, objective.levels.index(0.5) :: len(objective.levels)]
        return r2_score(y, said, sample_weight=weight)

    def _targets(self, y: np.ndarray, weight: np.ndarray) -> Numbers:
        return losses()[self.loss].of(y, weight, standardize=bool(self.standardize), objective=self._objective())

    def _targets_with_more(self, y: np.ndarray, weight: np.ndarray) -> Numbers:
        return self._targets_.with_more(y, weight)

    def _check_target(self, y: Any) -> None:
        check_numbers(y)

    def _validated_target(self, y: Any) -> np.ndarray:
        try:
            return np.asarray(y, float)
        except (ValueError, TypeError) as error:
            raise features.named(error, "y") from None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = issubclass(losses().get(str(self.loss), Numbers), Counts)
        return tags


@registered
@documented
@dataclass(eq=False, repr=False, kw_only=True)
class TunnelRegressor(Layered, Regressor):
    """A regressor whose units open one by one: a tunnel network.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> X, y = make_friedman1(200, random_state=0)
    >>> TunnelRegressor(width=16, depth=2, random_state=0).fit(X, y).score(X, y) > 0.7
    True
    """

    _body = "tunnel"
    _ridge = 3.0  # it starts linear, and opens only what is worth its price


@registered
@documented
@dataclass(eq=False, repr=False, kw_only=True)
class BuddingRegressor(Bud, Regressor):
    """A regressor whose layers become two: a budding perceptron.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> X, y = make_friedman1(200, random_state=0)
    >>> BuddingRegressor(width=8, random_state=0).fit(X, y).score(X, y) > 0.7
    True
    """


@registered
@documented
@dataclass(eq=False, repr=False, kw_only=True)
class HighwayRegressor(Fixed, Regressor):
    """The baseline: a highway network of a fixed size, as a regressor.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> X, y = make_friedman1(200, random_state=0)
    >>> HighwayRegressor(width=16, depth=2, random_state=0).fit(X, y).score(X, y) > 0.7
    True
    """

    _body = "highway"
