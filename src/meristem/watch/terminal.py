"""A run in the terminal: curves, a bar for each layer, members, the time left; plain lines where output is no terminal.

    follow(view, stream)            until the run is finished
    show_once(view, stream)         as it is now; ValueError where there is no run

On a terminal with `rich` installed the display is live. Ctrl-C ends it and nothing else: the run does not know.
Imports view and words; commands/watch.py imports it.
"""

import time
from collections.abc import Callable
from typing import Any

from meristem.show.progress import have_rich
from meristem.watch import words
from meristem.watch.state import State
from meristem.watch.view import View

SECONDS = 0.5  # between two looks
PLAIN_SECONDS = 5.0  # between plain lines
LEAST_ROWS, WIDE = 4, 130  # members at least; columns for everything
CURVE, LEAST_CURVE, FIGURE, EDGES = 16, 4, 9, 3  # columns of a curve, of the figure beside it, of what parts two cells
Closing = Callable[[Callable[[], None]], Any]


def show_once(view: View, stream: Any) -> None:
    """All that is known, as plain lines."""
    state = view.now()
    if state["run"]["id"] is None:
        raise ValueError(
            f"{state['run']['where']!r} holds no run; give the folder that one writes to, or leave out --once to wait."
        )
    print("\n".join(lines_of(state)), file=stream, flush=True)


def lines_of(state: State) -> list[str]:
    """The picture as plain lines: the run, its groups, their members and what their layers did last."""
    run = state["run"]
    lines = [words.where_it_stands(state), *([f"  {words.clean(run['command'], 400)}"] if run["command"] else [])]
    for group in state["groups"]:
        lines.append(words.group_line(group))
        most = _largest(group)
        for one in group["members"]:
            lines.append(f"  {words.member_line(one)}  {words.layers(one['layers']['sizes'][-1], most)}")
            lines += [f"     {words.event_words(event)}" for event in one["events"][-2:]]
    return lines


def follow(view: View, stream: Any, *, seconds: float = SECONDS, closing: Closing | None = None) -> None:
    """Until the run is finished; `closing` is a context for what takes the display away (commands/ending.py)."""
    if have_rich() and stream.isatty():
        _live(view, stream, seconds, closing)
    else:
        _plain(view, stream, seconds)


def _plain(view: View, stream: Any, seconds: float) -> None:
    """A line every few seconds where something changed, one for each group that is over, one at the end."""
    told, last, before, status = set[str](), -PLAIN_SECONDS, "", ""

    def say(line: str) -> None:
        print(line, file=stream, flush=True)

    while True:
        state = view.now()
        run, groups = state["run"], state["groups"]
        for group in groups:
            if group["over"] and group["name"] not in told:
                told.add(group["name"])
                say(words.group_line(group))
        line = "; ".join([words.where_it_stands(state), *(words.group_line(one) for one in groups if not one["over"])])
        is_time = time.monotonic() - last >= PLAIN_SECONDS and line != before
        if run["status"] != status or is_time:
            where = f"{words.clean(run['where'])}: " if run["status"] != status else ""
            say(where + line)
            last, before, status = time.monotonic(), line, run["status"]
        if status == "finished":
            return
        time.sleep(seconds)


def _live(view: View, stream: Any, seconds: float, closing: Closing | None) -> None:
    from contextlib import nullcontext

    from rich.console import Console
    from rich.live import Live

    console = Console(file=stream)
    display = Live(console=console, auto_refresh=False, vertical_overflow="crop")
    with closing(display.stop) if closing is not None else nullcontext(), display:
        while True:
            state = view.now()
            display.update(drawn(state, console.size.height - 1, console.size.width), refresh=True)
            if state["run"]["status"] == "finished":
                return
            time.sleep(seconds)


def drawn(state: State, rows: int, width: int) -> Any:
    """The picture for rich, in about so many rows and columns: groups under way with their members, others in a line each."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    run, groups = state["run"], state["groups"]
    style = {"finished": "bold green", "interrupted": "bold red"}.get(run["status"], "bold")
    head = Text(words.where_it_stands(state), style=style) + Text("  " + words.clean(run["where"]), style="bold")
    head.no_wrap, head.overflow = True, "ellipsis"
    parts: list[Any] = [head]
    if run["share"] is not None and run["status"] != "finished":
        bar = Table.grid()
        bar.add_row(ProgressBar(total=1.0, completed=run["share"], width=60))
        parts.append(bar)
    shown = [group for group in groups if not group["over"]][-2:] or groups[-1:]
    others = [group for group in groups if group not in shown]
    room = max(LEAST_ROWS, rows - len(parts) - min(len(others), rows // 3) - 6 * len(shown))
    hidden = max(0, len(others) - rows // 3)
    parts += [Text(f"… and {hidden} more groups before", style="dim")] if hidden else []
    parts += [Text(words.group_line(group), style="dim", no_wrap=True) for group in others[hidden:]]
    return Group(*parts, *(_table(group, room // max(1, len(shown)), width) for group in shown))


def _table(group: State, rows: int, width: int) -> Any:
    from rich.table import Table
    from rich.text import Text

    figures, ends = (("error", "loss", "size"), ("layers", "")) if width >= WIDE else (("error", "size"), ("layers",))
    shown, most = group["members"][:rows], _largest(group)
    cells = {
        "network": [words.name_of(one) for one in shown],
        "epoch": [str(one["epoch"]) for one in shown],
        "layers": [words.layers(one["layers"]["sizes"][-1], most) for one in shown],
        "": [_last(one) for one in shown],
    }
    wide = {name: max(map(len, (name, *cells[name]))) for name in ("network", "epoch", *ends)}
    left = width - sum(wide.values()) - EDGES * (len(wide) + len(figures))
    cells |= {name: [_figure(one, name, left // len(figures) - FIGURE) for one in shown] for name in figures}
    table = Table(title=Text(words.group_line(group)), title_justify="left", expand=False)
    for name in ("network", "epoch", *figures, *ends):
        least = wide[name] if name in ("network", "epoch") else None  # the others are cut first
        table.add_column(name, no_wrap=True, min_width=least, justify="right" if name == "epoch" else "left")
    for row in zip(*(cells[str(column.header)] for column in table.columns), strict=True):
        table.add_row(*map(Text, row))
    if len(group["members"]) > rows:
        table.caption = Text(f"… and {len(group['members']) - rows} more networks")
    return table


def _figure(one: State, name: str, width: int) -> str:
    """A curve of at most this width, and where it stands; where there is no room for a curve, that alone."""
    curve = words.curve(one["curve"][name], min(width, CURVE)) if width >= LEAST_CURVE else ""
    return f"{curve} {words.number(one[name])}".strip()


def _last(one: State) -> str:
    """What a member did last."""
    return one["over"] or (words.event_words(one["events"][-1]) if one["events"] else words.layers_words(one))


def _largest(group: State) -> float:
    """The largest layer of all members now."""
    return max(((size or 0.0) for other in group["members"] for size in other["layers"]["sizes"][-1]), default=0.0)
