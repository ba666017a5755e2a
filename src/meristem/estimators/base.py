"""What all estimators share: how a table of numbers and targets becomes a trained network, and predictions.

    fit: check → encode y → standardize → fill up to shared shapes → train → cut back → compact → say what grew

Parameters are the fields of dataclasses (settings.py), stored as given and checked in `fit`.
Everything learned ends in an underscore and is set at the end: a fit that fails or is given up leaves what was there. Only this
package imports scikit-learn.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import jax
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.utils.validation import check_is_fitted

from meristem.cache import keep_programs
from meristem.check import many
from meristem.compact import CompactNetwork, compact
from meristem.compact.inference import Predictor, as_numpy
from meristem.estimators import buckets, features
from meristem.estimators.advice import GrowthWarning, advice_on_epochs, advice_on_failure, advice_on_size
from meristem.estimators.course import SHARE, Course
from meristem.estimators.device import on
from meristem.estimators.given import weights_of
from meristem.estimators.kept import keeping
from meristem.estimators.parameters import check_parameters, seed_of
from meristem.estimators.predictability import predictability
from meristem.estimators.repr import Shown
from meristem.estimators.settings import HASTE, PATIENCE, PATIENT, Settings
from meristem.estimators.shipping import Shipping
from meristem.estimators.training import Rows, data_of, resumed, to_go_on_from, transformed
from meristem.estimators.watching import watchers
from meristem.inputs import Inputs, Preprocessor
from meristem.inputs.statistics import n_numbers
from meristem.nn import Network
from meristem.nn.ends import trim_ends
from meristem.paths.result import Path
from meristem.show.measures import error_measure
from meristem.sparse import is_large, is_sparse, occurring, rows_at_once
from meristem.targets import Targets
from meristem.train.knobs import Knobs
from meristem.train.loop import DivergedError
from meristem.train.recipe import Recipe
from meristem.train.run import Run
from meristem.train.samples import prepare
from meristem.train.state import TrainState
from meristem.train.temperature import tempered
from meristem.train.watching import Everyone, Watcher

HISTORY = ["loss", "error", "dev_loss", "dev_error", "layer_sizes", "soft_size", "hard_size"]
FOLLOW_FROM = 10**9  # multiply-adds an epoch on a CPU, from which a program for what is open is worth its compilation
PENALTY = 1e-3
B2 = 0.95  # steps on tables are few and noisy: a memory of twenty of them is better than one of a thousand
LEAST_HELD = 5  # rows
LINGER = 3.0
FROM_X = ["n_features_in_", "feature_names_in_"]  # set by scikit-learn as soon as it has seen X


@dataclass(eq=False, repr=False, kw_only=True)
class Growing(Shown, Shipping, Settings):
    """An estimator whose network finds its own size."""

    penalty: float | str = "auto"
    l2: float | str = "auto"
    input_dropout: float | str = "auto"
    early_stopping: bool | str = "auto"
    validation_fraction: float = 0.2
    warm_start: bool = False

    _body: ClassVar[str]
    _stops: ClassVar[bool] = False  # early_stopping, where no one says

    # What bodies, classifiers and regressors differ in ----------------------------------------------------------------------

    def _body_options(self) -> dict[str, Any]:
        """Options of the network's body."""
        return {"activation": self.activation}

    def _max_leaves(self) -> int:
        return 1

    def _auto_dropout(self, numbers: int) -> float:
        """The share of inputs that is dropped, where no one says and so many columns are more than an indicator."""
        raise NotImplementedError

    def _price(self, told: float) -> float:
        """The penalty, where no one says and the inputs tell so much of the targets."""
        return PENALTY

    def _prior(self, rows: int, targets: Targets, told: float, *, are_alike: bool) -> float:
        """The price of large weights, likewise; rows of different weight may tell more than was seen."""
        raise NotImplementedError

    def _asks_what_is_told(self) -> bool:
        """Whether how much of the targets the inputs tell decides anything."""
        return isinstance(self.l2, str)

    def _targets(self, y: Any, weight: np.ndarray) -> Targets:
        """What y means."""
        raise NotImplementedError

    def _targets_with_more(self, y: Any, weight: np.ndarray) -> Targets:
        """What y means after more rows of a stream."""
        return self._targets_

    def _permanent(self) -> dict[str, tuple[Any, Any]]:
        """What a network that goes on learning cannot change: parameter → (as it is now, as the network was made)."""
        made = self.network_.body.options()
        made["width"] = "auto" if made["learn_width"] else made["width"]
        now = {"width": self.width if isinstance(self.width, str) else int(self.width), **self._body_options()}
        return {name: (now[name], made[name]) for name in ("width", "depth", "activation") if name in now}

    def _split(self, rows: np.ndarray, y: np.ndarray, seed: int) -> list[np.ndarray]:
        """Training and validation rows."""
        return train_test_split(rows, test_size=self.validation_fraction, random_state=seed)

    def _weights(self, y: Any, weight: np.ndarray) -> np.ndarray:
        """How much each row counts."""
        return weight

    def _check_target(self, y: Any) -> None:
        """Raise ValueError where y holds what it cannot."""

    def _validated_target(self, y: Any) -> np.ndarray:
        return np.asarray(y)

    # fit --------------------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, validation: Any = None) -> Self:
        """Train on X [samples, features] and y; `validation=(X, y)` is a validation set of one's own.

        With one, the model of the best validation loss is kept. With `early_stopping=True` rows that are held out say how long
        to train, and all rows are then trained as long. Else the training loss, with the price, says it.
        """
        check_parameters(self)
        goes_on = self.warm_start and hasattr(self, "network_")
        with self._all_or_nothing():
            X, y, weight = self._validated(X, y, sample_weight, reset=not goes_on)
            targets = self._targets_ if goes_on else self._targets(y, weight)
            seed = seed_of(self.random_state)
            rows, dev = Rows(X, targets.encode(y), weight), self._chosen_by(validation, targets)
            inputs = self._inputs_ if goes_on else self._learn_inputs(rows)
            z = transformed(rows.x, inputs)
            fold = self._fold(rows, inputs, z, seed) if self._stops_early and dev is None and not goes_on else None
            self._train(rows, dev, targets, inputs, z, seed, goes_on=goes_on, fold=fold)
        return self

    def _path(self, data: Any, **options: Any) -> Path:
        """Train along a grid of penalties, as `meristem.path` asks of an estimator; the options are those of `path_of`."""
        from meristem.estimators.searching import path_of  # it imports this module

        return path_of(self, data, **options)

    def _partial_fit(self, X: Any, y: Any, sample_weight: Any, classes: Any = None) -> Self:
        """One epoch over these rows."""
        check_parameters(self)
        goes_on = hasattr(self, "network_")
        with self._all_or_nothing():
            X, y, weight = self._validated(X, y, sample_weight, reset=not goes_on)
            meaning = y if classes is None else classes
            targets = self._targets_with_more(y, weight) if goes_on else self._targets(meaning, weight)
            rows = Rows(X, targets.encode(y), weight)
            inputs = self._inputs_.with_more(X, weight) if goes_on else self._learn_inputs(rows, is_stream=True)
            z = transformed(X, inputs)
            self._train(rows, None, targets, inputs, z, seed_of(self.random_state), goes_on=goes_on, is_stream=True)
        return self

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """What fails inside leaves the estimator as it was; how the loss of all epochs turned non-finite says so."""
        before = {name: self.__dict__[name] for name in FROM_X if name in self.__dict__}
        try:
            yield
        except BaseException as error:
            for name in FROM_X:
                self.__dict__.pop(name, None)
            self.__dict__.update(before)
            if isinstance(error, DivergedError):
                stays = "is as it was before" if hasattr(self, "network_") else "stays unfitted"
                error.args = (f"{error} The {type(self).__name__} {stays}.",)
            raise

    def _validated(self, X: Any, y: Any, sample_weight: Any = None, *, reset: bool) -> tuple[Any, Any, np.ndarray]:
        self._check_target(y)
        X, y = self._checked_rows(X, y, reset=reset)
        weight = weights_of(sample_weight, X.shape[0])
        weight = self._weights(y, weight)
        if not (weight > 0).any():
            raise ValueError("sample_weight, times class_weight, is 0 for every sample; at least one must count.")
        return X, y, weight / weight[weight > 0].mean()  # only their proportions count: they sum to the rows that do

    def _checked_rows(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, np.ndarray]:
        """X and y as they are learned from, or judged by."""
        X, y = features.checked_with(self, X, y, reset=reset)
        return X, self._validated_target(y)

    def _learn_inputs(self, rows: Rows, *, is_stream: bool = False) -> Inputs:
        """What networks read. Of a large sparse table columns that never occur are no inputs; in a stream they still may."""
        selected = occurring(rows.x, rows.weight > 0) if is_large(rows.x) and not is_stream else None
        selected = None if selected is None or not len(selected) else selected
        names = tuple(map(str, self.feature_names_in_)) if hasattr(self, "feature_names_in_") else None
        options: dict[str, Any] = {"standardize": bool(self.standardize), "selected": selected, "names": names}
        return Inputs(Preprocessor.of(rows.x, rows.weight, **options), names=names)

    def _chosen_by(self, validation: Any, targets: Targets) -> Rows | None:
        """The rows to choose a model by, if someone gives any."""
        if validation is None:
            return None
        if not isinstance(validation, tuple | list) or len(validation) != 2:
            raise ValueError(f"validation is a {type(validation).__name__}; it must be a pair (X, y).")
        try:
            X, y, weight = self._validated(*validation, reset=False)
            return Rows(X, targets.encode(y), weight)
        except ValueError as error:
            raise ValueError(f"validation=(X, y) does not fit: {error}") from error

    @property
    def _stops_early(self) -> bool:
        """early_stopping, as it was given or as it is best."""
        return self._stops if isinstance(self.early_stopping, str) else bool(self.early_stopping)  # NumPy's, too

    def _fold(self, rows: Rows, inputs: Inputs, z: Any, seed: int) -> tuple[np.ndarray, np.ndarray] | None:
        """The rows to learn from and those to hold out; None where they are too few to say anything."""
        counted = np.flatnonzero(rows.weight > 0)
        if len(counted) * self.validation_fraction < LEAST_HELD:
            return None
        if np.ceil(len(counted) * self.validation_fraction) >= len(counted):
            raise ValueError(
                f"validation_fraction={self.validation_fraction} of {len(counted)} rows leaves none to learn from; lower it."
            )
        learned, held = self._split(counted, rows.y[counted], seed)
        judges = inputs.preprocessor.typical(z[held])
        return (np.concatenate([learned, held[~judges]]), held[judges]) if judges.sum() >= LEAST_HELD else None

    def _size(self) -> dict[str, Any]:
        """How wide the network is, and what of its inputs may close."""
        is_learned = isinstance(self.width, str)
        width: dict[str, Any] = (
            {"width": "auto", "max_width": int(self.max_width)} if is_learned else {"width": int(self.width)}
        )
        return width | {"feature_gates": bool(self.feature_gates)}

    def _recipe(self, targets: Targets, *, has_dev: bool, work: int, is_patient: bool = False) -> Recipe:
        # Where no rows are held out, only the price says when it is small enough.
        linger = HASTE if is_patient else 1.0 if has_dev else LINGER
        return Recipe(
            objective=buckets.shared(targets.objective),
            batch_size=int(self.batch_size),
            depth_decay=float(self.depth_decay),
            b2=B2,
            watch="loss",
            select="loss" if has_dev else "cost",
            price=str(self.price),
            settle=bool(self.settle),
            follow=bool(self.settle) and work >= FOLLOW_FROM,
            calibrate=has_dev and targets.objective.outputs_are_logits,
            linger=linger,
        )

    def _knobs(self, facts: dict[str, Any], rows: Rows, targets: Targets) -> Knobs:
        if self.budget is not None and (self.price == "units" or not self.settle):
            raise ValueError(
                f"budget={self.budget!r} counts parameters or multiply-adds and is met by settling: choose such a price, and "
                "settle=True."
            )
        dropout = facts["input_dropout_"] if isinstance(self.input_dropout, str) else float(self.input_dropout)
        return Knobs(
            learning_rate=float(self.learning_rate),
            penalty=facts["penalty_"] if isinstance(self.penalty, str) else float(self.penalty),
            l2=self._l2(facts, rows, targets),
            dropout=dropout or None,
            budget=None if self.budget is None else float(self.budget),
            patience=float(self._patience(facts["n_samples_seen_"])),
        )

    def _l2(self, facts: dict[str, Any], rows: Rows, targets: Targets) -> float:
        if not isinstance(self.l2, str):
            return float(self.l2)
        return self._prior(facts["n_samples_seen_"], targets, facts["predictability_"], are_alike=rows.are_alike)

    def _facts(self, rows: Rows, targets: Targets, *, goes_on: bool, is_stream: bool) -> dict[str, Any]:
        """What the rows say before anything is trained: fitted attributes by name."""
        before = self.n_samples_seen_ if is_stream and goes_on else 0
        facts: dict[str, Any] = {"n_samples_seen_": before + int((rows.weight > 0).sum())}
        asked: dict[str, Callable[[], float]] = {}
        if self._asks_what_is_told():
            weight = rows.weight * targets.typical(rows.y)
            asked["predictability_"] = lambda: predictability(rows.x, rows.y, weight, targets.columns)
        if isinstance(self.input_dropout, str):
            asked["input_dropout_"] = lambda: self._auto_dropout(n_numbers(rows.x, rows.weight))
        # The first rows decide; the first files do not say.
        known = {name: getattr(self, name) for name in asked if goes_on and hasattr(self, name)}
        facts |= {name: ask() for name, ask in asked.items() if name not in known} | known
        return facts | ({"penalty_": self._price(facts.get("predictability_", 1.0))} if isinstance(self.penalty, str) else {})

    def _begin(self, targets: Targets, inputs: Inputs, seed: int, *, goes_on: bool) -> TrainState:
        """The state that training starts from."""
        if goes_on:
            for name, (now, made) in self._permanent().items():
                if now != made:
                    raise ValueError(
                        f"{name}={now!r}, but the network that is to learn more was made with {made!r}; "
                        "set it back, or begin anew: clone(estimator).fit(X, y)."
                    )
            return resumed(self._state_)
        return self._fresh(targets, inputs, seed)

    def _fresh(self, targets: Targets, inputs: Inputs, seed: int) -> TrainState:
        """The state of a network that has learned nothing."""
        return buckets.begin(
            self._body,
            inputs.n_inputs,
            targets.n_out,
            size=self._size(),
            options=self._body_options(),
            objective=targets.objective,
            seed=seed,
        )

    def _train(
        self,
        rows: Rows,
        dev: Rows | None,
        targets: Targets,
        inputs: Inputs,
        z: Any,
        seed: int,
        *,
        goes_on: bool,
        is_stream: bool = False,
        fold: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        keep_programs()
        share = 1.0 if fold is None else SHARE
        name, epochs = type(self).__name__, 1 if is_stream else self._epochs(len(rows.y), share)
        facts = self._facts(rows, targets, goes_on=goes_on, is_stream=is_stream)
        before = int(self._state_.epoch) if goes_on else 0
        measure = error_measure(targets.objective.error_name, is_share=targets.objective.error_is_share)
        watched = watchers(name, epochs, measure, callbacks=self.callbacks, verbose=bool(self.verbose), before=before)
        with on(self.device), watched as (watch, say):
            state = self._begin(targets, inputs, seed, goes_on=goes_on)
            on_cpu = next(iter(state.epoch.devices())).platform == "cpu"  # elsewhere a step takes as long, however small it is
            work = len(rows.y) * sum(leaf.size for leaf in jax.tree.leaves(state.network)) if on_cpu else 0
            has_dev = dev is not None or fold is not None
            is_patient = has_dev and isinstance(self.patience, str)
            recipe = self._recipe(targets, has_dev=has_dev, work=work, is_patient=is_patient)
            dev_z = None if dev is None else transformed(dev.x, inputs)
            data = prepare(data_of(rows, z, state.network, recipe.task, dev, dev_z), state.network, recipe.task)
            least = PATIENT if is_patient else PATIENCE
            knobs = self._knobs(facts, rows, targets)._replace(passes=1 if is_stream else self._passes(len(rows.y)))
            if dev is not None:
                knobs = knobs._replace(patience=float(self._patience(facts["n_samples_seen_"], least=least)))
            is_first = not goes_on and not is_stream
            is_open = is_first and isinstance(self.input_dropout, str) and knobs.dropout is not None
            course = Course(
                estimator=self,
                rows=rows,
                targets=targets,
                inputs=inputs,
                z=z,
                prepared=data,
                recipe=recipe,
                knobs=knobs,
                dropouts=(0.0, knobs.dropout) if is_open else (knobs.dropout,),
                fold=fold,
                least=least,
                predictability=facts.get("predictability_"),
                seed=seed,
                epochs=epochs,
                watch=watch,
            )
            with keeping(self, seed, _parts(rows, dev), say) if not is_stream else nullcontext(Watcher()) as told:
                seen = replace(course, watch=Everyone([*watch.watchers, told]))
                run, found = seen.run(state, is_first=is_first)
            if is_open:
                facts["input_dropout_"] = round(float(np.asarray(found.knobs.dropout)), 6)
            network = trim_ends(run.last if is_stream else run.best, inputs.n_inputs, targets.n_out)
            network = network if is_stream else tempered(network, float(found.temperature))
            small = as_numpy(compact(network))
            last = {name: values[-1] for name, values in run.history.items()}
            say(
                f"{name}: {many(before + int(run.epochs), 'epoch')}, loss {last['loss']:.4g} "
                f"(development {last['dev_loss']:.4g}), soft size {last['soft_size']:.1f}, "
                f"hard size {last['hard_size']}; {small.n_parameters:,} parameters are kept"
            )
        self._keep(run, network, small, targets, inputs, facts, goes_on=goes_on, keeps_last=is_stream)
        if not is_stream:
            self._advise(found, network, epochs, lambda: targets.objective.constant_error(rows.y, rows.weight))

    def _keep(
        self,
        run: Run,
        network: Network,
        small: CompactNetwork,
        targets: Any,
        inputs: Inputs,
        facts: dict[str, Any],
        *,
        goes_on: bool,
        keeps_last: bool,
    ) -> None:
        """Everything that ends in an underscore."""
        before = self.n_iter_ if goes_on else 0
        kept = int(run.epochs if keeps_last else run.best_epoch)
        history = {name: run.history[name] for name in HISTORY}
        scales = np.asarray(run.recipe.scales)
        boldness = round(float(run.knobs.learning_rate) / float(self.learning_rate), 3)  # more than 1 in a second try
        history["rate"] = boldness * float(self.learning_rate) * scales[np.minimum(run.history["stage"], len(scales) - 1)]
        self.soft_size_, self.hard_size_ = float(history["soft_size"][kept - 1]), int(history["hard_size"][kept - 1])
        self.n_iter_: int = before + len(history["loss"])
        self.best_epoch_ = before + kept
        for name, value in facts.items():
            setattr(self, name, value)
        self.history_: dict[str, np.ndarray] = (
            {k: np.concatenate([self.history_[k], v]) for k, v in history.items()} if goes_on else history
        )
        self.network_, self._compact_ = network, small
        self._predictor_.layers(np.float64)  # cast now, not in every predict
        self.n_live_units_ = sum(small.units)
        self._targets_, self._inputs_, self._state_ = targets, inputs, to_go_on_from(run.state)

    def _advise(self, run: Run, network: Network, max_epochs: int, constant_error: Callable[[], float]) -> None:
        """At most one warning, at the line that called `fit`."""
        size = advice_on_failure(run, constant_error) or advice_on_size(network.body, run, constant_error)
        if size is not None:
            warnings.warn(size, GrowthWarning, stacklevel=4)
            return
        epochs = advice_on_epochs(run, max_epochs)
        if epochs is not None:
            warnings.warn(epochs, ConvergenceWarning, stacklevel=4)

    # predict ----------------------------------------------------------------------------------------------------------------

    def _answers(self, X: Any, say: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """What `say` makes of the inputs of all rows; sparse ones are made dense some at a time."""
        check_is_fitted(self)
        x, inputs = features.checked(self, X, reset=False), self._inputs_
        step = rows_at_once(inputs.n_inputs) if is_sparse(x) else x.shape[0]
        return self._said(np.concatenate([say(inputs(x[at : at + step])) for at in range(0, x.shape[0], step)]))

    def _said(self, answers: np.ndarray) -> np.ndarray:
        """What a prediction is made of, with a warning where a row of it is no number."""
        if not (fine := np.isfinite(answers).reshape(len(answers), -1).all(1)).all():
            warnings.warn(
                f"{type(self).__name__} has no finite prediction for {(~fine).sum()} of {len(fine)} rows, row {fine.argmin()} "
                "for one: they are beyond what a float holds. Look at the scale of X, and fit again.",
                RuntimeWarning,
                stacklevel=4,
            )
        return answers

    @property
    def _predictor_(self) -> Predictor:
        """The compact network, ready for NumPy."""
        ready: Predictor | None = self.__dict__.get("_ready_")
        if ready is None or ready.network is not self._compact_:
            ready = self._ready_ = Predictor(self._compact_)
        return ready

    def compact(self) -> CompactNetwork:
        """The network with nothing in it but what lives; it takes standardized features."""
        check_is_fitted(self)
        return compact(self.network_)

    @property
    def n_parameters_(self) -> int:
        return self._compact_.n_parameters

    @property
    def selected_features_(self) -> np.ndarray:
        chosen = np.flatnonzero(self._inputs_.read_features(self._input_gates))
        return self.feature_names_in_[chosen] if hasattr(self, "feature_names_in_") else chosen

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


def _parts(rows: Rows, dev: Rows | None) -> dict[str, Any]:
    """The data of a fit by name."""
    held = {} if dev is None else {f"validation.{name}": part for name, part in dev._asdict().items()}
    return rows._asdict() | held
