"""The state of a run as plain data for display, ready for JSON, of a size that does not grow with the number of epochs.

    view = View(out)                ValueError where `out` cannot hold a run
    view.now() → {"run": {…}, "groups": [{"name": "tunnel-easy", "members": [{"epoch": 12, "curve": {…}, "layers": {…}}]}]}

Curves and layer sizes are thinned: the first of every 1, 2, 4, … epochs and the last, fewer the more members there are. Numbers
have four digits; unknown ones are None. "details" are words for terminal and page. One thread at a time may call `now`.
"""

import math
import time
from pathlib import Path
from statistics import median
from typing import Any

from meristem.check import many
from meristem.show.elements import shorten
from meristem.show.progress import describe_time_left
from meristem.watch.log_reader import LONGEST_TEXT, OPEN, MemberLog, RunLog, RunReader

CURVE_POINTS = 4096  # of all members together
LAYER_POINTS = 8192  # layer sizes of all members together
MOST_POINTS, LEAST_POINTS = 256, 16  # of a curve
LONGEST_TIME = 1e10  # seconds of a group
LONGEST_NAME = 120  # characters of a name from a file; `shorten` takes out what could take over a terminal
N_EVENTS = 6  # the last openings and closings of a member
MOST_SHARE = 0.98  # of a group's planned epochs that count as done before its end
LEAST_PROGRESS = 0.01  # share of the plan from which the time left is estimated
CURVES = {"loss": "dev_loss", "error": "dev_error", "size": "soft_size"}
KNOBS = {"penalty": "λ", "l2": "l2", "dropout": "dropout", "learning_rate": "rate"}
COUNTS = ("fold", "seed")
MOST = 2**32  # of a number in a name
State = dict[str, Any]


