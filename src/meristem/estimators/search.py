"""A search over penalty, l2, dropout and learning rate: how its members are started, trained and scored, and what is tried.

    search = Search(estimator, table, table.folds(5, classes=True))             table: encoded_table.py
    search, path, runs = search.in_rooms(penalties=…, l2s=…, dropouts=…, rates=…)     or every_combination

The estimator has one network; its parameters apply to everything that is not searched.
"""

import copy
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np

from meristem.estimators.conformal import MOST_ROWS, ClassScores, HeldOut, scores_kind
from meristem.estimators.encoded_table import EncodedTable, prepared_data
from meristem.estimators.fit_procedure import STEPS_SHARE
from meristem.estimators.larger_room import crowded_point, is_clearly_better, is_filling
from meristem.estimators.member_score import score_by
from meristem.estimators.network_estimator import NetworkEstimator
from meristem.estimators.training_settings import Room, larger_networks, shared_objective
from meristem.inputs.preprocessor import n_numbers
from meristem.nn import Network
from meristem.nn.network import divide_outputs, trim_ends
from meristem.paths.folds import Fold, constant_losses, fold_weights, has_learned
from meristem.paths.halving import Stays, ahead, better_half, promising, trained
from meristem.paths.members import Member, by_number, default_penalties, grid, settings_of
from meristem.paths.penalty_path import MemberResult, knobs_of, result_of
from meristem.paths.result import Path
from meristem.report.thresholds import choose_threshold
from meristem.show.time_left import ROOM, trainings
from meristem.train.callbacks import WatcherGroup
from meristem.train.hyperparameters import Recipe
from meristem.train.objectives import Objective
from meristem.train.replay import cores, replay, replay_on_all_rows
from meristem.train.run import Run, of_state
from meristem.train.train_state import TrainState
from meristem.train.training_data import Prepared

ALPHAS = (0.01, 0.3, 10.0)  # l2 · rows, as alpha of ridge regression
Blocks = Sequence[tuple[np.ndarray, np.ndarray]]  # X and y, as many rows in each as the search has
USUAL_SHARE, USUAL_PATIENCE = 0.8, 10  # a training takes so much of the most epochs, or so many times its patience
Lists = dict[str, list[Any]]  # values to try, by the names of LISTS
Trained = tuple[list[Member], list[Run]]
LISTS = {"penalties": "penalty", "l2s": "l2", "dropouts": "dropout", "rates": "learning_rate"}  # name here: name of a point


