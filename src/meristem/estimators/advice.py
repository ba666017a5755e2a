"""What a person should know about a fit: a warning with a reason and a remedy, or nothing.

GrowthWarning        nothing grew although the fit is poor; or the network would be larger if it could
ConvergenceWarning   (scikit-learn's) training ended at max_epochs while the loss was still falling
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num

from meristem.nn.body import Body
from meristem.train.objectives import Objective
from meristem.train.run import Run

POOR = 0.5  # of the error that a constant prediction makes
REMEDY = "lower penalty, raise learning_rate or max_epochs, or look at the scale and the use of the features."


class GrowthWarning(UserWarning):
    """The size that was found says that a parameter should be changed."""


def advice_on_size(body: Body, run: Run, y: np.ndarray, weight: np.ndarray) -> str | None:
    """One line on the size of the best model's body, or None; y and weight are those that it was trained with."""
    waited = bool(((run.history["waited"] > 0) & (run.history["most_leaves"] >= run.max_capacity)).any())
    crowded, unopened = body.crowded(most=run.max_capacity, waited=waited), body.unopened()
    if crowded is not None or unopened is None:
        return crowded
    error = float(run.history["error"][int(run.best_epoch) - 1])
    constant = constant_error(run.recipe.task, y, weight, n_out=run.last.head.weight.shape[0])
    if not error > POOR * constant > 0:
        return None
    return (
        f"The fit is poor (training error {error:.3g}, that of a constant prediction is {constant:.3g}), "
        f"and {unopened}: {REMEDY}"
    )


def advice_on_epochs(run: Run, max_epochs: int) -> str | None:
    """One line where more epochs would have made a better model: the best one is among the last, and no one stopped."""
    if run.stopped or run.epochs < max_epochs or run.epochs - run.best_epoch >= run.recipe.patience:
        return None
    return (
        f"Training ended at max_epochs={max_epochs}, and the loss was still falling (best epoch {int(run.best_epoch)}): "
        "raise max_epochs."
    )


def constant_error(objective: Objective, y: np.ndarray, weight: np.ndarray, *, n_out: int) -> float:
    """The mean error of the best constant prediction.

    >>> from meristem.train.objectives import Multiclass
    >>> constant_error(Multiclass(), np.array([0, 0, 1, 1, 1]), np.ones(5), n_out=8)
    0.4
    """
    outputs = np.full(n_out, objective.unused_output)
    best = objective.best_constant(y, weight)
    outputs[: len(best)] = best
    errors = _errors(outputs.astype(np.float32), y, objective=objective)
    return float(weight @ np.asarray(errors, float) / weight.sum())


@partial(jax.jit, static_argnames="objective")
def _errors(outputs: Float[Array, " k"], y: Num[Array, "n ..."], *, objective: Objective) -> Float[Array, " n"]:
    return jax.vmap(lambda target: objective.error(outputs, target))(jnp.asarray(y))
