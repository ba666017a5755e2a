"""The data of a report, collected once from a fitted model and the rows that it is evaluated on."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import numpy as np

from meristem.check import many
from meristem.inputs import Inputs, Preprocessor
from meristem.paths.result import Point
from meristem.report import scoring
from meristem.report.baselines import Comparison, compare, compare_scores, cross_predict, fit_baselines, score_by, short_of_time
from meristem.report.importance import MOST_COLUMNS, Dependence, Importance, partial_dependence, permutation_importance
from meristem.report.metric_formulas import log_losses
from meristem.report.scoring import CLASS, LABELS, Scorer, decode_predictions, network_outputs
from meristem.report.task_metrics import BY_LABEL, DEFAULTS, Metric, Outcome, evaluate, headline, outcome_of, scores_in
from meristem.show.elements import Markup

BASELINE_SECONDS = 15.0
COVERAGE = 0.9  # of intervals and sets
BEST_CONSTANT = "The constant is the best one for these very rows."
CROSS_PREDICTED = (
    f"{BEST_CONSTANT} Each third of the rows was predicted by the other baselines trained on the other two thirds, so they had "
    "fewer rows to learn from; settings are those of the first third."
)
UNPAIRED = (
    "Their predictions are not stored in the model’s file, so the intervals of the differences are those of independent "
    "samples, wider than in the report that `fit` wrote."
)
OTHER_ROWS = "The baselines were scored on the rows held out by `fit`, not on the rows of this report."


@dataclass(frozen=True)
class Table:
    """Rows of texts, the first of each a header. The reader opens a folded table by a click."""

    caption: str
    header: list[str]
    rows: list[list[str]]
    is_folded: bool = False

    def in_words(self) -> str:
        """Return the rows as a sentence, which describes a figure of them.

        >>> Table("Sizes", ["network", "units", "remark"], [["1", "8", "chosen"], ["2", "3", ""]]).in_words()
        '1: units 8, remark chosen; 2: units 3.'
        """
        cells = [[f"{name} {cell}" for name, cell in zip(self.header, row, strict=True) if cell] for row in self.rows]
        return "; ".join(f"{row[0]}: {', '.join(own[1:])}" for row, own in zip(self.rows, cells, strict=True)) + "."


@dataclass(frozen=True)
class Section:
    """Paragraphs (`code` in backquotes), figures, tables, and programs."""

    name: str
    title: str
    text: list[str]
    figures: list[Markup] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    code: list[str] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class ReportData:
    """All that a report shows. Without rows, `scorer` and everything computed from rows is None."""

    model: Any  # an estimator
    target: str  # name of what is predicted
    rows: str  # which rows it is evaluated on, as in "on 40 rows"
    score: dict[str, Any] | None
    n_rows: int
    baselines: tuple[Comparison, ...]
    baselines_note: str
    is_paired: bool = True  # whether predictions of the baselines are known, so that differences are taken row by row
    metrics: dict[str, dict[str, Any]] = field(default_factory=dict)  # name → value, low and high of all that apply
    scorer: Scorer | None = field(default=None, repr=False)
    outcome: Outcome | None = field(default=None, repr=False)  # of classes or numbers
    predictions: np.ndarray | None = field(default=None, repr=False)
    outputs: np.ndarray | None = field(default=None, repr=False)
    columns: tuple[str, ...] = ()  # that the model reads
    unused: tuple[str, ...] = ()  # inputs whose gates are closed
    dropped: tuple[tuple[str, str], ...] = ()  # columns that are no inputs, and why
    importance: Importance | None = None  # of columns
    importance_measure: str = ""
    dependences: tuple[Dependence, ...] = ()  # of the columns that matter most
    coverage: tuple[float, float] | None = None  # of 90 % intervals or sets: share of rows, mean width or size
    row_caveats: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict, repr=False)  # of a table
    digest: str | None = None  # of the data

    @property
    def task(self) -> str:
        """Class, labels, number or quantiles."""
        return self.scorer.task if self.scorer is not None else str(self.facts["task"])

    @property
    def members(self) -> list[Any]:
        """The plain estimators whose networks are averaged; often a single one."""
        return list(getattr(self.model, "estimators_", [self.model]))

    @property
    def is_searched(self) -> bool:
        return hasattr(self.model, "path_")

    @property
    def chosen(self) -> Point | None:
        """The point of the path with the chosen setting; None without a search, or with a budget."""
        if not self.is_searched:
            return None
        others = (getattr(self.model, name, 0.0) for name in ("l2_", "input_dropout_"))  # of pictures there are none
        chosen = self.model.penalty_, *others
        return next((point for point in self.model.path_.points if (point.penalty, point.l2, point.dropout) == chosen), None)

    @property
    def finite_baselines(self) -> list[Comparison]:
        return [other for other in self.baselines if np.isfinite(other.score["value"])]

    @property
    def finite_score(self) -> dict[str, Any] | None:
        return self.score if self.score is not None and np.isfinite(self.score["value"]) else None


def from_estimator(model: Any, X: Any, y: Any, train: Any = None) -> ReportData:
    """X and y are held-out rows; the baselines learn from `train=(X, y)`, or from parts of X and y."""
    X, scorer = _check_rows(model, X, y)
    seed = model.random_state if isinstance(model.random_state, int) else 0
    outputs = network_outputs(model, X)
    outcome = outcome_of(model, scorer, decode_predictions(model, outputs, scorer), outputs)
    metric = None if outcome is None else headline(outcome, getattr(model, "scoring", None))
    rows = _row_data(model, scorer, X, outputs, model._inputs_, None, seed, metric)
    if train is None:
        baselines = cross_predict(scorer, X, seconds=BASELINE_SECONDS, seed=seed)
        note = CROSS_PREDICTED if len(baselines.predictions) > 1 else BEST_CONSTANT
    else:
        if not isinstance(train, tuple | list) or len(train) != 2:
            raise ValueError(f"train is a {type(train).__name__}; it must be a pair (X, y).")
        x_train, train_scorer = _check_rows(model, *train)
        baselines = fit_baselines(scorer, X, (x_train, train_scorer.y), seconds=BASELINE_SECONDS, seed=seed)
        note = f"The baselines were trained on the {len(train_scorer.y):,} rows given as `train`."
    return ReportData(
        model=model,
        target={CLASS: "class", LABELS: "labels"}.get(scorer.task, "number"),
        rows=many(len(scorer.y), "row"),
        score=score_by(metric, scorer, outcome, rows["predictions"], seed),
        metrics={} if outcome is None else evaluate(outcome, seed),
        outcome=outcome,
        n_rows=len(scorer.y),
        baselines=compare(scorer, rows["predictions"], *baselines, seed, outcome=outcome, metric=metric),
        baselines_note=note + short_of_time(baselines.facts),
        row_caveats=tuple(_row_caveats(model, X, scorer)),
        digest=_digest(X, y),
        **rows,
    )


def from_table(model: Any, frame: Any = None) -> ReportData:
    """Without a frame the rows are those that `fit_table` held out, if the model has them; otherwise only its facts."""
    facts, estimator = model.facts, model.estimator
    evaluation, is_held_out, row_caveats = (model.evaluation, True, []) if frame is None else model.evaluated(frame)
    seed, score, limit = int(facts["seed"]), facts["score"], facts["seconds"].get("limit")
    n = int(facts["rows"]["test"]) if is_held_out else len(evaluation.y)
    is_paired = is_held_out and all("gain" in own for own in facts["baselines"].values())
    metric, outcome, metrics = BY_LABEL[score["measure"]], None, scores_in(facts)
    rows: dict[str, Any] = {}
    if evaluation is not None:
        scorer = table_scorer(model, evaluation)
        rows = _row_data(estimator, scorer, evaluation.X, evaluation.sample_outputs, model.inputs, limit, seed, metric)
        outcome = outcome_of(estimator, scorer, rows["predictions"], evaluation.sample_outputs)
        if not is_held_out and outcome is not None:
            score, metrics = score_by(metric, scorer, outcome, rows["predictions"], seed), evaluate(outcome, seed)
    note = f"The baselines were trained on the same rows and evaluated on the same {n:,}.{short_of_time(facts['baselines'])}"
    if evaluation is not None and evaluation.baselines:
        own = evaluation.baselines, facts["baselines"]
        baselines = compare(scorer, rows["predictions"], *own, seed, outcome=outcome, metric=metric)
    else:
        baselines = compare_scores(facts["baselines"], score, is_held_out=is_held_out)
        note = OTHER_ROWS if not is_held_out else note if is_paired else f"{note} {UNPAIRED}"
    return ReportData(
        model=estimator,
        target=model.target,
        rows=f"{n:,} held-out rows" if is_held_out else f"{n:,} rows",
        score=score,
        metrics=metrics,
        outcome=outcome,
        n_rows=n,
        baselines=baselines,
        baselines_note=note,
        is_paired=is_paired,
        dropped=model.schema.dropped,
        row_caveats=tuple(row_caveats),
        facts=facts,
        digest=facts.get("table_sha256"),
        **rows,
    )


def table_scorer(model: Any, evaluation: Any) -> Scorer:
    """Return the scorer of the evaluated rows of a table's model."""
    if model.task == CLASS:
        return Scorer(CLASS, evaluation.y, tuple(map(str, model.classes.tolist())))
    return Scorer(model.task, evaluation.y.reshape(-1, 1), levels=model.levels)


