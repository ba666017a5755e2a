"""What classifiers of images share: parameters, checked and encoded images, predictions, and methods that write a fitted one.

Predictions are those of the compact network, which takes pixels as they are.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from meristem.compact import CompactNetwork
from meristem.estimators.base import Estimator
from meristem.estimators.fit_context import on_device
from meristem.estimators.image_input import EncodedImages, check_images
from meristem.estimators.input_checks import check_labels, weights_of
from meristem.export.endings import ending_of
from meristem.files.atomic_write import PATHS
from meristem.targets import Classes

AT_ONCE = 256  # images that go through a network at once


@dataclass(eq=False, repr=False, kw_only=True)
class ImageClassifierBase(ClassifierMixin, BaseEstimator):
    """A classifier of images; parameters are stored as they are, and checked in `fit`."""

    shape: tuple[int, ...] | None = None
    body: str = "conv-branch"
    channels: Any = "auto"
    blocks: int = 1
    price: str = "parameters"
    budget: int | str | None = None
    bits: int | None = 8
    augment: Any = "auto"
    epochs: int | str = "auto"
    learning_rate: float | str = "auto"
    batch_size: int | str = "auto"
    activation: str = "relu"
    class_weight: dict[Any, float] | str | None = None
    random_state: int | None = None
    device: str | None = None
    callbacks: Any = None
    verbose: bool = False
    checkpoint_dir: Any = None
    resume: bool = False

    __no_type_check__: ClassVar[bool] = True

    save, n_parameters_ = Estimator.save, Estimator.n_parameters_
    __sklearn_is_fitted__ = Estimator.__sklearn_is_fitted__

    def _encoded(self, X: Any, y: Any, sample_weight: Any, classes: Any, *, is_stream: bool) -> EncodedImages:
        continues = is_stream and hasattr(self, "network_")
        check_labels(y, self.classes_ if continues else None)
        images, y = check_images(self, X, y, reset=not continues)
        try:
            check_classification_targets(y)
        except TypeError:
            raise ValueError("y holds classes that cannot be sorted; give texts only, or numbers only.") from None
        y = column_or_1d(y, warn=True)
        weight = weights_of(sample_weight, len(images))
        weight = weight if self.class_weight is None else weight * compute_sample_weight(self.class_weight, y)
        if not (weight > 0).any():
            raise ValueError("sample_weight, times class_weight, is 0 for every image; at least one must count.")
        targets = self._targets_ if continues else Classes(np.unique(y if classes is None else np.asarray(classes)))
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        return EncodedImages(images, targets.encode(y), weight / weight[weight > 0].mean(), targets, seed, is_stream)

    def _outputs(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return self._outputs_of(check_images(self, X, reset=False))

    def _outputs_of(self, images: np.ndarray) -> np.ndarray:
        """Return the outputs [n, out] for images, in blocks of one size, so that no output depends on the images beside it."""
        outputs = []
        with on_device(self.device):
            network = jax.device_put(self._compact_)
            for first in range(0, len(images), AT_ONCE):
                block = images[first : first + AT_ONCE]
                padding = [(0, AT_ONCE - len(block))] + [(0, 0)] * (block.ndim - 1)
                outputs.append(np.asarray(_apply(network, np.pad(block, padding)), np.float64)[: len(block)])
        return np.concatenate(outputs)

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each image."""
        return self._targets_of_fitted().decode(self._outputs(X))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class."""
        return self._targets_of_fitted().probabilities(self._outputs(X))

    def decision_function(self, X: Any) -> np.ndarray:
        """Return logits: one per image for two classes, else one per class."""
        return self._targets_of_fitted().decision(self._outputs(X))

    def _targets_of_fitted(self) -> Classes:
        check_is_fitted(self)
        return self._targets_

    def compact(self) -> CompactNetwork:
        """Return the network without closed gates; it takes pixels as they are."""
        check_is_fitted(self)
        return jax.device_put(self._compact_)

    def to_onnx(self, path: PATHS) -> Any:
        """Write the compact network as an ONNX file: X [N, height, width, …], pixels as they are, float32 → probabilities."""
        from meristem.export import to_onnx

        network, metadata = self.compact(), {"estimator": type(self).__name__}
        return to_onnx(path, network, ending=ending_of(self._targets_), metadata=metadata)

    def to_c(self, path: PATHS, **options: Any) -> Path:
        """Write the compact network as a C99 file without dependencies, and its header: pixels as they are → probabilities.

        Options are those of `meristem.export.to_c`: numbers, class_names, pixels="uint8", bits (with the training images X)
        and budget.
        """
        from meristem.export import to_c

        network = self.compact()
        if options.get("X") is not None:
            options["X"] = check_images(self, options["X"], reset=False)
        return to_c(path, network, ending=ending_of(self._targets_), **options)

    def to_torch(self) -> Any:
        """Return the compact network as a plain `torch.nn.Module`: pixels as they are → probabilities."""
        from meristem.export import to_torch

        return to_torch(self.compact(), ending=ending_of(self._targets_))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags


@jax.jit
def _apply(network: CompactNetwork, x: Any) -> Any:
    return jax.vmap(network)(x.astype(jnp.result_type(float)))
