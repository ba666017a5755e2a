"""What there is to learn: the held-out loss of the best constant, fold by fold, beside which a network's is seen.

    losses = constant_losses(y, weight, folds, objective, n_out)      [folds]
    has_learned(losses_of_networks, losses)                           whether they know more than that

A price at which nothing opens makes a tunnel a linear model; where that is no better than a constant, what is compared there is
noise. The constant of logits is the share of each class in the rows that are learned from, else what the objective
names. Imports the objectives; the estimators' paths import it.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from meristem.train.objectives import Objective

LEAST = 0.01  # of the constant's loss, that must be gained


def constant_losses(
    y: np.ndarray, weight: np.ndarray, folds: Sequence[tuple[np.ndarray, np.ndarray]], objective: Objective, n_out: int
) -> np.ndarray:
    """The mean loss on the rows held out of each fold; y [n] or [n, n_out].

    >>> from meristem.train.objectives import Multiclass
    >>> folds = [(np.array([0, 1, 2, 3]), np.array([4, 5]))]
    >>> constant_losses(np.array([0, 1, 0, 1, 0, 1]), np.ones(6), folds, Multiclass(), 2).round(3).tolist()
    [0.693]
    """
    return np.array([_loss(y, weight, learn, held, objective, n_out) for learn, held in folds])


def has_learned(losses: np.ndarray, constant: np.ndarray) -> bool:
    """Whether networks of the same folds are better than the constant by more than next to nothing, in the mean.

    >>> constant = np.array([0.69, 0.70, 0.69])
    >>> has_learned(constant - [0.1, 0.2, 0.1], constant), has_learned(constant - [0.001, 0.0, 0.002], constant)
    (True, False)
    """
    return bool(np.mean(constant - losses) > LEAST * abs(np.mean(constant)))


def _loss(y: np.ndarray, weight: np.ndarray, learn: np.ndarray, held: np.ndarray, objective: Objective, n_out: int) -> float:
    says = jnp.asarray(_constant(y[learn], weight[learn], objective, n_out), jnp.float32)
    losses = np.asarray(jax.vmap(lambda target: objective.loss(says, target))(jnp.asarray(y[held])))
    return float(losses @ weight[held] / max(weight[held].sum(), 1e-30))


def _constant(y: np.ndarray, weight: np.ndarray, objective: Objective, n_out: int) -> np.ndarray:
    if not objective.outputs_are_logits:
        return np.broadcast_to(objective.best_constant(y, weight), (n_out,))
    share = weight / weight.sum()
    if objective.targets_are_classes:
        return np.log(np.bincount(y.astype(int), share, minlength=n_out) + 1 / (len(y) + 1))
    yes = share @ y.reshape(len(y), -1)
    kept = np.clip(yes, 0.5 / (len(y) + 1), 1 - 0.5 / (len(y) + 1))
    return np.log(kept / (1 - kept))
