"""What a person should know about a fit: a warning with a reason and a remedy, or nothing.

GrowthWarning        the fit went wrong; nothing grew although it is poor; or the network would be larger if it could
ConvergenceWarning   (scikit-learn's) training ended at max_epochs while the loss was still falling by more than a little
"""

from collections.abc import Callable

from meristem.nn.body import Body
from meristem.nn.structure import structure
from meristem.train.run import Run

POOR = 0.5  # of the error that a constant prediction makes
MATERIAL = 0.01  # of all that the loss has fallen: most fits creep on for longer than is of any use
WRONG = 2.0  # the same: a linear start alone, which any training has, is better than that
LEAST_EPOCHS = 10  # that say whether a loss is falling
REMEDY = "lower penalty, raise learning_rate or max_epochs, or look at the scale and the use of the features."


class GrowthWarning(UserWarning):
    """The size that was found says that a parameter should be changed."""


def advice_on_failure(run: Run, constant_error: Callable[[], float]) -> str | None:
    """One line where the best model is clearly worse than a constant prediction: a training that diverged and stayed finite."""
    error, constant = float(run.history["error"][int(run.best_epoch) - 1]), constant_error()
    if not error > WRONG * constant > 0:
        return None
    return (
        f"The training diverged: the error of its best model is {error:.3g}, that of a constant prediction {constant:.3g}. "
        "Lower learning_rate, or look at the scale of the features."
    )


def advice_on_size(body: Body, run: Run, constant_error: Callable[[], float]) -> str | None:
    """One line on the size of the best model's body, or None; `constant_error()` is that of a constant prediction."""
    waited = bool(((run.history["waited"] > 0) & (run.history["most_leaves"] >= run.max_capacity)).any())
    seen = structure(body)
    crowded, unopened = seen.crowded(most=run.max_capacity, waited=waited), seen.unopened()
    if crowded is not None or unopened is None:
        return crowded
    error, constant = float(run.history["error"][int(run.best_epoch) - 1]), constant_error()
    if not error > POOR * constant > 0:
        return None
    return (
        f"The fit is poor (training error {error:.3g}, that of a constant prediction is {constant:.3g}), "
        f"and {unopened}: {REMEDY}"
    )


def advice_on_epochs(run: Run, max_epochs: int) -> str | None:
    """One line where training ended early: at max_epochs, the best model among the last, and the loss still falling by much."""
    epochs, best = int(run.epochs), int(run.best_epoch)
    patience = min(run.patience, max(LEAST_EPOCHS, epochs // 2))
    if run.stopped or not max_epochs == epochs > patience or epochs - best >= patience:
        return None
    losses = run.history["dev_loss"]
    late, whole = losses[:-patience].min() - losses[best - 1], losses[0] - losses[best - 1]
    if not late > MATERIAL * whole:
        return None
    return (
        f"Training ended at max_epochs={max_epochs} while the loss was still falling, in the last {patience} epochs by "
        f"{late / whole:.1%} of all it has fallen: raise max_epochs."
    )
