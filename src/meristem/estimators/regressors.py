"""The regressors: one number per row, or several; with any loss for numeric targets (`losses`)."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from meristem.estimators.base import Estimator
from meristem.estimators.conformal import scores_of
from meristem.estimators.defaults import RegressorDefaults
from meristem.estimators.documentation import registered
from meristem.estimators.input_checks import check_data, check_numbers, check_scoring_data, naming_argument
from meristem.estimators.network_estimator import NetworkEstimator
from meristem.estimators.training_settings import Budding, Highway, Tunnel
from meristem.targets import Counts, Numbers, losses
from meristem.train.objectives import OBJECTIVES, Quantile


@dataclass(eq=False, repr=False, kw_only=True)
class RegressorBase(RegressorMixin, Estimator):
    """What all regressors share, also those that search."""

    loss: str = "squared_error"
    quantiles: tuple[float, ...] = (0.5,)

    def _make_targets(self, y: np.ndarray, weight: np.ndarray) -> Numbers:
        kind = OBJECTIVES[self.loss]
        objective = kind(tuple(map(float, self.quantiles))) if issubclass(kind, Quantile) else kind()
        return losses()[self.loss].of(y, weight, standardize=bool(self.standardize), objective=objective)

    def _checked_rows(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, np.ndarray]:
        check_numbers(y)
        X, y = check_data(self, X, y, reset=reset)
        try:
            return X, np.asarray(y, float)
        except (ValueError, TypeError) as error:
            raise naming_argument(error, "y") from None

    def predict(self, X: Any) -> np.ndarray:
        """Return the number of each row, or its numbers; of several quantiles a column each."""
        return self._outputs(X, lambda x: self._targets_.decode(self._predictor_.outputs(x)))

    def predict_interval(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """Return the lower and the upper bound of each row, [rows, 2]: y is between them with this probability.

        Of several columns of y, each has its own: [rows, columns, 2]. Only of the CV estimators.
        """
        scores = scores_of(self)
        return self._outputs(X, lambda x: scores.bounds(self._targets_, x, self._predictor_.outputs(x), coverage))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R² of the prediction, whatever the loss; of several quantiles that of the median, which must be among them."""
        check_is_fitted(self)
        check_numbers(y)
        y, weight = check_scoring_data(self, X, y, sample_weight)
        predicted, objective = self.predict(X), self._targets_.objective
        if isinstance(objective, Quantile) and len(objective.levels) > 1:
            if 0.5 not in objective.levels:
                raise ValueError(
                    f"score needs the median, which is not among quantiles={objective.levels}; add 0.5, or use "
                    "sklearn.metrics.mean_pinball_loss(y, predicted[:, i], alpha=quantiles[i])."
                )
            predicted = predicted[:, objective.levels.index(0.5) :: len(objective.levels)]
        return r2_score(y, predicted, sample_weight=weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = issubclass(losses().get(str(self.loss), Numbers), Counts)
        return tags


@dataclass(eq=False, repr=False, kw_only=True)
class Regressor(RegressorBase, NetworkEstimator):
    """A regressor with one network."""

    _defaults = RegressorDefaults()

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train one epoch on these rows, part of a stream; the scaling of features and y is updated."""
        return self._fit(X, y, sample_weight, is_stream=True)


@registered
class TunnelRegressor(Tunnel, Regressor):
    """A regressor whose units open one by one: a tunnel network."""

    _defaults = RegressorDefaults(ridge=3.0)  # it starts linear, and opens only units that are worth their price


@registered
class BuddingRegressor(Budding, Regressor):
    """A regressor whose layers split in two: a budding perceptron."""


@registered
class HighwayRegressor(Highway, Regressor):
    """The baseline: a highway network of a fixed size, as a regressor."""
