"""The docstrings of the estimators in numpydoc's form: parameters (parameters.py), fitted attributes, an example.

The table in docs/estimators.md shows the same texts.
"""

import textwrap
from typing import Any

from meristem.estimators.parameters import parameters_of

ATTRIBUTES = {
    "network_": ("meristem.nn.Network", "The network; it takes standardized features."),
    "history_": (
        "dict of ndarray",
        "By name, one entry per epoch: loss, error, dev_loss, dev_error, layer_sizes, soft_size, hard_size, rate. The loss is "
        "that of standardized targets (cross-entropy for classes and labels), without penalty and l2; the error is the share "
        "of wrong classes, the wrong labels per row, or for regressors the squared, absolute or quantile error or the "
        "deviance, according to the loss. dev_loss and dev_error are those of the validation set, if any, else of the training "
        "rows.",
    ),
    "soft_size_": (
        "float",
        "The sum of gates: Σ g of a tunnel's units, the soft size of a tree. A small gate with large weights behind it counts "
        "little, so `hard_size_` is more reliable.",
    ),
    "hard_size_": ("int", "The units, or the nodes of a tree, whose gates are not closed."),
    "n_parameters_": (
        "int",
        "The parameters of the compact network, gates included: what predictions use, and what `to_onnx` writes. The scaling "
        "of features and targets is not counted.",
    ),
    "selected_features_": (
        "ndarray",
        "The features whose gates are open, by name if X had names, else by index; all of them without `feature_gates`.",
    ),
    "n_live_units_": ("int", "The units with a nonlinearity in the compact network."),
    "n_iter_": ("int", "The epochs trained, including those of earlier fits that were continued."),
    "best_epoch_": ("int", "The epoch of the final network, from 1."),
    "n_samples_seen_": ("int", "The rows trained on: of the last `fit`, and of every `partial_fit` since."),
    "input_dropout_": ("float", "With input_dropout='auto': the share of inputs that was set to 0 in each step."),
    "penalty_": ("float", "With penalty='auto': the penalty."),
    "predictability_": (
        "float",
        "With l2='auto', or a regressor's penalty='auto': the share of the targets' variance (of classes: of their indicators) "
        "that kernel ridge regression predicts in left-out rows; in a stream, of the first rows.",
    ),
    "n_features_in_": ("int", "The number of features of X."),
    "feature_names_in_": ("ndarray of str", "The names of the features, if X had names that are strings."),
}
CLASSIFIER_ATTRIBUTES = {
    "classes_": ("ndarray", "The classes, ascending, as in the columns of `predict_proba`; of labels their indices.")
}
CV_ATTRIBUTES = {
    "penalty_": ("float", "The chosen penalty."),
    "penalty_min_": ("float", "The penalty of the least mean held-out loss."),
    "penalty_1se_": ("float", "The largest penalty within one standard error of that, paired by fold."),
    "l2_": ("float", "The chosen l2."),
    "input_dropout_": ("float", "The chosen dropout."),
    "cv_results_": (
        "dict of ndarray",
        "A row for each setting, as in GridSearchCV; without `scoring`, scores are negated losses. Settings that stopped early "
        "(not `finished`) rank last.",
    ),
    "path_": ("meristem.Path", "All members of the search: `best()`, `within_one_se()`, `frontier()`, `plot_path()`."),
    "estimators_": ("list of estimators", "The networks that are averaged, each as an estimator; one with refit='one'."),
    "n_parameters_": ("int", "The parameters of all compact networks together."),
    "n_iter_": ("int", "The most epochs that a network of the model was trained."),
    **{name: ATTRIBUTES[name] for name in ("n_features_in_", "feature_names_in_")},
}
EXAMPLE = """
Examples
--------
>>> from sklearn.datasets import {data}
>>> X, y = {data}({options})
>>> model = {name}({parameters}, random_state=0)
>>> model.fit(X, y).score(X, y) > {score}
True
"""
CLASSIFIER_DATA = {"data": "load_iris", "options": "return_X_y=True", "score": 0.9}
REGRESSOR_DATA = {"data": "make_friedman1", "options": "200, random_state=0", "score": 0.7}


def attributes_of(kind: Any) -> dict[str, tuple[str, str]]:
    """Return attribute → (type, text) of an estimator or its class."""
    own = CV_ATTRIBUTES if hasattr(kind, "penalties") else ATTRIBUTES
    return (CLASSIFIER_ATTRIBUTES if hasattr(kind, "predict_proba") else {}) | own


def docstring_of(kind: Any) -> str:
    """Return the docstring of a class with its parameters, attributes, and an example with the parameters `_example`."""
    parameters = [(f"{name} : {p.kind}, default={default!r}", p.text) for name, (p, default) in parameters_of(kind).items()]
    attributes = [(f"{name} : {words}", text) for name, (words, text) in attributes_of(kind).items()]
    data = CLASSIFIER_DATA if hasattr(kind, "predict_proba") else REGRESSOR_DATA
    example = EXAMPLE.format(name=kind.__name__, parameters=kind._example, **data)
    return f"{kind.__doc__}\n\n{_section('Parameters', parameters)}\n{_section('Attributes', attributes)}{example}"


def _section(title: str, entries: list[tuple[str, str]]) -> str:
    lines = [title, "-" * len(title)]
    for head, text in entries:
        indent: dict[str, Any] = {"initial_indent": "    ", "subsequent_indent": "    "}
        lines += [head, *textwrap.wrap(text, 100, break_on_hyphens=False, **indent)]
    return "\n".join([*lines, ""])
