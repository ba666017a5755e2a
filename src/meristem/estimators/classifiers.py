"""The classifiers: one of several classes of any type, or any number of labels (an indicator matrix)."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.model_selection import train_test_split
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d

from meristem.estimators.base import Growing
from meristem.estimators.bodies import Bud, Fixed, Layered
from meristem.estimators.docstrings import documented
from meristem.estimators.estimator_file import registered
from meristem.estimators.given import check_labels, to_score
from meristem.estimators.prior import between
from meristem.estimators.settings import ClassWeight
from meristem.targets import Classes, Labels

# Of many numbers some are dropped in each step: a tunnel starts linear, and would overfit before it opens. Indicators do not
# tell of each other as numbers do; without one of them a row is another.
MANY_NUMBERS, DROPOUT = 16, 0.25
L2, FIRMEST = 5e-5, 10.0


@dataclass(eq=False, repr=False, kw_only=True)
class Classifier(ClassifierMixin, ClassWeight, Growing):
    """What the three classifiers share."""

    def _auto_dropout(self, numbers: int) -> float:
        return DROPOUT if numbers >= MANY_NUMBERS else 0.0

    def _prior(self, rows: int, targets: Any, told: float, *, are_alike: bool) -> float:
        firmness = self._firmness(told if are_alike else max(0.5, told))
        return between(L2, max(L2, firmness / rows), told)

    def _firmness(self, told: float) -> float:
        """Of the prior on noisy classes: how many times as much of them is noise as is told."""
        return min(FIRMEST, max(1.0, (1 - told) / max(told, 1e-6)))

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """One epoch over these rows, part of a stream.

        The first call needs `classes`, all that will ever come (not for labels, which are columns of y). How features are
        scaled is learned from all rows so far.
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
            raise ValueError("classes=None: the first partial_fit must be told all classes, partial_fit(X, y, classes=…).")
        return self._partial_fit(X, y, sample_weight, classes)

    def _targets(self, y: np.ndarray, weight: np.ndarray) -> Classes | Labels:
        return Labels(y.shape[1]) if y.ndim == 2 else Classes(np.unique(y))

    def _check_target(self, y: Any) -> None:
        check_labels(y)

    def _validated_target(self, y: Any) -> np.ndarray:
        kind = getattr(getattr(y, "dtype", None), "kind", "")
        if kind == "T":  # NumPy's texts of any length: no file has such a type
            y = np.asarray(y).astype(object)
        elif kind == "O" and y.ndim == 1 and all(isinstance(label, int | np.integer) for label in y):
            y = np.array(y.tolist())
        try:
            check_classification_targets(y)
            if y.dtype == object:
                np.unique(y)
        except TypeError:
            raise ValueError(
                "y holds classes that cannot be sorted, such as texts beside numbers or None; give one type."
            ) from None
        if type_of_target(y) == "multilabel-indicator":
            return np.asarray(y.toarray() if hasattr(y, "toarray") else y)
        if np.ndim(y) == 2 and y.shape[1] > 1:
            raise ValueError(f"y has shape {y.shape}; several classes at once are given as an indicator matrix of 0 and 1.")
        return column_or_1d(y, warn=True)

    def _split(self, rows: np.ndarray, y: np.ndarray, seed: int) -> list[np.ndarray]:
        """With as much of each class in both parts, if there is enough of each."""
        counts = np.unique(y, return_counts=True)[1] if y.ndim == 1 else np.zeros(1)
        n_dev = int(np.ceil(self.validation_fraction * len(y)))
        can = counts.min() >= 2 and len(counts) <= min(n_dev, len(y) - n_dev)
        return train_test_split(rows, test_size=self.validation_fraction, random_state=seed, stratify=y if can else None)

    def _weights(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return weight if self.class_weight is None else weight * compute_sample_weight(self.class_weight, y)

    def _keep(self, *learned: Any, **how: Any) -> None:
        super()._keep(*learned, **how)
        self.classes_ = self._targets_.classes

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row, or its labels as 0 and 1."""
        outputs = self._answers(X, lambda x: self._predictor_.decisive_outputs(x, self._targets_.unsure))
        return self._targets_.decode(outputs)

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class, or of each label."""
        outputs = self._answers(X, lambda x: self._predictor_.outputs(x))
        return self._targets_.probabilities(outputs)

    def decision_function(self, X: Any) -> np.ndarray:
        """Logits: one per row for two classes, else one per class or label."""
        outputs = self._answers(X, lambda x: self._predictor_.outputs(x))
        return self._targets_.decision(outputs)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows, by their weight, whose class is predicted; of labels, of rows with all of them."""
        check_is_fitted(self)
        return super().score(X, *to_score(self, X, y, sample_weight, partial(check_labels, classes=self.classes_)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = False
        return tags


@registered
@documented
@dataclass(eq=False, repr=False, kw_only=True)
class TunnelClassifier(Layered, Classifier):
    """A classifier whose units open one by one: a tunnel network.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TunnelClassifier(width=16, depth=2, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    _body = "tunnel"


@registered
@documented
@dataclass(eq=False, repr=False, kw_only=True)
class BuddingClassifier(Bud, Classifier):
    """A classifier whose layers become two: a budding perceptron.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BuddingClassifier(width=8, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """


@registered
@documented
@dataclass(eq=False, repr=False, kw_only=True)
class HighwayClassifier(Fixed, Classifier):
    """The baseline: a highway network of a fixed size, as a classifier.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = HighwayClassifier(width=16, depth=2, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    _body = "highway"
