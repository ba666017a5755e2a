"""Which of several settings a model keeps, by its validation measure averaged over seeds; test values play no part.

best        the setting with the best average, the first of ties
smallest    of those within one standard error of the best, the one whose networks end smallest
"""

import math
import statistics
from collections.abc import Sequence
from typing import Any

from meristem.experiments.summary import Record
from meristem.show.describe import SETTINGS, describe_settings
from meristem.show.measures import Measure

Trained = Sequence[tuple[Record, Any]]  # records and their runs, which are only passed on
RULES = ["best", "smallest"]


def select_setting(trained: Trained, measure: Measure, rule: str) -> tuple[Trained, list[Record]]:
    """Return the runs of the selected setting, and a record of each setting that was tried, averaged over its seeds."""
    name, groups = f"dev_{measure.name}", dict[tuple[Any, ...], list[tuple[Record, Any]]]()
    for row, run in trained:
        groups.setdefault(tuple(row.get(key) for key in SETTINGS), []).append((row, run))
    tried = [_average([row for row, _ in group], name) for group in groups.values()]
    selected = min(tried, key=lambda record: measure.cost(record[name]))
    if rule == "smallest":
        limit = measure.cost(selected[name]) + (selected["sd"] or 0.0) / math.sqrt(selected["seeds"])
        as_good = [record for record in tried if measure.cost(record[name]) <= limit]
        selected = min(as_good, key=lambda record: math.inf if record["soft_size"] is None else record["soft_size"])
    runs = list(groups.values())[next(place for place, record in enumerate(tried) if record is selected)]
    return runs, [{**record, "chosen": record is selected} for record in tried]


def describe_selection(tried: Sequence[Record], measure: Measure, part: str = "validation") -> str:
    """Return a line with the settings that were tried, their measure, and the selected one.

    >>> from meristem.show.measures import ERROR
    >>> tunnel = {"model": "tunnel", "task": "ten", "learning_rate": 0.001, "penalty": 0.0, "dev_error": 0.025, "chosen": True}
    >>> describe_selection([tunnel, {**tunnel, "learning_rate": 0.003, "dev_error": 0.03, "chosen": False}], ERROR)
    'tunnel, ten: tried rate 0.001 → validation error 2.50 % (kept); rate 0.003 → validation error 3.00 %'
    """
    settings = [
        f"{words} → {part} {measure.label} {measure.show(record[f'dev_{measure.name}'])}{' (kept)' * record['chosen']}"
        for words, record in zip(describe_settings(tried), tried, strict=True)
    ]
    return f"{tried[0]['model']}, {tried[0]['task']}: tried {'; '.join(settings)}"


def _average(group: list[Record], name: str) -> Record:
    values, sizes = ([record[key] for record in group if record[key] is not None] for key in (name, "soft_size"))
    return {
        **{key: group[0][key] for key in ("model", "task", *SETTINGS) if key in group[0]},
        "seeds": len(group),
        name: statistics.mean(values) if values else None,
        "sd": statistics.stdev(values) if len(values) > 1 else None,
        "soft_size": statistics.mean(sizes) if sizes else None,
    }
