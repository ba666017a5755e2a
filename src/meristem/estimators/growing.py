"""Fit and predict of all estimators with one network.

    fit: check → encode y → standardize → pad to shared shapes → train → remove the padding → compact → warn

Fitted attributes are set at the end: a fit that fails or is aborted leaves the estimator as it was.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Self

import jax
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import check_is_fitted

from meristem.cache import keep_programs
from meristem.check import many
from meristem.compact import CompactNetwork, compact
from meristem.compact.inference import Predictor, as_numpy
from meristem.estimators.base import HELD_OUT_PATIENCE, PATIENCE
from meristem.estimators.fit_context import checkpointing, on_device, watchers
from meristem.estimators.fit_procedure import STEPS_SHARE, FitProcedure
from meristem.estimators.fit_warnings import fit_warning
from meristem.estimators.input_checks import check_X, check_X_y, weights_of
from meristem.estimators.padding import Rows, continued, padded_data, state_to_continue, transformed
from meristem.estimators.parameters import check_parameters, seed_of
from meristem.estimators.training_settings import TrainingSettings
from meristem.inputs import Inputs, Preprocessor
from meristem.nn import Network
from meristem.nn.ends import trim_ends
from meristem.paths.result import Path
from meristem.sparse import is_large, is_sparse, occurring, rows_at_once
from meristem.targets import Targets
from meristem.train.callbacks import Watcher, WatcherGroup
from meristem.train.loop import DivergedError
from meristem.train.metrics import tempered
from meristem.train.objectives import Quantile
from meristem.train.run import Run
from meristem.train.train_state import TrainState
from meristem.train.training_data import prepare

HISTORY = ["loss", "error", "dev_loss", "dev_error", "layer_sizes", "soft_size", "hard_size"]
LEAST_HELD_OUT = 5  # rows
SET_BY_SKLEARN = ["n_features_in_", "feature_names_in_"]  # as soon as X is validated


@dataclass(eq=False, repr=False, kw_only=True)
class Growing(TrainingSettings):
    """An estimator with one network, at a given penalty."""

    def _check_y(self, y: Any) -> None:
        """Raise ValueError where y, before scikit-learn validates it, holds what it cannot."""
        raise NotImplementedError

    def _converted_y(self, y: Any) -> np.ndarray:
        """Return y, after scikit-learn validated it, as an array."""
        raise NotImplementedError

    def _make_targets(self, y: np.ndarray, weight: np.ndarray) -> Targets:
        """Return the encoding of y."""
        raise NotImplementedError

    # fit --------------------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, validation: Any = None) -> Self:
        """Train on X [samples, features] and y; `validation=(X, y)` is your own validation set.

        With a validation set, the model of the best validation loss is selected. With early stopping, held-out rows determine
        how long to train, and all rows are then trained for as long. Else the training loss with the penalty determines it.
        """
        check_parameters(self)
        continues = self.warm_start and hasattr(self, "network_")
        with self._unchanged_on_error():
            X, y, weight = self._validated(X, y, sample_weight, reset=not continues)
            targets = self._targets_ if continues else self._make_targets(y, weight)
            seed = seed_of(self.random_state)
            rows, dev = Rows(X, targets.encode(y), weight), self._validation_rows(validation, targets)
            inputs = self._inputs_ if continues else self._learn_inputs(rows)
            z = transformed(rows.x, inputs)
            stops_early = self._defaults.early_stopping if isinstance(self.early_stopping, str) else self.early_stopping
            fold = self._fold(rows, inputs, z, seed) if stops_early and dev is None and not continues else None
            self._train(rows, dev, targets, inputs, z, seed, continues=continues, fold=fold)
        return self

    def _partial_fit(self, X: Any, y: Any, sample_weight: Any, classes: Any = None) -> Self:
        """Train one epoch on these rows."""
        check_parameters(self)
        continues = hasattr(self, "network_")
        with self._unchanged_on_error():
            X, y, weight = self._validated(X, y, sample_weight, reset=not continues)
            new = self._targets_.with_more if continues else self._make_targets
            targets = new(y if classes is None or continues else classes, weight)
            rows = Rows(X, targets.encode(y), weight)
            inputs = self._inputs_.with_more(X, weight) if continues else self._learn_inputs(rows, is_stream=True)
            z = transformed(X, inputs)
            self._train(rows, None, targets, inputs, z, seed_of(self.random_state), continues=continues, is_stream=True)
        return self

    def _path(self, data: Any, **options: Any) -> Path:
        """Train along a grid of penalties, for `meristem.path`; the options are those of `path_of`."""
        from meristem.estimators.search_strategies import path_of  # it imports this module

        return path_of(self, data, **options)

    @contextmanager
    def _unchanged_on_error(self) -> Iterator[None]:
        """Leave the estimator as it was if anything inside fails; a DivergedError says so."""
        before = {name: self.__dict__[name] for name in SET_BY_SKLEARN if name in self.__dict__}
        try:
            yield
        except BaseException as error:
            for name in SET_BY_SKLEARN:
                self.__dict__.pop(name, None)
            self.__dict__.update(before)
            if isinstance(error, DivergedError):
                stays = "is as it was before" if hasattr(self, "network_") else "stays unfitted"
                error.args = (f"{error} The {type(self).__name__} {stays}.",)
            raise

    def _validated(self, X: Any, y: Any, sample_weight: Any = None, *, reset: bool) -> tuple[Any, Any, np.ndarray]:
        """Return X, y, and the weights, class_weight included, with a mean of 1 over the rows that count."""
        self._check_y(y)
        X, y = self._checked_rows(X, y, reset=reset)
        weight, class_weight = weights_of(sample_weight, X.shape[0]), getattr(self, "class_weight", None)
        weight = weight if class_weight is None else weight * compute_sample_weight(class_weight, y)
        if not (weight > 0).any():
            raise ValueError("sample_weight, times class_weight, is 0 for every sample; at least one must count.")
        return X, y, weight / weight[weight > 0].mean()

    def _checked_rows(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, np.ndarray]:
        """Return X and y as arrays, for training or scoring."""
        X, y = check_X_y(self, X, y, reset=reset)
        return X, self._converted_y(y)

    def _learn_inputs(self, rows: Rows, *, is_stream: bool = False) -> Inputs:
        """Return the preprocessing of X. Features of a large sparse table that never occur are dropped, except in a stream."""
        selected = occurring(rows.x, rows.weight > 0) if is_large(rows.x) and not is_stream else None
        selected = None if selected is None or not len(selected) else selected
        names = tuple(map(str, self.feature_names_in_)) if hasattr(self, "feature_names_in_") else None
        options: dict[str, Any] = {"standardize": bool(self.standardize), "selected": selected, "names": names}
        return Inputs(Preprocessor.of(rows.x, rows.weight, **options), names=names)

    def _validation_rows(self, validation: Any, targets: Targets) -> Rows | None:
        if validation is None:
            return None
        if not isinstance(validation, tuple | list) or len(validation) != 2:
            raise ValueError(f"validation is a {type(validation).__name__}; it must be a pair (X, y).")
        try:
            X, y, weight = self._validated(*validation, reset=False)
            return Rows(X, targets.encode(y), weight)
        except ValueError as error:
            raise ValueError(f"validation=(X, y) does not fit: {error}") from error

    def _fold(self, rows: Rows, inputs: Inputs, z: Any, seed: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Return training and held-out rows, stratified by class where possible; None where there are too few to judge by."""
        counted, fraction = np.flatnonzero(rows.weight > 0), self.validation_fraction
        n, n_test = len(counted), int(np.ceil(len(counted) * fraction))
        if n * fraction < LEAST_HELD_OUT:
            return None
        if n_test >= n:
            raise ValueError(f"validation_fraction={fraction} of {n} rows leaves none to learn from; lower it.")
        y = rows.y[counted]
        counts = np.unique(y, return_counts=True)[1] if y.ndim == 1 else np.zeros(1)
        stratify = y if counts.min() >= 2 and len(counts) <= min(n_test, n - n_test) else None
        train, test = train_test_split(counted, test_size=fraction, random_state=seed, stratify=stratify)
        is_typical = inputs.preprocessor.typical(z[test])  # outliers are trained on: no loss on them is meaningful
        return (np.concatenate([train, test[~is_typical]]), test[is_typical]) if is_typical.sum() >= LEAST_HELD_OUT else None

    def _initial_state(self, targets: Targets, inputs: Inputs, seed: int, *, continues: bool) -> TrainState:
        """Return the state that training starts from; raise ValueError where a parameter does not fit the stored network."""
        if not continues:
            return self._new_state(targets, inputs, seed)
        stored, options = self.network_.body.options(), self._network_options()
        stored["width"] = "auto" if stored["learn_width"] else stored["width"]
        names = [name for name in ("width", "depth", "activation") if name in options]
        unchanged: dict[str, Any] = {name: (options[name], stored[name]) for name in names}
        objective = self._targets_.objective
        if hasattr(self, "loss"):
            unchanged["loss"] = (self.loss, objective.name)
        if isinstance(objective, Quantile):
            unchanged["quantiles"] = (tuple(map(float, getattr(self, "quantiles", ()))), objective.levels)
        for name, (now, before) in unchanged.items():
            if now != before:
                advice = "set it back, or start afresh: clone(estimator).fit(X, y)."
                raise ValueError(f"{name}={now!r}, but the network to continue with was made with {before!r}; {advice}")
        return continued(self._state_)

    def _train(
        self,
        rows: Rows,
        dev: Rows | None,
        targets: Targets,
        inputs: Inputs,
        z: Any,
        seed: int,
        *,
        continues: bool,
        is_stream: bool = False,
        fold: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        """Train, store the fitted attributes, and warn."""
        keep_programs()
        name, n = type(self).__name__, len(rows.y)
        epochs = 1 if is_stream else self._epochs(n, 1.0 if fold is None else STEPS_SHARE)
        facts = self._facts(rows, targets, vars(self) if continues else {}, is_stream=is_stream)
        before = int(self._state_.epoch) if continues else 0
        options = {"callbacks": self.callbacks, "verbose": self.verbose, "epochs_before": before}
        with on_device(self.device), watchers(name, epochs, targets.objective, **options) as (watch, say):
            state = self._initial_state(targets, inputs, seed, continues=continues)
            on_cpu = next(iter(state.epoch.devices())).platform == "cpu"  # elsewhere a small step takes as long as a large one
            work = n * sum(leaf.size for leaf in jax.tree.leaves(state.network)) if on_cpu else 0
            has_dev = dev is not None or fold is not None
            is_patient = has_dev and isinstance(self.patience, str)
            least_passes = HELD_OUT_PATIENCE if is_patient else PATIENCE
            recipe = self._recipe(targets, has_dev=has_dev, work=work, is_patient=is_patient)
            knobs = self._knobs(facts, rows, targets)._replace(passes=1 if is_stream else self._passes(n))
            if dev is not None:
                patience = self._patience(facts["n_samples_seen_"], least_passes=least_passes)
                knobs = knobs._replace(patience=float(patience))
            is_first = not continues and not is_stream
            chooses_dropout = is_first and isinstance(self.input_dropout, str) and knobs.dropout is not None
            dev_z = None if dev is None else transformed(dev.x, inputs)
            prepared = prepare(padded_data(rows, z, state.network, recipe.task, dev, dev_z), state.network, recipe.task)
            parts = rows._asdict() | ({} if dev is None else {f"validation.{key}": part for key, part in dev._asdict().items()})
            with nullcontext(Watcher()) if is_stream else checkpointing(self, seed, parts, say) as epoch_log:
                procedure = FitProcedure(
                    estimator=self,
                    rows=rows,
                    targets=targets,
                    inputs=inputs,
                    z=z,
                    prepared=prepared,
                    recipe=recipe,
                    knobs=knobs,
                    dropouts=(0.0, knobs.dropout) if chooses_dropout else (knobs.dropout,),
                    fold=fold,
                    least_passes=least_passes,
                    predictability=facts.get("predictability_"),
                    seed=seed,
                    epochs=epochs,
                    watch=WatcherGroup([*watch.watchers, epoch_log]),
                )
                run, timed_run = procedure.run(state, is_first=is_first)
            if chooses_dropout:
                facts["input_dropout_"] = round(float(np.asarray(timed_run.knobs.dropout)), 6)
            network = trim_ends(run.last if is_stream else run.best, inputs.n_inputs, targets.n_out)
            network = network if is_stream else tempered(network, float(timed_run.temperature))
            self._store(run, network, targets, inputs, facts, continues=continues, is_stream=is_stream)
            last = {key: values[-1] for key, values in run.history.items()}
            say(
                f"{name}: {many(before + int(run.epochs), 'epoch')}, loss {last['loss']:.4g} "
                f"(validation {last['dev_loss']:.4g}), soft size {last['soft_size']:.1f}, "
                f"hard size {last['hard_size']}; {self.n_parameters_:,} parameters in the compact network"
            )
        if not is_stream:
            constant_error = targets.objective.constant_error(rows.y, rows.weight)
            warning = fit_warning(timed_run, network, epochs, constant_error)
            if warning is not None:
                warnings.warn(warning, stacklevel=3)

    def _store(
        self,
        run: Run,
        network: Network,
        targets: Any,
        inputs: Inputs,
        facts: dict[str, Any],
        *,
        continues: bool = False,
        is_stream: bool = False,
    ) -> None:
        """Set all fitted attributes: those of the last epoch of a stream, else of the best one."""
        before = self.n_iter_ if continues else 0
        epoch = int(run.epochs if is_stream else run.best_epoch)
        history = {name: run.history[name] for name in HISTORY}
        scales = np.asarray(run.recipe.scales)
        factor = round(float(run.knobs.learning_rate) / float(self.learning_rate), 3)  # above 1 after a restart
        history["rate"] = factor * float(self.learning_rate) * scales[np.minimum(run.history["stage"], len(scales) - 1)]
        self.soft_size_, self.hard_size_ = float(history["soft_size"][epoch - 1]), int(history["hard_size"][epoch - 1])
        self.n_iter_: int = before + len(history["loss"])
        self.best_epoch_ = before + epoch
        for name, value in facts.items():
            setattr(self, name, value)
        self.history_: dict[str, np.ndarray] = (
            {k: np.concatenate([self.history_[k], v]) for k, v in history.items()} if continues else history
        )
        self.network_, self._compact_ = network, as_numpy(compact(network))
        self._predictor_.layers(np.float64)  # cast now, not in every predict
        self.n_live_units_ = sum(self._compact_.units)
        self._targets_, self._inputs_, self._state_ = targets, inputs, state_to_continue(run.state)
        if hasattr(targets, "classes"):
            self.classes_ = targets.classes

    # predict ----------------------------------------------------------------------------------------------------------------

    def _outputs(self, X: Any, compute: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Return what `compute` makes of the network inputs of all rows, dense ones; warn of rows that are not finite."""
        check_is_fitted(self)
        x, inputs = check_X(self, X, reset=False), self._inputs_
        step = rows_at_once(inputs.n_inputs) if is_sparse(x) else x.shape[0]
        outputs = np.concatenate([compute(inputs(x[at : at + step])) for at in range(0, x.shape[0], step)])
        if not (is_valid := np.isfinite(outputs).reshape(len(outputs), -1).all(1)).all():
            warnings.warn(
                f"{type(self).__name__} has no finite prediction for {(~is_valid).sum()} of {len(is_valid)} rows, such as row "
                f"{is_valid.argmin()}: they overflow a float. Check the scale of X, and fit again.",
                RuntimeWarning,
                stacklevel=3,
            )
        return outputs

    @property
    def _predictor_(self) -> Predictor:
        """The compact network, ready for NumPy."""
        ready: Predictor | None = self.__dict__.get("_ready_")
        if ready is None or ready.network is not self._compact_:
            ready = self._ready_ = Predictor(self._compact_)
        return ready

    def compact(self) -> CompactNetwork:
        """Return the network without closed gates; it takes standardized features."""
        check_is_fitted(self)
        return compact(self.network_)

    @property
    def n_parameters_(self) -> int:
        return self._compact_.n_parameters

    @property
    def selected_features_(self) -> np.ndarray:
        selected = np.flatnonzero(self._inputs_.read_features(self._input_gates))
        return self.feature_names_in_[selected] if hasattr(self, "feature_names_in_") else selected

    @property
    def _input_gates(self) -> np.ndarray | None:
        """The gates of the inputs; None: all are open."""
        return None if self.network_.features is None else np.asarray(self.network_.features.value)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "network_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.target_tags.multi_output = True
        return tags
