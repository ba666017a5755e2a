"""A classifier of images: a convolutional network that finds its channels and blocks, with scikit-learn's fit and predict.

    fit: check → images → pad rows to shared shapes → train with a schedule of known length → compact

A fit takes `epochs` passes: the learning rate rises and falls in one cycle, gates close from two fifths on and stay closed in
the last fifth (train/schedules.py). The weights decay, steps are augmented. Predictions are those of the compact network, which
takes pixels as they are. Fitted attributes are set at the end: a fit that fails leaves the estimator as it was.
"""

import warnings
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import jax
import numpy as np

from meristem.cache import keep_programs
from meristem.check import many
from meristem.estimators.base import Estimator
from meristem.estimators.documentation import registered
from meristem.estimators.encoded_table import padded_size
from meristem.estimators.fit_context import checkpointing, on_device, unchanged_by_errors, watchers
from meristem.estimators.fit_procedure import FAILED, GrowthWarning
from meristem.estimators.flash_budget import FlashBudget
from meristem.estimators.image_base import ImageClassifierBase
from meristem.estimators.image_input import EncodedImages, compact_on_pixels, pixel_scaling
from meristem.estimators.parameters import check_parameters
from meristem.estimators.training_settings import continued
from meristem.nn import Network
from meristem.train.callbacks import WatcherGroup
from meristem.train.hyperparameters import Knobs, Recipe
from meristem.train.loop import DivergedError, fit
from meristem.train.run import Run, of_state
from meristem.train.schedules import PLATEAU
from meristem.train.train_state import TrainState, fit_to_recipe, start
from meristem.train.training_data import Data, Prepared, prepare

HISTORY = ["loss", "error", "layer_sizes", "soft_size", "hard_size", "rate"]
PENALTY = 3e-5
EPOCHS, STEPS = 30, 2150  # of a training: passes over the images, or steps, whichever is longer
WEIGHT_DECAY, B2, SMOOTHING = 0.02, 0.99, 0.1
FIRST_CHANNELS = 12, 16  # the most of the first stage, of small images and of others; each further stage has twice as many
SMALL, LEAST_POSITIONS = 16, 4  # the side of a small image; positions that a stage keeps, of up to three
RATE = 1e-2  # at the top of the cycle
ROWS = 256  # the smallest padded number of rows


@registered
class TunnelImageClassifier(ImageClassifierBase):
    """A classifier of images [n, height, width] or [n, height, width, channels], of bytes or floats, of any size."""

    penalty: float | str = "auto"

    _rows_per_doubling: ClassVar[int] = 1000
    _batch_of = Estimator._batch_of

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
        with unchanged_by_errors(self):
            self._train(self._encoded(X, y, sample_weight, classes, is_stream=is_stream))
        return self

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
            smoothing=SMOOTHING,
            augment=tuple(augment),
            precision="float32" if platform == "cpu" else "bfloat16",
        )

    def _epochs_of(self, n: int) -> int:
        """Return the epochs of a training on n images."""
        if not isinstance(self.epochs, str):
            return int(self.epochs)
        return max(EPOCHS, -(-STEPS // -(-n // self._batch_of(n))))

    def _knobs(self, epochs: int | None) -> Knobs:
        return Knobs(
            learning_rate=RATE if isinstance(self.learning_rate, str) else float(self.learning_rate),
            penalty=PENALTY if isinstance(self.penalty, str) else float(self.penalty),
            l2=0.0,
            budget=None if self.budget is None or isinstance(self.budget, str) else float(self.budget),
            epochs=epochs,
        )

    def _train(self, table: EncodedImages) -> None:
        keep_programs()
        name, n, targets = type(self).__name__, len(table.x), table.targets
        continues = table.is_stream and hasattr(self, "network_")
        epochs = 1 if table.is_stream else self._epochs_of(n)
        options = {"callbacks": self.callbacks, "verbose": self.verbose, "before": self.n_iter_ if continues else 0}
        with on_device(self.device), watchers(name, epochs, targets.objective, **options) as (watch, say):
            state = continued(self._state_) if continues else self._new_state(table)
            recipe = self._recipe(table, next(iter(state.epoch.devices())).platform)
            knobs = self._knobs(None if table.is_stream else epochs)
            flash = FlashBudget.of(self, table, state.network, recipe)
            knobs = knobs if flash is None else knobs._replace(budget=flash.first())
            prepared = prepare(padded(table), state.network, recipe.task)
            with checkpointing(self, table, watch, say) as watcher:
                run = fit(begun := of_state(state, recipe, knobs), prepared, max_epochs=epochs, watch=watcher)
                if flash is not None:
                    run = flash.limited([run], prepared, partial(smaller, begun, prepared, epochs, watcher))[0]
            self._store(run, table, continues=continues)
            last = {key: values[-1] for key, values in run.history.items()}
            say(f"{name}: {many(self.n_iter_, 'epoch')}, loss {last['loss']:.4g}; {self.n_parameters_:,} parameters")
        if not table.is_stream:
            warn_of_failure(run, table, stacklevel=5)

    def _new_state(self, table: EncodedImages) -> TrainState:
        shape = table.x.shape[1:]
        mean, scale = pixel_scaling(table.x)
        channels = stages_of(shape) if isinstance(self.channels, str) else self.channels
        channels = tuple(channels) if isinstance(channels, tuple | list) else (channels,)
        options = {"body": self.body, "max_width": channels, "depth": self.blocks, "activation": self.activation}
        options |= {"pixel_mean": mean, "pixel_scale": scale, "normalize": True}
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
        self._compact_ = compact_on_pixels(self.network_, takes_bytes=self.takes_bytes_)


def smaller(begun: Run, prepared: Prepared, epochs: int, watcher: WatcherGroup, cost: float, number: int) -> list[Run] | None:
    """Return the run of a training anew to a network that costs no more, or None where it diverged, or there is no time."""
    if watcher.over():
        return None
    begun = replace(begun, knobs=begun.knobs._replace(budget=cost))
    with suppress(DivergedError):
        run = fit(begun, prepared, max_epochs=epochs, watch=watcher.part(f"smaller-{number}"))
        return None if watcher.over() else [run]
    return None


def warn_of_failure(run: Run, table: EncodedImages, stacklevel: int) -> None:
    """Warn where the last error is far above that of a constant prediction."""
    objective: Any = table.targets.objective
    last, constant = run.history["error"][-1], objective.constant_error(table.y, table.weight)
    if last > FAILED * constant > 0:
        advice = "lower learning_rate, or check the scale of the images"
        text = f"The training diverged: its error is {last:.3g}, that of a constant {constant:.3g}; {advice}."
        warnings.warn(text, GrowthWarning, stacklevel=stacklevel)


def stages_of(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the most channels of each stage for images of a shape.

    >>> stages_of((32, 32, 3)), stages_of((8, 8)), stages_of((1, 20))
    ((16, 32, 64), (12, 24), (12,))
    """
    side = min(shape[:2])
    halvings = min(2, int(np.log2(max(1, side / LEAST_POSITIONS))))
    return tuple(FIRST_CHANNELS[side >= SMALL] * 2**stage for stage in range(1 + halvings))


def is_bytes(images: np.ndarray) -> bool:
    return images.dtype == np.uint8


def padded(table: EncodedImages) -> Data:
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