@dataclass(frozen=True, eq=False)
class Search:
    """The data and settings of a search."""

    estimator: NetworkEstimator
    table: EncodedTable
    folds: list[Fold]
    seeds: int = 1
    budget: float | None = None
    flash: Any = None  # FlashBudget, in bytes; then `budget` is a guess
    together: bool | None = None
    scoring: Any = None  # as scikit-learn takes it; None: the held-out loss
    watcher: WatcherGroup = field(default_factory=lambda: WatcherGroup([]))
    room: Room | None = None  # of all networks; None: the largest
    part: str = "search"  # its name for watchers
    afterwards: float = 0.0  # trainings that follow the search, for the time left
    results: dict[Run, tuple[MemberResult, float | None]] = field(default_factory=dict, repr=False)  # and scores, of ended runs

    def penalties(self, values: Any) -> list[float]:
        """Return the values, or for "auto" a grid that depends on the data; with a budget each run adapts its penalty."""
        if not isinstance(values, str):
            return [float(penalty) for penalty in values]
        if self.budget is not None:
            return [0.0]
        weight, (y, objective) = self.table.weight, self.shared_targets
        n_in, n_out = self.table.inputs.n_inputs, self.table.targets.n_out
        return default_penalties(y, weight, objective, n_in, n_out, str(self.estimator.price)).tolist()

    def lists(self, *, penalties: Any, l2s: Any, dropouts: Any, rates: Any) -> dict[str, Any]:
        """Return the values to try, "auto" replaced by those that depend on the data."""
        if isinstance(l2s, str):
            l2s = [alpha / len(self.table.y) for alpha in ALPHAS]
        if isinstance(dropouts, str):
            n_numeric = n_numbers(self.table.x, self.table.weight)
            dropouts = sorted({0.0, self.estimator._defaults.dropout(n_numeric)})
        return {"penalties": self.penalties(penalties), "l2s": l2s, "dropouts": dropouts, "rates": rates}

    @cached_property
    def recipe(self) -> Recipe:
        return self.estimator._recipe(self.table.targets, len(self.table.y), has_dev=True, work=0, is_patient=self._is_patient)

    @property
    def _is_patient(self) -> bool:
        """Whether the held-out loss may rise for long: not that of classes, which is taken at the best temperature."""
        return isinstance(self.estimator.patience, str) and not self.table.targets.objective.outputs_are_logits

    @property
    def max_epochs(self) -> int:
        return self.estimator._epochs(len(self.table.y), STEPS_SHARE)

    @property
    def usual_epochs(self) -> float:
        """About how many epochs a training takes, in epochs of its first stage: for the time left."""
        patience = self.estimator._patience(len(self.table.y), STEPS_SHARE, is_patient=self._is_patient)
        return min(USUAL_SHARE * self.max_epochs, USUAL_PATIENCE * patience)

    @cached_property
    def begun_network(self) -> Network:
        return self.new_state().network

    @cached_property
    def prepared(self) -> Prepared:
        return prepared_data(self.table, self.begun_network, self.recipe.task)

    def new_state(self, number: int = 0) -> TrainState:
        """Return an untrained state, that of the seed or another one."""
        return self.estimator._new_state(self.table, self.room or self.estimator._rooms[-1], number)

    def members(self, **lists: Any) -> list[Member]:
        """Return the members of every combination, in every fold, from every seed."""
        return grid(**lists, folds=len(self.folds), seeds=range(self.seeds))

    def begun(self, members: list[Member]) -> list[Run]:
        """Return the runs before the first epoch; members of one fold and seed have the same initial state."""
        n, numbers = len(self.table.y), [own.fold + len(self.folds) * own.seed for own in members]
        states = {number: self.new_state(number) for number in dict.fromkeys(numbers)}
        knobs = knobs_of(members, fold_weights(self.folds, len(self.prepared.data.x)))
        patience = self.estimator._patience(n, STEPS_SHARE, is_patient=self._is_patient)
        shared: dict[str, Any] = {"budget": self.budget, "patience": float(patience), "passes": self.estimator._passes(n)}
        most = min(self.estimator._max_capacity, (self.room or self.estimator._rooms[-1]).depth)
        each = [(states[number], own._replace(**shared)) for number, own in zip(numbers, knobs, strict=True)]
        return [of_state(state, self.recipe, own, max_capacity=most) for state, own in each]

    def trained(self, members: list[Member], stays: Stays | None, first: int = 0) -> list[Run]:
        """Return the complete runs; `first`: the number of the first one for watchers, which may leave later ones out."""
        watcher = WatcherGroup([self.watcher.part(self.part)], range(first, first + len(members)))
        watcher.begin(by_number(members))
        options: dict[str, Any] = {"stays": stays, "together": self.together, "all_begin": not first, "watcher": watcher}
        return trained(self.begun(members), self.prepared, settings_of(members), max_epochs=self.max_epochs, **options)

    def on_all_rows(self, runs: list[Run], blocks: Blocks = (), part: str = "replay") -> Run:
        """Return a run on all rows with the schedule of these runs; or on blocks of rows, of which the search had a sample."""
        self.watcher.expect(0)
        watcher, every = self.watcher.part(part), _PreparedBlocks(self, blocks) if blocks else [self.prepared]
        return replay_on_all_rows(runs, self.new_state(), every, len(self.table.y), self.budget, watcher)

    def path(self, members: list[Member], runs: list[Run], seconds: float = 0.0) -> Path:
        """Return the path of these runs; what each ended with is computed once, however many paths have it."""
        for run, own in zip(runs, members, strict=True):
            if run not in self.results:
                network = trim_ends(run.best, self.table.inputs.n_inputs, self.table.targets.n_out)
                score = None if self.scoring is None else self.score_of(run, own.fold)
                self.results[run] = MemberResult.of(run, network, self.max_epochs), score
        results, scores = zip(*(self.results[run] for run in runs), strict=True)
        constant = self._constant_losses[[own.fold for own in members]]
        more = {"score": None if self.scoring is None else scores, "constant_loss": constant}
        return result_of(members, results, seconds, **more)

    def score_of(self, run: Run, fold: int) -> float:
        """Return the score of a member on its held-out rows."""
        if not run.best_epoch:
            return -np.inf
        held_out, table = self.folds[fold][1], self.table
        model = self.fitted(run, float(run.temperature))
        return score_by(self.scoring, model, table.x[held_out], table.y[held_out], table.raw_y[held_out])

    def fitted(self, run: Run, temperature: float) -> NetworkEstimator:
        """Return a copy of the estimator with the best network of a run."""
        model, table = copy.copy(self.estimator), self.table
        network = divide_outputs(trim_ends(run.best, table.inputs.n_inputs, table.targets.n_out), temperature)
        model._store(run, network, table, {"n_samples_seen_": int((table.weight > 0).sum())})
        return model

    def held_out_scores(self, models: list[NetworkEstimator], folds: list[int], n_averaged: int) -> Any:
        """Return the scores (conformal.py) of the rows that models of these folds held out; None of labels and quantiles."""
        table, kind = self.table, scores_kind(self.table.targets)
        is_held_out = np.stack([np.isin(np.arange(len(table.y)), self.folds[fold][1]) for fold in folds])
        rows = np.flatnonzero(is_held_out.any(0) & (table.weight > 0))
        if len(rows) > MOST_ROWS:
            rows = np.sort(np.random.default_rng(table.seed).choice(rows, MOST_ROWS, replace=False))
        if kind is None:
            return None
        z, y = table.z[rows], table.y if kind is ClassScores else table.raw_y
        outputs = np.stack([model._predictor_.outputs(z) for model in models])
        return kind.of(HeldOut(z, y[rows], outputs, is_held_out[:, rows], n_averaged), table.targets)

    def with_threshold(self, rule: str, runs: list[Run], in_fold: list[int], temperature: float) -> "Search":
        """Return the search with the threshold that a rule chooses on the held-out probabilities of runs, each of a fold."""
        targets: Any = self.table.targets
        probabilities, y = [], []
        for run, fold in zip(runs, in_fold, strict=True):
            held_out = self.folds[fold][1]
            held_out = held_out[self.table.weight[held_out] > 0]
            model: Any = self.fitted(run, temperature)
            probabilities.append(model.predict_proba(self.table.x[held_out])[:, targets.positive])
            y.append(self.table.y[held_out] == targets.positive)
        threshold = choose_threshold(rule, np.concatenate(y), np.concatenate(probabilities))
        self.estimator.set_params(threshold=threshold)
        return replace(self, table=replace(self.table, targets=replace(targets, threshold=threshold)))

    @cached_property
    def _constant_losses(self) -> np.ndarray:
        """The held-out loss of the best constant prediction in each fold."""
        y, objective = self.shared_targets
        return constant_losses(y, self.table.weight, self.folds, objective, self.table.targets.n_out)

    @property
    def shared_targets(self) -> tuple[np.ndarray, Objective]:
        """The targets and their objective as padded networks have them."""
        y, objective = self.table.y, shared_objective(self.table.targets.objective)
        return (y if objective.targets_are_classes else y.reshape(len(y), -1)), objective

    def every_combination(self, *, stays: Stays | None = None, **lists: Any) -> tuple[Path, list[Run]]:
        """Return the path and the runs, in the order of the path's rows, of every combination."""
        begun, members = time.perf_counter(), self.members(**lists)
        runs = self.trained(members, stays)
        return self.path(members, runs, time.perf_counter() - begun), runs

    def in_rooms(self, **lists: Any) -> "tuple[Search, Path, list[Run]]":
        """Search one by one in the smallest room, then try a setting whose networks are crowded there in a larger one.

        The smallest room for a tree has a single leaf, which is what most trees end with, and costs a quarter of four. A larger
        one is tried only if networks fill a quarter of it at the middle penalty, and neighboring penalties where it is better.
        """
        sizes, begun, is_tree = self.estimator._rooms, time.perf_counter(), self.estimator._body == "budding"
        search, lists = replace(self, room=sizes[0]), {name: sorted(values) for name, values in lists.items()}
        self.watcher.may_enlarge(larger_networks(sizes, 0, is_tree=is_tree))
        members, runs = search._first_stage(lists)
        for name in ("dropouts", "penalties"):
            path = search.path(members, runs)
            if not is_filling(path, sizes[0]):
                sizes = sizes[:1]
            self.watcher.may_enlarge(larger_networks(sizes, 0, is_tree=is_tree, is_sure=is_tree and name == "penalties"))
            members, runs = search._later_stage(name, lists, path, members, runs)
        path = search.path(members, runs)
        for number, (small, room) in enumerate(pairwise(sizes), 1):
            tried = crowded_point(path, small, or_lower=is_tree)
            if self.watcher.over() or tried is None:
                break
            larger = replace(search, room=room, part=f"{ROOM}{number}")
            same = {name: [getattr(tried, knob)] for name, knob in LISTS.items()}
            members = larger.members(**same)
            lower, higher = ([p for p in lists["penalties"] if (p - tried.penalty) * sign > 0] for sign in (-1, 1))
            neighbors = lower[-1:] + higher[:1]
            self.watcher.expect(self.afterwards, trainings(len(neighbors), len(members)))
            stays = None if tried.members == path.best().members else partial(ahead, rivals=[runs[m] for m in tried.members])
            trial_runs = larger.trained(members, stays)
            self.watcher.may_enlarge(larger_networks(sizes, number, is_tree=is_tree))
            trial = larger.path(members, trial_runs)
            if self.watcher.over() or not is_clearly_better(trial, path):
                break
            if neighbors:
                more = larger.members(**same | {"penalties": neighbors})
                stays = partial(promising, limit=trial.best().loss)
                self.watcher.expect(self.afterwards)
                members, trial_runs = larger._with_more(members, trial_runs, more, stays)
            search, path, runs = larger, larger.path(members, trial_runs), trial_runs
        self.watcher.may_enlarge(None)
        return search, replace(path, seconds=time.perf_counter() - begun), runs

    def with_best_settled(self, path: Path, runs: list[Run], epochs: int) -> tuple[Path, list[Run]]:
        """Return the path and the runs with the best setting settled in so many epochs, if a watcher interrupted it."""
        best = max(path.points, key=lambda point: (point.score, point.penalty))
        if best.is_finished or not np.isfinite(best.score):
            return path, runs
        stages = np.linspace(0, epochs, len(self.recipe.scales)).astype(int)  # the first one has had its time
        runs, interrupted = list(runs), [m for m in best.members if not path.table["finished"][m]]
        with ThreadPoolExecutor(cores()) as pool:
            old = [runs[m] for m in interrupted]
            new = list(pool.map(lambda run: replay(run, [self.prepared], int(run.epochs) + stages), old))
        for m, run in zip(interrupted, new, strict=True):
            runs[m] = run
            network = trim_ends(run.best, self.table.inputs.n_inputs, self.table.targets.n_out)
            score = None if self.scoring is None else self.score_of(run, int(path.table["fold"][m]))
            self.results[run] = MemberResult.of(run, network, max_epochs=int(run.epochs)), score
        members = [Member(*(path.table[name][m].item() for name in Member._fields)) for m in range(len(runs))]
        return self.path(members, runs, path.seconds), runs

    def _first_stage(self, lists: Lists) -> Trained:
        """Choose l2 and learning rate at the middle penalty, by successive halving; settings that are behind stop early.

        Where nothing is learned at that penalty, not even a linear model, lower ones are tried: l2 has no effect before.
        """
        lower = lists["penalties"][len(lists["penalties"]) // 2 :: -1]
        first = lists | {"dropouts": lists["dropouts"][:1]}
        members = self.members(**first | {"penalties": lower[:1]})
        n_later = sum(self._n_others(lists).values()) + self.afterwards
        self.watcher.expect(n_later)
        runs = self.trained(members, better_half)
        for penalty in lower[1:]:
            path = self.path(members, runs)
            best = list(path.best().members)
            if has_learned(path.table["loss"][best], path.table["constant_loss"][best]):
                break
            self.watcher.expect(n_later)
            members, runs = self._with_more(members, runs, self.members(**first | {"penalties": [penalty]}), better_half)
        return members, runs

    def _later_stage(self, name: str, lists: Lists, path: Path, members: list[Member], runs: list[Run]) -> Trained:
        """Choose the dropout, which shows its effect late, or the penalty; settings that are clearly behind stop early."""
        chosen, settings = path.best(), [point.knobs for point in path.points]
        others = [value for value in lists[name] if replace(chosen, **{LISTS[name]: value}).knobs not in settings]
        if not others:
            return members, runs
        same = {list_name: [getattr(chosen, knob)] for list_name, knob in LISTS.items()}
        more = self.members(**same | {name: others})
        self.watcher.expect((self._n_others(lists)["penalties"] if name == "dropouts" else 0) + self.afterwards)
        return self._with_more(members, runs, more, partial(promising, limit=chosen.loss))

    def _n_others(self, lists: Lists) -> dict[str, float]:
        """Return about how many trainings to the end each later stage takes."""
        return {name: trainings(len(lists[name]) - 1, len(self.folds) * self.seeds) for name in ("dropouts", "penalties")}

    def _with_more(self, members: list[Member], runs: list[Run], more: list[Member], stays: Stays) -> Trained:
        """Train more members, if there is time; those of settings that started in every fold join, by ascending penalty."""
        if self.watcher.over():
            return members, runs
        new, settings = self.trained(more, stays, first=len(members)), settings_of(more)
        waiting = {setting for setting, run in zip(settings, new, strict=True) if not run.epochs.max()}
        begun = [m for m, setting in enumerate(settings) if setting not in waiting]
        members, runs = members + [more[m] for m in begun], runs + [new[m] for m in begun]
        order = sorted(range(len(members)), key=lambda m: members[m].penalty)
        return [members[m] for m in order], [runs[m] for m in order]


@dataclass(frozen=True, eq=False)
class _PreparedBlocks(Sequence[Prepared]):
    """Blocks of rows as a search trains on them, each made when it is asked for: a large table need not be there as numbers."""

    search: Search
    blocks: Blocks

    def __len__(self) -> int:
        return len(self.blocks)

    def __getitem__(self, number: Any) -> Any:
        return self._first if number == 0 else self._prepared(number)

    @cached_property
    def _first(self) -> Prepared:
        """The first block, which is asked for several times, and by which a checkpoint is found."""
        return self._prepared(0)

    def _prepared(self, number: int) -> Prepared:
        (X, y), table = self.blocks[number], self.search.table
        encoded = replace(table, x=X, y=table.targets.encode(y), weight=np.ones(len(y)), raw_y=y)
        return prepared_data(encoded, self.search.begun_network, self.search.recipe.task)
