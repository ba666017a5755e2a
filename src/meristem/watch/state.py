"""The picture of a run: plain data, ready for JSON, of a size that does not grow with its epochs.

    picture(seen) → {"run": {…}, "groups": [{"name": "tunnel-easy", "members": [{"epoch": 12, "curve": {…}, "layers": {…}}]}]}

Curves and the sizes of layers over time are thinned: the first of every so many epochs and the last, fewer the more members
there are. Numbers have four digits, what is not known is null.
Imports told, names and following; view.py imports it.
"""

import math
from collections.abc import Sequence
from typing import Any

from meristem.watch.following import Members, Seen
from meristem.watch.names import names
from meristem.watch.told import Told

POINTS = 4096  # of all curves of one kind together
LAYER_POINTS = 8192  # sizes of layers
MOST, LEAST = 256, 16  # points of a curve
LONGEST_TIME = 1e10  # seconds that a group may have taken
EVENTS = 6  # the last openings and closings of a member
State = dict[str, Any]
Done = dict[tuple[str, int], tuple[tuple[Told, int, int, int, str | None], State]]


def picture(seen: Seen, *, left: float | None = None, done: Done | None = None) -> State:
    """Of what was seen; `left`: seconds; `done`: a memory for pictures of members, which are drawn anew when they change."""
    done = {} if done is None else done
    n = max(1, sum(map(len, seen.groups.values())))
    widest = max((len(told.layers[-1]) for group in seen.groups.values() for told in group.values()), default=1)
    points = min(MOST, max(LEAST, POINTS // n))
    columns = min(points, max(4, LAYER_POINTS // (n * max(1, widest))))
    groups = []
    for name, members in seen.groups.items():
        called = names(_dict(seen.run.get("members")).get(name))
        for number, told in members.items():
            mark = told, told.version, points, columns, called.get(number)
            if (name, number) not in done or done[name, number][0] != mark:
                done[name, number] = mark, member(number, told, points, columns, called.get(number))
        drawn = [done[name, number][1] for number in sorted(members)]
        groups.append({"name": name, **_over(seen, name, members), "members": drawn})
    run = {
        "where": seen.where,
        "id": seen.run.get("id") if seen.has_run else None,
        "command": _text(seen.run.get("command")),
        "device": _text(_dict(seen.run.get("versions")).get("device")),
        "process": seen.process,
        "status": status(seen),
        "share": _short(share(seen)),
        "left": None if left is None else round(left),
        "damaged": seen.damaged,
        "goes_on_with": _text(seen.run.get("goes_on_with", "--resume")),
    }
    return {"run": run, "groups": groups}


def status(seen: Seen) -> str:
    """waiting, running, interrupted or finished.

    >>> status(Seen("out")), status(Seen("out", {"id": "a"}, is_alive=True)), status(Seen("out", {"id": "a"}, is_alive=False))
    ('waiting', 'running', 'interrupted')
    """
    if not seen.has_run:
        return "waiting"
    if seen.is_finished:
        return "finished"
    return "interrupted" if seen.is_alive is False else "running"


def share(seen: Seen) -> float | None:
    """How much of the planned epochs is done; None where nothing is planned.

    >>> share(Seen("out", {"id": "a", "plan": {"easy": 30, "medium": 70}, "groups": {"easy": {}}}))
    0.3
    """
    if seen.is_finished:
        return 1.0
    plan = {name: float(usual) for name, usual in _dict(seen.run.get("plan")).items() if isinstance(usual, int | float)}
    total = sum(plan.values())
    if not 0 < total < math.inf or min(plan.values()) < 0:
        return None
    over = _dict(seen.run.get("groups"))
    taken = {name: sum(told.epochs[-1] for told in members.values()) for name, members in seen.groups.items()}
    return sum(usual if name in over else min(taken.get(name, 0), 0.98 * usual) for name, usual in plan.items()) / total


def member(number: int, told: Told, points: int, columns: int, name: str | None = None) -> State:
    """The picture of a member that has been told of; `name`: what it is, where that is known (names.py).

    >>> told = Told()
    >>> for epoch in range(1, 101):
    ...     told.add(epoch, {"dev_loss": 1 / epoch, "layer_sizes": [0.0 if epoch < 50 else 1.5]})
    >>> one = member(0, told, 5, 3)
    >>> one["curve"]["epoch"], one["curve"]["loss"]
    ([1, 33, 65, 97, 100], [1.0, 0.0303, 0.01538, 0.01031, 0.01])
    >>> one["layers"], one["events"]
    ({'epoch': [1, 65, 100], 'sizes': [[0.0], [1.5], [1.5]]}, [[50, 1, True]])
    """
    at, layers_at = thinned(len(told.epochs), points), thinned(len(told.epochs), columns)
    last = {name: _short(column[-1]) for name, column in told.columns.items()}
    names = {"loss": "dev_loss", "error": "dev_error", "size": "soft_size"}
    hard = last["hard_size"]
    return {
        "member": number,
        "name": name,
        "epoch": told.epochs[-1],
        "best_epoch": told.best_epoch,
        "over": "diverged" if told.flags["diverged"] else "stopped" if told.flags["stopped"] else "",
        **{name: last[column] for name, column in names.items()},
        "hard_size": None if hard is None else int(hard),
        "rate": last["rate"],
        "leaves": (int(hard) + 1) // 2 if told.is_tree and hard is not None else None,
        "opened": _total(told.columns["opened"]),
        "closed": _total(told.columns["closed"]),
        "curve": {
            "epoch": [told.epochs[i] for i in at],
            **{name: [_short(told.columns[column][i]) for i in at] for name, column in names.items()},
        },
        "layers": {
            "epoch": [told.epochs[i] for i in layers_at],
            "sizes": [[_short(size, 3) for size in told.layers[i]] for i in layers_at],
        },
        "events": [] if told.is_tree else [list(event) for event in told.events[-EVENTS:]],
    }


def thinned(n: int, most: int) -> list[int]:
    """At most so many places of n: the first of every 1, 2, 4, …, and the last.

    >>> thinned(4, 5), thinned(9, 5), thinned(10, 5)
    ([0, 1, 2, 3], [0, 4, 8], [0, 4, 8, 9])
    """
    step = 1
    while n > most and -(-n // step) + 1 > most:
        step *= 2
    places = list(range(0, n, step))
    return places if not n or places[-1] == n - 1 else [*places, n - 1]


def _over(seen: Seen, name: str, members: Members) -> State:
    entry = _dict(seen.run.get("groups")).get(name)
    seconds = _dict(entry).get("seconds")
    is_over = entry is not None or seen.is_finished or all(told.flags["stopped"] for told in members.values())
    is_time = isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 <= seconds < LONGEST_TIME
    return {"over": is_over, "seconds": seconds if is_time else None}


def _short(value: float | None, digits: int = 4) -> float | None:
    return None if value is None or not math.isfinite(value) else float(f"{value:.{digits}g}")


def _total(column: Sequence[float]) -> int:
    total = sum(value for value in column if math.isfinite(value))
    return int(total) if math.isfinite(total) else 0


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value[:2000] if isinstance(value, str) else None
