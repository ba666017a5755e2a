"""What all estimators share: how a table of numbers and targets becomes a trained network, and predictions.

    fit: check → encode y → standardize → fill up to shared shapes → train → cut back → compact → say what grew

Parameters are the fields of a dataclass, stored as given and looked at in `fit`. Everything learned ends in an underscore.
Only this package imports scikit-learn.
"""

import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from meristem.check import check_number, check_size
from meristem.compact import CompactNetwork, compact
from meristem.complexity import hard_size, soft_size
from meristem.estimators import buckets
from meristem.estimators.advice import GrowthWarning, advice
from meristem.estimators.forward import as_numpy, outputs
from meristem.estimators.interrupt import one_interrupt
from meristem.estimators.scaling import Scaling
from meristem.nn import Network
from meristem.progress import Progress
from meristem.train import schedule
from meristem.train.loop import DivergedError, Fit, fit
from meristem.train.samples import Data
from meristem.train.step import EpochInfo, Recipe, TrainState, start

SCALES = (1.0, 0.3, 0.1)
Callback = Callable[[dict[str, float]], bool | None]


@dataclass(eq=False, repr=False, kw_only=True)
class Growing(BaseEstimator):
    """An estimator whose network finds its own size; see docs/estimators.md for every parameter."""

    penalty: float = 1e-3
    width: int = 64
    learning_rate: float = 3e-3
    batch_size: int = 32
    l2: float = 1e-5
    input_dropout: float | str = "auto"
    depth_decay: float = 0.75
    activation: str = "relu"
    max_epochs: int = 200
    patience: int = 10
    early_stopping: bool = False
    validation_fraction: float = 0.1
    standardize: bool = True
    warm_start: bool = False
    random_state: Any = None
    device: str | None = None
    callbacks: Callback | Sequence[Callback] | None = None
    verbose: bool | int = False

    _body: ClassVar[str]

    # What classifiers and regressors differ in ------------------------------------------------------------------------------

    def _targets(self, y: Any) -> Any:
        """What y means."""
        raise NotImplementedError

    def _split(self, indices: np.ndarray, y: np.ndarray, seed: int) -> list[np.ndarray]:
        """Training and validation rows."""
        return train_test_split(indices, test_size=self.validation_fraction, random_state=seed)

    def _sample_weight(self, y: Any, weight: np.ndarray) -> np.ndarray:
        return weight

    def _body_options(self) -> dict[str, Any]:
        """Options of the network's body."""
        return {"activation": self.activation}

    def _max_leaves(self) -> int | None:
        return None

    # fit --------------------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, validation: tuple[Any, Any] | None = None) -> Self:
        """Train on X [samples, features] and y; `validation=(X, y)` is a validation set of one's own.

        With one, or with `early_stopping`, the model of the best validation loss is kept, else that of the best training loss.
        """
        self._check_parameters()
        goes_on = self.warm_start and hasattr(self, "network_")
        X, y = self._validated(X, y, reset=not goes_on)
        if not goes_on:
            self._forget()
            self._targets_ = self._targets(y)
        weight = self._sample_weight(y, _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True))
        if not (weight > 0).any():
            raise ValueError("sample_weight is 0 for every sample; at least one must count.")
        encoded = self._targets_.encode(y)
        seed = self._seed()
        train, dev = self._parts(X, encoded, weight, validation, seed)
        if not goes_on:
            self._scaling_ = Scaling.of(train[0], train[2]) if self.standardize else Scaling.none(X.shape[1])
        begin = _fresh(self._state_) if goes_on else None
        self._train(train, dev, seed, self.max_epochs, begin, self._recipe(self.patience))
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """One epoch over these rows; the first call decides what y means and how features are scaled."""
        self._check_parameters()
        is_first = not hasattr(self, "network_")
        X, y = self._validated(X, y, reset=is_first)
        if is_first:
            self._forget()
            self._targets_ = self._targets(y if classes is None else np.asarray(classes))
            self._scaling_ = Scaling.of(X) if self.standardize else Scaling.none(X.shape[1])
        elif classes is not None and not np.array_equal(np.asarray(classes), self._targets_.classes):
            raise ValueError(
                f"classes={classes!r} is not the same as on the first call of partial_fit: {self._targets_.classes!r}."
            )
        weight = self._sample_weight(y, _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True))
        begin = None if is_first else _fresh(self._state_)
        rows = X, self._targets_.encode(y), weight
        self._train(rows, None, self._seed(), 1, begin, self._recipe(patience=2**30), keeps_last=True)
        return self

    def _validated(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:
        return validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], multi_output=True, reset=reset)

    def _forget(self) -> None:
        for name in [name for name in vars(self) if name.endswith("_") and name not in ("n_features_in_", "feature_names_in_")]:
            delattr(self, name)

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _parts(self, X: Any, y: np.ndarray, weight: np.ndarray, validation: Any, seed: int) -> tuple[Any, Any]:
        """(x, y, weight) to learn from, and (x, y, weight) to choose by or None."""
        if validation is not None:
            dev_x, dev_y = self._validated(*validation, reset=False)
            return (X, y, weight), (dev_x, self._targets_.encode(dev_y), np.ones(dev_x.shape[0]))
        if not self.early_stopping:
            return (X, y, weight), None
        train, dev = self._split(np.arange(X.shape[0]), y, seed)
        return tuple((X[rows], y[rows], weight[rows]) for rows in (train, dev))  # type: ignore[return-value]

    def _recipe(self, patience: int) -> Recipe:
        dropout = self.input_dropout
        if dropout == "auto":
            dropout = 0.25 if self.n_features_in_ >= 16 else 0.0
        return Recipe(
            objective=self._targets_.objective,
            batch_size=self.batch_size,
            l2=float(self.l2),
            input_dropout=float(dropout),
            depth_decay=float(self.depth_decay),
            watch="loss",
            select="loss",
            patience=patience,
            scales=SCALES,
        )

    def _train(
        self,
        train: tuple[Any, np.ndarray, np.ndarray],
        dev: tuple[Any, np.ndarray, np.ndarray] | None,
        seed: int,
        epochs: int,
        begin: TrainState | None,
        recipe: Recipe,
        *,
        keeps_last: bool = False,
    ) -> None:
        with jax.default_device(jax.devices(self.device)[0]) if self.device else nullcontext():
            n_in, n_out, is_logit = self.n_features_in_, self._targets_.n_out, recipe.objective != "squared"
            keys = jax.random.split(jax.random.key(seed), 2)
            if begin is None:
                network = Network.create(self._body, n_in, n_out, width=self.width, key=keys[0], **self._body_options())
                shapes = buckets.bucket(n_in), n_out if recipe.objective == "binary" else buckets.bucket(n_out)
                begin = start(buckets.widen(network, *shapes, is_logit=is_logit), recipe, key=keys[1])
            data = Data(*self._filled(train, begin.network)[:2])
            if dev is not None:
                x, y, w = self._filled(dev, begin.network)
                data = data._replace(dev_x=x, dev_y=y, dev_weight=w)
            data = data._replace(weight=self._filled_weight(train))
            result = self._run(begin, data, epochs, recipe)
            self._state_ = result.state
            self._learn(result, n_in, n_out, train, recipe, keeps_last=keeps_last)

    def _filled(self, rows: tuple[Any, np.ndarray, np.ndarray], network: Network) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows in the shape that many data sets share."""
        x, y, _ = rows
        n, n_out = buckets.bucket(len(y)), network.head.weight.shape[0]
        x = buckets.filled(self._scaling_(x), n, network.embed.weight.shape[1])
        y = buckets.filled(y, n, n_out) if y.ndim == 2 else buckets.filled(y, n)
        return x, y, self._filled_weight(rows)

    def _filled_weight(self, rows: tuple[Any, np.ndarray, np.ndarray]) -> np.ndarray:
        return buckets.filled(rows[2], buckets.bucket(len(rows[2])))

    def _run(self, begin: TrainState, data: Data, epochs: int, recipe: Recipe) -> Fit:
        """Training, watched: history for callbacks, progress for people, one Ctrl-C to end it."""
        callbacks = [self.callbacks] if callable(self.callbacks) else list(self.callbacks or [])
        before = len(self.history_["loss"]) if hasattr(self, "history_") else 0
        progress = Progress() if self.verbose else None
        with one_interrupt() as interrupt, progress or nullcontext():
            group = progress.group(type(self).__name__, "fit", self.learning_rate, SCALES, epochs) if progress else None
            if progress:
                progress.plan({(type(self).__name__, "fit"): epochs})
            with group or nullcontext() as shown:

                def watch(epoch: int, info: EpochInfo) -> bool:
                    if shown is not None:
                        shown.watch(0, epoch, info)
                    told = self._told(before + epoch, info)
                    stops = [bool(callback(told)) for callback in callbacks]
                    return interrupt.asked or any(stops)

                try:
                    return fit(
                        begin.network,
                        data,
                        learning_rate=float(self.learning_rate),
                        penalty=float(self.penalty),
                        key=begin.key,
                        recipe=recipe,
                        max_epochs=epochs,
                        max_capacity=self._max_leaves() or 1,
                        start=begin,
                        watch=watch,
                    )
                except DivergedError as error:
                    warnings.warn(str(error), GrowthWarning, stacklevel=4)
                    return error.fit

    def _told(self, epoch: int, info: EpochInfo) -> dict[str, float]:
        names = ["loss", "error", "dev_loss", "dev_error"]
        rate = float(self.learning_rate) * SCALES[min(int(info.stage), len(SCALES) - 1)]
        sizes = {"soft_size": float(info.layer_sizes.sum()), "hard_size": int(info.hard_size)}
        return {"epoch": epoch, **{name: float(getattr(info, name)) for name in names}, **sizes, "rate": rate}

    def _learn(
        self, result: Fit, n_in: int, n_out: int, train: tuple[Any, np.ndarray, np.ndarray], recipe: Recipe, *, keeps_last: bool
    ) -> None:
        """Everything that ends in an underscore."""
        history = {
            name: result.history[name]
            for name in ("loss", "error", "dev_loss", "dev_error", "layer_sizes", "soft_size", "hard_size", "stage")
        }
        history["rate"] = float(self.learning_rate) * np.asarray(SCALES)[np.minimum(history["stage"], len(SCALES) - 1)]
        earlier = getattr(self, "history_", None)
        before = 0 if earlier is None else len(earlier["loss"])
        self.history_ = history if earlier is None else {k: np.concatenate([earlier[k], v]) for k, v in history.items()}
        best = int(result.best_epoch)
        self.n_iter_ = before + int(result.epochs)
        self.best_epoch_ = before + (int(result.epochs) if keeps_last else best)
        kept = result.last if keeps_last or not best else result.best
        self.network_ = buckets.narrow(kept, n_in, n_out)
        self._compact_ = as_numpy(compact(self.network_))
        sample = jnp.asarray(self._scaling_(train[0][:1000]))
        self.soft_size_, self.hard_size_ = float(soft_size(self.network_, sample)), int(hard_size(self.network_))
        self.n_live_units_ = sum(sum(layer.units) for layer in self._compact_.layers)
        at = (int(result.epochs) if keeps_last else max(best, 1)) - 1
        text = advice(
            self.network_,
            float(result.history["error"][at]),
            _constant_error(train[1], train[2], recipe.objective),
            waited=int(result.history["waited"][-1]),
            max_leaves=self._max_leaves(),
        )
        if text and not keeps_last:
            warnings.warn(text, GrowthWarning, stacklevel=5)

    # predict ----------------------------------------------------------------------------------------------------------------

    def _outputs(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        return outputs(self._compact_, self._scaling_(X))

    def predict(self, X: Any) -> np.ndarray:
        """What y is expected to be."""
        return self._targets_.decode(self._outputs(X))

    def compact(self) -> CompactNetwork:
        """The network with nothing in it but what lives; it takes standardized features."""
        check_is_fitted(self)
        return self._compact_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "network_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.non_deterministic = False
        tags.target_tags.multi_output = True
        return tags

    def _check_parameters(self) -> None:
        for name in ("width", "batch_size", "max_epochs", "patience"):
            check_size(name, getattr(self, name))
        check_number("penalty", self.penalty, "at least 0", lambda v: 0 <= v < np.inf)
        check_number("learning_rate", self.learning_rate, "above 0", lambda v: 0 < v < np.inf)
        check_number("l2", self.l2, "at least 0", lambda v: 0 <= v < np.inf)
        check_number("depth_decay", self.depth_decay, "above 0 and at most 1", lambda v: 0 < v <= 1)
        check_number("validation_fraction", self.validation_fraction, "between 0 and 1", lambda v: 0 < v < 1)
        if self.input_dropout != "auto":
            check_number("input_dropout", self.input_dropout, "at least 0 and below 1, or 'auto'", lambda v: 0 <= v < 1)


def _fresh(state: TrainState) -> TrainState:
    """The same network and moments; the schedule and the search for the best begin anew."""
    inf = jnp.full_like(state.best[0], jnp.inf)
    return eqx.tree_at(
        lambda s: (s.plateau, s.best, s.diverged), state, (schedule.start(), (inf, inf), jnp.zeros_like(state.diverged))
    )


def _constant_error(y: np.ndarray, weight: np.ndarray, objective: str) -> float:
    """The error of the best constant prediction, as training measures it."""
    share = weight / weight.sum()
    if objective == "squared":
        return float((share[:, None] * (y - share @ y) ** 2).sum())
    if objective == "multilabel":
        positive = share @ y
        return float(np.minimum(positive, 1 - positive).sum())
    return float(1 - np.bincount(y.astype(int), share).max())
