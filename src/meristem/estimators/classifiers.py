"""The classifiers: one of several classes of any type, or any number of labels (an indicator matrix)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.model_selection import train_test_split
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from meristem.estimators.base import Growing
from meristem.estimators.bodies import Bud, Layered
from meristem.estimators.targets import Classes, Labels


@dataclass(eq=False, repr=False, kw_only=True)
class Classifier(ClassifierMixin, Growing):
    """What the three classifiers share."""

    class_weight: Any = None

    def _targets(self, y: Any) -> Classes | Labels:
        check_classification_targets(y)
        if type_of_target(y) == "multilabel-indicator":
            targets: Classes | Labels = Labels(y.shape[1])
        elif np.ndim(y) == 2 and y.shape[1] > 1:
            raise ValueError(f"y has shape {y.shape}: several classes at once are given as an indicator matrix of 0 and 1.")
        else:
            targets = Classes(np.unique(y))
        self.classes_ = targets.classes
        return targets

    def _validated(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:
        X, y = super()._validated(X, y, reset=reset)
        if np.ndim(y) == 2 and y.shape[1] == 1 and type_of_target(y) != "multilabel-indicator":
            from sklearn.utils.validation import column_or_1d

            y = column_or_1d(y, warn=True)
        return X, y

    def _split(self, indices: np.ndarray, y: np.ndarray, seed: int) -> list[np.ndarray]:
        counts = np.bincount(y.astype(int)) if y.ndim == 1 else np.zeros(1)
        can = y.ndim == 1 and counts[counts > 0].min() >= 2 and self.validation_fraction * len(y) >= (counts > 0).sum()
        return train_test_split(indices, test_size=self.validation_fraction, random_state=seed, stratify=y if can else None)

    def _sample_weight(self, y: Any, weight: np.ndarray) -> np.ndarray:
        return weight if self.class_weight is None else weight * compute_sample_weight(self.class_weight, y)

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class, or of each label."""
        outputs = self._outputs(X)
        return self._targets_.probabilities(outputs)

    def decision_function(self, X: Any) -> np.ndarray:
        """Logits: one per row for two classes, else one per class or label."""
        outputs = self._outputs(X)
        return self._targets_.decision(outputs)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = False
        return tags


@dataclass(eq=False, repr=False, kw_only=True)
class TunnelClassifier(Layered, Classifier):
    """A classifier whose units open one by one.

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TunnelClassifier(random_state=0, max_epochs=30).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    _body = "tunnel"


@dataclass(eq=False, repr=False, kw_only=True)
class BuddingClassifier(Bud, Classifier):
    """A classifier whose layers become two.

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BuddingClassifier(random_state=0, max_epochs=30).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """


@dataclass(eq=False, repr=False, kw_only=True)
class HighwayClassifier(Layered, Classifier):
    """The baseline: a highway network of a fixed size.

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = HighwayClassifier(random_state=0, max_epochs=30).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    _body = "highway"
