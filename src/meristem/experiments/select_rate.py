"""The paper's way to choose among rates: the smallest at which a model solves every task.

A task is solved at a rate when more than half of the seeds reach zero training error. Rates are tried one after another, from
the smallest on; where none solves every task, the largest is kept.
"""

from collections.abc import Callable
from dataclasses import replace

from meristem.experiments.runs import Result, Trials
from meristem.show.progress import Progress


def train_selecting_rate(model: str, trials: Trials, train: Callable[[Trials], Result], progress: Progress) -> Result:
    """The result of the rate that is kept; under "rates" how many seeds solved each task at each rate that was tried."""
    tried = []
    for rate in sorted(trials.rates):
        result = train(replace(trials, rates=(rate,)))
        tasks = list(dict.fromkeys(one["task"] for one in result.runs))
        solved = {
            task: sum(one["zero_error_epoch"] is not None for one in result.runs if one["task"] == task) for task in tasks
        }
        tried += [
            {"model": model, "task": task, "learning_rate": rate, "solved": count, "seeds": trials.seeds}
            for task, count in solved.items()
        ]
        if all(2 * count > trials.seeds for count in solved.values()):
            break
    progress.say(f"{model}: rate {rate:g} is the one that is kept")
    result.more["rates"] = tried
    return result
