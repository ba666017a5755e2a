"""What a person should know about a fit: a warning with a reason and a remedy, or nothing.

Nothing grew although the fit is poor · everything is open · a tree wanted more leaves than it may have.
"""

import numpy as np

from meristem.nn import Budding, Network, Tunnel
from meristem.nn.growth import n_leaves_of

POOR = 0.5  # of the error that a constant prediction makes
OPEN = 0.95  # of the units


class GrowthWarning(UserWarning):
    """The size that was found says that a parameter should be changed."""


def advice(network: Network, error: float, constant_error: float, *, waited: int, max_leaves: int | None) -> str | None:
    """One line, or None. `error` and `constant_error`: of the fit and of a constant prediction, on the same rows."""
    body = network.body
    is_poor = error > POOR * constant_error
    if isinstance(body, Tunnel):
        gates = np.asarray(body.gate.value)
        if is_poor and gates.max() < 0.05:
            return f"{_poor(error)}, and no unit opened: {REMEDY}"
        if (gates > 0.5).mean() > OPEN:
            return (
                f"{(gates > 0.5).mean():.0%} of the units are open: the network would be larger if it could. "
                "Give it more room (width, depth), or raise penalty."
            )
    if isinstance(body, Budding):
        leaves = int(n_leaves_of(body))
        if is_poor and leaves == 1:
            return f"{_poor(error)}, and the tree is still a single layer: {REMEDY}"
        if waited and leaves == max_leaves:
            return f"The tree has all of its {leaves} leaves and wanted more: raise max_leaves, or raise penalty."
    return None


REMEDY = "lower penalty, raise learning_rate or max_epochs, or look at the scale and the use of the features."


def _poor(error: float) -> str:
    return f"The fit is poor (training error {error:.3g}, more than half that of a constant prediction)"
