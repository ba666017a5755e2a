"""The estimator with one network, which all but those that search are: its fit.

    fit: check → encode y → standardize → pad to shared shapes → train → remove the padding → compact → warn

Fitted attributes are set at the end: a fit that fails or is aborted leaves the estimator as it was.
"""

import warnings
from dataclasses import dataclass, replace
from typing import Any, Self

import jax
import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_sample_weight

from meristem.cache import keep_programs
from meristem.check import many
from meristem.compact import compact
from meristem.compact.inference import as_numpy
from meristem.estimators.encoded_table import EncodedTable, prepared_data
from meristem.estimators.fit_context import checkpointing, on_device, unchanged_by_errors, watchers
from meristem.estimators.fit_procedure import STEPS_SHARE, FitProcedure, fit_warning
from meristem.estimators.flash_budget import FlashBudget
from meristem.estimators.input_checks import weights_of
from meristem.estimators.parameters import check_parameters
from meristem.estimators.training_settings import TrainingSettings, continued
from meristem.inputs import Inputs, Preprocessor
from meristem.nn import Network
from meristem.nn.network import divide_outputs, trim_ends
from meristem.paths.result import Path
from meristem.sparse import is_large, occurring
from meristem.train.hyperparameters import Recipe
from meristem.train.run import Run
from meristem.train.train_state import TrainState, fit_to_recipe

HISTORY = ["loss", "error", "dev_loss", "dev_error", "layer_sizes", "soft_size", "hard_size"]


