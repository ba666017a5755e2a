"""From the parameters of an estimator, and from its rows, to the settings of a training: recipe, knobs, initial state.

A network that ends with some hundred parameters needs no arrays of 64 × 5 at every step: half the time of a fit, at the same
scores (results/log/2026-11-18-room-and-batches.md). So training begins in a small *room*, and where the network that results
is crowded, another one is trained in a room of twice the size, and the better of the two is kept. There are few rooms, so that
most tables share their compiled programs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import numpy as np

from meristem.compact import compact
from meristem.estimators.base import HELD_OUT_LINGER, Estimator
from meristem.estimators.defaults import ClassifierDefaults, RegressorDefaults, predictability
from meristem.estimators.encoded_table import FEATURES, OUTPUTS, EncodedTable, padded_size
from meristem.inputs.preprocessor import n_numbers
from meristem.memory import check_memory
from meristem.nn import Network
from meristem.nn.network import mask_ends
from meristem.targets import Targets
from meristem.train.callbacks import LargerNetworks
from meristem.train.hyperparameters import Knobs, Recipe
from meristem.train.objectives import Binary, Multilabel, Objective
from meristem.train.train_state import Plateau, TrainState, start

FOLLOW_FROM = 10**9  # multiply-adds per epoch on a CPU, from which compiling a program for the open units is worth its time
B2 = 0.95  # of Adam: steps on tables are few and noisy, so an average over 20 of them is better than one over 1000
LINGER = 3.0  # where no rows are held out, only the penalty makes the network small, which takes longer
FIRST_LEAVES = 4  # the initial capacity of a tree
CROWDED, FILLING = 0.5, 0.25  # of all units; at the middle penalty, without which no larger room is tried
TREE_COMPILES, STACK_COMPILES = 1.95, 1.2  # times as long programs of the next room compile: of four leaves, of more layers


class Room(NamedTuple):
    """The width and the layers, of a tree the most leaves, of a network's arrays."""

    width: int
    depth: int


FIRST = Room(32, 2)


