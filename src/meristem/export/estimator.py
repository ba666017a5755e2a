"""Fitted estimators, exported whole: standardization, network, and what turns its outputs into y.

The one place that knows where estimators keep these; nothing here imports scikit-learn.
"""

from pathlib import Path
from typing import Any

from meristem.export.ends import AnyOf, Ending, OneOf, Raw, Values
from meristem.export.onnx import to_onnx
from meristem.export.torch import to_torch
from meristem.files.whole import PATHS


def onnx_of(estimator: Any, path: PATHS) -> Path:
    """Write a fitted estimator as an ONNX file: X float32 [N, features] → what `predict` and `predict_proba` say.

    >>> import tempfile
    >>> from sklearn.datasets import load_iris
    >>> from meristem.estimators import TunnelClassifier
    >>> model = TunnelClassifier(random_state=0, max_epochs=2).fit(*load_iris(return_X_y=True))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     onnx_of(model, f"{folder}/iris.onnx").name
    'iris.onnx'
    """
    network = estimator.compact()
    return to_onnx(
        path,
        network,
        scaling=_scaling(estimator),
        ending=ending_of(estimator),
        feature_names=list(estimator.feature_names_in_) if hasattr(estimator, "feature_names_in_") else None,
        metadata={"estimator": type(estimator).__name__},
    )


def torch_of(estimator: Any, *, raw: bool = False) -> Any:
    """A fitted estimator as a `torch.nn.Module`: X → probabilities or predictions; if `raw`, logits or standardized numbers."""
    network = estimator.compact()
    return to_torch(network, scaling=_scaling(estimator), ending=Raw() if raw else ending_of(estimator))


def ending_of(estimator: Any) -> Ending:
    """What turns the outputs of its network into y."""
    targets = estimator._targets_
    if not hasattr(targets, "classes"):
        return Values(targets.scaling.mean, targets.scaling.scale, targets.is_flat, getattr(targets, "link", "identity"))
    return AnyOf() if targets.objective == "multilabel" else OneOf(targets.classes)


def _scaling(estimator: Any) -> tuple[Any, Any]:
    return estimator._scaling_.mean, estimator._scaling_.scale
