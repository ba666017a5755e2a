"""The score by which a search chooses: a metric of the report, or what scikit-learn makes a scorer of."""

from typing import Any

import numpy as np
from sklearn.metrics import get_scorer

from meristem.check import short
from meristem.estimators.input_checks import naming_argument
from meristem.report.scoring import CLASS
from meristem.report.task_metrics import Outcome, Predicted, metric_of
from meristem.targets import Classes


def score_by(scoring: Any, model: Any, x: Any, y: np.ndarray, raw_y: np.ndarray) -> float:
    """Return the score of a fitted estimator on some rows, more is better; `y` are its encoded targets."""
    metric, targets = metric_of(scoring), model._targets_
    try:
        if metric is not None and metric.task == CLASS and isinstance(targets, Classes):
            predicted = Predicted(targets.encode(model.predict(x)), model.predict_proba(x))
            return metric.utility(Outcome(CLASS, y, predicted, len(targets.classes), targets.positive))
        scorer = get_scorer(scoring if metric is None else metric.scoring)  # returns a function as it is
        return float(scorer(model, x, raw_y))
    except (ValueError, TypeError, AttributeError) as error:
        raise naming_argument(error, f"scoring={short(scoring)}") from error