@dataclass(eq=False, repr=False, kw_only=True)
class TrainingSettings(Estimator):
    """The settings of one training; a value per class says which body it has and what "auto" means."""

    penalty: float | str = "auto"
    l2: float | str = "auto"
    input_dropout: float | str = "auto"
    early_stopping: bool | str = "auto"
    validation_fraction: float = 0.2
    warm_start: bool = False

    _body: ClassVar[str]
    _defaults: ClassVar[ClassifierDefaults | RegressorDefaults]

    @property
    def _max_capacity(self) -> int:
        """The most leaves of a tree; 1 for stacks."""
        return int(getattr(self, "max_leaves", 1))

    @property
    def _rooms(self) -> list[Room]:
        """The rooms of a training, the smallest first: one, but for what settles; ValueError without memory for all.

        A tree begins with a single leaf, which is what most end with, unless its width is fixed: it would always be crowded.
        """
        is_learned, is_tree = isinstance(self.width, str), self._body == "budding"
        depth = self._max_capacity if is_tree else int(getattr(self, "depth", 1))
        most = Room(int(self.max_width if is_learned else self.width), depth)
        if not self.settle or not (is_learned if is_tree else self._body == "tunnel"):
            return [most]
        first = most._replace(depth=1) if is_tree else FIRST if is_learned else FIRST._replace(width=most.width)
        sizes = list(dict.fromkeys([first, most])) if is_tree else rooms(most, first)
        if len(sizes) > 1:  # the first one is checked when it is made
            check_memory((2 * min(FIRST_LEAVES, depth) if is_tree else depth, most.width, most.width))
        return sizes

    def _most_leaves(self, network: Network) -> int:
        """Return how many leaves a tree may have in the room that it is trained in; 1 for stacks."""
        return next((room.depth for room in self._rooms if room.depth >= network.capacity > 0), self._max_capacity)

    def _network_options(self, room: Room) -> dict[str, Any]:
        """Return the options of `Network.create`."""
        width = {"width": "auto", "max_width": room.width} if isinstance(self.width, str) else {"width": room.width}
        depth: dict[str, Any] = {"depth": room.depth}
        if self._body == "budding":  # a single leaf that never opens needs no bud to show whether it should
            depth = {"capacity": min(FIRST_LEAVES, room.depth), "probe": "bud" if room.depth == self._max_capacity else "zero"}
        return {**width, **depth, "activation": self.activation, "feature_gates": bool(self.feature_gates)}

    def _recipe(self, targets: Targets, rows: int, *, has_dev: bool, work: int, is_patient: bool = False) -> Recipe:
        return Recipe(
            objective=shared_objective(targets.objective),
            batch_size=self._batch_of(rows),
            depth_decay=float(self.depth_decay),
            b2=B2,
            watch="loss",
            select="loss" if has_dev else "cost",
            price=str(self.price),
            settle=bool(self.settle),
            follow=bool(self.settle) and work >= FOLLOW_FROM,
            calibrate=has_dev and targets.objective.outputs_are_logits,
            linger=HELD_OUT_LINGER if is_patient else 1.0 if has_dev else LINGER,
            compile_fast=True,
        )

    def _knobs(self, facts: dict[str, Any], table: EncodedTable, *, is_patient: bool = False) -> Knobs:
        if self.budget is not None and (self.price == "units" or not self.settle):
            raise ValueError(f"budget={self.budget!r} needs a price other than 'units', and settle=True.")
        n, l2, dropout = facts["n_samples_seen_"], self.l2, self.input_dropout
        if isinstance(l2, str):
            l2 = self._defaults.l2(n, table.targets, facts["predictability_"], equal_weights=table.has_equal_weights)
        return Knobs(
            learning_rate=self._rate_of(0 if table.is_stream else len(table.y)),
            penalty=facts["penalty_"] if isinstance(self.penalty, str) else float(self.penalty),
            l2=float(l2),
            dropout=(facts["input_dropout_"] if isinstance(dropout, str) else float(dropout)) or None,
            budget=None if self.budget is None or isinstance(self.budget, str) else float(self.budget),
            patience=float(self._patience(n, is_patient=is_patient)),
            passes=1 if table.is_stream else self._passes(len(table.y)),
        )

    def _facts(self, table: EncodedTable, stored: Mapping[str, Any]) -> dict[str, Any]:
        """Return fitted attributes that are computed from the rows before training, or stored by an earlier one."""
        before = stored.get("n_samples_seen_", 0) if table.is_stream else 0
        facts: dict[str, Any] = {"n_samples_seen_": before + int((table.weight > 0).sum())}
        facts |= {name: stored[name] for name in ("predictability_", "input_dropout_") if name in stored}
        needs_predictability = self._defaults.penalty_needs_predictability and isinstance(self.penalty, str)
        if (needs_predictability or isinstance(self.l2, str)) and "predictability_" not in facts:
            weight = table.weight * table.targets.typical(table.y)
            facts["predictability_"] = predictability(table.x, table.y, weight, table.targets.columns)
        if isinstance(self.input_dropout, str) and "input_dropout_" not in facts:
            facts["input_dropout_"] = self._defaults.dropout(n_numbers(table.x, table.weight))
        if isinstance(self.penalty, str):
            facts["penalty_"] = self._defaults.penalty(table.targets, facts.get("predictability_", 1.0))
        return facts

    def _new_state(self, table: EncodedTable, room: Room, number: int = 0) -> TrainState:
        """Return the state of a network that has not been trained, that of the table's seed or another one."""
        n_in, n_out = table.inputs.n_inputs, table.targets.n_out
        return initial_state(
            np.uint32((table.seed + number) % 2**32),
            np.int32(n_in),
            np.int32(n_out),
            np.float32(table.targets.objective.unused_output),
            body=self._body,
            n_in=padded_size(n_in, FEATURES),
            n_out=n_out if n_out == 1 else padded_size(n_out, OUTPUTS),
            options=tuple(sorted(self._network_options(room).items())),
        )