def compare_table(model: Any, facts: dict[str, dict[str, Any]], metric: Metric) -> tuple[Comparison, ...]:
    """Compare a table's model with its baselines, by a metric, on the evaluated rows."""
    evaluation, scorer = model.evaluation, table_scorer(model, model.evaluation)
    predictions = decode_predictions(model.estimator, evaluation.sample_outputs, scorer)
    outcome = outcome_of(model.estimator, scorer, predictions, evaluation.sample_outputs)
    seed = int(model.facts["seed"])
    return compare(scorer, predictions, evaluation.baselines, facts, seed, outcome=outcome, metric=metric)


def _row_data(
    model: Any, scorer: Scorer, X: Any, outputs: np.ndarray, inputs: Inputs, limit: Any, seed: int, metric: Metric | None
) -> dict[str, Any]:
    """Return what the rows say: predictions, the columns that the networks read, and what these do.

    Accuracy hardly changes where a class is rare: importances are then drops in the mean log-likelihood.
    """
    is_likelihood = scorer.task == CLASS and metric is not DEFAULTS[CLASS]
    networks = getattr(model, "estimators_", [model])
    is_read = np.any([plain._inputs_.read_features(plain._input_gates) for plain in networks], axis=0)
    names, used = inputs.column_names, [bool(is_read[group].any()) for group in inputs.groups]
    groups, references = list(compress(inputs.groups, used)), scorer.reference_losses
    importance, dependences = None, list[Dependence]()

    def losses(x: Any, rows: np.ndarray) -> np.ndarray:
        if is_likelihood:
            probabilities = model._targets_.probabilities(network_outputs(model, x))
            return log_losses(probabilities, scorer.y[rows])
        return scorer.subset(rows).losses(decode_predictions(model, network_outputs(model, x), scorer))

    if references.sum() > 0 and len(scorer.y) > 1 and groups:
        importance = permutation_importance(losses, X, references, groups, limit=limit, seed=seed)
    if importance is not None:
        order = [
            place for place in np.argsort(-importance.mean, kind="stable") if importance.mean[place] > importance.half[place]
        ]
        most = np.flatnonzero(used)[order[:MOST_COLUMNS]].tolist()
        dependences = partial_dependence(model, scorer, X, inputs, most, seed)
    unused = tuple(name for name, is_used in zip(names, used, strict=True) if not is_used)
    rows = {"scorer": scorer, "predictions": decode_predictions(model, outputs, scorer), "outputs": outputs}
    rows["coverage"] = scoring.measured_coverage(model, X, outputs, scorer, COVERAGE)
    measure = "log-likelihood" if is_likelihood else scoring.MEASURES[scorer.task]
    rows |= {"columns": tuple(compress(names, used)), "unused": unused, "importance_measure": measure}
    return rows | {"importance": importance, "dependences": tuple(dependences)}


