"""Which of several settings a model keeps, by its development measure on the average of its seeds; test figures play no part.

best        the setting with the best average; of equal ones the first
smallest    of those within one standard error of the best, the one whose networks end smallest

chosen_setting(trained, "macro_f1", "best") → (the runs of that setting, a record of each setting that was tried)
"""

import math
import statistics
from collections.abc import Sequence
from typing import Any

from meristem.experiments.summary import Record, number
from meristem.show.settings import KNOBS, settings_told

Trained = Sequence[tuple[Record, Any]]  # a run, and the fit behind it, which is only passed on
CHOICES = ["best", "smallest"]


def chosen_setting(trained: Trained, measure: str, choose: str) -> tuple[Trained, list[Record]]:
    """`measure`: of the development part, "error" or "macro_f1".

    >>> known = {"model": "tunnel", "task": "ten", "penalty": 0.0, "soft_size": 9.0}
    >>> trained = [({**known, "learning_rate": r, "dev_error": r}, None) for r in (0.2, 0.1)]
    >>> chosen, tried = chosen_setting(trained, "error", "best")
    >>> [run["learning_rate"] for run, _ in chosen], [one["dev_error"] for one in tried]
    ([0.1], [0.2, 0.1])
    """
    tried = [_averaged(setting, trained, f"dev_{measure}") for setting in dict.fromkeys(map(_setting, trained))]
    sign = -1 if measure == "macro_f1" else 1

    def loss(one: Record) -> float:
        value = one[f"dev_{measure}"]
        return math.inf if value is None else sign * value

    kept = min(tried, key=loss)
    if choose == "smallest":
        allowed = loss(kept) + (kept["sd"] or 0.0) / math.sqrt(kept["seeds"])
        kept = min((one for one in tried if loss(one) <= allowed), key=lambda one: float(one["soft_size"]))
    chosen = [pair for pair in trained if _setting(pair) == tuple(kept.get(knob) for knob in KNOBS)]
    return chosen, [{**one, "chosen": one is kept} for one in tried]


def told(tried: list[Record], measure: str) -> str:
    """One line: what was tried, what came of it, what was kept.

    >>> one = {"model": "tunnel", "task": "ten", "learning_rate": 0.001, "penalty": 0.0, "dev_error": 0.025, "chosen": True}
    >>> told([one, {**one, "learning_rate": 0.003, "dev_error": 0.03, "chosen": False}], "error")
    'tunnel, ten: tried rate 0.001 → validation error 2.50 % (kept); rate 0.003 → validation error 3.00 %'
    """
    name, digits = ("macro-F1", 1) if measure == "macro_f1" else (measure, 2)
    each = [
        f"{words} → validation {name} {number(one[f'dev_{measure}'], digits, 100)} %{' (kept)' * one['chosen']}"
        for words, one in zip(settings_told(tried), tried, strict=True)
    ]
    return f"{tried[0]['model']}, {tried[0]['task']}: tried {'; '.join(each)}"


def _setting(pair: tuple[Record, Any]) -> tuple[Any, ...]:
    return tuple(pair[0].get(knob) for knob in KNOBS)


def _averaged(setting: tuple[Any, ...], trained: Trained, name: str) -> Record:
    """What came of a setting, over its seeds."""
    group = [one for one, _ in (pair for pair in trained if _setting(pair) == setting)]
    values = [one[name] for one in group if one[name] is not None]
    return {
        **{key: group[0][key] for key in ("model", "task", *KNOBS) if key in group[0]},
        "seeds": len(group),
        name: statistics.mean(values) if values else None,
        "sd": statistics.stdev(values) if len(values) > 1 else None,
        "soft_size": statistics.mean(one["soft_size"] for one in group),
    }
