"""Gates that belong to no layer, as strips: the inputs and the dimensions of the trunk, the most open first.

    strips_of(network) → [Strip("inputs", …), Strip("trunk", …)]        those that may close
    draw_strip(ax, strip, left, right, y, height)                       as wide as what it is drawn beside

Pictures of stacks and of trees draw them; the colors are those of a stack's gates.
"""

from typing import NamedTuple

import numpy as np

from meristem.nn import Network
from meristem.nn.body import Body
from meristem.nn.trunk import trunk_of
from meristem.pictures.canvas import inches, openness_map
from meristem.pictures.sheet import Axes

CLOSED = "#F4F4F4"


class Strip(NamedTuple):
    """What it is of, and its gates."""

    name: str
    gates: np.ndarray  # [n], 0 … 1

    @property
    def is_open(self) -> np.ndarray:
        return self.gates > 0


def strips_of(network: Network) -> list[Strip]:
    """Inputs and trunk of a network, where they may close."""
    inputs = [] if network.features is None else [Strip("inputs", np.asarray(network.features.value, float))]
    return inputs + strips_of_trunk(network.body)


def strips_of_trunk(body: Body) -> list[Strip]:
    """The trunk of a body, where it may close."""
    trunk = trunk_of(body)
    return [] if trunk is None else [Strip("trunk", np.asarray(trunk.value, float))]


def draw_strip(ax: Axes, strip: Strip, left: float, right: float, y: float, *, height: float) -> None:
    """A strip around y; limits are left as they are."""
    limits = ax.get_xlim(), ax.get_ylim()
    edges = np.linspace(left, right, len(strip.gates) + 1)
    colors = openness_map().with_extremes(bad=CLOSED)
    values = np.ma.masked_equal(-np.sort(-strip.gates)[None, :], 0)
    is_wide = inches(ax)[0] / len(strip.gates) > 0.05
    line = {"edgecolor": "white", "linewidth": 0.6} if is_wide else {}
    ax.pcolormesh(edges, [y - height / 2, y + height / 2], values, cmap=colors, vmin=0, vmax=1, **line)
    ax.set(xlim=limits[0], ylim=limits[1])
