"""What all estimators share: how a table of numbers and targets becomes a trained network, and predictions.

    fit: check → encode y → standardize → fill up to shared shapes → train → cut back → compact → say what grew

Parameters are the fields of a dataclass, stored as given and looked at in `fit`. Everything learned ends in an underscore
and is set at the end: a fit that fails or is given up leaves what was there. Only this package imports scikit-learn.
"""

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import train_test_split
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from meristem.compact import CompactNetwork, compact
from meristem.estimators import buckets
from meristem.estimators.advice import GrowthWarning, advice
from meristem.estimators.device import on
from meristem.compact.inference import as_numpy
from meristem.estimators.parameters import callbacks_of, check_parameters, seed_of
from meristem.estimators.predictability import predictability
from meristem.estimators.prior import between
from meristem.targets.scaling import Scaling
from meristem.estimators.shipping import Shipping
from meristem.targets.targets import Targets
from meristem.estimators.training import Rows, Trained, resumed, train
from meristem.estimators.watching import SCALES, Callback, watched
from meristem.train.step import Recipe, TrainState


@dataclass(eq=False, repr=False, kw_only=True)
class Growing(Shipping, BaseEstimator):
    """An estimator whose network finds its own size; see docs/estimators.md for every parameter."""

    penalty: float = 1e-3
    width: int = 64
    learning_rate: float = 3e-3
    batch_size: int = 32
    l2: float | str = "auto"
    input_dropout: float | str = "auto"
    depth_decay: float = 0.75
    activation: str = "relu"
    max_epochs: int = 200
    patience: int = 10
    early_stopping: bool = False
    validation_fraction: float = 0.1
    standardize: bool = True
    warm_start: bool = False
    random_state: int | None = None
    device: str | None = None
    callbacks: Callback | list[Callback] | None = None
    verbose: bool = False

    _body: ClassVar[str]
    _firmness: ClassVar[float] = 1.0  # of the prior on noisy classes
    # A constructor stores what it is given, `fit` says whether it is any good: the suite's type checker has to wait, too.
    __no_type_check__: ClassVar[bool] = True

    # What bodies, classifiers and regressors differ in ----------------------------------------------------------------------

    def _body_options(self) -> dict[str, Any]:
        """Options of the network's body."""
        return {"activation": self.activation}

    def _max_leaves(self) -> int:
        return 1

    def _auto_dropout(self) -> float:
        """The share of inputs that is dropped, where no one says."""
        raise NotImplementedError

    def _prior(self, rows: int) -> tuple[float, float]:
        """The price of large weights, where no one says: on clear data and on noisy ones."""
        raise NotImplementedError

    def _l2(self, learned: dict[str, Any]) -> float:
        if not isinstance(self.l2, str):
            return float(self.l2)
        return between(*self._prior(learned["n_samples_seen_"]), learned["predictability_"])

    def _look_at(self, rows: Rows, targets: Targets, *, goes_on: bool, is_stream: bool) -> dict[str, Any]:
        """What the rows say before anything is trained: fitted attributes by name."""
        before = self.n_samples_seen_ if is_stream and goes_on else 0
        learned: dict[str, Any] = {"n_samples_seen_": before + int((rows.weight > 0).sum())}
        if not isinstance(self.l2, str):
            return learned
        is_known = goes_on and hasattr(self, "predictability_")  # the first rows decide; the first files do not say
        told = self.predictability_ if is_known else predictability(rows.x, targets.columns(rows.y), rows.weight)
        return learned | {"predictability_": told}

    def _targets(self, y: Any, weight: np.ndarray) -> Targets:
        """What y means."""
        raise NotImplementedError

    def _targets_with_more(self, y: Any, weight: np.ndarray) -> Targets:
        """What y means after more rows of a stream."""
        return self._targets_

    def _split(self, rows: np.ndarray, y: np.ndarray, seed: int) -> list[np.ndarray]:
        """Training and validation rows."""
        return train_test_split(rows, test_size=self.validation_fraction, random_state=seed)

    def _weights(self, y: Any, weight: np.ndarray) -> np.ndarray:
        """How much each row counts."""
        return weight

    # fit --------------------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, validation: Any = None) -> Self:
        """Train on X [samples, features] and y; `validation=(X, y)` is a validation set of one's own.

        With one, or with `early_stopping`, the model of the best validation loss is kept, else that of the best training loss.
        """
        check_parameters(self.get_params(deep=False))
        goes_on = self.warm_start and hasattr(self, "network_")
        X, y, weight = self._validated(X, y, sample_weight, reset=not goes_on)
        targets = self._targets_ if goes_on else self._targets(y, weight)
        seed = seed_of(self.random_state)
        rows, dev = self._parts(Rows(X, targets.encode(y), weight), targets, validation, seed)
        scaling = self._scaling_ if goes_on else self._scaling(rows)
        self._train(rows, dev, targets, scaling, seed, goes_on=goes_on)
        return self

    def _partial_fit(self, X: Any, y: Any, sample_weight: Any, classes: Any = None) -> Self:
        """One epoch over these rows."""
        check_parameters(self.get_params(deep=False))
        goes_on = hasattr(self, "network_")
        X, y, weight = self._validated(X, y, sample_weight, reset=not goes_on)
        meaning = y if classes is None else classes
        targets = self._targets_with_more(y, weight) if goes_on else self._targets(meaning, weight)
        rows = Rows(X, targets.encode(y), weight)
        scaling = self._scaling_.with_more(X, weight) if goes_on else self._scaling(rows)
        self._train(rows, None, targets, scaling, seed_of(self.random_state), goes_on=goes_on, is_stream=True)
        return self

    def _validated(self, X: Any, y: Any, sample_weight: Any = None, *, reset: bool) -> tuple[Any, Any, np.ndarray]:
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], multi_output=True, reset=reset)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        y = self._validated_target(y)
        weight = self._weights(y, weight)
        if not (weight > 0).any():
            raise ValueError("sample_weight, times class_weight, is 0 for every sample; at least one must count.")
        return X, y, weight / weight[weight > 0].mean()  # only their proportions count: they sum to the rows that do

    def _validated_target(self, y: Any) -> np.ndarray:
        return np.asarray(y)

    def _scaling(self, rows: Rows) -> Scaling:
        return Scaling.of(rows.x, rows.weight) if self.standardize else Scaling.none(rows.x.shape[1])

    def _parts(self, rows: Rows, targets: Targets, validation: Any, seed: int) -> tuple[Rows, Rows | None]:
        """What to learn from, and what to choose by."""
        if validation is not None:
            if not isinstance(validation, tuple | list) or len(validation) != 2:
                raise ValueError(f"validation is a {type(validation).__name__}; it must be a pair (X, y).")
            try:
                X, y, weight = self._validated(*validation, reset=False)
                return rows, Rows(X, targets.encode(y), weight)
            except ValueError as error:
                raise ValueError(f"validation=(X, y) does not fit: {error}") from error
        if not self.early_stopping:
            return rows, None
        counted = np.flatnonzero(rows.weight > 0)
        learned, chosen = self._split(counted, rows.y[counted], seed)
        return rows.at(learned), rows.at(chosen)

    def _recipe(self, objective: str) -> Recipe:
        dropout = self._auto_dropout() if isinstance(self.input_dropout, str) else self.input_dropout
        return Recipe(
            objective=buckets.shared(objective),
            batch_size=int(self.batch_size),
            input_dropout=float(dropout),
            depth_decay=float(self.depth_decay),
            watch="loss",
            select="loss",
            patience=int(self.patience),
            scales=SCALES,
        )

    def _begin(self, targets: Targets, seed: int, *, goes_on: bool) -> TrainState:
        if goes_on:
            self._check_unchanged()
            return resumed(self._state_)
        return buckets.begin(
            self._body,
            self.n_features_in_,
            targets.n_out,
            width=int(self.width),
            options=self._body_options(),
            objective=targets.objective,
            seed=seed,
        )

    def _check_unchanged(self) -> None:
        """A network that goes on learning is as wide and as deep as it was made."""
        body: Any = self.network_.body
        made = {"width": body.bias.shape[1], "depth": body.bias.shape[0], "activation": body.activation}
        for name, value in {"width": int(self.width), **self._body_options()}.items():
            if name in made and value != made[name]:
                raise ValueError(
                    f"{name}={value!r}, but the network that is to learn more was made with {made[name]!r}; "
                    "set it back, or begin anew: clone(estimator).fit(X, y)."
                )

    def _train(
        self,
        rows: Rows,
        dev: Rows | None,
        targets: Targets,
        scaling: Scaling,
        seed: int,
        *,
        goes_on: bool,
        is_stream: bool = False,
    ) -> None:
        epochs, rate = 1 if is_stream else int(self.max_epochs), float(self.learning_rate)
        learned = self._look_at(rows, targets, goes_on=goes_on, is_stream=is_stream)
        before = self.n_iter_ if goes_on else 0
        look = watched(
            type(self).__name__,
            epochs,
            rate,
            callbacks=callbacks_of(self.callbacks),
            verbose=bool(self.verbose),
            before=before,
        )
        with on(self.device), look as (watch, pulse):
            trained = train(
                rows,
                dev,
                scaling,
                self._begin(targets, seed, goes_on=goes_on),
                self._recipe(targets.objective),
                learning_rate=rate,
                penalty=float(self.penalty),
                l2=self._l2(learned),
                max_epochs=epochs,
                max_leaves=self._max_leaves(),
                n_out=targets.n_out,
                keeps_last=is_stream,
                watch=watch,
                pulse=pulse,
            )
            small = as_numpy(compact(trained.network))
        self._keep(trained, small, targets, scaling, learned, goes_on=goes_on)
        if not is_stream:
            self._advise(trained, rows, targets)

    def _keep(
        self,
        trained: Trained,
        small: CompactNetwork,
        targets: Any,
        scaling: Scaling,
        learned: dict[str, Any],
        *,
        goes_on: bool,
    ) -> None:
        """Everything that ends in an underscore."""
        before = self.n_iter_ if goes_on else 0
        history, at = trained.history, trained.kept - 1
        self.soft_size_, self.hard_size_ = float(history["soft_size"][at]), int(history["hard_size"][at])
        self.n_iter_: int = before + len(history["loss"])
        self.best_epoch_ = before + trained.kept
        for name, value in learned.items():
            setattr(self, name, value)
        self.history_: dict[str, np.ndarray] = (
            {k: np.concatenate([self.history_[k], v]) for k, v in history.items()} if goes_on else history
        )
        self.network_, self._compact_ = trained.network, small
        self.n_live_units_ = sum(sum(layer.units) for layer in small.layers)
        self._targets_, self._scaling_, self._state_ = targets, scaling, trained.state

    def _advise(self, trained: Trained, rows: Rows, targets: Targets) -> None:
        text = advice(
            trained.network,
            float(trained.history["error"][trained.kept - 1]),
            targets.constant_error(rows.y, rows.weight),
            max_leaves=self._max_leaves(),
            wanted_more=trained.wanted_more,
        )
        if text:
            warnings.warn(text, GrowthWarning, stacklevel=4)

    # predict ----------------------------------------------------------------------------------------------------------------

    def _scaled(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        return self._scaling_(X)

    def compact(self) -> CompactNetwork:
        """The network with nothing in it but what lives; it takes standardized features."""
        check_is_fitted(self)
        return compact(self.network_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "network_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags
