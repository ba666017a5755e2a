"""The docstrings of the estimators in numpydoc's form: parameters, fitted attributes, an example; `@registered` sets them.

The tables in docs/estimators.md show the same texts. An attribute is described under its name and type.
"""

import textwrap
from dataclasses import dataclass
from typing import Any, TypeVar, dataclass_transform

from sklearn.base import BaseEstimator

from meristem.estimators.parameters import kind_of, parameters_of
from meristem.layers.activation import ACTIVATIONS
from meristem.targets import losses
from meristem.train.objectives import OBJECTIVES

E = TypeVar("E", bound=BaseEstimator)
ESTIMATORS: dict[str, type[BaseEstimator]] = {}  # those that files may name
PARAMETERS = {
    "penalty": "The price of complexity, relative to the mean loss: **the one knob**. Higher: smaller networks. 0: no pressure "
    "towards a small network. 'auto' is 1e-3 for classifiers, 3e-5 for images; for regressors 1e-3 · (1 - `predictability_`), "
    "at least 1e-4.",
    "width": "Units of every layer: the most that a tunnel can open per layer. 'auto' learns it, up to `max_width`.",
    "max_width": "With width='auto': the largest. Tunnels begin with 32, and get more where over half of the units are open.",
    "feature_gates": "Gives each feature a gate with a price, initially open: the gates of useless features close.",
    "price": "What `penalty` is the price of: 'units' (as in the paper: units, layers, and dimensions of a learned width), or "
    "the cost of a unit in memory ('parameters', or 'bytes' of tables in eight bits) or in computation ('multiply-adds'), "
    "fifty of which cost as much as a unit.",
    "budget": "The most parameters (or bytes or multiply-adds, as `price` says) of the compact network, in place of `penalty`: "
    "the price is then adapted during training, and the limit holds. Or the flash that its C file may take, as '2 KB' "
    "(docs/devices.md).",
    "bits": "With a budget of flash: the bits of the C file, as of `to_c(bits=…)`; None is float.",
    "settle": "From the first drop of the learning rate on, gates that are not worth their price close; in the last stage they "
    "stay closed, and the model is one of that stage. False keeps the best of all epochs, whose gates are often barely open.",
    "depth": "Layers of a highway; the most of a tunnel, which has two at first, and more if over half of its units open.",
    "max_leaves": "The most layers of a budding tree. Raise it where a `GrowthWarning` says that the tree reached it.",
    "learning_rate": "Learning rate of Adam; 'auto' is 3e-3, times the square root of `batch_size` / 32, at most 6e-3; for "
    "images 1e-2, the highest of a cycle. Try a third where training is unsteady, more where nothing opens.",
    "batch_size": "Rows per step. A larger batch makes an epoch faster but less effective. 'auto' is 32, doubled from 2,000 "
    "rows on (trees: 8,000) whenever the rows double, up to 1,024.",
    "l2": "L2 regularization, ½ · l2 · ‖W‖² beside the mean loss. 'auto' depends on the share of the targets' variance that "
    "the inputs predict (`predictability_`). For classifiers it is 5e-5 from 0.6 on; at 0.5 or less, where a network would "
    "mostly fit noise, it is (1 - `predictability_`) / `predictability_` / rows, from 1 to 10 / rows (for trees at least "
    "3 / rows, and at most 3 / rows for each class but one). For regressors it is that of ridge regression, in proportion to "
    "the noise: (1 - `predictability_`) · 5 / rows (3 / rows for tunnels, which start linear; for rare counts 3 times their "
    "relative variance / rows).",
    "input_dropout": "The share of inputs that is set to 0 in each step; 'auto' is 0, but for classifiers with 16 numeric "
    "features or more (binary ones not counted) 0.25 if that has the lower loss on held-out rows.",
    "depth_decay": "Each layer's learning rate relative to the layer before it; 1.0 is the same rate for all layers.",
    "activation": f"One of {', '.join(ACTIVATIONS)}.",
    "max_epochs": "The most epochs; 'auto': 300, or 6,000 steps where rows are few. Raise it where a `ConvergenceWarning` says "
    "that the loss was still falling.",
    "patience": "Epochs without a better loss after which the learning rate drops to 0.3, to 0.1, and training ends; 'auto': "
    "10, or 300 steps where rows are few. With held-out rows (in a search: of regressors) it is 40 before the first drop, "
    "because their loss may rise for long before a network finds a difficult pattern.",
    "early_stopping": "True holds out rows, whose loss determines how long to train; then a network is trained on all rows "
    "for as long. For classifiers it is the loss at the best temperature of the logits, which becomes part of the model: "
    "probabilities are better, networks larger. 'auto': True for regressors, False for classifiers.",
    "validation_fraction": "The share of the rows that early stopping holds out.",
    "loss": f"What is predicted: {'; '.join(f'{name!r} {OBJECTIVES[name].learns}' for name in losses())}.",
    "quantiles": "With loss='quantile': the share of y below the prediction. Of several, `predict` returns a column each, in "
    "this order; of several targets, target by target.",
    "class_weight": "The weight of each class: None, all rows alike; 'balanced', all classes alike; or {class: weight}.",
    "threshold": "Of two classes: the probability above which the positive class is predicted; None is 0.5. In a search also "
    "'best-f1' (the highest F1), 'cost=FP:FN' (the least cost, as 'cost=1:20') or 'recall=0.9' (the highest threshold with "
    "this recall), chosen on out-of-fold predictions. Files, ONNX labels and reports have it. The positive class is the second "
    "of `classes_`; of texts the first, if it has less than a tenth of the rows.",
    "standardize": "False keeps the scale of features, and of the targets of regressors: for data that share one scale.",
    "warm_start": "Another `fit` continues with the trained network.",
    "random_state": "The seed: the same results on the same machine, to the bit.",
    "device": "'cpu', 'gpu', 'gpu:1'; None is JAX's default.",
    "callbacks": "Called after each epoch with its info: epoch, loss, error, dev_loss, dev_error, soft_size, hard_size, rate "
    "and more, as in `info['loss']`; True ends the training. A `meristem.Watcher` is also called within long epochs.",
    "verbose": "Progress with the remaining time, on standard error.",
    "checkpoint_dir": "A folder for checkpoints, written every five minutes in at most 5 % of the time; one fit at a time can "
    "use it. Needs an integer `random_state`.",
    "resume": "The same fit (data, parameters, seed) continues from the checkpoints in `checkpoint_dir`, with the same result "
    "to the bit; without any it starts. False: it starts afresh, unless that would overwrite an interrupted fit.",
    "penalties": "The penalties to search. 'auto': five on a log scale, below the penalty at which nothing would open; of "
    "images 1e-5, 3e-5, 1e-4 and 3e-4.",
    "l2s": "The values of l2 to search. 'auto': 0.01, 0.3 and 10 / rows.",
    "input_dropouts": "The values of input_dropout to search. 'auto': 0, and 0.25 for classifiers with 16 numeric features or "
    "more (binary ones not counted).",
    "cv": "A number of folds (shuffled, classes stratified), a share of the rows that is held out once, such as 0.2, a "
    "scikit-learn splitter, or pairs (training rows, held-out rows).",
    "rule": "The chosen penalty: of the least held-out loss, or, for a smaller network, the largest within one standard error.",
    "refit": "The final model: 'bag', the networks of all folds with their outputs averaged; 'one' network, trained on all "
    "rows; or 'distill', one network that learned what the bag answers, not of images. 'auto' is 'bag', and 'one' with a "
    "budget, which a bag would have to share, with folds of unequal size, and of images.",
    "halving": "l2 is chosen first, at the middle penalty, by successive halving (the worse half stops after 16, 32, 64, … "
    "epochs), then dropout, then the penalty; what is clearly behind stops early. False trains every combination to its end.",
    "shape": "(height, width) or (height, width, channels), for images that are rows of X. None: X has their shape, "
    "[images, height, width] or [images, height, width, channels]; a row is then an image of one row.",
    "body": "How a block computes its channels: 'conv-branch' adds two convolutions, with gates between them, 'conv-inverted' "
    "wider and depthwise ones, with fewer parameters; 'conv-tunnel' mixes each channel with its copy, as in the paper.",
    "channels": "The most channels of each stage, as (16, 32); each stage has half the height and width of the one before. "
    "'auto': (16, 32, 64), for images with a side below 16 (12, 24), or (12,) below 8.",
    "blocks": "The most blocks of each stage; one whose gates are all closed is left out.",
    "augment": "Changes to the images of each step, by name: 'crop' (shifts), 'flip' (left and right), 'cutout' (hides a "
    "square), as ('crop', 'flip'). 'auto' is ('crop',) for images of at least 8 × 8; () is none.",
    "epochs": "Passes over the images: the learning rate rises and falls in them, and gates close in the last three fifths. "
    "'auto': 30, or 2,150 steps where images are few.",
    "scoring": "The score by which l2, dropout and penalty are chosen, as in scikit-learn ('roc_auc', or a function of an "
    "estimator, X and y: higher is better), or a metric of the report ('rmse', 'log_loss'); the report's headline, too. None: "
    "the held-out loss. The length of training always depends on the loss.",
    "executor": "What trains the networks of the search on other processes or machines: 'processes', 'ray', or an object with "
    "`submit` (docs/scale.md). The results are those of one process with one core, to the bit.",
}
ATTRIBUTES = {
    "network_ : meristem.nn.Network": "The network; it takes standardized features.",
    "history_ : dict of ndarray": "By name, one entry per epoch: loss, error, dev_loss, dev_error, layer_sizes, soft_size, "
    "hard_size, rate. The loss is that of standardized targets (cross-entropy for classes and labels), without penalty and l2; "
    "the error is the share of wrong classes, the wrong labels per row, or for regressors the squared, absolute or quantile "
    "error or the deviance, according to the loss. dev_loss and dev_error are those of the validation set, if any, else of the "
    "training rows.",
    "soft_size_ : float": "The sum of gates: Σ g of a tunnel's units, the soft size of a tree. A small gate with large "
    "weights behind it counts little, so `hard_size_` is more reliable.",
    "hard_size_ : int": "The units, or the nodes of a tree, whose gates are not closed.",
    "n_parameters_ : int": "The parameters of the compact network, gates included: what predictions use, and what `to_onnx` "
    "writes. The scaling of features and targets is not counted.",
    "selected_features_ : ndarray": "Those with open gates, by name if X has any, else by index; all without `feature_gates`.",
    "n_live_units_ : int": "The units with a nonlinearity in the compact network.",
    "n_iter_ : int": "The epochs trained, including those of earlier fits that were continued.",
    "best_epoch_ : int": "The epoch of the final network, from 1.",
    "n_samples_seen_ : int": "The rows trained on: of the last `fit`, and of every `partial_fit` since.",
    "input_dropout_ : float": "With input_dropout='auto': the share of inputs that was set to 0 in each step.",
    "penalty_ : float": "With penalty='auto': the penalty.",
    "predictability_ : float": "With l2='auto', or a regressor's penalty='auto': the share of the targets' variance (of "
    "classes: of their indicators) that kernel ridge regression predicts in left-out rows; in a stream, of the first rows.",
}
CV_ATTRIBUTES = {
    "penalty_ : float": "The chosen penalty.",
    "penalty_min_ : float": "The penalty of the least mean held-out loss.",
    "penalty_1se_ : float": "The largest penalty within one standard error of that, paired by fold.",
    "l2_ : float": "The chosen l2.",
    "input_dropout_ : float": "The chosen dropout.",
    "cv_results_ : dict of ndarray": "A row for each setting, as in GridSearchCV; without `scoring`, scores are negated "
    "losses. Settings that stopped early (not `finished`) rank last.",
    "path_ : meristem.Path": "All members of the search: `best()`, `within_one_se()`, `frontier()`, `plot_path()`.",
    "estimators_ : list of estimators": "The networks that are averaged, each as an estimator; or the single final network.",
    "n_parameters_ : int": "The parameters of all compact networks together.",
    "n_iter_ : int": "The most epochs that a network of the model was trained.",
}
IMAGE_ATTRIBUTES = {
    "network_ : meristem.nn.Network": "The network; it takes pixels, bytes as numbers from 0 to 1.",
    "history_ : dict of ndarray": "By name, one entry per epoch: loss, error, layer_sizes, soft_size, hard_size, rate; of the "
    "images that were trained on.",
    "image_shape_ : tuple of int": "The shape of an image.",
    "takes_bytes_ : bool": "Whether the images that were trained on were bytes.",
    **{head: ATTRIBUTES[head] for head in ("soft_size_ : float", "hard_size_ : int", "n_iter_ : int")},
    "n_parameters_ : int": "The parameters of the compact network, which predictions use and `to_onnx` writes.",
    "classes_ : ndarray": "The classes, ascending, as in the columns of `predict_proba`.",
}
IMAGE_CV_ATTRIBUTES = {
    **{head: text for head, text in CV_ATTRIBUTES.items() if not head.startswith(("l2_", "input_dropout_"))},
    **{head: text for head, text in IMAGE_ATTRIBUTES.items() if head.startswith(("image_", "takes_", "classes_"))},
}
CLASSIFIER_ATTRIBUTES = {
    "classes_ : ndarray": "The classes, ascending, as in the columns of `predict_proba`; of labels their indices.",
    "threshold_ : float": "Of two classes: the probability above which `positive_class_` is predicted.",
    "positive_class_ : label": "Of two classes: the one that `threshold_`, recall and precision are of.",
}
SHARED_ATTRIBUTES = {
    "n_features_in_ : int": "The number of features of X.",
    "feature_names_in_ : ndarray of str": "The names of the features, if X had names that are strings.",
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
IMAGE_DATA = {"data": "load_digits", "options": "n_class=3, return_X_y=True", "score": 0.6}
IMAGE_EXAMPLE = "shape=(8, 8), channels=8, blocks=1, epochs=6"
CV_EXAMPLE = "penalties=[1e-3], cv=2, max_width=16, learning_rate=0.01, max_epochs=60"


@dataclass_transform(kw_only_default=True, eq_default=False)
def registered(kind: type[E]) -> type[E]:
    """Make an estimator of a class: a dataclass, documented, whose instances can be saved and loaded."""
    kind = dataclass(eq=False, repr=False, kw_only=True)(kind)
    kind.__doc__ = docstring_of(kind)
    ESTIMATORS[kind.__name__] = kind
    return kind


def attributes_of(kind: Any) -> dict[str, str]:
    """Return "attribute : type" → text of an estimator or its class."""
    if hasattr(kind, "shape"):
        return (IMAGE_CV_ATTRIBUTES if hasattr(kind, "penalties") else IMAGE_ATTRIBUTES) | SHARED_ATTRIBUTES
    own = CV_ATTRIBUTES if hasattr(kind, "penalties") else ATTRIBUTES
    return (CLASSIFIER_ATTRIBUTES if hasattr(kind, "predict_proba") else {}) | own | SHARED_ATTRIBUTES


def docstring_of(kind: Any) -> str:
    """Return the docstring of a class with its parameters, attributes, and an example."""
    parameters = {f"{p} : {kind_of(p)}, default={default!r}": PARAMETERS[p] for p, default in parameters_of(kind).items()}
    lines, wrapper = [kind.__doc__], textwrap.TextWrapper(96, break_on_hyphens=False)
    for title, entries in {"Parameters": parameters, "Attributes": attributes_of(kind)}.items():
        lines += ["", title, "-" * len(title)]
        for head, text in entries.items():
            lines += [head, textwrap.indent(wrapper.fill(text), "    ")]
    data = CLASSIFIER_DATA if hasattr(kind, "predict_proba") else REGRESSOR_DATA
    example = CV_EXAMPLE if hasattr(kind, "penalties") else "width=16"
    images = "penalties=[3e-5, 3e-4], cv=0.2, " * hasattr(kind, "penalties") + IMAGE_EXAMPLE
    data, example = (IMAGE_DATA, images) if hasattr(kind, "shape") else (data, example)
    return "\n".join([*lines, EXAMPLE.format(name=kind.__name__, parameters=example, **data)])
