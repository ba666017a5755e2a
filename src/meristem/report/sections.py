"""The sections of a report as data: text, figures, tables and code; a section without content is left out.

This file has the sections about the score, the inputs and the predictions, sections_model.py those about the model.
docs/report.md lists the headings, `title`, and no test compares them.
"""

from collections.abc import Iterable

import numpy as np

from meristem.check import many
from meristem.report import charts, scoring, sections_model
from meristem.report.charts import Bin
from meristem.report.formatting import count, decimal, interval_text, percent, significant
from meristem.report.report_data import ReportData, Section, Table
from meristem.report.report_text import gain_interval, verdict
from meristem.report.scoring import CLASS, LABELS, NUMBER, Z95, Scorer, wilson_interval
from meristem.show.elements import shorten

MOST_INPUTS, MOST_ROWS, MOST_CONFUSIONS = 30, 200, 20  # that are drawn; rows of a table; confusions that are listed
BINS = 10
MEASURES = {
    "accuracy": "Accuracy is the share of rows whose class is predicted correctly.",
    "share of right labels": "The share of all labels, present or absent, that are predicted correctly.",
    "R²": "R² is the share of the target’s variance that is predicted: 1 is perfect, 0 is no better than the mean.",
    "quantile skill": "1 is perfect, 0 is no better than the best constant quantiles.",
}


def sections(data: ReportData) -> list[Section]:
    """Return all sections that have content."""
    model = sections_model
    made = [score_section(data), model.path_section(data), model.growth_section(data), model.network_section(data)]
    made.append(inputs_section(data))
    if data.scorer is not None and data.predictions is not None:
        makers = {CLASS: confusion_section, LABELS: labels_section, NUMBER: errors_section}
        for make in (makers.get(data.scorer.task), calibration_section):
            made.append(make(data, data.scorer, data.predictions) if make else None)
    made += [model.settings_section(data), model.usage_section(data), model.provenance_section(data), model.glossary_section()]
    return [section for section in made if section is not None]


def score_section(data: ReportData) -> Section | None:
    own = data.finite_score
    if own is None:
        return None
    models = [("this model", own, int(data.model.n_parameters_))]
    models += [(other.name, other.score, other.n_parameters) for other in data.baselines]
    rows = [
        [name, decimal(score["value"]), interval_text(score["low"], score["high"]), count(size)] for name, score, size in models
    ]
    tables = [Table("Scores and sizes", ["model", own["measure"], "95 % interval", "parameters"], rows)]
    if data.baselines:
        gains = [[other.name, verdict(other), decimal(other.gain[0]), gain_interval(other)] for other in data.baselines]
        caption = "Gain over each baseline" + ("" if data.is_paired else ", as on independent rows")
        tables.append(Table(caption, ["baseline", "this model is", "gain", "95 % interval"], gains))
    text = f"{MEASURES[own['measure']]} {data.baselines_note if data.baselines else ''}".strip()
    finite = {name: [score["value"], score["low"], score["high"]] for name, score, _ in models if np.isfinite(score["value"])}
    chart = charts.score_chart(own["measure"], list(finite), np.array(list(finite.values())), tables[0].in_words())
    return Section("score", "Score and baselines", [text], [chart], tables)


def inputs_section(data: ReportData) -> Section | None:
    """Return the importances of the columns, and the columns that are not used."""
    text, tables, figures, importance, measure = [], [], [], data.importance, scoring.MEASURES[data.task]
    if importance is not None:
        order, spread = np.argsort(-importance.mean, kind="stable"), importance.spread
        names = [data.columns[place] for place in order]
        times = f"{importance.repeats} times" if spread is not None else "once"
        lines = ", lines its standard deviation" if spread is not None else "; its standard deviation is unknown"
        text.append(
            f"The values of each column were shuffled {times} among {many(importance.rows, 'row')}; bars are the mean drop in "
            f"{measure}{lines}. The drop is small if another column holds the same information. Below 0, the score was "
            "higher with the column shuffled, by chance or because the column misleads the model."
        )
        if len(names) > MOST_INPUTS:
            more = many(len(names) - MOST_INPUTS, "less important column is", "less important columns are")
            text.append(f"The {MOST_INPUTS} most important columns are drawn; {more} not.")
        numbers = {f"drop in {measure}": importance.mean} | ({} if spread is None else {"standard deviation": spread})
        rows = [
            [names[n], *(decimal(values[place]) for values in numbers.values())] for n, place in enumerate(order[:MOST_ROWS])
        ]
        table = Table("Importance of each column", ["column", *numbers], rows, is_folded=True)
        tables += [table] * (len(names) > 1)
        half = np.full(len(order), np.nan) if spread is None else spread
        values = np.stack([importance.mean, importance.mean - half, importance.mean + half], 1)[order[:MOST_INPUTS]]
        figures.append(charts.importance_chart(measure, names[:MOST_INPUTS], values, table.in_words()))
    unused = [[name, why] for name, why in (*data.dropped, *((name, "gate closed in training") for name in data.unused))]
    if unused:
        text.append(f"{many(len(unused), 'column is', 'columns are')} not used.")
        tables.append(Table("Columns that are not used", ["column", "why"], unused[:MOST_ROWS], len(unused) > 8))
    elif importance is not None:
        text.append("All columns are used.")
    return Section("inputs", "Input importance", text, figures, tables) if text else None


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
    if len(labels) <= charts.MOST_CLASSES:
        return Section("confusion", "Confusion matrix", text, [charts.confusion_chart(counts, labels)], tables)
    frequent = [
        [shorten(labels[a], 60), shorten(labels[b], 60), count(n), _share(n, counts[a].sum())]
        for n, a, b in wrong_pairs[:MOST_CONFUSIONS]
    ]
    text.append(f"The {len(frequent)} most frequent of {many(len(wrong_pairs), 'confusion')} are listed.")
    tables.insert(0, Table("Most frequent confusions", ["true", "predicted", "rows", "share of the true class"], frequent))
    return Section("confusion", "Confusions", text, [], tables)


