"""Which of several settings a model keeps, by its development measure on the average of its seeds; test figures play no part.

best        the setting with the best average; of equal ones the first
smallest    of those within one standard error of the best, the one whose networks end smallest

chosen_setting(trained, MACRO_F1, "best") → (the runs of that setting, a record of each setting that was tried)
"""

import math
import statistics
from collections.abc import Sequence
from typing import Any

from meristem.experiments.summary import Record
from meristem.show.describe import SETTINGS, describe_settings
from meristem.show.measures import Measure

Trained = Sequence[tuple[Record, Any]]  # a record, and the run behind it, which is only passed on
CHOICES = ["best", "smallest"]


def chosen_setting(trained: Trained, measure: Measure, choose: str) -> tuple[Trained, list[Record]]:
    """The runs of the setting that is kept, and what came of each setting; `measure` is that of the development part.

    >>> from meristem.show.measures import ERROR
    >>> known = {"model": "tunnel", "task": "ten", "penalty": 0.0, "soft_size": 9.0}
    >>> trained = [({**known, "learning_rate": r, "dev_error": r}, None) for r in (0.2, 0.1)]
    >>> chosen, tried = chosen_setting(trained, ERROR, "best")
    >>> [run["learning_rate"] for run, _ in chosen], [one["dev_error"] for one in tried]
    ([0.1], [0.2, 0.1])
    """
    name = f"dev_{measure.name}"
    tried = [_averaged(setting, trained, name) for setting in dict.fromkeys(_setting(one) for one, _ in trained)]
    kept = min(tried, key=lambda one: measure.cost(one[name]))
    if choose == "smallest":
        allowed = measure.cost(kept[name]) + (kept["sd"] or 0.0) / math.sqrt(kept["seeds"])
        as_good = [one for one in tried if measure.cost(one[name]) <= allowed]
        kept = min(as_good, key=lambda one: math.inf if one["soft_size"] is None else float(one["soft_size"]))
    chosen = [pair for pair in trained if _setting(pair[0]) == _setting(kept)]
    return chosen, [{**one, "chosen": one is kept} for one in tried]


def describe_choice(tried: Sequence[Record], measure: Measure, part: str = "validation") -> str:
    """One line: what was tried, what came of it on the part by which it was chosen, what was kept.

    >>> from meristem.show.measures import ERROR
    >>> one = {"model": "tunnel", "task": "ten", "learning_rate": 0.001, "penalty": 0.0, "dev_error": 0.025, "chosen": True}
    >>> describe_choice([one, {**one, "learning_rate": 0.003, "dev_error": 0.03, "chosen": False}], ERROR)
    'tunnel, ten: tried rate 0.001 → validation error 2.50 % (kept); rate 0.003 → validation error 3.00 %'
    """
    each = [
        f"{words} → {part} {measure.label} {measure.show(one[f'dev_{measure.name}'])}{' (kept)' * one['chosen']}"
        for words, one in zip(describe_settings(tried), tried, strict=True)
    ]
    return f"{tried[0]['model']}, {tried[0]['task']}: tried {'; '.join(each)}"


def _setting(one: Record) -> tuple[Any, ...]:
    return tuple(one.get(name) for name in SETTINGS)


def _averaged(setting: tuple[Any, ...], trained: Trained, name: str) -> Record:
    """What came of a setting, over its seeds."""
    group = [one for one, _ in trained if _setting(one) == setting]
    values, sizes = ([one[key] for one in group if one[key] is not None] for key in (name, "soft_size"))
    return {
        **{key: group[0][key] for key in ("model", "task", *SETTINGS) if key in group[0]},
        "seeds": len(group),
        name: statistics.mean(values) if values else None,
        "sd": statistics.stdev(values) if len(values) > 1 else None,
        "soft_size": statistics.mean(sizes) if sizes else None,
    }
