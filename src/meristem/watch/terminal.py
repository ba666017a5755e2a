"""A run in the terminal: a live display of curves, layers and members with rich, plain lines where output is no terminal.

    follow(view, stream)            until the run is finished
    show_once(view, stream)         the state now; ValueError where there is no run

Ctrl-C ends the display, not the run.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from meristem.check import is_installed
from meristem.show.elements import shorten
from meristem.show.progress import rich_classes
from meristem.watch.log_reader import OPEN
from meristem.watch.view import LONGEST_NAME, State, View, event_text, spread

POLL_SECONDS = 0.5
PLAIN_SECONDS = 5.0  # between plain lines
LEAST_ROWS, WIDE = 4, 130  # rows of members at least; terminal columns from which all table columns are shown
SPARKLINE, LEAST_SPARKLINE, NUMBER, BORDER = 16, 4, 9, 3  # terminal columns of the parts of a table cell
LABELS = {"waiting": "waiting for a run"}  # statuses whose label is another text
BLOCKS = "▁▂▃▄▅▆▇█"
MOST_BARS = 40  # layers of a member
OnShutdown = Callable[[Callable[[], None]], AbstractContextManager[Any]]


def show_once(view: View, stream: Any) -> None:
    """Print the run, its groups, their members and the last events of their layers as plain lines."""
    state = view.now()
    run = state["run"]
    if run["id"] is None:
        raise ValueError(f"{run['where']!r} holds no run; give the folder of a run, or leave out --once to wait for one.")
    lines = [_status_line(state), *([f"  {shorten(run['command'], 400)}"] if run["command"] else [])]
    for group in state["groups"]:
        largest = _largest_layer(group)
        lines.append(_group_line(group))
        for member in group["members"]:
            best = "" if member["best_epoch"] is None else f", best {member['best_epoch']}"
            figures = ", ".join(f"{name} {spread([member[name]])}" for name in ("error", "loss", "size"))
            over = f", {member['over']}" if member["over"] else ""
            name = member["name"] or member["member"]
            text = f"{name}: epoch {member['epoch']}{best}, {figures}, {member['details']}{over}"
            lines.append(f"  {text}  {layer_bars(member['layers']['sizes'][-1], largest)}")
            lines += [f"     {event_text(event)}" for event in member["events"][-2:]]
    print("\n".join(lines), file=stream, flush=True)


def follow(view: View, stream: Any, *, seconds: float = POLL_SECONDS, on_shutdown: OnShutdown = nullcontext) -> None:
    """Show the run until it is finished; `on_shutdown` registers what removes the display (commands/entry.py).

    Plain lines are printed every few seconds if something changed, one per finished group, and one at the end.
    """
    if is_installed("rich") and stream.isatty():
        rich = rich_classes()
        console = rich.Console(file=stream)
        display = rich.Live(console=console, auto_refresh=False, vertical_overflow="crop")
        with on_shutdown(display.stop), display:
            for state in _states(view, seconds):
                display.update(renderable(state, console.size.height - 1, console.size.width), refresh=True)
        return
    finished, printed_at, printed, status = set[str](), -PLAIN_SECONDS, "", ""
    for state in _states(view, seconds):
        run, groups = state["run"], state["groups"]
        for group in groups:
            if group["over"] and group["name"] not in finished:
                finished.add(group["name"])
                print(_group_line(group), file=stream, flush=True)
        line = "; ".join([_status_line(state), *(_group_line(group) for group in groups if not group["over"])])
        is_due = time.monotonic() - printed_at >= PLAIN_SECONDS and line != printed
        if run["status"] != status or is_due:
            folder = f"{shorten(run['where'], LONGEST_NAME)}: " if run["status"] != status else ""
            print(folder + line, file=stream, flush=True)
            printed_at, printed, status = time.monotonic(), line, run["status"]


def _states(view: View, seconds: float) -> Iterator[State]:
    """Yield the state every so many seconds, until the run is finished."""
    yield (state := view.now())
    while state["run"]["status"] != "finished":
        time.sleep(seconds)
        yield (state := view.now())


def renderable(state: State, rows: int, width: int) -> Any:
    """Return the state for rich, in about `rows` rows: a table per running group, a line per other group."""
    rich = rich_classes()
    run, groups = state["run"], state["groups"]
    style = {"finished": "bold green", "interrupted": "bold red"}.get(run["status"], "bold")
    head = rich.Text(_status_line(state), style=style, no_wrap=True, overflow="ellipsis")
    parts: list[Any] = [head.append("  " + shorten(run["where"], LONGEST_NAME), style="bold")]
    if run["share"] is not None and run["status"] != "finished":
        bar = rich.Table.grid()
        bar.add_row(rich.ProgressBar(total=1.0, completed=run["share"], width=60))
        parts.append(bar)
    in_tables = [group for group in groups if not group["over"]][-2:] or groups[-1:]
    others = [group for group in groups if group not in in_tables]
    n_rows = max(LEAST_ROWS, rows - len(parts) - min(len(others), rows // 3) - 6 * len(in_tables))
    n_hidden = max(0, len(others) - rows // 3)
    parts += [rich.Text(f"… and {n_hidden} earlier groups", style="dim")] if n_hidden else []
    parts += [rich.Text(_group_line(group), style="dim", no_wrap=True) for group in others[n_hidden:]]
    return rich.Group(*parts, *(_table(rich, group, n_rows // len(in_tables), width) for group in in_tables))


def _table(rich: Any, group: State, rows: int, width: int) -> Any:
    figures, last = (("error", "loss", "size"), ("layers", "")) if width >= WIDE else (("error", "size"), ("layers",))
    members, largest = group["members"][:rows], _largest_layer(group)
    cells = {
        "network": [member["name"] or str(member["member"]) for member in members],
        "epoch": [str(member["epoch"]) for member in members],
        "layers": [layer_bars(member["layers"]["sizes"][-1], largest) for member in members],
        "": [member["over"] or member["last_event"] or member["details"] for member in members],
    }
    widths = {name: max(map(len, (name, *cells[name]))) for name in ("network", "epoch", *last)}
    remaining = width - sum(widths.values()) - BORDER * (len(widths) + len(figures))
    curve_width = min(SPARKLINE, remaining // len(figures) - NUMBER)
    for name in figures:
        curves = [sparkline(member["curve"][name], curve_width) for member in members]
        cells[name] = [f"{curve} {spread([member[name]])}".strip() for curve, member in zip(curves, members, strict=True)]
    table = rich.Table(title=rich.Text(_group_line(group)), title_justify="left", expand=False)
    columns = ("network", "epoch", *figures, *last)
    for name in columns:
        min_width = widths[name] if name in ("network", "epoch") else None  # the others are truncated first
        table.add_column(name, no_wrap=True, min_width=min_width, justify="right" if name == "epoch" else "left")
    for row in zip(*(cells[name] for name in columns), strict=True):
        table.add_row(*map(rich.Text, row))
    if len(group["members"]) > rows:
        table.caption = rich.Text(f"… and {len(group['members']) - rows} more networks")
    return table


def sparkline(values: list[float | None], width: int = SPARKLINE) -> str:
    """Return a curve of at most `width` characters, with a blank where a value is unknown; "" where that is too narrow.

    >>> sparkline([3.0, 2.0, None, 1.0]), sparkline([1.0, 1.0]), sparkline([])
    ('█▅ ▁', '▁▁', '')
    """
    if width < LEAST_SPARKLINE:
        return ""
    if len(values) > width:
        values = [values[round(i * (len(values) - 1) / (width - 1))] for i in range(width)]
    numbers = [value for value in values if value is not None]
    low, high = min(numbers, default=0.0), max(numbers, default=0.0)
    return "".join(" " if value is None else BLOCKS[round((value - low) / (high - low or 1.0) * 7)] for value in values)


def layer_bars(sizes: list[float | None], largest: float = 0.0) -> str:
    """Return a bar per layer, scaled to its largest or to `largest`; a dot for a closed layer.

    >>> layer_bars([0.0, 2.5, 1.0])
    '·█▄'
    """
    top = max([largest, 1.0, *(size or 0.0 for size in sizes)])
    bars = "".join("·" if (size or 0.0) < OPEN else BLOCKS[min(7, math.floor((size or 0.0) / top * 7.99))] for size in sizes)
    return shorten(bars, MOST_BARS)


def _status_line(state: State) -> str:
    run = state["run"]
    return ": ".join(filter(None, [LABELS.get(run["status"], run["status"]), run["details"]]))


def _group_line(group: State) -> str:
    return f"{shorten(group['name'], LONGEST_NAME)}: {group['details']}"


def _largest_layer(group: State) -> float:
    return max(((size or 0.0) for member in group["members"] for size in member["layers"]["sizes"][-1]), default=0.0)
