"""The classifiers: one of several classes of any type, or any number of labels (an indicator matrix)."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d

from meristem.estimators.base import Estimator
from meristem.estimators.conformal import scores_of
from meristem.estimators.defaults import ClassifierDefaults
from meristem.estimators.documentation import registered
from meristem.estimators.input_checks import check_data, check_labels, check_scoring_data
from meristem.estimators.network_estimator import NetworkEstimator
from meristem.estimators.training_settings import Budding, Highway, Tunnel
from meristem.report.task_metrics import RARE
from meristem.targets import Classes, Labels
from meristem.targets.categorical import DEFAULT_THRESHOLD


def is_two_class(targets: Any) -> bool:
    return isinstance(targets, Classes) and len(targets.classes) == 2


def check_threshold(threshold: Any, targets: Any) -> Any:
    """Return the targets; raise ValueError where there is a threshold and not two classes."""
    if threshold is not None and not is_two_class(targets):
        what = f"{len(targets.classes)} {'labels' if isinstance(targets, Labels) else 'classes'}"
        raise ValueError(f"threshold={threshold!r} is for two classes, y has {what}; leave it out.")
    return targets


@dataclass(eq=False, repr=False, kw_only=True)
class ClassifierBase(ClassifierMixin, Estimator):
    """What all classifiers share, also those that search."""

    class_weight: dict[Any, float] | str | None = None
    threshold: float | str | None = None

    def _make_targets(self, y: np.ndarray, weight: np.ndarray) -> Classes | Labels:
        """Return the encoding of y."""
        if isinstance(self.threshold, str):
            what = f"threshold={self.threshold!r} is chosen on out-of-fold predictions, which a {type(self).__name__} has not"
            raise ValueError(f"{what}; give a number, or use {type(self).__name__}CV.")
        if y.ndim == 2:
            return check_threshold(self.threshold, Labels(y.shape[1]))
        labels, counts = np.unique(y, return_counts=True)  # of two texts the first is positive if it is rare, else the second
        is_first_rare = len(labels) == 2 and labels.dtype.kind in "UO" and counts[0] < RARE * counts.sum()
        threshold = DEFAULT_THRESHOLD if self.threshold is None else float(self.threshold)
        return check_threshold(self.threshold, Classes(labels, threshold, 0 if is_first_rare else 1))

    @property
    def threshold_(self) -> float:
        """The probability of `positive_class_` above which it is predicted; of two classes."""
        if not is_two_class(self._targets_):
            raise AttributeError("threshold_ is an attribute of classifiers of two classes.")
        return self._targets_.threshold

    @property
    def positive_class_(self) -> Any:
        """The class that `threshold_` is for; of two classes."""
        return self.classes_[self._targets_.positive] if self.threshold_ else None

    def _checked_rows(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, np.ndarray]:
        check_labels(y)
        X, y = check_data(self, X, y, reset=reset)
        kind = y.dtype.kind
        if kind == "T":  # NumPy's variable-width strings, which no file holds
            y = np.asarray(y).astype(object)
        elif kind == "O" and y.ndim == 1 and all(isinstance(label, int | np.integer) for label in y):
            y = np.array(y.tolist())
        try:
            check_classification_targets(y)
            if y.dtype == object:
                np.unique(y)
        except TypeError:
            raise ValueError("y holds classes that cannot be sorted; give texts only, or numbers only.") from None
        if type_of_target(y) == "multilabel-indicator":
            return X, np.asarray(y.toarray() if hasattr(y, "toarray") else y)
        if np.ndim(y) == 2 and y.shape[1] > 1:
            raise ValueError(f"y has shape {y.shape}; several labels per row are given as an indicator matrix of 0 and 1.")
        return X, column_or_1d(y, warn=True)

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each row, or its labels as 0 and 1."""
        outputs = self._outputs(X, lambda x: self._predictor_.decisive_outputs(x, self._targets_.unsure))
        return self._targets_.decode(outputs)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, or of each label."""
        outputs = self._outputs(X, lambda x: self._predictor_.outputs(x))
        return self._targets_.probabilities(outputs)

    def predict_set(self, X: Any, coverage: float = 0.9, *, allow_empty: bool = True) -> np.ndarray:
        """Return which classes are in the set of each row, [rows, classes]: it has the true one with this probability.

        A row whose likeliest class is too unlikely has an empty set, so that the coverage is as asked also where the accuracy
        is higher. Without `allow_empty` each set has at least the likeliest class. Only of the CV estimators.
        """
        scores = scores_of(self)
        return np.asarray(scores.members(self.predict_proba(X), coverage, allow_empty=allow_empty))

    def decision_function(self, X: Any) -> np.ndarray:
        """Return logits: one per row for two classes, else one per class or label."""
        outputs = self._outputs(X, lambda x: self._predictor_.outputs(x))
        return self._targets_.decision(outputs)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the weighted accuracy; of labels, the share of rows with all labels correct."""
        check_is_fitted(self)
        check_labels(y, self.classes_)
        return super().score(X, *check_scoring_data(self, X, y, sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = False
        return tags


@dataclass(eq=False, repr=False, kw_only=True)
class Classifier(ClassifierBase, NetworkEstimator):
    """A classifier with one network."""

    _defaults = ClassifierDefaults()

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Train one epoch on these rows, part of a stream.

        The first call needs all `classes` (not for labels, which are columns of y). The scaling of features is updated.
        """
        is_first = not hasattr(self, "network_")
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            raise ValueError(f"class_weight={self.class_weight!r} needs all of y; for partial_fit give {{class: weight}}.")
        if type_of_target(y) == "multilabel-indicator":
            classes = None
        elif classes is not None:
            classes = np.unique(np.asarray(classes))
            if not is_first and not np.array_equal(classes, self.classes_):
                raise ValueError(f"classes={classes.tolist()} were {self.classes_.tolist()} before; they cannot change.")
        elif is_first:
            raise ValueError("classes=None: the first partial_fit needs all classes, partial_fit(X, y, classes=…).")
        return self._fit(X, y, sample_weight, classes=classes, is_stream=True)


@registered
class TunnelClassifier(Tunnel, Classifier):
    """A classifier whose units open one by one: a tunnel network."""


@registered
class BuddingClassifier(Budding, Classifier):
    """A classifier whose layers split in two: a budding perceptron."""

    _defaults = ClassifierDefaults(noisy_l2=(3.0, 3.0))  # it starts as a layer of rectifiers, which can memorize noise


@registered
class HighwayClassifier(Highway, Classifier):
    """The baseline: a highway network of a fixed size, as a classifier."""
