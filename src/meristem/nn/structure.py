"""What there is to be seen of a body: gates of a stack of layers, or nodes of a tree. Plain data, for words and pictures.

It follows from the axes that are the body's size (axes.py), averaged over inputs where openness depends on them. For the host.
"""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from meristem.gate import is_confined
from meristem.nn.axis_counts import size_openness

SHUT = 0.05  # a gate below it hardly does anything
OPEN = 0.95  # of the units with gates above 1/2: it wants more room


@dataclass(frozen=True, eq=False)
class Gates:
    """A stack of layers and how open each of their units is.

    values   [layers, units], from 0, which copies its input, to 1, which transforms it; 0 where the unit's dimension of the
             trunk is closed: a unit that nothing reads is not there, and no size counts it
    source   where they come from: "parameters" (0 is then exact), "inputs" (functions of the input, averaged over some),
             "biases" (such functions, without an input) or "fixed" (there are no gates: every unit is open)
    remark   what else to say of it, if anything
    """

    values: np.ndarray
    source: str
    remark: str = ""

    def unopened(self) -> str | None:
        """A clause that says so where hardly anything has opened."""
        if self.source != "parameters" or self.values.max() >= SHUT:
            return None
        n_open = int((self.values > 0).sum())
        return f"of {n_open} open units none is open by more than {self.values.max():.2g}" if n_open else "no unit opened"

    def crowded(self, *, most: int, waited: bool) -> str | None:
        """A sentence that says so where the network would be larger if it could."""
        share = (self.values > 0.5).mean()
        if self.source != "parameters" or share <= OPEN:
            return None
        advice = "Give it more room (width, depth), or raise penalty."
        return f"{share:.0%} of the units are open: the network would be larger if it could. {advice}"


@dataclass(frozen=True, eq=False)
class Nodes:
    """A full binary tree of layers, as in tree.py, and how much of a leaf each node is.

    depth      [capacity], the depth of the inner node before each leaf, −1 where there is none
    leafness   [2 · capacity − 1], γ of every node in the tree's order
    identity   γ₀ of a root that may copy its input; None where there is no such root
    """

    depth: np.ndarray
    leafness: np.ndarray
    identity: float | None = None

    n_leaves = property(lambda self: 1 + int((self.depth[1:] >= 0).sum()))

    def unopened(self) -> str | None:
        """A clause that says so where nothing has opened."""
        if self.identity == 1:
            return "the tree is still a copy of its input"
        return "the tree is still a single layer" if self.n_leaves == 1 else None

    def crowded(self, *, most: int, waited: bool) -> str | None:
        """A sentence that says so where an opening waited though all of `most` places were filled."""
        if not waited or self.n_leaves < most:
            return None
        return f"The tree has all of its {self.n_leaves} leaves and wanted more: raise max_leaves, or raise penalty."


def structure(body: Any, inputs: Any = None) -> Gates | Nodes:
    """Return what there is to be seen of a body of one stage, or of the first; `inputs` [n, width, …] reach the body.

    >>> import jax
    >>> from meristem.nn import Tunnel
    >>> structure(Tunnel(width=3, depth=2, key=jax.random.key(0))).values.tolist()
    [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    return structures(body, inputs)[0]


def structures(body: Any, inputs: Any = None) -> list[Gates | Nodes]:
    """Return what there is to be seen of each stage of a body."""
    body = jax.device_get(body)  # on the device each operation would be compiled
    declared = body.axes(inputs)
    has_gates = any(map(is_confined, jax.tree.leaves(body, is_leaf=is_confined)))

    def picture(name: str) -> Gates | Nodes:
        if (own := declared.axis(name).picture) is not None:
            return own()
        values = np.asarray(size_openness(declared, name), float)
        return Gates(values.reshape(-1, values.shape[-1]), "parameters" if has_gates else "fixed")

    return [picture(name) for name in declared.sizes]
