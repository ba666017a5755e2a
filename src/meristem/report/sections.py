"""The sections of a report as data: text, figures, tables and code; a section without content is left out.

This file has the sections about the score and the predictions with their charts, sections_inputs.py and sections_model.py those
about inputs and model. Charts are SVG; each has a title and a description with its numbers. docs/report.md lists the headings.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from meristem.check import many
from meristem.pictures.figure_style import GRID, INK, SERIES, Axes
from meristem.pictures.image_files import page_svg
from meristem.report import sections_inputs, sections_model
from meristem.report.formatting import count, duration, interval_text, limits_text, percent, score_text, significant
from meristem.report.metric_formulas import calibrated_rows, probability_bins
from meristem.report.report_data import COVERAGE, ReportData, Section, Table
from meristem.report.report_text import gain_interval, learning_curve_text, verdict
from meristem.report.scoring import CLASS, LABELS, NUMBER, Z95, Scorer, wilson_interval
from meristem.report.sections_inputs import BLUE, MOST_ROWS, draw_rows, drawable
from meristem.report.task_metrics import BY_LABEL, MEANINGS, METRICS
from meristem.report.thresholds import threshold_section
from meristem.show.elements import Markup, shorten

MOST_CONFUSIONS = 20  # that are listed
MOST_DOTS, MOST_CLASSES = 400, 12  # of charts
BINS = 10
FLOOR = -0.5  # R² has no lower end: lower scores are drawn here
RED, PINK, NEUTRAL = SERIES[1], SERIES[4], SERIES[-1]
SMALL = {"fontsize": "small", "parse_math": False}
# Rows with similar predictions: means of what was predicted and observed, the 95 % interval of the latter, number of rows.
Bin = tuple[float, float, float, float, int]
MEASURES = {metric.label: MEANINGS[name] for name, metric in METRICS.items()} | {
    "share of right labels": "The share of all labels, present or absent, that are predicted correctly.",
    "quantile skill": "1 is perfect, 0 is no better than the best constant quantiles.",
}


def sections(data: ReportData) -> list[Section]:
    model = sections_model
    made = [score_section(data), model.path_section(data), model.growth_section(data), model.network_section(data)]
    made.append(sections_inputs.inputs_section(data))
    if data.scorer is not None and data.predictions is not None:
        makers = {CLASS: confusion_section, LABELS: labels_section, NUMBER: errors_section}
        for make in (makers.get(data.scorer.task), threshold_section, calibration_section):
            made.append(make(data, data.scorer, data.predictions) if make else None)
    made += [
        learning_curve_section(data),
        model.settings_section(data),
        model.usage_section(data),
        model.provenance_section(data),
    ]
    return [section for section in made if section is not None]


def score_section(data: ReportData) -> Section | None:
    own = data.finite_score
    if own is None:
        return None
    models = [("this model", own, data.model.n_parameters_)]
    models += [(other.name, other.score, other.n_parameters) for other in data.baselines]
    measure = own["measure"]
    values = {name: (score["value"], score["low"], score["high"]) for name, score, _ in models}
    texts = {name: [score_text(each[0], measure), interval_text(each[1], each[2], measure)] for name, each in values.items()}
    rows = [[name, *texts[name], "–" if size is None else count(size)] for name, _, size in models]
    tables = [Table("Scores and sizes", ["model", measure, "95 % interval", "parameters"], rows)]
    if data.baselines:
        gains = [[o.name, verdict(o), score_text(o.gain[0], measure), gain_interval(o, measure)] for o in data.baselines]
        caption = "Gain over each baseline" + ("" if data.is_paired else ", as on independent rows")
        tables.append(Table(caption, ["baseline", "this model is", "gain", "95 % interval"], gains))
        times = ["–" if other.seconds is None else duration(other.seconds) for other in data.baselines]
        settings = [[other.name, other.settings or "–", took] for other, took in zip(data.baselines, times, strict=True)]
        tables.append(Table("Settings and time of each baseline", ["baseline", "settings", "time"], settings))
    tables += [_metrics_table(data)] * (len(data.metrics) > 1)
    text = f"{MEASURES[measure]} {data.baselines_note if data.baselines else ''}".strip()
    finite = {name: own_values for name, own_values in values.items() if np.isfinite(own_values[0])}
    chart = score_chart(measure, list(finite), np.array(list(finite.values())), tables[0].in_words())
    return Section("score", "Score and baselines", [text, *_coverage_text(data.coverage, data.task)], [chart], tables)


def _coverage_text(coverage: tuple[float, float] | None, task: str) -> list[str]:
    """Return how many rows are in their intervals or sets, and how wide these are, of a model that has them."""
    if coverage is None:
        return []
    share, mean = coverage
    is_class = task == CLASS
    size = f"a {'size' if is_class else 'width'} of {significant(mean)}"
    name = f"{percent(COVERAGE)} prediction {'sets' if is_class else 'intervals'}"
    empty = "; rows whose likeliest class is too unlikely have an empty set" if is_class and mean < 1 else ""
    return [f"Its {name} hold the true value in {percent(share)} of these rows, with {size} on average{empty}."]


def _metrics_table(data: ReportData) -> Table:
    """Return all metrics of the task, of the model with their intervals and of the baselines."""
    rows = []
    for name, score in data.metrics.items():
        label = METRICS[name].label
        others = [score_text(other.metrics.get(name, np.nan), label) for other in data.baselines]
        limits = limits_text(score["low"], score["high"], label)
        rows.append([label, score_text(score["value"], label), limits, *others])
    return Table("All metrics", ["metric", "this model", "95 % interval", *(other.name for other in data.baselines)], rows)


def score_chart(measure: str, names: Sequence[str], values: np.ndarray, description: str) -> Markup:
    """Return a dot and its interval for each row of values [models, (value, low, high)], the first one highlighted."""
    values = drawable(values)
    lowest, highest = max(FLOOR, np.nanmin(values)), max(FLOOR, np.nanmax(values))
    margin = max(0.05 * (highest - lowest), 0.01)

    def draw(ax: Axes) -> None:
        colors = [BLUE] + [NEUTRAL] * (len(names) - 1)
        draw_rows(ax, names, values, colors, f"{measure} with 95 % interval")
        ax.scatter(np.maximum(values[:, 0], lowest), range(len(names)), s=70, c=colors, zorder=3)
        ax.set_xlim(lowest - margin, highest + margin)
        for text in (ax.get_yticklabels()[0], ax.texts[0]):
            text.set_fontweight("bold")

    return page_svg("score", f"Score: {measure}", description, draw, height=60 + 34 * len(names))


def learning_curve_section(data: ReportData) -> Section | None:
    """Return the scores of networks that learned from parts of the rows, and how much more rows would help."""
    text, curve = learning_curve_text(data.facts), data.facts.get("learning_curve")
    if text is None or curve is None:
        return None
    measure, rows, scores, gain = curve["measure"], curve["rows"], np.array(curve["scores"]), curve["gain"]
    sign = -1.0 if BY_LABEL[measure].lower_is_better else 1.0
    next_scores = scores[-1] + sign * np.array([gain["value"], gain["low"], gain["high"]])
    lines = [[count(n), score_text(score, measure), ""] for n, score in zip(rows, scores.tolist(), strict=True)]
    limits = interval_text(float(next_scores[1:].min()), float(next_scores[1:].max()), measure)
    lines.append([count(2 * rows[-1]), score_text(float(next_scores[0]), measure), f"expected, 95 % interval {limits}"])
    table = Table("Score by rows learned from", ["rows", measure, "remark"], lines, is_folded=True)

    def draw(ax: Axes) -> None:
        ax.plot(rows, scores, color=BLUE, marker="o")
        ax.plot(
            [rows[-1], 2 * rows[-1]],
            [scores[-1], next_scores[0]],
            color=BLUE,
            linestyle="--",
            marker="o",
            markerfacecolor="none",
        )
        ax.vlines(2 * rows[-1], *sorted(next_scores[1:]), color=BLUE, linewidth=2)
        ax.set_xscale("log", base=2)
        ax.set_xticks([*rows, 2 * rows[-1]], [count(n) for n in (*rows, 2 * rows[-1])])
        ax.minorticks_off()
        ax.set(xlabel="rows learned from", ylabel=measure)
        ax.yaxis.get_major_locator().set_params(nbins=5)
        ax.grid(axis="y")

    how = (
        "The chosen setting learned from a quarter, a half and all training rows of each fold; scores are those of the rows "
        "that the folds held out. The dashed line assumes that each doubling gains the same share of the one before."
    )
    chart = page_svg("more-rows", "Score by rows learned from", table.in_words(), draw, height=220)
    return Section("more-rows", "How much more data would help", [text, how], [chart], [table])


def confusion_section(data: ReportData, scorer: Scorer, predictions: np.ndarray) -> Section:
    """Return recall and precision, and a confusion matrix, or the most frequent confusions of many classes."""
    labels = [*scorer.labels, *(["(unknown class)"] if (scorer.y < 0).any() else [])]
    counts = np.zeros((len(labels), len(labels)), int)
    np.add.at(counts, (scorer.y, predictions), 1)  # −1, an unknown class, is the last label
    wrong_pairs = sorted(((counts[a, b], a, b) for a, b in np.argwhere(counts > 0) if a != b), reverse=True)
    text = [f"{count(sum(n for n, _, _ in wrong_pairs))} of {many(len(scorer.y), 'row')} are wrong."]
    if wrong_pairs:
        n, a, b = wrong_pairs[0]
        names = f"“{shorten(labels[a], 40)}” predicted as “{shorten(labels[b], 40)}”"
        text.append(f"The most frequent confusion is {names}, {many(int(n), 'row')}.")
    tables = [_recall_table("class", labels, counts.sum(1), counts.sum(0), counts.diagonal(), most=10)]
    if len(labels) <= MOST_CLASSES:
        return Section("confusion", "Confusion matrix", text, [confusion_chart(counts, labels)], tables)
    first = wrong_pairs[:MOST_CONFUSIONS]
    frequent = [[shorten(labels[a], 60), shorten(labels[b], 60), count(n), _share(n, counts[a].sum())] for n, a, b in first]
    text.append(f"The {len(frequent)} most frequent of {many(len(wrong_pairs), 'confusion')} are listed.")
    tables.insert(0, Table("Most frequent confusions", ["true", "predicted", "rows", "share of the true class"], frequent))
    return Section("confusion", "Confusions", text, [], tables)


def confusion_chart(counts: np.ndarray, labels: Sequence[str]) -> Markup:
    """Return a confusion matrix of counts [true, predicted], shaded by the share of the true class."""
    n, shares = len(labels), counts / np.maximum(counts.sum(1, keepdims=True), 1)

    def draw(ax: Axes) -> None:
        for (true, predicted), number in np.ndenumerate(counts):
            color = GRID if not number else BLUE if true == predicted else PINK
            opacity = 0.06 + 0.64 * shares[true, predicted] if number else 0.5
            ax.broken_barh([(predicted + 0.03, 0.94)], (true + 0.03, 0.94), facecolor=color, alpha=opacity)
            if number:
                ax.text(predicted + 0.5, true + 0.5, count(number), ha="center", va="center", fontsize=12 if n < 8 else 10)
        ax.set_xticks(np.arange(n) + 0.5, [shorten(label, max(2, 40 // n)) for label in labels], color=INK, **SMALL)
        ax.set_yticks(np.arange(n) + 0.5, [shorten(label, 14 if n <= 6 else 9) for label in labels], color=INK, **SMALL)
        ax.tick_params(length=0, top=False, labeltop=True, labelbottom=False)
        ax.set(xlabel="predicted", ylabel="true", ylim=(n, 0), aspect="equal")
        ax.xaxis.set_label_position("top")
        ax.xaxis.labelpad = 8
        ax.spines[:].set_visible(False)

    names = [shorten(label, 40) for label in labels]
    rows = (", ".join(f"{count(n)} as {name}" for n, name in zip(row, names, strict=True) if n) for row in counts)
    numbers = "; ".join(f"{name}: {row}" for name, row in zip(names, rows, strict=True) if row)
    return page_svg("confusion", "Confusion matrix", f"{numbers}.", draw, height=min(360, 50 + 72 * n))


def labels_section(data: ReportData, scorer: Scorer, predictions: np.ndarray) -> Section:
    true, predicted = scorer.y > 0, predictions > 0
    right, wrong = percent((true == predicted).all(1).mean()), significant((true != predicted).sum(1).mean())
    text = f"All labels are right in {right} of the rows; on average {wrong} labels of a row are wrong."
    table = _recall_table("label", scorer.labels, true.sum(0), predicted.sum(0), (true & predicted).sum(0), most=12)
    return Section("confusion", "Recall and precision", [text], [], [table])


def _recall_table(
    unit: str, names: Iterable[str], true: np.ndarray, predicted: np.ndarray, both: np.ndarray, *, most: int
) -> Table:
    """Return counts, recall and precision of each name; folded if there are more than `most`."""
    rows = [
        [shorten(name, 60), count(n_true), count(n_predicted), _share(n, n_true), _share(n, n_predicted)]
        for name, n_true, n_predicted, n in zip(names, true, predicted, both, strict=True)
    ]
    return Table(f"Each {unit}", [unit, "rows", "predicted", "recall", "precision"], rows[:MOST_ROWS], len(rows) > most)


def _share(n: float | np.integer, total: float | np.integer) -> str:
    return percent(float(n / total)) if total else "–"


def errors_section(data: ReportData, scorer: Scorer, predictions: np.ndarray) -> Section:
    """Return the errors of numbers; of several columns the first is drawn."""
    true, predicted = scorer.y[:, 0], predictions.reshape(len(predictions), -1)[:, 0]
    errors = predicted - true
    middle, most = (significant(float(np.quantile(np.abs(errors), level))) for level in (0.5, 0.9))
    spread = f"The absolute error is below {middle} for half of the rows and below {most} for 90 %"
    text = [f"{spread}, in the unit of the target; true values go from {significant(true.min())} to {significant(true.max())}."]
    if scorer.y.shape[1] > 1:
        text.append(f"The figure shows the first of {scorer.y.shape[1]} targets.")
    measures = {"largest absolute error": np.abs(errors).max(), "mean of predicted − true": errors.mean()}
    table = Table("Errors", ["measure", "value"], [[name, significant(float(value))] for name, value in measures.items()])
    description = f"{many(len(true), 'row')}. {spread}. Line: perfect predictions."
    figure = error_chart(true, predicted, data.target, description)
    return Section("residuals", "Prediction errors", text, [figure], [table])


def error_chart(true: np.ndarray, predicted: np.ndarray, target: str, description: str) -> Markup:
    """Return a dot for each row [rows], or for some of very many, and the line of perfect predictions."""
    n, true, predicted = len(true), drawable(true), drawable(predicted)
    rows = np.arange(n) if n <= MOST_DOTS else np.random.default_rng(0).choice(n, MOST_DOTS, replace=False)

    def draw(ax: Axes) -> None:
        ax.plot(predicted[rows], true[rows], "o", color=BLUE, alpha=0.5, markersize=5, markeredgewidth=0)
        ax.axline((true[0], true[0]), slope=1, color=RED)
        _label_axes(ax, f"predicted {shorten(target, 30)}", f"true {shorten(target, 30)}")

    return page_svg("residuals", "Predicted and true values", description, draw)


def _label_axes(ax: Axes, x_label: str, y_label: str) -> None:
    ax.set_xlabel(x_label, parse_math=False)
    ax.set_ylabel(y_label, parse_math=False)
    ax.grid(axis="y")


def calibration_section(data: ReportData, scorer: Scorer, predictions: np.ndarray) -> Section | None:
    """Return predicted against observed: probabilities of classes, means of numbers, shares below quantiles."""
    if data.outputs is None or (scorer.task == NUMBER and not scorer.levels and len(scorer.y) < 2 * BINS):
        return None
    targets, title = data.model._targets_, "Calibration"
    if scorer.levels:
        quantiles = np.asarray(targets.decode(data.outputs)).reshape(*scorer.y.shape, -1)
        below = (scorer.y[:, :, None] <= quantiles).reshape(-1, len(scorer.levels)).sum(0).tolist()
        n, title = scorer.y.size, "Calibration of quantiles"
        bins = [(level, k / n, *wilson_interval(k, n), n) for level, k in zip(scorer.levels, below, strict=True)]
        text = "The share of rows below each predicted quantile; on the diagonal it is the level of the quantile."
        labels = "level of the quantile", "share of rows below it"
    elif scorer.task == NUMBER:
        bins = _binned(predictions[:, 0], scorer.y[:, 0], is_share=False)
        text = "Rows are binned by prediction; on the diagonal the mean of the true values is the mean prediction."
        labels = "mean prediction", "mean true value"
    else:
        if data.outcome is None:
            predicted, observed = targets.probabilities(data.outputs).ravel(), scorer.y.ravel()
            what = "every label of every row"
        else:
            predicted, observed = calibrated_rows(data.outcome)
            is_binary, positive = data.outcome.is_binary, data.outcome.positive
            what = f"“{shorten(scorer.labels[positive], 40)}”" if is_binary else "the likeliest class"
        bins = _binned(predicted, observed, is_share=True)
        error = sum(n * abs(mean - share) for mean, share, _, _, n in bins) / max(1, len(predicted))
        error = data.metrics.get("calibration_error", {"value": error})["value"]
        text = f"Probabilities of {what}, in bins; on the diagonal they equal the observed frequencies. "
        text += f"The calibration error is {significant(error)}."
        labels = "predicted probability", "observed frequency"
    rows = []
    for *values, n in bins:
        mean, observed_mean, low, high = map(significant, values)
        rows.append([mean, observed_mean, f"{low} to {high}", count(n)])
    table = Table("Calibration", [*labels, "95 % interval", "rows"], rows, is_folded=not scorer.levels)
    is_share = scorer.task != NUMBER or bool(scorer.levels)
    chart = calibration_chart(bins, *labels, table.in_words(), is_share=is_share)
    return Section("calibration", title, [text], [chart], [table])


def calibration_chart(bins: Sequence[Bin], x_label: str, y_label: str, description: str, *, is_share: bool) -> Markup:
    """Return observed against predicted values; on the diagonal both are the same. Shares go from 0 to 1."""

    def draw(ax: Axes) -> None:
        predicted, observed, low, high, _ = drawable(bins).T
        ax.axline((predicted[0], predicted[0]), slope=1, color=NEUTRAL, linestyle="--", linewidth=1.5)
        lengths = np.maximum(0, (observed - low, high - observed))  # rounding may leave a limit on the other side
        ax.errorbar(predicted, observed, lengths, fmt="o", color=BLUE, capsize=4, elinewidth=2)
        _label_axes(ax, x_label, y_label)
        if is_share:
            ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))

    return page_svg("calibration", "Calibration", description, draw)


def _binned(predicted: np.ndarray, observed: np.ndarray, *, is_share: bool) -> list[Bin]:
    """Return bins of numbers with about equally many rows, or those of probabilities, in ascending order."""
    order, bins = np.argsort(predicted, kind="stable"), list[Bin]()
    equal = np.array_split(order, min(BINS, max(1, len(order) // 5)))
    for part in probability_bins(predicted) if is_share else equal:
        n, mean = len(part), float(observed[part].mean())
        half = Z95 * float(observed[part].std(ddof=1)) / np.sqrt(n) if n > 1 else 0.0
        low, high = wilson_interval(round(float(observed[part].sum())), n) if is_share else (mean - half, mean + half)
        bins.append((float(predicted[part].mean()), mean, low, high, n))
    return bins