class View:
    """The display state of the run in one folder."""

    def __init__(self, out: Path):
        self._reader = RunReader(out)
        self._members: dict[tuple[str, int], tuple[Any, State]] = {}  # rebuilt only when they change
        self._first: tuple[str | None, float, float] = ("", 0.0, 0.0)  # run, its share that was done at first, and when

    def now(self) -> State:
        log = self._reader.poll()
        most_layers = max((len(member.layers[-1]) for members in log.groups.values() for member in members.values()), default=1)
        n = max(1, log.n_networks)
        points = min(MOST_POINTS, max(LEAST_POINTS, CURVE_POINTS // n))
        layer_points = min(points, max(4, LAYER_POINTS // (n * max(1, most_layers))))
        groups = [self._group(log, name, points, layer_points) for name in log.groups]
        share = progress(log)
        run = {
            "where": log.folder,
            "id": log.run.get("id"),
            "command": log.run.get("command"),
            "device": log.run.get("versions", {}).get("device", "")[:LONGEST_TEXT] or None,
            "status": log.status,
            "share": _rounded(share),
            "left": self.time_left(log.run.get("id"), share, time.monotonic()) if log.status != "finished" else None,
            "damaged": log.damaged,
            "goes_on_with": log.run.get("goes_on_with", "--resume"),
        }
        return {"run": run | {"details": run_details(run, groups)}, "groups": groups}

    def time_left(self, run: str | None, share: float | None, now: float) -> int | None:
        """Return the seconds left, from the progress since the first call for this run; None while unknown.

        >>> view, calls = View(Path("nowhere")), [("a", 0.2, 100.0), ("a", 0.4, 110.0), ("b", 0.1, 111.0), ("b", None, 112.0)]
        >>> [view.time_left(*call) for call in calls]
        [None, 30, None, None]
        """
        if share is None:
            return None
        if run != self._first[0] or share < self._first[1]:
            self._first = run, share, now
        done, seconds = share - self._first[1], now - self._first[2]
        return None if done < LEAST_PROGRESS else round((1 - share) * seconds / done)

    def _group(self, log: RunLog, name: str, points: int, layer_points: int) -> State:
        settings, members = log.run.get("members", {}).get(name), []
        names = member_names(settings)
        for number, member in sorted(log.groups[name].items()):
            version = member, member.version, points, layer_points, names.get(number)
            before = self._members.get((name, number))
            if before is None or before[0] != version:
                before = version, member_state(number, member, points, layer_points, names.get(number))
                self._members[name, number] = before
            members.append(before[1] | ({"over": "left early"} if _has_left(settings, number) else {}))
        losses = [math.inf if m["over"] == "left early" else _least(log.groups[name][m["member"]]) for m in members]
        best = members[losses.index(min(losses))]["member"] if math.isfinite(min(losses)) else None
        entry = log.run.get("groups", {}).get(name, {})
        all_stopped = all(member.is_stopped for member in log.groups[name].values())
        is_over = bool(entry) or log.status == "finished" or all_stopped
        seconds = entry["seconds"] if entry.get("seconds", math.inf) < LONGEST_TIME else None
        now = {name: spread([member[name] for member in members]) for name in CURVES}
        least, most = min(member["epoch"] for member in members), max(member["epoch"] for member in members)
        details = [many(len(members), "network"), f"epoch {least}" if least == most else f"epoch {least} … {most}"]
        details += [f"{name} {now[name]}" for name in ("error", "loss", "size")]
        details += ["finished"] * is_over + ([] if seconds is None else [f"{seconds:.1f} s"])
        return {
            "name": name,
            "over": is_over,
            "seconds": seconds,
            "members": members,
            "best": best if len(members) > 1 else None,
            "spread": now,
            "first": {name: spread([member["curve"][name][0] for member in members]) for name in CURVES},
            "details": ", ".join(details),
        }


def progress(log: RunLog) -> float | None:
    """Return the share of the planned epochs that is done; None without a plan.

    >>> progress(RunLog("", {"plan": {"easy": 30, "medium": 70}, "groups": {"easy": {}}}))
    0.3
    """
    if log.status == "finished":
        return 1.0
    plan, finished = log.run.get("plan", {}), log.run.get("groups", {})
    total = sum(plan.values())
    if not 0 < total < math.inf:
        return None
    done = {name: sum(member.epochs[-1] for member in members.values()) for name, members in log.groups.items()}
    return sum(n if name in finished else min(done.get(name, 0), MOST_SHARE * n) for name, n in plan.items()) / total


def member_state(number: int, log: MemberLog, points: int, layer_points: int, name: str | None = None) -> State:
    """Return the last values of a member, its thinned curves and layer sizes, and its last events.

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
    events = [] if log.is_tree else [list(event) for event in log.events[-N_EVENTS:]]
    sizes = [[_rounded(size, 3) for size in log.layers[i]] for i in layers_at]
    details = f"{sum((size or 0.0) >= OPEN for size in sizes[-1])} of {many(len(sizes[-1]), 'layer')} open"
    if log.is_tree and math.isfinite(nodes := log.columns["hard_size"][-1]):
        opened, closed = (int(sum(filter(math.isfinite, log.columns[name]))) for name in ("opened", "closed"))
        details = f"{many(int(nodes + 1) // 2, 'leaf', 'leaves')}, {opened} opened and {closed} closed so far"
    curves = {name: [_rounded(log.columns[column][i]) for i in at] for name, column in CURVES.items()}
    return {
        "member": number,
        "name": name,
        "epoch": log.epochs[-1],
        "best_epoch": log.best_epochs[-1] if log.best_epochs else None,
        "over": "diverged" if log.is_diverged else "stopped" if log.is_stopped else "",
        **{name: curve[-1] for name, curve in curves.items()},
        "details": details,
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
    return sorted({*range(0, n, step), n - 1})


def member_names(settings: Any) -> dict[int, str]:
    """Return names of members by their settings in run.json: the penalty, and what else they differ in. Only numbers are used.

    >>> member_names({"0": {"penalty": 0.003, "l2": 1e-5, "fold": 0}, "1": {"penalty": 0.003, "l2": 1e-3, "fold": 0}})
    {0: 'λ 0.003, l2 1e-05', 1: 'λ 0.003, l2 0.001'}
    >>> member_names({"0": {"penalty": 0.0, "fold": 0}, "1": {"penalty": 0.0, "fold": 1}, "2": {"fold": "x"}})
    {0: 'fold 0', 1: 'fold 1'}
    """
    texts: dict[int, dict[str, str]] = {}  # of each member, by setting
    for member, values in settings.items() if isinstance(settings, dict) else ():
        if member.isdecimal() and len(member) < 10 and isinstance(values, dict):
            numbers = {name: value for name, value in values.items() if type(value) in (int, float) and abs(value) < MOST}
            counts = [name for name in COUNTS if type(numbers.get(name)) is int and numbers[name] >= 0]
            knobs = {name: f"{sign} {numbers[name]:.3g}" for name, sign in KNOBS.items() if name in numbers}
            texts[int(member)] = knobs | {name: f"{name} {numbers[name]}" for name in counts}
    described = [member for member in texts.values() if member]
    named = {name for name in (*KNOBS, *COUNTS) if len({member.get(name) for member in described}) > 1}
    if any(member.get("penalty", "λ 0") != "λ 0" for member in described):
        named.add("penalty")
    names = {m: ", ".join(text for name, text in member.items() if name in named) for m, member in texts.items()}
    return {m: name for m, name in names.items() if name}


def run_details(run: State, groups: list[State]) -> str:
    """Return how far a run is, or how to continue it.

    >>> run_details({"status": "running", "share": 0.5, "left": 100, "damaged": 0}, [{"over": True}])
    '1 of 1 group finished, 50 %, about 2 min left'
    >>> run_details({"status": "interrupted", "goes_on_with": "--resume", "damaged": 1}, [])
    'its process has ended, run the same command with --resume to continue, 1 damaged line skipped'
    """
    parts = []
    if run["status"] == "interrupted":
        how = run["goes_on_with"]
        resume = f"with {shorten(how, LONGEST_NAME)} to continue" if how else "to start again: nothing was saved"
        parts += ["its process has ended", f"run the same command {resume}"]
    if groups and run["status"] != "finished":
        parts.append(f"{sum(group['over'] for group in groups)} of {many(len(groups), 'group')} finished")
    if run["status"] == "running":
        parts += [] if run["share"] is None else [f"{100 * run['share']:.0f} %"]
        parts += [] if run["left"] is None else [describe_time_left(run["left"])]
    return ", ".join(parts + ([f"{many(run['damaged'], 'damaged line')} skipped"] if run["damaged"] else []))


def event_text(event: list[Any]) -> str:
    """Return what a layer did: 'epoch 12: layer 3 opens'."""
    epoch, layer, is_open = event
    return f"epoch {epoch}: layer {layer} {'opens' if is_open else 'closes'}"


def spread(values: list[float | None]) -> str:
    """Return the median and, where values differ, the range.

    >>> spread([1.0, 2.0, 4.0]), spread([1.0]), spread([None])
    ('2 (1 … 4)', '1', '–')
    """
    numbers = [value for value in values if value is not None]
    if not numbers:
        return "–"
    low, high = f"{min(numbers):.3g}", f"{max(numbers):.3g}"
    return f"{median(numbers):.3g}" + ("" if low == high else f" ({low} … {high})")


def _has_left(settings: Any, number: int) -> bool:
    """Return whether run.json says that a member left its search."""
    own = settings.get(str(number)) if isinstance(settings, dict) else None
    return isinstance(own, dict) and own.get("left") == 1


def _least(log: MemberLog) -> float:
    """Return the least loss of the held-out rows, infinity if there is none."""
    return min(filter(math.isfinite, log.columns["dev_loss"]), default=math.inf)


def _rounded(value: float | None, digits: int = 4) -> float | None:
    return None if value is None or not math.isfinite(value) else float(f"{value:.{digits}g}")