@dataclass(eq=False, repr=False, kw_only=True)
class NetworkEstimator(TrainingSettings):
    """An estimator with one network, at a given penalty."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, validation: Any = None) -> Self:
        """Train on X [samples, features] and y; `validation=(X, y)` is your own validation set.

        With a validation set, the model of the best validation loss is selected. With early stopping, held-out rows determine
        how long to train, and all rows are then trained for as long. Else the training loss with the penalty determines it.
        """
        return self._fit(X, y, sample_weight, validation)

    def _fit(
        self, X: Any, y: Any, sample_weight: Any, validation: Any = None, *, classes: Any = None, is_stream: bool = False
    ) -> Self:
        """Train to the end, or one epoch on these rows of a stream, whose `classes` are those of all rows."""
        check_parameters(self)
        with unchanged_by_errors(self):
            continues = (self.warm_start or is_stream) and hasattr(self, "network_")
            table = self._encoded(X, y, sample_weight, classes, continues=continues, is_stream=is_stream)
            self._train(table, None if validation is None else self._validation_table(validation, table))
        return self

    def _path(self, *data: Any, **options: Any) -> Path:
        """Train along a grid of penalties, for `meristem.path`; see `path_of`."""
        from meristem.estimators.estimator_path import path_of  # it imports this module

        return path_of(self, *data, **options)

    def _encoded(
        self, X: Any, y: Any, weight: Any = None, classes: Any = None, *, continues: bool = False, is_stream: bool = False
    ) -> EncodedTable:
        """Return the rows as they are trained on; sets the number and names of the features.

        If training `continues`, the encoding is that of earlier rows; more rows of a stream update it. Features of a large
        sparse table that never occur are dropped, except in a stream.
        """
        X, y, weight = self._validated(X, y, weight, reset=not continues)
        if not continues:
            targets = self._make_targets(y if classes is None else classes, weight)
            selected = occurring(X, weight > 0) if is_large(X) and not is_stream else ()
            names = tuple(map(str, self.feature_names_in_)) if hasattr(self, "feature_names_in_") else None
            options: dict[str, Any] = {"selected": selected if len(selected) else None, "names": names}
            inputs = Inputs(Preprocessor.of(X, weight, standardize=bool(self.standardize), **options), names=names)
        elif is_stream:
            targets, inputs = self._targets_.with_more(y, weight), self._inputs_.with_more(X, weight)
        else:
            targets, inputs = self._targets_, self._inputs_
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))  # a generator advances
        return EncodedTable(X, targets.encode(y), weight, targets, inputs, seed, y, continues, is_stream)

    def _validated(self, X: Any, y: Any, sample_weight: Any = None, *, reset: bool) -> tuple[Any, np.ndarray, np.ndarray]:
        """Return X, y, and the weights, class_weight included, with a mean of 1 over the rows that count."""
        X, y = self._checked_rows(X, y, reset=reset)
        weight, class_weight = weights_of(sample_weight, X.shape[0]), getattr(self, "class_weight", None)
        weight = weight if class_weight is None else weight * compute_sample_weight(class_weight, y)
        if not (weight > 0).any():
            raise ValueError("sample_weight, times class_weight, is 0 for every sample; at least one must count.")
        return X, y, weight / weight[weight > 0].mean()

    def _validation_table(self, validation: Any, table: EncodedTable) -> EncodedTable:
        if not isinstance(validation, tuple | list) or len(validation) != 2:
            raise ValueError(f"validation is a {type(validation).__name__}; it must be a pair (X, y).")
        try:
            X, y, weight = self._validated(*validation, reset=False)
            return replace(table, x=X, y=table.targets.encode(y), weight=weight, raw_y=y)
        except ValueError as error:
            raise ValueError(f"validation=(X, y) does not fit: {error}") from error

    def _state_before(self, table: EncodedTable) -> TrainState:
        """Return the state that training starts from; raise ValueError where a parameter does not fit the stored network."""
        if not table.continues:
            return self._new_state(table, self._rooms[-1 if table.is_stream else 0])
        stored = self.network_.body.options()
        room = next((room for room in self._rooms if room.depth == stored.get("depth")), self._rooms[-1])
        options = self._network_options(room)
        stored["width"] = "auto" if stored["learn_width"] else stored["width"]
        if hasattr(self, "loss"):
            objective, levels = self._targets_.objective, tuple(map(float, getattr(self, "quantiles", ())))
            options |= {"loss": self.loss, "quantiles": levels}
            stored |= {"loss": objective.name, "quantiles": getattr(objective, "levels", levels)}
        for name in ("width", "depth", "activation", "loss", "quantiles"):
            if name in options and options[name] != stored[name]:
                advice = f"was made with {stored[name]!r}; set it back, or start afresh: clone(estimator).fit(X, y)."
                raise ValueError(f"{name}={options[name]!r}, but the network to continue with {advice}")
        return continued(self._state_)

    def _train(self, table: EncodedTable, dev: EncodedTable | None) -> None:
        keep_programs()
        targets, name, n, is_stream = table.targets, type(self).__name__, len(table.y), table.is_stream
        is_first = not table.continues and not is_stream
        stops_early = self._defaults.early_stopping if isinstance(self.early_stopping, str) else self.early_stopping
        fold = table.split(self.validation_fraction) if stops_early and dev is None and is_first else None
        epochs = 1 if is_stream else self._epochs(n, 1.0 if fold is None else STEPS_SHARE)
        facts = self._facts(table, vars(self) if table.continues else {})
        before = int(self._state_.epoch) if table.continues else 0
        options = {"callbacks": self.callbacks, "verbose": self.verbose, "before": before}
        with on_device(self.device), watchers(name, epochs, targets.objective, **options) as (watch, say):
            state = self._state_before(table)
            on_cpu = next(iter(state.epoch.devices())).platform == "cpu"  # elsewhere a small step takes as long as a large one
            work = n * sum(leaf.size for leaf in jax.tree.leaves(state.network)) if on_cpu else 0
            has_dev = dev is not None or fold is not None
            is_patient = has_dev and isinstance(self.patience, str)
            recipe = self._recipe(targets, 0 if is_stream else n, has_dev=has_dev, work=work, is_patient=is_patient)
            knobs = self._knobs(facts, table, is_patient=dev is not None)
            flash = FlashBudget.of(self, table, state.network, recipe)
            knobs = knobs if flash is None else knobs._replace(budget=flash.first())
            prepared = prepared_data(table, state.network, recipe.task, dev)
            with checkpointing(self, table, watch, say, dev) as watcher:
                predicted = facts.get("predictability_")
                procedure = FitProcedure(
                    self, table, prepared, recipe, knobs, fold, epochs, watcher, is_patient, predicted, flash
                )
                run, timed_run = procedure.run(state, is_first=is_first)
            if is_first and facts.get("input_dropout_"):
                facts["input_dropout_"] = round(float(np.asarray(timed_run.knobs.dropout)), 6)
            network = trim_ends(run.last if is_stream else run.best, table.inputs.n_inputs, targets.n_out)
            network = network if is_stream else divide_outputs(network, float(timed_run.temperature))
            self._store(run, network, table, facts)
            last = {key: values[-1] for key, values in run.history.items()}
            say(
                f"{name}: {many(before + int(run.epochs), 'epoch')}, loss {last['loss']:.4g} "
                f"(validation {last['dev_loss']:.4g}), soft size {last['soft_size']:.1f}, "
                f"hard size {last['hard_size']}; {self.n_parameters_:,} parameters in the compact network"
            )
        if not is_stream:
            constant = targets.objective.constant_error(table.y, table.weight)
            if (warning := fit_warning(timed_run, network, epochs, constant, self._max_capacity)) is not None:
                warnings.warn(warning, stacklevel=4)

    def _store(self, run: Run, network: Network, table: EncodedTable, facts: dict[str, Any]) -> None:
        """Set all fitted attributes: those of the last epoch of a stream, else of the best one."""
        before = self.n_iter_ if table.continues else 0
        epoch = int(run.epochs if table.is_stream else run.best_epoch)
        history = {name: run.history[name] for name in HISTORY}
        scales = np.asarray(run.recipe.scales)
        rate = float(str(np.float32(run.knobs.learning_rate)))  # 0.003, where float() of it would be 0.003000000026
        history["rate"] = rate * scales[np.minimum(run.history["stage"], len(scales) - 1)]
        self.soft_size_, self.hard_size_ = float(history["soft_size"][epoch - 1]), int(history["hard_size"][epoch - 1])
        self.n_iter_: int = before + len(history["loss"])
        self.best_epoch_ = before + epoch
        self.__dict__.update(facts)
        self.history_: dict[str, np.ndarray] = (
            {k: np.concatenate([self.history_[k], v]) for k, v in history.items()} if table.continues else history
        )
        self.network_, self._compact_ = network, as_numpy(compact(network))
        self._predictor_.layers(np.float64)  # cast now, not in every predict
        self.n_live_units_ = sum(self._compact_.units)
        self._targets_, self._inputs_ = table.targets, table.inputs
        self._state_ = fit_to_recipe(run.state, Recipe())  # without the weight average, which belongs to the end
        if hasattr(table.targets, "classes"):
            self.classes_ = table.targets.classes

    @property
    def selected_features_(self) -> np.ndarray:
        selected = np.flatnonzero(self._inputs_.read_features(self._input_gates))
        return self.feature_names_in_[selected] if hasattr(self, "feature_names_in_") else selected

    @property
    def _input_gates(self) -> np.ndarray | None:
        """The gates of the inputs; None: all are open."""
        return None if self.network_.features is None else np.asarray(self.network_.features.value)
