"""Sections about the predictions: confusion of classes or labels, errors of numbers, calibration."""

import numpy as np

from meristem.check import many
from meristem.report.charts import MOST_CLASSES, Bin, calibration_chart, confusion_chart, error_chart
from meristem.report.formatting import count, percent, significant
from meristem.report.report_data import ReportData, Section, Table
from meristem.report.scoring import CLASS, LABELS, NUMBER, Z95, wilson_interval
from meristem.show.elements import shorten

BINS, MOST_CONFUSIONS, MOST_ROWS = 10, 20, 200


def confusion_section(data: ReportData) -> Section | None:
    """Return recall and precision, and a confusion matrix, or the most frequent confusions of many classes."""
    scorer, predictions = data.scorer, data.predictions
    if scorer is None or predictions is None or scorer.task not in (CLASS, LABELS):
        return None
    if scorer.task == LABELS:
        true, predicted = scorer.y > 0, predictions > 0
        rows = _recalls(scorer.labels, true.sum(0), predicted.sum(0), (true & predicted).sum(0))
        all_right, wrong = (
            percent(float((true == predicted).all(1).mean())),
            significant(float((true != predicted).sum(1).mean())),
        )
        text = [f"All labels are right in {all_right} of the rows; on average {wrong} labels of a row are wrong."]
        header = ["label", "rows", "predicted", "recall", "precision"]
        return Section("confusion", "Recall and precision", text, [], [Table("Each label", header, rows, len(rows) > 12)])
    labels = [*scorer.labels, *(["(unknown class)"] if (scorer.y < 0).any() else [])]
    y = np.where(scorer.y < 0, len(labels) - 1, scorer.y)
    counts = np.zeros((len(labels), len(labels)), int)
    np.add.at(counts, (y, predictions), 1)
    wrong_pairs = sorted(((counts[a, b], a, b) for a, b in np.argwhere(counts > 0) if a != b), reverse=True)
    text = [f"{count(sum(n for n, _, _ in wrong_pairs))} of {many(len(y), 'row')} are wrong."]
    if wrong_pairs:
        n, a, b = wrong_pairs[0]
        names = f"“{shorten(labels[a], 40)}” predicted as “{shorten(labels[b], 40)}”"
        text.append(f"The most frequent confusion is {names}, {many(int(n), 'row')}.")
    rows = _recalls(labels, counts.sum(1), counts.sum(0), counts.diagonal())
    header = ["class", "rows", "predicted", "recall", "precision"]
    tables = [Table("Each class", header, rows, len(labels) > 10)]
    if len(labels) <= MOST_CLASSES:
        return Section("confusion", "Confusion matrix", text, [confusion_chart(counts, labels)], tables)
    frequent = [
        [shorten(labels[a], 60), shorten(labels[b], 60), count(n), _share(n, counts[a].sum())]
        for n, a, b in wrong_pairs[:MOST_CONFUSIONS]
    ]
    text.append(f"The {len(frequent)} most frequent of {many(len(wrong_pairs), 'confusion')} are listed.")
    tables.insert(0, Table("Most frequent confusions", ["true", "predicted", "rows", "share of the true class"], frequent))
    return Section("confusion", "Confusions", text, [], tables)


def _recalls(names: list[str] | tuple[str, ...], true: np.ndarray, predicted: np.ndarray, both: np.ndarray) -> list[list[str]]:
    """Return rows of name, counts, recall and precision."""
    return [
        [shorten(name, 60), count(n_true), count(n_predicted), _share(n, n_true), _share(n, n_predicted)]
        for name, n_true, n_predicted, n in list(zip(names, true, predicted, both, strict=True))[:MOST_ROWS]
    ]


def _share(n: float | np.integer, total: float | np.integer) -> str:
    return percent(float(n / total)) if total else "–"


