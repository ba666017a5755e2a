"""Which of several settings a model keeps: the one whose development measure is best on the average of its seeds.

    best_setting(trained, "macro_f1") → (the runs of the best setting, a record of each setting that was tried)

Test figures play no part. Of equal settings the first is kept.
"""

import statistics
from collections.abc import Sequence
from typing import Any

from meristem.experiments.summary import Record, number

Trained = Sequence[tuple[Record, Any]]  # a run, and the fit behind it, which is only passed on
KNOBS = ("learning_rate", "penalty")


def best_setting(trained: Trained, measure: str) -> tuple[Trained, list[Record]]:
    """`measure`: of the development part, "error" or "macro_f1".

    >>> known = {"model": "tunnel", "task": "ten", "penalty": 0.0, "soft_size": 9.0}
    >>> chosen, tried = best_setting([({**known, "learning_rate": r, "dev_error": r}, None) for r in (0.2, 0.1)], "error")
    >>> [run["learning_rate"] for run, _ in chosen], [one["dev_error"] for one in tried]
    ([0.1], [0.2, 0.1])
    """
    name, sign = f"dev_{measure}", -1 if measure == "macro_f1" else 1
    tried = []
    for setting in dict.fromkeys(map(_setting, trained)):
        group = [one for one, _ in (pair for pair in trained if _setting(pair) == setting)]
        values = [one[name] for one in group if one[name] is not None]
        known = {"model": group[0]["model"], "task": group[0]["task"], **dict(zip(KNOBS, setting, strict=True))}
        mean = statistics.mean(values) if values else None
        sd = statistics.stdev(values) if len(values) > 1 else None
        size = statistics.mean(one["soft_size"] for one in group)
        tried.append({**known, "seeds": len(group), name: mean, "sd": sd, "soft_size": size})
    best = min(tried, key=lambda one: float("inf") if one[name] is None else sign * one[name])
    chosen = [pair for pair in trained if _setting(pair) == tuple(best[knob] for knob in KNOBS)]
    return chosen, [{**one, "chosen": one is best} for one in tried]


def told(tried: list[Record], measure: str) -> str:
    """One line: what was tried, what came of it, what was kept.

    >>> one = {"model": "tunnel", "task": "ten", "learning_rate": 0.001, "penalty": 0.0, "dev_error": 0.025, "chosen": True}
    >>> told([one], "error")
    'tunnel, ten: tried rate 0.001, penalty 0 → validation error 2.50 % (kept)'
    """
    name, digits = ("macro-F1", 1) if measure == "macro_f1" else (measure, 2)
    each = [
        f"rate {one['learning_rate']:g}, penalty {one['penalty']:g} → validation {name} "
        f"{number(one[f'dev_{measure}'], digits, 100)} %{' (kept)' * one['chosen']}"
        for one in tried
    ]
    return f"{tried[0]['model']}, {tried[0]['task']}: tried {'; '.join(each)}"


def _setting(pair: tuple[Record, Any]) -> tuple[float, ...]:
    return tuple(pair[0][knob] for knob in KNOBS)
