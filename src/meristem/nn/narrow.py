"""A network on the open dimensions of its trunk: what is closed is left out.

    without_trunk(network) → the same function by a network of fixed width, and which dimensions

A host function: shapes change. Imports axes; compaction imports it.
"""

from typing import Any

import equinox as eqx
import numpy as np

from meristem.nn.axes import TRUNK, read_scaled, take


def without_trunk(network: Any) -> tuple[Any, np.ndarray]:
    """The same function by a network of fixed width: the open dimensions alone, their gates in what reads them; and which.

    The trunk's gates stand on what is read (trunk.py), so they go into the columns of every matrix and of the head. Where all
    are closed one is kept, with columns of 0.
    """
    body = network.body
    gates = np.asarray(body.trunk.value, np.float64)
    dims = np.flatnonzero(gates) if gates.any() else np.zeros(1, int)
    declared = network.axes()
    small = read_scaled(take(network, declared, TRUNK, dims), declared, TRUNK, gates[dims])
    return eqx.tree_at(lambda n: n.body.trunk, small, None), dims
