"""What to do where a picture was asked of something that is no fitted estimator of meristem."""

from typing import Any


def not_drawn(what: str, wanted: str, model: Any) -> ValueError:
    """An error of one line for `model`, of which `what` draws nothing.

    >>> not_drawn("plot_growth()", "a fitted estimator of meristem", "model")
    ValueError('plot_growth() draws a fitted estimator of meristem, got a str.')
    """
    remedy = "."
    if hasattr(model, "best_estimator_"):
        remedy = "; give it the estimator that it chose: search.best_estimator_."
    elif hasattr(model, "steps"):
        remedy = "; give it the last step: pipeline[-1]."
    elif hasattr(model, "fit"):
        remedy = " that is not fitted; call fit(X, y) first."
    return ValueError(f"{what} draws {wanted}, got a {type(model).__name__}{remedy}")
