"""What a notebook shows of a model or a path: a few facts, drawings of networks, a table; HTML that needs no style of its own.

    card({"parameters": "812", "features": "9 of 13"}, {"": network})       → "<div …>…</div>"
    gallery({"1: 812 parameters": network, …})                              → Element, also for reports
    table(["penalty", "parameters"], [["0.001", "812"]], marked={0})        → "<table …>…</table>"

Colors are those of the text around it, so that it is read on white and on black. Estimators, paths and reports import it.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from meristem.check import many
from meristem.nn.network import Network
from meristem.show.elements import Element, el, render
from meristem.show.layout import draw
from meristem.show.stages import stages_of
from meristem.show.svg import svg

MOST = 6  # networks that are drawn
FACT = "display:inline-block;margin:0 1.4em .3em 0;white-space:nowrap"
FIGURE = "display:inline-block;vertical-align:top;margin:.3em 1.6em .6em 0;max-width:100%"
KEY = "max-width:44em;font-size:.9em;opacity:.85"
BOX = "font-family:sans-serif;font-size:13px;line-height:1.5;margin:.5em 0;max-width:100%;overflow-x:auto"


def card(facts: Mapping[str, str], networks: Mapping[str, Network], *, title: str = "") -> str:
    """Return facts by name in a line, and drawings of the networks; above all, a title in words.

    >>> card({"parameters": "812"}, {}).count("<b>812</b> parameters")
    1
    """
    line = el("div", *(el("span", el("b", value), f" {name}", style=FACT) for name, value in facts.items()))
    heading = [el("div", title)] if title else []
    return render(el("div", *heading, line, gallery(networks), class_="meristem-card", style=BOX))


def networks_of(members: Sequence[Any]) -> dict[str, Network]:
    """Return the networks of fitted estimators by caption; a single one has none."""
    if len(members) == 1:
        return {"": members[0].network_}
    return {f"{place}: {many(member.n_parameters_, 'parameter')}": member.network_ for place, member in enumerate(members, 1)}


def gallery(networks: Mapping[str, Network], *, name: str | None = None) -> Element:
    """Return a drawing of each network under its caption, side by side where there is room, then how they are read.

    The ids of the drawings are figure-NAME-1, figure-NAME-2, …, where a name is given.
    """
    drawings = {caption: draw(stages_of(network)) for caption, network in list(networks.items())[:MOST]}
    figures = []
    for place, (caption, drawing) in enumerate(drawings.items(), 1):
        heading = [el("div", caption, style="margin-bottom:.3em")] if caption else []
        figures.append(el("div", *heading, svg(drawing, name=name and f"{name}-{place}"), style=FIGURE))
    more = [f"{many(len(networks) - MOST, 'more network')} not drawn."] * (len(networks) > MOST)
    key = " ".join([*more, *dict.fromkeys(drawing.key for drawing in drawings.values())]).strip()
    return el("div", *figures, *[el("div", key, style=KEY)] * bool(key))


def table(columns: list[str], rows: list[list[str]], *, marked: Collection[int] = ()) -> str:
    """Return a plain table; marked rows are bold.

    >>> "<b>812</b>" in table(["parameters"], [["3"], ["812"]], marked={1})
    True
    """
    cell = "padding:.1em .8em;text-align:right"
    head = el("tr", *(el("th", name, style=cell) for name in columns))
    body = [
        el("tr", *(el("td", el("b", text) if place in marked else text, style=cell) for text in row))
        for place, row in enumerate(rows)
    ]
    whole = el("table", el("thead", head), el("tbody", *body), style="border-collapse:collapse;margin:0;font-size:13px")
    return render(el("div", whole, class_="meristem-card", style=BOX))
