"""Quantiles of weighted rows: the value of a column below which lies a share of the weight.

Imports NumPy alone; objectives, scaling of targets and statistics of inputs import it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np


def weighted_quantile(y: np.ndarray, weight: np.ndarray, level: Any) -> np.ndarray:
    """The value of each column [n, k] below which lies `level` of the weight, [n] or [n, k]. NaN must have none.

    >>> weighted_quantile(np.array([[1.0], [2.0], [9.0]]), np.ones(3), 0.5).tolist()
    [2.0]
    """
    (found,) = weighted_quantiles(y, weight, [level])
    return found


def weighted_quantiles(y: np.ndarray, weight: np.ndarray, levels: Sequence[Any]) -> list[np.ndarray]:
    """The same of several levels, which takes hardly longer than of one.

    >>> [found.tolist() for found in weighted_quantiles(np.array([[1.0], [2.0], [9.0]]), np.ones(3), [0.5, 0.9])]
    [[2.0], [9.0]]
    """
    order = np.argsort(y, axis=0, kind="stable")
    sorted_weight = weight[order] if weight.ndim == 1 else np.take_along_axis(weight, order, 0)
    share = np.cumsum(sorted_weight, axis=0) / np.maximum(weight.sum(0), 1e-300)
    places = [np.minimum((share < level - 1e-12).sum(0), len(y) - 1) for level in levels]
    return [np.take_along_axis(y, np.take_along_axis(order, place[None], 0), 0)[0] for place in places]
