"""What each class was taken for: a square of counts, darker where more rows of a class went.

    draw(counts, ["no", "yes"]) → Element; counts [true, said]

At most twelve classes; of more a list is shorter than a square. Sections import it.
"""

from collections.abc import Sequence

import numpy as np

from meristem.report.numbers import count
from meristem.show.elements import WIDTH, Element, cut, el, picture

MOST = 12
TOP = 44


def draw(counts: np.ndarray, labels: Sequence[str]) -> Element:
    """Rows are the true classes, columns what was said.

    >>> draw(np.array([[5, 1], [0, 6]]), ["no", "yes"]).tag
    'svg'
    """
    n = len(labels)
    letters = 14 if n <= 6 else 9
    left = 12 + 7.2 * min(letters, max(len(label) for label in labels)) + 8
    size = min(72.0, (WIDTH - left) / n)
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    parts = [
        el("text", "said", x=left + size * n / 2, y=12, class_="muted middle"),
        el("text", "true", x=0, y=TOP - 8, class_="muted"),
    ]
    for column, label in enumerate(labels):
        said = cut(label, max(2, int((size - 4) / 6.4)))
        parts.append(el("text", el("title", label), said, x=left + size * (column + 0.5), y=TOP - 8, class_="ink middle small"))
    for row, label in enumerate(labels):
        y = TOP + size * (row + 0.5)
        parts.append(el("text", el("title", label), cut(label, letters), x=left - 8, y=y + 4, class_="ink end"))
        for column in range(n):
            share, x = float(shares[row, column]), left + size * column
            color = "s1" if row == column else "s5"
            box = {"x": x + 1, "y": y - size / 2 + 1, "width": size - 2, "height": size - 2, "rx": 3}
            parts.append(el("rect", **box, class_="cell"))
            parts.append(el("rect", **box, class_=f"{color} soft", fill_opacity=round(0.06 + 0.64 * share, 2) if share else 0))
            if counts[row, column]:
                text = count(counts[row, column])
                small = " small" if size < 38 or len(text) > size / 8 else ""
                parts.append(el("text", text, x=x + size / 2, y=y + 4, class_=f"ink middle{small}"))
    words = "; ".join(
        f"{cut(labels[row], 40)}: "
        + ", ".join(
            f"{count(counts[row, column])} as {cut(labels[column], 40)}" for column in np.flatnonzero(counts[row]).tolist()
        )
        for row in range(n)
        if counts[row].any()
    )
    return picture("confusion", "What each class was taken for", f"{words}.", TOP + size * n + 6, parts)
