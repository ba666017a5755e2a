"""A classifier of images: a convolutional network that finds its channels and blocks, with scikit-learn's fit and predict.

    fit: check → images → pad rows to shared shapes → train with a schedule of known length → compact

A fit takes `epochs` passes: the learning rate rises and falls in one cycle, gates close from two fifths on and stay closed in
the last fifth (train/schedules.py). The weights decay, steps are augmented. Predictions are those of the compact network, which
takes pixels as they are. Fitted attributes are set at the end: a fit that fails leaves the estimator as it was.
"""

import warnings
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from meristem.cache import keep_programs
from meristem.check import many
from meristem.compact import CompactNetwork, compact
from meristem.compact.inference import as_numpy
from meristem.estimators.base import Estimator
from meristem.estimators.documentation import registered
from meristem.estimators.encoded_table import padded_size
from meristem.estimators.fit_context import checkpointing, on_device, watchers
from meristem.estimators.fit_procedure import FAILED, GrowthWarning
from meristem.estimators.image_input import EncodedImages, check_images, pixel_scaling
from meristem.estimators.input_checks import check_labels, weights_of
from meristem.estimators.parameters import check_parameters
from meristem.estimators.training_settings import continued
from meristem.export.endings import ending_of
from meristem.files.atomic_write import PATHS
from meristem.layers.image_layers import Pixels
from meristem.nn import Network
from meristem.targets import Classes
from meristem.train.hyperparameters import Knobs, Recipe
from meristem.train.loop import DivergedError, fit
from meristem.train.run import Run, of_state
from meristem.train.schedules import PLATEAU
from meristem.train.train_state import TrainState, fit_to_recipe, start
from meristem.train.training_data import Data, prepare

HISTORY = ["loss", "error", "layer_sizes", "soft_size", "hard_size", "rate"]
PENALTY = 3e-5
EPOCHS, STEPS = 30, 1700  # of a training: passes over the images, or steps, whichever is longer
WEIGHT_DECAY, B2 = 0.02, 0.99
FIRST_CHANNELS = 8, 16  # the most of the first stage, of small images and of others; each further stage has twice as many
SMALL, LEAST_POSITIONS = 16, 4  # the side of a small image; positions that a stage keeps, of up to three
RATE = 1e-2  # at the top of the cycle
ROWS, AT_ONCE = 256, 256  # the smallest padded number of rows; images that go through a network at once


