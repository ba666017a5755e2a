"""Quantiles of weighted rows: the value of a column below which lies a share of the total weight."""

from collections.abc import Sequence
from typing import Any

import numpy as np


def weighted_quantiles(y: np.ndarray, weight: np.ndarray, levels: Sequence[Any]) -> list[np.ndarray]:
    """Return the quantile of each column of y, [n, k], for each level; weight: [n] or [n, k], 0 where y is NaN.

    >>> [values.tolist() for values in weighted_quantiles(np.array([[1.0], [2.0], [9.0]]), np.ones(3), [0.5, 0.9])]
    [[2.0], [9.0]]
    """
    order = np.argsort(y, axis=0, kind="stable")
    sorted_weight = weight[order] if weight.ndim == 1 else np.take_along_axis(weight, order, 0)
    share = np.cumsum(sorted_weight, axis=0) / np.maximum(weight.sum(0), 1e-300)
    ranks = [np.minimum((share < level - 1e-12).sum(0), len(y) - 1) for level in levels]
    return [np.take_along_axis(y, np.take_along_axis(order, rank[None], 0), 0)[0] for rank in ranks]
