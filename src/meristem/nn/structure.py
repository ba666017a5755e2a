"""What there is to be seen of a body: gates of a stack of layers, or nodes of a tree. Plain data, for words and pictures.

Imports nothing of meristem; bodies make these, `show` and `pictures` read them.
"""

from dataclasses import dataclass

import numpy as np


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

    @property
    def n_leaves(self) -> int:
        return 1 + int((self.depth[1:] >= 0).sum())
