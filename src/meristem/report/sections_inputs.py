"""The section about inputs: which of them matter, and how predictions change with those that matter most.

It has what other charts share, too: rows of intervals, and values that can be drawn.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from meristem.check import many
from meristem.inputs.schema import CATEGORY, DATE
from meristem.pictures.figure_style import INK, SERIES, Axes
from meristem.pictures.image_files import page_svg
from meristem.report.formatting import decimal, score_text, significant
from meristem.report.importance import Dependence
from meristem.report.report_data import ReportData, Section, Table
from meristem.show.elements import Markup, shorten

MOST_INPUTS, MOST_ROWS = 30, 200  # columns that are drawn; rows of a table
MOST_EXTREME = 1e100  # that is drawn
FLAT = 0.8  # of the range of predictions that a rise or a fall from end to end covers at least
BLUE = SERIES[0]


def inputs_section(data: ReportData) -> Section | None:
    """Return the importances of the columns, partial dependence, and the columns that are not used."""
    text, tables, figures, importance, measure = [], [], [], data.importance, data.importance_measure
    if importance is not None:
        order = np.argsort(-importance.mean, kind="stable")
        names, mean, half = [data.columns[place] for place in order], importance.mean[order], importance.half[order]
        drawn = np.flatnonzero(importance.matters[order])
        text.append(
            f"The values of each column were shuffled {importance.repeats} times among {many(importance.rows, 'row')}; bars "
            f"are the mean drop in {measure}, lines its 95 % interval. The drop is small if another column holds the same "
            "information."
        )
        if len(drawn) < len(names):
            n = len(names) - len(drawn)
            text.append(f"{many(n, 'input makes', 'inputs make')} no difference: the interval includes 0.")
        if len(drawn) > MOST_INPUTS:
            more = many(len(drawn) - MOST_INPUTS, "less important column is", "less important columns are")
            text.append(f"The {MOST_INPUTS} most important columns are drawn; {more} not.")
        if (mean[drawn] < 0).any():
            text.append("Below 0, the score was higher with the column shuffled: it misleads the model, or it is chance.")
        numbers = map(decimal, mean), map(decimal, mean - half), map(decimal, mean + half)
        rows = [list(row) for row in zip(names, *numbers, strict=True)]
        header = ["column", f"drop in {measure}", "from", "to"]
        table = Table("Importance of each column", header, rows[:MOST_ROWS], is_folded=True)
        tables += [table] * (len(names) > 1)
        if len(drawn := drawn[:MOST_INPUTS]):
            values = np.stack([mean, mean - half, mean + half], 1)[drawn]
            figures.append(importance_chart(measure, [names[place] for place in drawn], values, table.in_words()))
    if data.dependences:
        sentences = [in_words(own, data.target) for own in data.dependences]
        figures.append(dependence_chart(data.dependences, data.target, " ".join(sentences)))
        text.append("Mean predictions as if all rows had the same value of a column (partial dependence):")
        text += sentences
    unused = [*map(list, data.dropped), *([name, "gate closed in training"] for name in data.unused)]
    if unused:
        text.append(f"{many(len(unused), 'column is', 'columns are')} not used.")
        tables.append(Table("Columns that are not used", ["column", "why"], unused[:MOST_ROWS], len(unused) > 8))
    elif importance is not None:
        text.append("All columns are used.")
    return Section("inputs", "Input importance", text, figures, tables) if text else None


def in_words(own: Dependence, target: str) -> str:
    """Return how predictions change with a column, in a sentence.

    >>> in_words(Dependence("age", "number", [20.0, 40.0, 60.0], np.array([1.0, 2.0, 4.0]), ""), "income")
    'With “age” from 20 to 60, “income” rises from 1 to 4.'
    """
    values, means, what = [_text(own.kind, value) for value in own.values], own.means, own.target or f"“{shorten(target, 40)}”"
    subject, low, high = f"“{shorten(own.column, 40)}”", int(means.argmin()), int(means.argmax())
    if own.kind != CATEGORY and abs(means[-1] - means[0]) >= FLAT * np.ptp(means) > 0:
        verb, ends = "rises" if means[-1] > means[0] else "falls", f"{significant(means[0])} to {significant(means[-1])}"
        return f"With {subject} from {values[0]} to {values[-1]}, {what} {verb} from {ends}."
    least, most = (f"{significant(means[place])} at {values[place]}" for place in (low, high))
    return f"With {subject}, {what} is highest, {most}, and lowest, {least}."


def _text(kind: str, value: Any) -> str:
    if kind == CATEGORY:
        return f"“{shorten(value, 30)}”"
    return str(np.datetime64(round(value), "D")) if kind == DATE else significant(value)


def importance_chart(measure: str, names: Sequence[str], values: np.ndarray, description: str) -> Markup:
    """Return a bar for each row of values [columns, (mean, low, high)]; NaN limits: none."""
    values = drawable(values)

    def draw(ax: Axes) -> None:
        ax.barh(range(len(names)), values[:, 0], height=0.55, color=BLUE, alpha=0.55)
        draw_rows(ax, names, values, [BLUE] * len(names), f"drop in {measure} when shuffled")

    return page_svg("importance", "Input importance", description, draw, height=60 + 22 * len(names))


def dependence_chart(dependences: Sequence[Dependence], target: str, description: str) -> Markup:
    """Return a panel for each column, all with the same scale: lines of numbers and dates, bars of categories."""
    all_means = drawable(np.concatenate([own.means for own in dependences]))
    low, high = float(np.nanmin(all_means)), float(np.nanmax(all_means))
    margin = 0.08 * (high - low) or 1.0

    def draw(*axes: Axes) -> None:
        for ax, own in zip(axes, dependences, strict=False):
            means = drawable(own.means)
            if own.kind == CATEGORY:
                ax.bar(range(len(means)), means - low + margin, bottom=low - margin, color=BLUE, alpha=0.55, width=0.7)
                names = [shorten(text, max(3, 26 // len(means))) for text in own.values]
                ax.set_xticks(range(len(means)), names, parse_math=False)
            else:
                ax.plot(own.values, means, color=BLUE, marker="o" if len(means) < 8 else "", markersize=4)
                ax.xaxis.get_major_locator().set_params(nbins=3)
            if own.kind == DATE:
                ax.set_xticks([own.values[0], own.values[-1]], [_text(DATE, own.values[place])[:7] for place in (0, -1)])
            ax.set_title(shorten(own.column, 22), fontsize=12, color=INK, parse_math=False)
            ax.set_ylabel(own.target or shorten(target, 14), fontsize=11, parse_math=False)
            ax.set_ylim(low - margin, high + margin)
            ax.tick_params(labelsize=11)
            ax.yaxis.get_major_locator().set_params(nbins=4)
            ax.grid(axis="y")
        for ax in axes[len(dependences) :]:
            ax.set_axis_off()

    rows = -(-len(dependences) // 2)
    shape = {"height": 30 + 150 * rows, "rows": rows, "columns": min(2, len(dependences))}
    return page_svg("dependence", "Partial dependence", description, draw, **shape)


def draw_rows(ax: Axes, names: Sequence[str], values: np.ndarray, colors: Sequence[str], label: str) -> None:
    """Draw the interval of each row of values [rows, (value, low, high)], its name at the left and its value at the right."""
    places, (middles, lows, highs) = np.arange(len(names)), values.T
    if np.isfinite(lows).any():
        ax.hlines(places, lows, highs, colors=colors, linewidth=2)
        for ends in (lows, highs):
            ax.vlines(ends, places - 0.12, places + 0.12, colors=colors, linewidth=2)
    ax.set_yticks(places, [shorten(name, 19) for name in names], color=INK, parse_math=False)
    ax.set(ylim=(len(names) - 0.4, -0.6), xlabel=label)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.grid(axis="x")
    ax.xaxis.get_major_locator().set_params(nbins=4)
    for place, value in enumerate(middles.tolist()):
        text = score_text(value, label.partition(" with")[0])
        ax.annotate(text, (1, place), (8, 0), ax.get_yaxis_transform(), "offset points", va="center")


def drawable(values: Any) -> np.ndarray:
    """Return values whose span does not overflow; what is not finite is not drawn."""
    values = np.asarray(values, float)
    return np.where(np.isfinite(values), np.clip(values, -MOST_EXTREME, MOST_EXTREME), np.nan)
