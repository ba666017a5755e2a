"""How good predictions are on rows that were held out, and how sure that is: the share that is right, or R², with 95 % limits.

    scored("class", [0, 1, 1], [0, 1, 0]) → {"measure": "accuracy", "value": 0.667, "low": 0.208, "high": 0.939}

Of classes Wilson's interval for a share; of numbers the bootstrap's, from a seed. Imports NumPy.
"""

from typing import Any

import numpy as np

SURE = 1.959964  # standard deviations on both sides that hold 95 %
DRAWS, MOST_DRAWN = 1000, 20_000_000  # of the bootstrap, and rows that are drawn in all


def scored(task: str, y: Any, predicted: Any, seed: int = 0) -> dict[str, Any]:
    """Made of JSON's values; `y` and `predicted` are places of classes, or numbers.

    >>> round(scored("class", [0, 1, 1], [0, 1, 0])["low"], 3)
    0.208
    """
    y, predicted = np.asarray(y), np.asarray(predicted)
    if task == "class":
        low, high = share_interval(int((y == predicted).sum()), len(y))
        return {"measure": "accuracy", "value": float((y == predicted).mean()), "low": low, "high": high}
    off, from_mean = (y - predicted) ** 2, (y - y.mean()) ** 2
    low, high = _bootstrapped(off, y, seed)
    return {
        "measure": "R²",
        "value": float(1 - off.sum() / max(from_mean.sum(), np.finfo(float).tiny)),
        "low": low,
        "high": high,
        "rmse": float(np.sqrt(off.mean())),
    }


def share_interval(right: int, n: int) -> tuple[float, float]:
    """Wilson's, of `right` among n.

    >>> [round(limit, 3) for limit in share_interval(10, 10)]
    [0.722, 1.0]
    """
    share, z = right / n, SURE**2 / n
    middle, half = (share + z / 2) / (1 + z), np.sqrt(share * (1 - share) * z + z**2 / 4) / (1 + z)
    return float(max(0, middle - half)), float(min(1, middle + half))


def _bootstrapped(off: np.ndarray, y: np.ndarray, seed: int) -> tuple[float, float]:
    rng, n = np.random.default_rng(seed), len(y)
    found = []
    for _ in range(max(100, min(DRAWS, MOST_DRAWN // n))):
        rows = rng.integers(n, size=n)
        drawn = y[rows]
        found.append(1 - off[rows].sum() / max(((drawn - drawn.mean()) ** 2).sum(), np.finfo(float).tiny))
    low, high = np.quantile(found, [0.025, 0.975])
    return float(low), float(high)


def in_words(score: dict[str, Any]) -> str:
    """A score with its limits.

    >>> in_words({"measure": "accuracy", "value": 0.95, "low": 0.9, "high": 0.98})
    'accuracy 0.950 (0.900 to 0.980)'
    >>> in_words({"measure": "R²", "value": -0.0001, "low": -0.02, "high": 0.0})
    'R² 0.000 (-0.020 to 0.000)'
    """
    return f"{score['measure']} {score['value']:z.3f} ({score['low']:z.3f} to {score['high']:z.3f})"
