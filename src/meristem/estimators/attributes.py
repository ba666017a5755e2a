"""What a fitted estimator has learned, in words: attribute → (its type, what it says).

Docstrings and the table in docs/estimators.md show the same words.
"""

from typing import Any

Words = dict[str, tuple[str, str]]

EVERYONE: Words = {
    "network_": ("meristem.nn.Network", "The network; it takes standardized features."),
    "history_": (
        "dict of ndarray",
        "By name, one entry per epoch: loss, error, dev_loss, dev_error, layer_sizes, soft_size, hard_size, rate. The loss is "
        "that of standardized targets (cross-entropy for classes and labels), without penalty and l2; the error is the share "
        "of wrong classes, the wrong labels per row, or, for numbers, the squared, absolute or quantile error or the deviance, "
        "as the loss asks for. The dev_ ones are of the validation set, and of the training rows where there is none.",
    ),
    "soft_size_": (
        "float",
        "How much of the size is used: Σ g of a tunnel's units, the soft size of a tree. A small gate with large weights "
        "behind it counts little, so it says less than `hard_size_`.",
    ),
    "hard_size_": ("int", "The units, or the nodes of a tree, that are there at all: what is shipped."),
    "n_parameters_": (
        "int",
        "The numbers that the compact network holds, gates included: what is computed with, and what `to_onnx` writes. The "
        "scaling of features and targets is not counted.",
    ),
    "selected_features_": (
        "ndarray",
        "The features whose gates are open, by name where X had names, else by place; all of them without `feature_gates`.",
    ),
    "n_live_units_": ("int", "The units with a nonlinearity in the compact network."),
    "n_iter_": ("int", "The epochs trained, those of earlier fits that were continued included."),
    "best_epoch_": ("int", "The epoch whose network is kept, from 1."),
    "n_samples_seen_": ("int", "The rows learned from: of the last `fit`, and of every `partial_fit` since."),
    "input_dropout_": ("float", "With input_dropout='auto': the share of inputs that was set to 0 in each step."),
    "penalty_": ("float", "With penalty='auto': the price."),
    "predictability_": (
        "float",
        "With l2='auto', or a regressor's penalty='auto': the share of the targets' variance (of classes: of their indicators) "
        "that kernel ridge regression predicts in rows it has not seen; of a stream the first rows decide.",
    ),
    "n_features_in_": ("int", "The features of X."),
    "feature_names_in_": ("ndarray of str", "The names of the features, where X had names that are texts."),
}
CLASSIFIERS: Words = {
    "classes_": ("ndarray", "The classes, ascending, in the order of the columns of `predict_proba`; of labels their indices.")
}


SEARCHED: Words = {
    "penalty_": ("float", "The penalty that was chosen."),
    "penalty_min_": ("float", "The penalty of the least mean loss on rows that were held out."),
    "penalty_1se_": ("float", "The largest penalty within one standard error of that, paired fold by fold."),
    "l2_": ("float", "The l2 that was chosen."),
    "input_dropout_": ("float", "The dropout that was chosen."),
    "cv_results_": (
        "dict of ndarray",
        "A row for each setting, as in GridSearchCV; without `scoring`, scores are losses with their sign turned. "
        "Settings that left early (not `finished`) rank last.",
    ),
    "path_": ("meristem.Path", "All members of the search: `best()`, `within_one_se()`, `frontier()`, `plot_path()`."),
    "estimators_": ("list of estimators", "The networks that are averaged, each as a plain estimator; one with refit='one'."),
    "n_parameters_": ("int", "The numbers that the compact networks hold, all together."),
    "n_iter_": ("int", "The most epochs that a network of the model was trained."),
    **{name: EVERYONE[name] for name in ("n_features_in_", "feature_names_in_")},
}


def attributes_of(kind: Any) -> Words:
    """Those of an estimator, or of its class."""
    own = SEARCHED if hasattr(kind, "penalties") else EVERYONE
    return (CLASSIFIERS if hasattr(kind, "predict_proba") else {}) | own
