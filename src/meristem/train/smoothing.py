"""Label smoothing: the loss of a step for targets that are only almost certain. Measures are those of the targets as they are.

    classes   (1 − s) E(o, t) + s · mean_k E(o, k)  =  E(o, t) + s · (o_t − mean_k o_k)
    labels    E(o, (1 − s) t + s / 2)

An output that is padding is none of the classes.
"""

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, Float

from meristem.train.objectives import NEVER, Objective


def smoothed(objective: Objective, share: float) -> Callable[[Array, Array], Float[Array, ""]]:
    """Return the loss of one sample, for its outputs [k] and its target; without smoothing that of the objective itself.

    >>> from meristem.train.objectives import Multiclass
    >>> round(float(smoothed(Multiclass(), 0.1)(jnp.array([0.0, 3.0]), jnp.array(1))), 3)
    0.199
    """
    if not share:
        return objective.loss

    def of_class(outputs: Array, target: Array) -> Array:
        is_class = outputs > NEVER / 2
        own = jnp.where(jnp.arange(outputs.shape[0]) == target, outputs, 0).sum()
        return objective.loss(outputs, target) + share * (own - jnp.where(is_class, outputs, 0).sum() / is_class.sum())

    def of_labels(outputs: Array, target: Array) -> Array:
        return objective.loss(outputs, (1 - share) * target.astype(outputs.dtype) + share / 2)

    return of_class if objective.targets_are_classes else of_labels