def _check_rows(plain: Any, X: Any, y: Any) -> tuple[Any, Scorer]:
    """Return X as the estimator takes it and the scorer of y; raises ValueError if they do not fit the model."""
    X, y = plain._checked_rows(X, y, reset=False)
    targets, columns = plain._targets_, y.shape[1] if y.ndim == 2 else 1
    expected = targets.n_out // len(targets.levels) if hasattr(targets, "levels") else targets.n_out
    if (hasattr(targets, "count") or not hasattr(plain, "classes_")) and columns != expected:
        raise ValueError(f"y has {columns} columns; this model predicts {expected}.")
    return X, Scorer.of(plain, y)


def _row_caveats(model: Any, X: Any, scorer: Scorer) -> Iterator[str]:
    learned, n_train = model._inputs_.preprocessor, n_training_rows(model)
    if X.shape[0] == n_train and np.allclose(Preprocessor.of(X, selected=learned.selected).fill, learned.fill, 1e-6, 0):
        yield "These seem to be the rows that the model was trained on; on other rows it will score lower."
    if scorer.task == CLASS and (n := int((scorer.y < 0).sum())):
        yield f"{n:,} of the rows have a class that was not in the training data; they count as wrong."
    if scorer.task == CLASS and len(np.unique(scorer.y)) == 1:
        yield "All rows have the same class: these rows cannot show whether the model separates classes."
    if scorer.reference_losses.sum() <= 0:
        yield "All rows have the same target value: R² is undefined."


def n_training_rows(model: Any) -> int:
    return int(getattr(model, "n_samples_seen_", None) or model.estimators_[0].n_samples_seen_)


def _digest(X: Any, y: Any) -> str:
    """Return the SHA-256 of X as float64, row by row, and then of y as text."""
    digest = hashlib.sha256()
    for at in range(0, X.shape[0], 4096):
        digest.update(np.ascontiguousarray(scoring.as_dense(X[at : at + 4096]), "<f8").tobytes())
    rows = y.toarray() if hasattr(y, "toarray") else np.asarray(y)
    digest.update("\n".join(map(str, rows.tolist())).encode("utf-8", "replace"))
    return digest.hexdigest()
