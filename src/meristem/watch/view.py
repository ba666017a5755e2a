"""The state of a run as plain data for display, ready for JSON, of a size that does not grow with the number of epochs.

    view = View(out)                ValueError where `out` cannot hold a run
    view.now() → {"run": {…}, "groups": [{"name": "tunnel-easy", "members": [{"epoch": 12, "curve": {…}, "layers": {…}}]}]}

Curves and layer sizes are thinned: the first of every 1, 2, 4, … epochs and the last, fewer the more members there are. Numbers
have four digits; unknown ones are None. The time left is extrapolated from the progress since the view was made. Not
thread-safe: one thread at a time may call `now`.
"""

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from meristem.watch.log_reader import MemberLog, RunLog, RunReader
from meristem.watch.view_text import State, event_text, group_details, layer_details, run_details, spread

CURVE_POINTS = 4096  # of all members together
LAYER_POINTS = 8192  # layer sizes of all members together
MOST_POINTS, LEAST_POINTS = 256, 16  # of a curve
LONGEST_TIME = 1e10  # seconds of a group
N_EVENTS = 6  # the last openings and closings of a member
LEAST_PROGRESS = 0.01  # share of the plan from which the time left is estimated
CURVES = {"loss": "dev_loss", "error": "dev_error", "size": "soft_size"}
KNOBS = {"penalty": "λ", "l2": "l2", "dropout": "dropout", "learning_rate": "rate"}
COUNTS = ("fold", "seed")
MOST = 2**32  # of a number in a name


