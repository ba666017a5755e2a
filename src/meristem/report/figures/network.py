"""The network that was found: a column of dots for each layer, from the inputs to the outputs; of a bag a row for each network.

    draw([(4, 3, 2)], ["inputs", "outputs"]) → Element: four inputs, a layer of three units, two outputs

At most so many dots are drawn as are to be told apart; the number stands below. Sections import it.
"""

from collections.abc import Sequence

from meristem.check import many
from meristem.report.numbers import count, listed
from meristem.show.elements import WIDTH, Element, el, picture

DOTS, DOTS_IN_BAG, MOST_ROWS, MOST_COLUMNS = 12, 5, 10, 10
LEFT_OF_BAG = 24


def draw(networks: Sequence[Sequence[int]]) -> Element:
    """Of each: how many inputs it reads, the units of its layers, and its outputs.

    >>> draw([(4, 3, 2)]).tag
    'svg'
    """
    is_bag = len(networks) > 1
    most = DOTS_IN_BAG if is_bag else DOTS
    step = 9.0 if is_bag else 12.0
    shown = networks[:MOST_ROWS]
    height = step * min(most, max(max(units) for units in shown)) + (26 if is_bag else 40)
    parts: list[Element] = []
    for row, units in enumerate(shown):
        parts += _network(units, 8 + row * height, height, step, most, row + 1 if is_bag else None)
    bottom = 8 + height * len(shown)
    left = LEFT_OF_BAG if is_bag else 0
    parts.append(el("text", "inputs", x=left, y=bottom + 10, class_="muted"))
    parts.append(el("text", "outputs", x=WIDTH, y=bottom + 10, class_="muted end"))
    if any(len(units) > 2 for units in shown):
        parts.append(el("text", "layers of units", x=(WIDTH + left) / 2, y=bottom + 10, class_="muted middle"))
    words = "; ".join(f"network {row + 1}: {in_words(units)}" if is_bag else in_words(units) for row, units in enumerate(shown))
    title = "The network, layer by layer" if not is_bag else f"The {len(networks)} networks, layer by layer"
    more = f" {len(networks) - MOST_ROWS} more are not drawn." if len(networks) > MOST_ROWS else ""
    return picture("network", title, f"{words}.{more}", bottom + 18, parts)


def in_words(units: Sequence[int]) -> str:
    """What is drawn.

    >>> in_words((4, 3, 5, 2)), in_words((4, 1))
    ('4 inputs, layers of 3 and 5 units, 2 outputs', '4 inputs, no layer: a weighted sum, 1 output')
    """
    layers = units[1:-1]
    between = "no layer: a weighted sum"
    if layers:
        between = f"{'layers' if len(layers) > 1 else 'a layer'} of {listed([count(n) for n in layers])} units"
    return f"{many(units[0], 'input')}, {between}, {many(units[-1], 'output')}"


def _network(units: Sequence[int], top: float, height: float, step: float, most: int, number: int | None) -> list[Element]:
    left = (LEFT_OF_BAG if number is not None else 0) + 22
    columns = _columns(units)
    apart = (WIDTH - left - 24) / max(1, len(columns) - 1)
    middle, parts = top + (height - 22) / 2, []
    halves = [step * min(n or 1, most) / 2 for n in columns]
    for place in range(len(columns) - 1):
        x1, x2, a, b = left + place * apart + 5, left + (place + 1) * apart - 5, halves[place], halves[place + 1]
        corners = f"{x1:.1f},{middle - a:.1f} {x2:.1f},{middle - b:.1f} {x2:.1f},{middle + b:.1f} {x1:.1f},{middle + a:.1f}"
        parts.append(el("polygon", points=corners, class_="flow"))
    if number is not None:
        parts.append(el("text", str(number), x=0, y=middle + 4, class_="muted"))
    for place, n in enumerate(columns):
        x = left + place * apart
        if n is None:
            parts.append(el("text", "…", x=x, y=middle + 4, class_="ink middle"))
            continue
        drawn = min(n, most)
        color = "s7" if place in (0, len(columns) - 1) else "s1"
        for unit in range(drawn):
            y = middle + step * (unit - (drawn - 1) / 2)
            if drawn < n and unit == drawn // 2:  # some are left out here
                parts += [el("circle", cx=x, cy=y + d, r=0.9, class_=f"{color} dot") for d in (-2.6, 0, 2.6)]
            else:
                parts.append(el("circle", cx=x, cy=y, r=step * 0.36, class_=f"{color} dot"))
        parts.append(el("text", count(n), x=x, y=middle + halves[place] + 15, class_="ink middle"))
    return parts


def _columns(units: Sequence[int]) -> list[int | None]:
    """All, or the first and the last with a gap between them."""
    if len(units) <= MOST_COLUMNS:
        return [*units]
    return [*units[: MOST_COLUMNS - 4], None, *units[-3:]]
