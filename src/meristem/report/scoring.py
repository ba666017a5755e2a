"""How good predictions are on rows that were held out, and how sure that is: the share that is right, or R², with 95 % limits.

    scored("class", [0, 1, 1], [0, 1, 0]) → {"measure": "accuracy", "value": 0.667, "low": 0.208, "high": 0.939}

Of classes Wilson's interval for a share; of numbers the bootstrap's, from a seed. Imports NumPy; tables
import it, too.
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
    unit = float(np.abs(y - y.mean()).max()) or float(np.abs(y - predicted).max()) or 1.0  # squares stay in a float's range
    off, y = ((y - predicted) / unit) ** 2, (y - y.mean()) / unit
    low, high = _bootstrapped(off, y, seed)
    value = r_squared(off.sum(), (y**2).sum())
    return {"measure": "R²", "value": value, "low": low, "high": high, "rmse": float(unit * np.sqrt(off.mean()))}


def r_squared(off: float, total: float) -> float:
    """R² of sums of squares; of numbers that are all the same 1 where they are predicted and 0 else, as scikit-learn has it.

    >>> r_squared(0.5, 2.0), r_squared(0.0, 0.0), r_squared(3.0, 0.0)
    (0.75, 1.0, 0.0)
    """
    return float(1 - off / total) if total > 0 else float(off == 0)


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
        found.append(r_squared(off[rows].sum(), ((drawn - drawn.mean()) ** 2).sum()))
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