@dataclass(eq=False, repr=False, kw_only=True)
class Tunnel:
    """The parameters of estimators whose units open one by one."""

    depth: int = 5

    _body: ClassVar[str] = "tunnel"


@dataclass(eq=False, repr=False, kw_only=True)
class Budding:
    """The parameters of estimators whose layers split in two."""

    max_leaves: int = 4

    _body: ClassVar[str] = "budding"
    _rows_per_doubling: ClassVar[int] = 4000  # with larger batches trees were worse on tables of 2,000 to 4,500 rows


@dataclass(eq=False, repr=False, kw_only=True)
class Highway:
    """The parameters of baselines, whose size is fixed."""

    width: int | str = 64
    price: str = "units"
    settle: bool = False
    depth: int = 5

    _body: ClassVar[str] = "highway"


def rooms(most: Room, first: Room = FIRST) -> list[Room]:
    """Return the rooms up to the largest, the smallest first; one that is nearly as large as the largest is left out."""
    room = Room(min(first.width, most.width), min(first.depth, most.depth))
    sizes = [room]
    while room != most:
        doubled = Room(min(2 * room.width, most.width), min(2 * room.depth, most.depth))
        room = most if most.width < 2 * doubled.width and most.depth < 2 * doubled.depth else doubled
        sizes.append(room)
    return sizes


def is_crowded(network: Network, room: Room) -> bool:
    """Return whether more than half of the units are open."""
    return open_share(network, room) > CROWDED


def open_share(network: Network, room: Room) -> float:
    """Return the share of the units that are open."""
    return sum(compact(network).units) / (room.width * room.depth)


def larger_networks(sizes: list[Room], number: int, *, is_tree: bool, is_sure: bool = False) -> LargerNetworks | None:
    """Return what watchers are told of the next room, None if there is none.

    >>> larger_networks([Room(32, 2), Room(64, 5)], 0, is_tree=False), larger_networks([Room(64, 4)], 0, is_tree=True)
    (LargerNetworks(size=5.0, compiling=1.2, is_sure=False), None)
    """
    if number + 1 >= len(sizes):
        return None
    room, larger = (size.width * size.depth for size in sizes[number : number + 2])
    return LargerNetworks(larger / room, TREE_COMPILES if is_tree else STACK_COMPILES, is_sure)


def shared_objective(objective: Objective) -> Objective:
    """Return an equivalent objective whose programs others share: two classes are trained as one label."""
    return Multilabel() if objective == Binary() else objective


# It runs once: compiling it without optimizations takes half the time.
@partial(jax.jit, static_argnames=("body", "n_in", "n_out", "options"), compiler_options={"xla_backend_optimization_level": 0})
def initial_state(
    seed: Any, used_in: Any, used_out: Any, unused_output: Any, *, body: str, n_in: int, n_out: int, options: tuple[Any, ...]
) -> TrainState:
    """Return the state before the first epoch of a network, of which `used_in` inputs and `used_out` outputs are no padding."""
    keys = jax.random.split(jax.random.key(seed))
    network = Network.create(body, n_in, n_out, key=keys[0], **dict(options))
    return start(mask_ends(network, used_in, used_out, unused_output), keys[1], Recipe())


def continued(state: TrainState) -> TrainState:
    """Return the state with the same network and moments, and with the schedule and the best loss reset."""
    inf, zero, no = jax.device_put((np.full_like(state.best[0], np.inf), np.int32(0), np.False_))
    return eqx.tree_at(lambda s: (s.plateau, s.best, s.diverged), state, (Plateau(inf, zero, zero), (inf, inf), no))