def errors_section(data: ReportData) -> Section | None:
    """Return the errors of numbers; of several columns the first is drawn."""
    scorer, predictions = data.scorer, data.predictions
    if scorer is None or predictions is None or scorer.task != NUMBER:
        return None
    true, predicted = scorer.y[:, 0], predictions.reshape(len(predictions), -1)[:, 0]
    errors = predicted - true
    middle, most = (significant(float(np.quantile(np.abs(errors), level))) for level in (0.5, 0.9))
    spread = f"The absolute error is below {middle} for half of the rows and below {most} for 90 %"
    text = [f"{spread}, in the unit of the target; true values go from {significant(true.min())} to {significant(true.max())}."]
    if scorer.y.shape[1] > 1:
        text.append(f"The figure shows the first of {scorer.y.shape[1]} targets.")
    rows = [
        ["root mean squared error", significant(float(np.sqrt((errors**2).mean())))],
        ["mean absolute error", significant(float(np.abs(errors).mean()))],
        ["largest absolute error", significant(float(np.abs(errors).max()))],
        ["mean of predicted − true", significant(float(errors.mean()))],
    ]
    figure = error_chart(true, predicted, data.target, f"{many(len(true), 'row')}. {spread}. Line: perfect predictions.")
    return Section("residuals", "Prediction errors", text, [figure], [Table("Errors", ["measure", "value"], rows)])


def calibration_section(data: ReportData) -> Section | None:
    """Return predicted against observed: probabilities of classes, means of numbers, shares below quantiles."""
    scorer, predictions = data.scorer, data.predictions
    if scorer is None or data.outputs is None or predictions is None:
        return None
    title = "Calibration"
    if scorer.task in (CLASS, LABELS):
        bins, text = _probability_bins(data)
        error = sum(group.rows * abs(group.predicted - group.observed) for group in bins) / max(1, sum(b.rows for b in bins))
        text = f"{text} The expected calibration error is {significant(error)}."
        labels = "predicted probability", "observed frequency"
    elif scorer.levels:
        bins, title = _quantile_bins(data), "Calibration of quantiles"
        text = "The share of rows below each predicted quantile; on the diagonal it is the level of the quantile."
        labels = "level of the quantile", "share of rows below it"
    elif len(scorer.y) >= 2 * BINS:
        bins = _binned(predictions[:, 0], scorer.y[:, 0], is_share=False)
        text = "Rows are binned by prediction; on the diagonal the mean of the true values is the mean prediction."
        labels = "mean prediction", "mean true value"
    else:
        return None
    is_share = scorer.task != NUMBER or bool(scorer.levels)
    rows = [
        [significant(b.predicted), significant(b.observed), f"{significant(b.low)} to {significant(b.high)}", count(b.rows)]
        for b in bins
    ]
    table = Table("Calibration", [*labels, "95 % interval", "rows"], rows, is_folded=not scorer.levels)
    return Section("calibration", title, [text], [calibration_chart(bins, *labels, is_share=is_share)], [table])


def _probability_bins(data: ReportData) -> tuple[list[Bin], str]:
    """Return bins of predicted probabilities, and which probabilities they are."""
    scorer = data.scorer
    assert scorer is not None
    probabilities = data.model._targets_.probabilities(data.outputs)
    if scorer.task == LABELS:
        predicted, observed, what = probabilities.ravel(), scorer.y.ravel(), "every label of every row"
    elif len(scorer.labels) == 2:
        predicted, observed, what = probabilities[:, 1], scorer.y == 1, f"“{shorten(scorer.labels[1], 40)}”"
    else:
        predicted, observed, what = probabilities.max(1), scorer.y == data.predictions, "the predicted class"
    text = f"Probabilities of {what}, in bins; on the diagonal they equal the observed frequencies."
    return _binned(predicted, observed.astype(float), is_share=True), text


def _binned(predicted: np.ndarray, observed: np.ndarray, *, is_share: bool) -> list[Bin]:
    """Return bins of about equally many rows, in ascending order."""
    order = np.argsort(predicted, kind="stable")
    bins = []
    for part in np.array_split(order, min(BINS, max(1, len(order) // 5))):
        if n := len(part):
            mean = float(observed[part].mean())
            half = Z95 * float(observed[part].std(ddof=1)) / np.sqrt(n) if n > 1 else 0.0
            low, high = wilson_interval(round(float(observed[part].sum())), n) if is_share else (mean - half, mean + half)
            bins.append(Bin(float(predicted[part].mean()), mean, low, high, n))
    return bins


def _quantile_bins(data: ReportData) -> list[Bin]:
    """Return the share of rows below each quantile."""
    scorer = data.scorer
    assert scorer is not None
    quantiles = np.asarray(data.model._targets_.decode(data.outputs)).reshape(*scorer.y.shape, -1)
    below = (scorer.y[:, :, None] <= quantiles).reshape(-1, len(scorer.levels))
    n = len(below)
    shares = zip(scorer.levels, below.sum(0).tolist(), strict=True)
    return [Bin(level, n_below / n, *wilson_interval(n_below, n), n) for level, n_below in shares]