@registered
class TunnelImageClassifier(ClassifierMixin, BaseEstimator):
    """A classifier of images [n, height, width] or [n, height, width, channels], of bytes or floats, of any size."""

    shape: tuple[int, ...] | None = None
    penalty: float | str = "auto"
    body: str = "conv-branch"
    channels: Any = "auto"
    blocks: int = 1
    price: str = "parameters"
    budget: int | None = None
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

    _rows_per_doubling: ClassVar[int] = 1000
    __no_type_check__: ClassVar[bool] = True

    _batch_of, save, n_parameters_ = Estimator._batch_of, Estimator.save, Estimator.n_parameters_
    __sklearn_is_fitted__ = Estimator.__sklearn_is_fitted__

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on images X and their classes y."""
        return self._fit(X, y, sample_weight)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Train one epoch on these images, part of a stream, at the full learning rate; the first call needs all `classes`."""
        if classes is None and not hasattr(self, "network_"):
            raise ValueError("classes=None: the first call of partial_fit needs all classes, such as classes=np.unique(y).")
        return self._fit(X, y, sample_weight, classes=classes, is_stream=True)

    def _fit(self, X: Any, y: Any, sample_weight: Any, *, classes: Any = None, is_stream: bool = False) -> Self:
        check_parameters(self)
        before = dict(vars(self))
        try:
            self._train(self._encoded(X, y, sample_weight, classes, is_stream=is_stream))
        except BaseException as error:
            self.__dict__ = before
            if isinstance(error, DivergedError):
                stays = "is as it was before" if hasattr(self, "network_") else "stays unfitted"
                error.args = (f"{error} The {type(self).__name__} {stays}.",)
            raise
        return self

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

    def _recipe(self, table: EncodedImages, platform: str) -> Recipe:
        augment = self.augment
        if isinstance(augment, str):
            augment = ("crop",) if augment == "auto" and min(table.x.shape[1:3]) >= 2 * LEAST_POSITIONS else ()
        return Recipe(
            objective=table.targets.objective,
            batch_size=self._batch_of(len(table.x)),
            depth_decay=1.0,
            b2=B2,
            select="cost",
            price=self.price,
            settle=True,
            compile_fast=True,
            schedule=PLATEAU if table.is_stream else "one-cycle",
            weight_decay=WEIGHT_DECAY,
            augment=tuple(augment),
            precision="float32" if platform == "cpu" else "bfloat16",
        )

    def _train(self, table: EncodedImages) -> None:
        keep_programs()
        name, n, targets = type(self).__name__, len(table.x), table.targets
        batch, continues = self._batch_of(n), table.is_stream and hasattr(self, "network_")
        epochs = 1 if table.is_stream else max(EPOCHS, -(-STEPS // -(-n // batch)))
        epochs = epochs if isinstance(self.epochs, str) or table.is_stream else int(self.epochs)
        options = {"callbacks": self.callbacks, "verbose": self.verbose, "before": self.n_iter_ if continues else 0}
        with on_device(self.device), watchers(name, epochs, targets.objective, **options) as (watch, say):
            state = continued(self._state_) if continues else self._new_state(table)
            recipe = self._recipe(table, next(iter(state.epoch.devices())).platform)
            knobs = Knobs(
                learning_rate=RATE if isinstance(self.learning_rate, str) else float(self.learning_rate),
                penalty=PENALTY if isinstance(self.penalty, str) else float(self.penalty),
                l2=0.0,
                budget=None if self.budget is None else float(self.budget),
                epochs=None if table.is_stream else epochs,
            )
            prepared = prepare(_padded(table), state.network, recipe.task)
            with checkpointing(self, table, watch, say) as watcher:
                run = fit(of_state(state, recipe, knobs), prepared, max_epochs=epochs, watch=watcher)
            self._store(run, table, continues=continues)
            last = {key: values[-1] for key, values in run.history.items()}
            say(f"{name}: {many(self.n_iter_, 'epoch')}, loss {last['loss']:.4g}; {self.n_parameters_:,} parameters")
        objective: Any = targets.objective
        constant = objective.constant_error(table.y, table.weight)
        if not table.is_stream and last["error"] > FAILED * constant > 0:
            advice = "lower learning_rate, or check the scale of the images"
            text = f"The training diverged: its error is {last['error']:.3g}, that of a constant {constant:.3g}; {advice}."
            warnings.warn(text, GrowthWarning, stacklevel=4)

    def _new_state(self, table: EncodedImages) -> TrainState:
        shape = table.x.shape[1:]
        mean, scale = pixel_scaling(table.x)
        channels = stages_of(shape) if isinstance(self.channels, str) else self.channels
        channels = tuple(channels) if isinstance(channels, tuple | list) else (channels,)
        options = {"body": self.body, "max_width": channels, "depth": self.blocks, "activation": self.activation}
        options |= {"pixel_mean": mean, "pixel_scale": scale}
        return initial_state(np.uint32(table.seed), shape, table.targets.n_out, tuple(sorted(options.items())))

    def _store(self, run: Run, table: EncodedImages, *, continues: bool) -> None:
        """Set all fitted attributes: those of the last epoch of a stream, else of the best one."""
        history = {name: run.history[name] for name in HISTORY}
        if continues:
            history = {name: np.concatenate([self.history_[name], new]) for name, new in history.items()}
        self.history_: dict[str, np.ndarray] = history
        self.n_iter_ = len(self.history_["loss"])
        at = -1 if table.is_stream else int(run.best_epoch) - 1
        self.soft_size_, self.hard_size_ = float(history["soft_size"][at]), int(history["hard_size"][at])
        self.network_ = run.last if table.is_stream else run.best
        self._state_, self._targets_ = fit_to_recipe(run.state, Recipe()), table.targets
        self.classes_, self.image_shape_, self.takes_bytes_ = (
            table.targets.classes,
            table.x.shape[1:],
            table.x.dtype == np.uint8,
        )
        self._compact_ = raw_pixels(as_numpy(compact(self.network_)), 255.0 if self.takes_bytes_ else 1.0)

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


def stages_of(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the most channels of each stage for images of a shape.

    >>> stages_of((32, 32, 3)), stages_of((8, 8)), stages_of((1, 20))
    ((16, 32, 64), (8, 16), (8,))
    """
    side = min(shape[:2])
    halvings = min(2, int(np.log2(max(1, side / LEAST_POSITIONS))))
    return tuple(FIRST_CHANNELS[side >= SMALL] * 2**stage for stage in range(1 + halvings))


def is_bytes(images: np.ndarray) -> bool:
    return images.dtype == np.uint8


def raw_pixels(network: CompactNetwork, unit: float) -> CompactNetwork:
    """Return the network of pixels in units of 1 / `unit` as one of pixels as they are."""
    first, *rest = network.layers
    assert isinstance(first, Pixels)
    mean, scale = (tuple(unit * value for value in values) for values in (first.mean, first.scale))
    return eqx.tree_at(lambda n: n.layers, network, (Pixels(mean, scale, first.input_shape), *rest))


def _padded(table: EncodedImages) -> Data:
    """Return the images as those of other fits may be, too: padded to shared numbers of rows, with weights of 0."""
    more = padded_size(len(table.x), ROWS) - len(table.x)
    y = table.y if table.targets.objective.targets_are_classes else table.y.astype(np.float32)
    x, y, weight = (np.pad(a, [(0, more)] + [(0, 0)] * (a.ndim - 1)) for a in (table.x, y, table.weight))
    return Data(x, y, weight=weight)


# It runs once: compiling it without optimizations takes half the time.
@partial(jax.jit, static_argnums=(1, 2, 3), compiler_options={"xla_backend_optimization_level": 0})
def initial_state(seed: Any, shape: tuple[int, ...], n_out: int, options: tuple[Any, ...]) -> TrainState:
    """Return the state before the first epoch."""
    keys = jax.random.split(jax.random.key(seed))
    return start(Network.create(input_shape=shape, n_out=n_out, key=keys[0], **dict(options)), keys[1], Recipe())


@jax.jit
def _apply(network: CompactNetwork, x: Any) -> Any:
    return jax.vmap(network)(x.astype(jnp.result_type(float)))
