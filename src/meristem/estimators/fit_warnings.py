"""The warning after a fit, with a reason and a remedy, if there is one.

GrowthWarning        the training failed; nothing opened although the fit is poor; or a limit on the size was reached
ConvergenceWarning   (scikit-learn's) training ended at max_epochs while the loss was still falling considerably
"""

from sklearn.exceptions import ConvergenceWarning

from meristem.nn import Network
from meristem.nn.structure import structure
from meristem.train.run import Run

POOR, FAILED = 0.5, 2.0  # training error relative to that of a constant prediction
CONSIDERABLE = 0.01  # of the total decrease of the loss
LEAST_EPOCHS = 10  # to judge whether a loss is falling


class GrowthWarning(UserWarning):
    """The training or the size of the network suggests to change a parameter."""


def fit_warning(run: Run, network: Network, max_epochs: int, constant: float) -> Warning | None:
    """Return the warning of a fit, or None; `constant` is the error of the best constant prediction."""
    return _size_warning(run, network, constant) or _epochs_warning(run, max_epochs)


def _size_warning(run: Run, network: Network, constant: float) -> GrowthWarning | None:
    error = float(run.history["error"][int(run.best_epoch) - 1])
    if error > FAILED * constant > 0:  # a linear start alone is better
        return GrowthWarning(
            f"The training diverged: the error of its best model is {error:.3g}, that of a constant prediction {constant:.3g}. "
            "Lower learning_rate, or check the scale of the features."
        )
    waited = bool(((run.history["waited"] > 0) & (run.history["most_leaves"] >= run.max_capacity)).any())
    body = structure(network.body)
    crowded, unopened = body.crowded(most=run.max_capacity, waited=waited), body.unopened()
    if crowded is not None or unopened is None or not error > POOR * constant > 0:
        return None if crowded is None else GrowthWarning(crowded)
    return GrowthWarning(
        f"The fit is poor (training error {error:.3g}, that of a constant prediction is {constant:.3g}), and {unopened}: "
        "lower penalty, raise learning_rate or max_epochs, or check the scale and relevance of the features."
    )


def _epochs_warning(run: Run, max_epochs: int) -> ConvergenceWarning | None:
    epochs, best = int(run.epochs), int(run.best_epoch)
    patience = min(run.patience, max(LEAST_EPOCHS, epochs // 2))
    if run.stopped or not max_epochs == epochs > patience or epochs - best >= patience:
        return None
    losses = run.history["dev_loss"]
    late, total = losses[:-patience].min() - losses[best - 1], losses[0] - losses[best - 1]
    if not late > CONSIDERABLE * total:
        return None
    return ConvergenceWarning(
        f"Training ended at max_epochs={max_epochs} while the loss was still falling, in the last {patience} epochs by "
        f"{late / total:.1%} of its total decrease: raise max_epochs."
    )
