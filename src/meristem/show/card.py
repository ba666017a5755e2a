"""What a notebook shows of a model or a path: a few facts, small drawings, a table; HTML that needs no style of its own.

    card({"parameters": "812", "features": "9 of 13"}, {"": network})       → "<div …>…</div>"
    table(["penalty", "parameters"], [["0.001", "812"]], marked={0})         → "<table …>…</table>"

Colors are those of the text around it, so that it is read on white and on black. Estimators, tables and paths import it.
"""

import html
from collections.abc import Collection, Mapping

from meristem.nn.network import Network
from meristem.show.sketch import sketch

FACT = "display:inline-block;margin:0 1.4em .3em 0;white-space:nowrap"
FIGURE = "display:inline-block;vertical-align:top;margin:.3em 1.6em .3em 0"
BOX = "font-family:sans-serif;font-size:13px;line-height:1.5;margin:.5em 0;max-width:100%;overflow-x:auto"


def card(facts: Mapping[str, str], networks: Mapping[str, Network], *, title: str = "") -> str:
    """Facts by name in a line, then a drawing of each network under its caption; above all, a title in words.

    >>> card({"parameters": "812"}, {}).count("<b>812</b> parameters")
    1
    """
    said = "".join(
        f'<span style="{FACT}"><b>{html.escape(value)}</b> {html.escape(name)}</span>' for name, value in facts.items()
    )
    drawn = "".join(
        f'<div style="{FIGURE}"><div style="opacity:.75">{html.escape(caption)}</div>{sketch(network)}</div>'
        for caption, network in networks.items()
    )
    above = f"<div>{html.escape(title)}</div>" * bool(title)
    return f'<div class="meristem-card" style="{BOX}">{above}<div>{said}</div>{drawn}</div>'


def table(columns: list[str], rows: list[list[str]], *, marked: Collection[int] = ()) -> str:
    """A plain table; marked rows are bold.

    >>> "<b>812</b>" in table(["parameters"], [["3"], ["812"]], marked={1})
    True
    """
    cell = "padding:.1em .8em;text-align:right"
    head = "".join(f'<th style="{cell}">{html.escape(name)}</th>' for name in columns)
    body = ""
    for place, row in enumerate(rows):
        shown = [f"<b>{html.escape(text)}</b>" if place in marked else html.escape(text) for text in row]
        body += "<tr>" + "".join(f'<td style="{cell}">{text}</td>' for text in shown) + "</tr>"
    return (
        f'<div class="meristem-card" style="{BOX}"><table style="border-collapse:collapse;margin:0;font-size:13px">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
