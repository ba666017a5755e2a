"""Export of fitted estimators: standardization, network, and what turns its outputs into y.

Only this module knows where estimators store these; it does not import scikit-learn.
"""

from pathlib import Path
from typing import Any

from meristem.export.endings import AnyOf, Ending, OneOf, Raw, Values
from meristem.export.onnx import to_onnx
from meristem.export.torch import to_torch
from meristem.files.atomic_write import PATHS
from meristem.targets import Classes, Labels, Numbers, Targets


def onnx_of(estimator: Any, path: PATHS) -> Path:
    """Write a fitted estimator as an ONNX file: X [N, features] → what `predict` and `predict_proba` return.

    >>> import tempfile
    >>> from sklearn.datasets import load_iris
    >>> from meristem.estimators import TunnelClassifier
    >>> model = TunnelClassifier(width=16, depth=2, random_state=0).fit(*load_iris(return_X_y=True))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     onnx_of(model, f"{folder}/iris.onnx").name
    'iris.onnx'
    """
    network, inputs = estimator.compact(), estimator._inputs_
    metadata = {"estimator": type(estimator).__name__}
    options = {"scaling": inputs, "ending": ending_of(estimator._targets_), "feature_names": inputs.names}
    return to_onnx(path, network, **options, metadata=metadata)


def torch_of(estimator: Any, *, raw: bool = False) -> Any:
    """Return a `torch.nn.Module`: X → probabilities or predictions; if `raw`, logits or standardized numbers."""
    network = estimator.compact()
    return to_torch(network, scaling=estimator._inputs_, ending=Raw() if raw else ending_of(estimator._targets_))


def ending_of(targets: Targets) -> Ending:
    """Return what turns a network's outputs into y."""
    match targets:
        case Classes():
            return OneOf(targets.classes)
        case Labels():
            return AnyOf()
        case Numbers():
            return Values(targets.scaling.mean, targets.scaling.scale, targets.is_flat, targets.link)
    raise ValueError(
        f"Targets of kind {type(targets).__name__} cannot be exported; export the network alone: "
        "to_onnx(path, estimator.compact())."
    )
