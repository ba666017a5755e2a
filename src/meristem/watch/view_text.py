"""Numbers, curves and states of a run as short texts, for the terminal and for the page.

sparkline([3, 2, 1]) → "█▄▁"        layer_bars([0, 2.5, 1]) → "·█▄"        spread([1, 2, 4]) → "2 (1 … 4)"
"""

import math
from statistics import median
from typing import Any

from meristem.check import many
from meristem.show.progress import describe_time_left
from meristem.watch.log_reader import OPEN

BLOCKS = "▁▂▃▄▅▆▇█"
State = dict[str, Any]


def run_details(run: State, groups: list[State]) -> str:
    """Return how far a run is, or how to continue it; `run` and `groups` as in view.py.

    >>> run_details({"status": "running", "share": 0.5, "left": 100, "damaged": 0}, [{"over": True}])
    '1 of 1 group finished, 50 %, about 2 min left'
    >>> run_details({"status": "interrupted", "goes_on_with": "--resume", "damaged": 1}, [])
    'its process has ended, run the same command with --resume to continue, 1 damaged line skipped'
    """
    parts = []
    if run["status"] == "interrupted":
        how = run["goes_on_with"]
        resume = f"with {clean(how)} to continue" if how else "to start again: nothing was saved"
        parts += ["its process has ended", f"run the same command {resume}"]
    if groups and run["status"] != "finished":
        parts.append(f"{sum(group['over'] for group in groups)} of {many(len(groups), 'group')} finished")
    if run["status"] == "running":
        parts += [] if run["share"] is None else [f"{100 * run['share']:.0f} %"]
        parts += [] if run["left"] is None else [describe_time_left(run["left"])]
    return ", ".join(parts + ([f"{many(run['damaged'], 'damaged line')} skipped"] if run["damaged"] else []))


def group_details(group: State) -> str:
    """Return the number of networks of a group, their epochs, and the median and range of error, loss and size."""
    epochs = [member["epoch"] for member in group["members"]]
    parts = [many(len(epochs), "network"), f"epoch {min(epochs)}" + (f" … {max(epochs)}" if max(epochs) > min(epochs) else "")]
    parts += [f"{name} {group['spread'][name]}" for name in ("error", "loss", "size")]
    parts += ["finished"] if group["over"] else []
    return ", ".join(parts + ([] if group["seconds"] is None else [f"{group['seconds']:.1f} s"]))


def layer_details(sizes: list[float | None], leaves: int | None, opened: int, closed: int) -> str:
    """Return how many layers are open; of a tree, its leaves.

    >>> layer_details([0.0, 2.5, 1.0], None, 0, 0), layer_details([], 3, 9, 7)
    ('2 of 3 layers open', '3 leaves, 9 opened and 7 closed so far')
    """
    if leaves is not None:
        return f"{many(leaves, 'leaf', 'leaves')}, {opened} opened and {closed} closed so far"
    return f"{sum((size or 0.0) >= OPEN for size in sizes)} of {many(len(sizes), 'layer')} open"


def event_text(event: list[Any]) -> str:
    """Return what a layer did.

    >>> event_text([12, 3, True])
    'epoch 12: layer 3 opens'
    """
    epoch, layer, is_open = event
    return f"epoch {epoch}: layer {layer} {'opens' if is_open else 'closes'}"


def sparkline(values: list[float | None], width: int = 16) -> str:
    """Return a curve of at most `width` characters; a blank where a value is unknown.

    >>> sparkline([3.0, 2.0, None, 1.0]), sparkline([1.0, 1.0]), sparkline([])
    ('█▅ ▁', '▁▁', '')
    """
    if len(values) > width:
        values = [values[round(i * (len(values) - 1) / (width - 1))] for i in range(width)]
    numbers = [value for value in values if value is not None]
    low, high = min(numbers, default=0.0), max(numbers, default=0.0)
    return "".join(" " if value is None else BLOCKS[round((value - low) / (high - low or 1.0) * 7)] for value in values)


def layer_bars(sizes: list[float | None], largest: float = 0.0, width: int = 40) -> str:
    """Return a bar per layer, scaled to its largest or to `largest`; a dot for a closed layer.

    >>> layer_bars([0.0, 2.5, 1.0])
    '·█▄'
    """
    top = max([largest, 1.0, *(size or 0.0 for size in sizes)])
    bars = "".join("·" if (size or 0.0) < OPEN else BLOCKS[min(7, math.floor((size or 0.0) / top * 7.99))] for size in sizes)
    return bars if len(bars) <= width else f"{bars[: width - 1]}…"


def number(value: float | None) -> str:
    """Return a number in three digits, "–" where it is unknown."""
    return "–" if value is None else f"{value:.3g}"


def spread(values: list[float | None]) -> str:
    """Return the median and, where values differ, the range.

    >>> spread([1.0, 2.0, 4.0]), spread([1.0]), spread([None])
    ('2 (1 … 4)', '1', '–')
    """
    numbers = [value for value in values if value is not None]
    if not numbers:
        return "–"
    low, high = number(min(numbers)), number(max(numbers))
    return number(median(numbers)) + ("" if low == high else f" ({low} … {high})")


def clean(text: Any, longest: int = 120) -> str:
    """Return a text without control characters, with which a file could take over the terminal.

    >>> clean("tunnel\\x1b[2J")
    'tunnel?[2J'
    """
    printable = "".join(character if character.isprintable() else "?" for character in str(text))
    return printable if len(printable) <= longest else f"{printable[: longest - 1]}…"