class View:
    """The display state of the run in one folder."""

    def __init__(self, out: Path):
        self._reader = RunReader(out)
        self._members: dict[tuple[str, int], tuple[Any, State]] = {}  # rebuilt only when they change
        self._estimate = TimeEstimate()

    def now(self) -> State:
        """Read what is new and return the state."""
        log = self._reader.poll()
        most_layers = max((len(member.layers[-1]) for members in log.groups.values() for member in members.values()), default=1)
        n, run_id = max(1, log.n_networks), log.run["id"] if log.has_run else None
        points = min(MOST_POINTS, max(LEAST_POINTS, CURVE_POINTS // n))
        layer_points = min(points, max(4, LAYER_POINTS // (n * max(1, most_layers))))
        groups = [self._group(log, name, points, layer_points) for name in log.groups]
        share = progress(log)
        left = None if log.is_finished else self._estimate.left(run_id, share, time.monotonic())
        run = {
            "where": log.folder,
            "id": run_id,
            "command": _text(log.run.get("command")),
            "device": _text(_dict(log.run.get("versions")).get("device")),
            "process": log.process,
            "status": status(log),
            "share": _rounded(share),
            "left": None if left is None else round(left),
            "damaged": log.damaged,
            "goes_on_with": _text(log.run.get("goes_on_with", "--resume")),
        }
        return {"run": run | {"details": run_details(run, groups)}, "groups": groups}

    def _group(self, log: RunLog, name: str, points: int, layer_points: int) -> State:
        names = member_names(_dict(log.run.get("members")).get(name))
        members = []
        for number, member in sorted(log.groups[name].items()):
            version = member, member.version, points, layer_points, names.get(number)
            before = self._members.get((name, number))
            if before is None or before[0] != version:
                before = version, member_state(number, member, points, layer_points, names.get(number))
                self._members[name, number] = before
            members.append(before[1])
        entry = _dict(log.run.get("groups")).get(name)
        seconds = _dict(entry).get("seconds")
        is_time = isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 <= seconds < LONGEST_TIME
        all_stopped = all(member.is_stopped for member in log.groups[name].values())
        is_over = entry is not None or log.is_finished or all_stopped
        group = {"name": name, "over": is_over, "seconds": seconds if is_time else None, "members": members}
        group["spread"] = {name: spread([member[name] for member in members]) for name in CURVES}
        group["first"] = {name: spread([member["curve"][name][0] for member in members]) for name in CURVES}
        return group | {"details": group_details(group)}


def status(log: RunLog) -> str:
    """Return waiting, running, interrupted or finished.

    >>> status(RunLog("")), status(RunLog("", {"id": "a"}, is_alive=True)), status(RunLog("", {"id": "a"}, is_alive=False))
    ('waiting', 'running', 'interrupted')
    """
    if not log.has_run:
        return "waiting"
    if log.is_finished:
        return "finished"
    return "interrupted" if log.is_alive is False else "running"


def progress(log: RunLog) -> float | None:
    """Return the share of the planned epochs that is done; None without a plan.

    >>> progress(RunLog("", {"id": "a", "plan": {"easy": 30, "medium": 70}, "groups": {"easy": {}}}))
    0.3
    """
    if log.is_finished:
        return 1.0
    plan = {name: float(epochs) for name, epochs in _dict(log.run.get("plan")).items() if isinstance(epochs, int | float)}
    total = sum(plan.values())
    if not 0 < total < math.inf or min(plan.values()) < 0:
        return None
    finished = _dict(log.run.get("groups"))
    done = {name: sum(member.epochs[-1] for member in members.values()) for name, members in log.groups.items()}
    return sum(n if name in finished else min(done.get(name, 0), 0.98 * n) for name, n in plan.items()) / total


class TimeEstimate:
    """The time left, from the progress since the first call for a run.

    >>> time_estimate = TimeEstimate()
    >>> [time_estimate.left(*args) for args in (("a", 0.2, 100.0), ("a", 0.4, 110.0), ("b", 0.1, 111.0), ("b", None, 112.0))]
    [None, 30.0, None, None]
    """

    def __init__(self) -> None:
        self._first: tuple[str | None, float, float] = ("", 0.0, 0.0)  # run, share, time

    def left(self, run: str | None, share: float | None, now: float) -> float | None:
        """Return seconds; None while unknown."""
        if share is None:
            return None
        if run != self._first[0] or share < self._first[1]:
            self._first = run, share, now
        _, first_share, begin = self._first
        done = share - first_share
        return None if done < LEAST_PROGRESS else round((1 - share) * (now - begin) / done, 3)


def member_state(number: int, log: MemberLog, points: int, layer_points: int, name: str | None = None) -> State:
    """Return a member's state with curves of at most `points` epochs and layer sizes of at most `layer_points`.

    >>> log = MemberLog()
    >>> for epoch in range(1, 101):
    ...     log.add(epoch, {"dev_loss": 1 / epoch, "layer_sizes": [0.0 if epoch < 50 else 1.5]})
    >>> state = member_state(0, log, 5, 3)
    >>> state["curve"]["epoch"], state["curve"]["loss"]
    ([1, 33, 65, 97, 100], [1.0, 0.0303, 0.01538, 0.01031, 0.01])
    >>> state["layers"], state["events"]
    ({'epoch': [1, 65, 100], 'sizes': [[0.0], [1.5], [1.5]]}, [[50, 1, True]])
    """
    at, layers_at = thinned_indices(len(log.epochs), points), thinned_indices(len(log.epochs), layer_points)
    last = {name: _rounded(column[-1]) for name, column in log.columns.items()}
    hard_size = last["hard_size"]
    leaves = (int(hard_size) + 1) // 2 if log.is_tree and hard_size is not None else None
    opened, closed = _total(log.columns["opened"]), _total(log.columns["closed"])
    events = [] if log.is_tree else [list(event) for event in log.events[-N_EVENTS:]]
    sizes = [[_rounded(size, 3) for size in log.layers[i]] for i in layers_at]
    curves = {name: [_rounded(log.columns[column][i]) for i in at] for name, column in CURVES.items()}
    return {
        "member": number,
        "name": name,
        "epoch": log.epochs[-1],
        "best_epoch": log.best_epochs[-1] if log.best_epochs else None,
        "over": "diverged" if log.is_diverged else "stopped" if log.is_stopped else "",
        **{name: last[column] for name, column in CURVES.items()},
        "hard_size": None if hard_size is None else int(hard_size),
        "rate": last["rate"],
        "leaves": leaves,
        "opened": opened,
        "closed": closed,
        "details": layer_details(sizes[-1], leaves, opened, closed),
        "curve": {"epoch": [log.epochs[i] for i in at], **curves},
        "layers": {"epoch": [log.epochs[i] for i in layers_at], "sizes": sizes},
        "events": events,
        "last_event": event_text(events[-1]) if events else "",
    }


def thinned_indices(n: int, most: int) -> list[int]:
    """Return at most `most` of n indices: the first of every 1, 2, 4, …, and the last.

    >>> thinned_indices(4, 5), thinned_indices(9, 5), thinned_indices(10, 5)
    ([0, 1, 2, 3], [0, 4, 8], [0, 4, 8, 9])
    """
    step = 1
    while n > most and -(-n // step) + 1 > most:
        step *= 2
    indices = list(range(0, n, step))
    return indices if not n or indices[-1] == n - 1 else [*indices, n - 1]


def member_names(settings: Any) -> dict[int, str]:
    """Return names of members by their settings in run.json: the penalty, and what else they differ in. Only numbers are used.

    >>> member_names({"0": {"penalty": 0.003, "l2": 1e-5, "fold": 0}, "1": {"penalty": 0.003, "l2": 1e-3, "fold": 0}})
    {0: 'λ 0.003, l2 1e-05', 1: 'λ 0.003, l2 0.001'}
    >>> member_names({"0": {"penalty": 0.0, "fold": 0}, "1": {"penalty": 0.0, "fold": 1}, "2": {"fold": "x"}})
    {0: 'fold 0', 1: 'fold 1'}
    """
    entries = settings.items() if isinstance(settings, dict) else ()
    texts = {int(m): _setting_texts(values) for m, values in entries if m.isdecimal() and len(m) < 10 and _dict(values)}
    texts = {m: member for m, member in texts.items() if member}
    named = {name for name in (*KNOBS, *COUNTS) if len({member.get(name) for member in texts.values()}) > 1}
    if any(member.get("penalty", "λ 0") != "λ 0" for member in texts.values()):
        named.add("penalty")
    names = {m: ", ".join(text for name, text in member.items() if name in named) for m, member in texts.items()}
    return {m: name for m, name in names.items() if name}


def _setting_texts(values: dict[str, Any]) -> dict[str, str]:
    """Return the texts of all valid settings, in the order of a name."""
    numbers = {name: value for name, value in values.items() if type(value) in (int, float) and abs(value) < MOST}
    knobs = {name: f"{sign} {numbers[name]:.3g}" for name, sign in KNOBS.items() if name in numbers}
    return knobs | {name: f"{name} {numbers[name]}" for name in COUNTS if type(numbers.get(name)) is int and numbers[name] >= 0}


def _rounded(value: float | None, digits: int = 4) -> float | None:
    return None if value is None or not math.isfinite(value) else float(f"{value:.{digits}g}")


def _total(column: Sequence[float]) -> int:
    total = sum(value for value in column if math.isfinite(value))
    return int(total) if math.isfinite(total) else 0


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value[:2000] if isinstance(value, str) else None
