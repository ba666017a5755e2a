"""The picture of a run as text: what a terminal shows, and what is read where no figure can be seen.

    where_it_stands(state) → "running: 3 of 5 groups, 61 %, about 20 s left"
    group_line(group) → "tunnel-easy: 3 networks, epoch 12 … 80, error 0 (0 … 0.01), size 1.8"
    curve([3, 2, 1]) → "█▄▁"        layers([0, 2.5, 1]) → "·█▄"

What comes from files is shown without control characters. Pure; imports state and told; terminal.py imports it.
"""

import math
from statistics import median
from typing import Any

from meristem.watch.state import State
from meristem.watch.told import OPEN

BLOCKS = "▁▂▃▄▅▆▇█"
STATUS = {
    "waiting": "waiting for a run",
    "running": "running",
    "interrupted": "interrupted: its process is gone",
    "finished": "finished",
}


def where_it_stands(state: State) -> str:
    """The run in a line.

    >>> where_it_stands({"run": {"status": "running", "share": 0.5, "left": 100, "damaged": 0}, "groups": [{"over": True}]})
    'running: 1 of 1 group over, 50 %, about 2 min left'
    """
    run, groups = state["run"], state["groups"]
    over = sum(group["over"] for group in groups)
    many = "group" if len(groups) == 1 else "groups"
    parts = [f"{over} of {len(groups)} {many} over"] if groups and run["status"] != "finished" else []
    if run["status"] == "running":
        parts += [] if run["share"] is None else [f"{run['share']:.0%}".replace("%", " %")]
        parts += [] if run["left"] is None else [time_left(run["left"])]
    if run["status"] == "interrupted":
        parts = [how_it_goes_on(run.get("goes_on_with")), *parts]
    parts += [] if not run["damaged"] else [f"{run['damaged']} damaged lines passed over"]
    mark = "; " if run["status"] == "interrupted" else ": "
    return mark.join(filter(None, [STATUS[run["status"]], ", ".join(parts)]))


def how_it_goes_on(how: str | None) -> str:
    """With a run that was interrupted.

    >>> how_it_goes_on("--resume"), how_it_goes_on(None)
    ('the same command with --resume goes on', 'nothing of it is kept: the same command begins anew')
    """
    return f"the same command with {clean(how)} goes on" if how else "nothing of it is kept: the same command begins anew"


def time_left(seconds: float) -> str:
    """In words.

    >>> time_left(12), time_left(200), time_left(10_000)
    ('about 12 s left', 'about 3 min left', 'about 2.8 h left')
    """
    if seconds > 5400:
        return f"about {seconds / 3600:.1f} h left"
    return f"about {seconds / 60:.0f} min left" if seconds > 90 else f"about {seconds:.0f} s left"


def group_line(group: State) -> str:
    """A group: how many networks, how far, how good, how large."""
    members = group["members"]
    many = "1 network" if len(members) == 1 else f"{len(members)} networks"
    epochs = [one["epoch"] for one in members]
    epoch = f"epoch {span(epochs)}"
    figures = [f"{name} {middle([one[name] for one in members])}" for name in ("error", "loss", "size")]
    seconds = [] if group["seconds"] is None else [f"{group['seconds']:.1f} s"]
    over = ["over"] if group["over"] else []
    return f"{clean(group['name'])}: {', '.join([many, epoch, *figures, *over, *seconds])}"


def member_line(one: State) -> str:
    """A member in a line of plain text."""
    best = "" if one["best_epoch"] is None else f", best {one['best_epoch']}"
    over = f", {one['over']}" if one["over"] else ""
    figures = ", ".join(f"{name} {number(one[name])}" for name in ("error", "loss", "size"))
    return f"{name_of(one)}: epoch {one['epoch']}{best}, {figures}, {layers_words(one)}{over}"


def name_of(one: State) -> str:
    """What a member is called; its number where that is all that is known.

    >>> name_of({"member": 3, "name": "λ 0.003, fold 2"}), name_of({"member": 3, "name": None})
    ('λ 0.003, fold 2', '3')
    """
    return one["name"] or str(one["member"])


def layers_words(one: State) -> str:
    """What is open of a member.

    >>> one = {"leaves": None, "layers": {"sizes": [[0.0, 2.5, 1.0]]}}
    >>> layers_words(one), layers_words(one | {"leaves": 3, "opened": 9, "closed": 7})
    ('2 of 3 layers open', '3 leaves, 9 opened and 7 closed so far')
    """
    if one["leaves"] is not None:
        leaves = "1 leaf" if one["leaves"] == 1 else f"{one['leaves']} leaves"
        return f"{leaves}, {one['opened']} opened and {one['closed']} closed so far"
    sizes = one["layers"]["sizes"][-1]
    is_open = sum((size or 0.0) >= OPEN for size in sizes)
    return f"{is_open} of {len(sizes)} {'layer' if len(sizes) == 1 else 'layers'} open"


def event_words(event: list[Any]) -> str:
    """What a layer did.

    >>> event_words([12, 3, True])
    'epoch 12: layer 3 opens'
    """
    epoch, layer, opened = event
    return f"epoch {epoch}: layer {layer} {'opens' if opened else 'closes'}"


def curve(values: list[float | None], width: int = 16) -> str:
    """A small curve; what is not known is a blank.

    >>> curve([3.0, 2.0, None, 1.0]), curve([1.0, 1.0]), curve([])
    ('█▅ ▁', '▁▁', '')
    """
    if len(values) > width:
        values = [values[round(i * (len(values) - 1) / (width - 1))] for i in range(width)]
    known = [value for value in values if value is not None]
    low, span = min(known, default=0.0), max(known, default=0.0) - min(known, default=0.0)
    return "".join(" " if value is None else BLOCKS[round((value - low) / (span or 1.0) * 7)] for value in values)


def layers(sizes: list[float | None], most: float = 0.0, width: int = 40) -> str:
    """A block for each layer, as high as it is large beside the largest, or `most`; a dot for one that is closed.

    >>> layers([0.0, 2.5, 1.0])
    '·█▄'
    """
    top = max([most, 1.0, *(size or 0.0 for size in sizes)])
    blocks = "".join("·" if (size or 0.0) < OPEN else BLOCKS[min(7, math.floor((size or 0.0) / top * 7.99))] for size in sizes)
    return blocks if len(blocks) <= width else f"{blocks[: width - 1]}…"


def number(value: float | None) -> str:
    """A figure in three digits.

    >>> number(0.12345), number(None)
    ('0.123', '–')
    """
    return "–" if value is None else f"{value:.3g}"


def span(values: list[Any]) -> str:
    """From the least to the most."""
    return str(min(values)) if min(values) == max(values) else f"{min(values)} … {max(values)}"


def middle(values: list[float | None]) -> str:
    """The median, and how far it goes to both sides.

    >>> middle([1.0, 2.0, 4.0]), middle([1.0]), middle([None])
    ('2 (1 … 4)', '1', '–')
    """
    known = [value for value in values if value is not None]
    if not known:
        return "–"
    low, high = number(min(known)), number(max(known))
    return number(median(known)) + ("" if low == high else f" ({low} … {high})")


def clean(text: Any, most: int = 120) -> str:
    """Without control characters, which could write anywhere on a terminal.

    >>> clean("tunnel\\x1b[2J")
    'tunnel?[2J'
    """
    shown = "".join(one if one.isprintable() else "?" for one in str(text))
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"
