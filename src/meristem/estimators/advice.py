"""What a person should know about a fit: a warning with a reason and a remedy, or nothing.

Nothing grew although the fit is poor · everything is open · a tree wanted more leaves than it may have.
"""

import numpy as np

from meristem.nn import Budding, Network, Tunnel
from meristem.nn.growth import n_leaves_of

POOR = 0.5  # of the error that a constant prediction makes
SHUT = 0.05  # a gate below it hardly does anything
OPEN = 0.95  # of the units have gates above 1/2
REMEDY = "lower penalty, raise learning_rate or max_epochs, or look at the scale and the use of the features."


class GrowthWarning(UserWarning):
    """The size that was found says that a parameter should be changed."""


def advice(network: Network, error: float, constant_error: float, *, max_leaves: int, wanted_more: bool) -> str | None:
    """One line, or None. `error` and `constant_error`: of the fit and of a constant prediction, on the same rows."""
    body = network.body
    is_poor = error > POOR * constant_error > 0
    poor = f"The fit is poor (training error {error:.3g}, that of a constant prediction is {constant_error:.3g})"
    if isinstance(body, Tunnel):
        gates = np.asarray(body.gate.value)
        if is_poor and gates.max() < SHUT:
            return f"{poor}, and no unit opened: {REMEDY}"
        share = (gates > 0.5).mean()
        if share > OPEN:
            return (
                f"{share:.0%} of the units are open: the network would be larger if it could. "
                "Give it more room (width, depth), or raise penalty."
            )
    if isinstance(body, Budding):
        leaves = int(n_leaves_of(body))
        if wanted_more and leaves >= max_leaves:
            return f"The tree has all of its {leaves} leaves and wanted more: raise max_leaves, or raise penalty."
        if is_poor and leaves == 1:
            return f"{poor}, and the tree is still a single layer: {REMEDY}"
    return None
