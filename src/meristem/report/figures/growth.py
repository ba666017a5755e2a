"""How it grew: the loss of each network by epoch above, its size below, the epoch that was kept marked.

    draw([Grown("network 1", loss, size, kept)], "loss", "units open") → Element

Sections import it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from meristem.check import many
from meristem.report.chart import Scale, across, around, axes, below, dot, line
from meristem.report.numbers import count, figure
from meristem.show.elements import Element, picture

HEIGHT, GAP, COLORS = 120, 46, 6


class Grown(NamedTuple):
    """A network's course."""

    loss: np.ndarray  # [epochs]
    size: np.ndarray  # [epochs]
    kept: int  # the epoch that was kept, from 1


def draw(courses: Sequence[Grown], loss_label: str, size_label: str) -> Element:
    """At most six of them have a color of their own.

    >>> draw([Grown(np.array([2.0, 1.0]), np.array([0, 3]), 2)], "loss", "units").tag
    'svg'
    """
    longest = max(len(one.loss) for one in courses)
    x = Scale(1, max(longest, 2), *across())
    top = 24
    losses = np.concatenate([one.loss[np.isfinite(one.loss)] for one in courses])
    first = float(np.quantile(losses, 0.98)) if len(losses) else 1.0  # the first epochs may be far above all others
    is_log = bool(len(losses) and losses.min() > 0 and losses.max() > 20 * losses.min())
    limits = (float(losses.min()) / 1.1, float(losses.max()) * 1.1) if is_log else around([*losses[losses <= first].tolist()])
    loss = Scale(*limits, *below(top, HEIGHT), is_log=is_log)
    largest = max(float(one.size.max(initial=0)) for one in courses)
    size = Scale(0, max(largest * 1.05, 1), *below(top + HEIGHT + GAP, HEIGHT))
    parts = [*axes(x, loss, "", loss_label, with_x=False), *axes(x, size, "epoch", size_label)]
    for place, one in enumerate(courses):
        color, epochs = f"s{place % COLORS + 1}", np.arange(1, len(one.loss) + 1).tolist()
        parts.append(line(x, loss, epochs, one.loss.tolist(), color))
        parts.append(line(x, size, epochs, one.size.tolist(), color))
        parts.append(dot(x(one.kept), loss(float(one.loss[one.kept - 1])), color, 4))
        parts.append(dot(x(one.kept), size(float(one.size[one.kept - 1])), color, 4))
    words = "; ".join(
        f"network {place + 1}: {many(len(one.loss), 'epoch')}, kept epoch {one.kept}, {loss_label} from {figure(one.loss[0])} "
        f"to {figure(one.loss[one.kept - 1])}, {size_label} from {count(one.size[0])} to {count(one.size[one.kept - 1])}"
        for place, one in enumerate(courses)
    )
    return picture("growth", "Loss and size by epoch", f"{words}.", top + 2 * HEIGHT + GAP + 42, parts)