def labels_section(data: ReportData, scorer: Scorer, predictions: np.ndarray) -> Section:
    true, predicted = scorer.y > 0, predictions > 0
    all_right, wrong = float((true == predicted).all(1).mean()), float((true != predicted).sum(1).mean())
    text = (
        f"All labels are right in {percent(all_right)} of the rows; on average {significant(wrong)} labels of a row are wrong."
    )
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
    measures = {
        "root mean squared error": np.sqrt((errors**2).mean()),
        "mean absolute error": np.abs(errors).mean(),
        "largest absolute error": np.abs(errors).max(),
        "mean of predicted − true": errors.mean(),
    }
    table = Table("Errors", ["measure", "value"], [[name, significant(float(value))] for name, value in measures.items()])
    description = f"{many(len(true), 'row')}. {spread}. Line: perfect predictions."
    figure = charts.error_chart(true, predicted, data.target, description)
    return Section("residuals", "Prediction errors", text, [figure], [table])


def calibration_section(data: ReportData, scorer: Scorer, predictions: np.ndarray) -> Section | None:
    """Return predicted against observed: probabilities of classes, means of numbers, shares below quantiles."""
    if data.outputs is None or (scorer.task == NUMBER and not scorer.levels and len(scorer.y) < 2 * BINS):
        return None
    targets, title = data.model._targets_, "Calibration"
    if scorer.levels:
        quantiles = np.asarray(targets.decode(data.outputs)).reshape(*scorer.y.shape, -1)
        below = (scorer.y[:, :, None] <= quantiles).reshape(-1, len(scorer.levels)).sum(0).tolist()
        n, title = scorer.y.size, "Calibration of quantiles"
        bins = [Bin(level, k / n, *wilson_interval(k, n), n) for level, k in zip(scorer.levels, below, strict=True)]
        text = "The share of rows below each predicted quantile; on the diagonal it is the level of the quantile."
        labels = "level of the quantile", "share of rows below it"
    elif scorer.task == NUMBER:
        bins = _binned(predictions[:, 0], scorer.y[:, 0], is_share=False)
        text = "Rows are binned by prediction; on the diagonal the mean of the true values is the mean prediction."
        labels = "mean prediction", "mean true value"
    else:
        probabilities = targets.probabilities(data.outputs)
        if scorer.task == LABELS:
            predicted, observed, what = probabilities.ravel(), scorer.y.ravel(), "every label of every row"
        elif len(scorer.labels) == 2:
            predicted, observed, what = probabilities[:, 1], scorer.y == 1, f"“{shorten(scorer.labels[1], 40)}”"
        else:
            predicted, observed, what = probabilities.max(1), scorer.y == predictions, "the predicted class"
        bins = _binned(predicted, observed.astype(float), is_share=True)
        error = sum(b.rows * abs(b.predicted - b.observed) for b in bins) / max(1, sum(b.rows for b in bins))
        text = f"Probabilities of {what}, in bins; on the diagonal they equal the observed frequencies."
        text = f"{text} The expected calibration error is {significant(error)}."
        labels = "predicted probability", "observed frequency"
    rows = [
        [significant(b.predicted), significant(b.observed), f"{significant(b.low)} to {significant(b.high)}", count(b.rows)]
        for b in bins
    ]
    table = Table("Calibration", [*labels, "95 % interval", "rows"], rows, is_folded=not scorer.levels)
    is_share = scorer.task != NUMBER or bool(scorer.levels)
    chart = charts.calibration_chart(bins, *labels, table.in_words(), is_share=is_share)
    return Section("calibration", title, [text], [chart], [table])


def _binned(predicted: np.ndarray, observed: np.ndarray, *, is_share: bool) -> list[Bin]:
    """Return bins of about equally many rows, in ascending order."""
    order, bins = np.argsort(predicted, kind="stable"), []
    for part in np.array_split(order, min(BINS, max(1, len(order) // 5))):
        n, mean = len(part), float(observed[part].mean())
        half = Z95 * float(observed[part].std(ddof=1)) / np.sqrt(n) if n > 1 else 0.0
        low, high = wilson_interval(round(float(observed[part].sum())), n) if is_share else (mean - half, mean + half)
        bins.append(Bin(float(predicted[part].mean()), mean, low, high, n))
    return bins
