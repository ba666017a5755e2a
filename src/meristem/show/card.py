"""HTML for notebooks: a card with facts about a model and drawings of its networks, and a plain table.

Colors are those of the surrounding text, so it is readable on white and on black without a style sheet.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from meristem.check import many
from meristem.nn.network import Network
from meristem.show.elements import Markup, el
from meristem.show.network_structure import stages_of
from meristem.show.structure_drawing import draw, svg

MOST = 6  # networks that are drawn
FACT = "display:inline-block;margin:0 1.4em .3em 0;white-space:nowrap"
FIGURE = "display:inline-block;vertical-align:top;margin:.3em 1.6em .6em 0;max-width:100%"
LEGEND = "max-width:44em;font-size:.9em;opacity:.85"
BOX = "font-family:sans-serif;font-size:13px;line-height:1.5;margin:.5em 0;max-width:100%;overflow-x:auto"


def card(facts: Mapping[str, str], networks: Mapping[str, Network], *, title: str = "") -> str:
    """Return a title, facts by name in a line, and drawings of the networks."""
    line = el("div", *(el("span", el("b", value), f" {name}", style=FACT) for name, value in facts.items()))
    return el("div", *[el("div", title)] * bool(title), line, gallery(networks), class_="meristem-card", style=BOX)


def networks_of(members: Sequence[Any]) -> dict[str, Network]:
    """Return the networks of fitted estimators by caption; a single one has an empty caption."""
    if len(members) == 1:
        return {"": members[0].network_}
    return {f"{number}: {many(member.n_parameters_, 'parameter')}": member.network_ for number, member in enumerate(members, 1)}


def gallery(networks: Mapping[str, Network], *, name: str | None = None) -> Markup:
    """Return drawings of networks with captions and a legend; their ids are figure-NAME-1, figure-NAME-2, …"""
    drawings = {caption: draw(stages_of(network)) for caption, network in list(networks.items())[:MOST]}
    figures = []
    for number, (caption, drawing) in enumerate(drawings.items(), 1):
        heading = [el("div", caption, style="margin-bottom:.3em")] * bool(caption)
        figures.append(el("div", *heading, svg(drawing, name=name and f"{name}-{number}"), style=FIGURE))
    more = [f"{many(len(networks) - MOST, 'more network')} not drawn."] * (len(networks) > MOST)
    legend = " ".join([*more, *dict.fromkeys(drawing.legend for drawing in drawings.values())]).strip()
    return el("div", *figures, *[el("div", legend, style=LEGEND)] * bool(legend))


def table(columns: list[str], rows: list[list[str]], *, marked: Collection[int] = ()) -> str:
    """Return a plain table; marked rows are bold."""
    cell = "padding:.1em .8em;text-align:right"
    head = el("tr", *(el("th", name, style=cell) for name in columns))
    body = [
        el("tr", *(el("td", el("b", text) if number in marked else text, style=cell) for text in row))
        for number, row in enumerate(rows)
    ]
    style = "border-collapse:collapse;margin:0;font-size:13px"
    return el("div", el("table", el("thead", head), el("tbody", *body), style=style), class_="meristem-card", style=BOX)
