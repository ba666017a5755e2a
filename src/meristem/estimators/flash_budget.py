"""A budget in bytes of flash: how much a network may cost in training, so that its C file takes no more.

    bytes of a file = those of the smallest network + about bits / 8 for each parameter more

A training keeps within a number of parameters (or what `price` counts); what the file takes is known when there is a network.
So that number is first guessed, and lowered in proportion while the file of the trained network is too large: TRAININGS times
the network is trained again, as long as before; after that its gates are closed without more training.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np

from meristem.compact import CompactNetwork, compact
from meristem.compact.inference import as_numpy
from meristem.estimators.encoded_table import EncodedTable
from meristem.estimators.image_input import EncodedImages, compact_on_pixels
from meristem.export.c import flash_bound
from meristem.export.c_file import COptions
from meristem.export.c_sizes import bytes_of
from meristem.export.endings import ending_of
from meristem.inputs import Inputs
from meristem.layers.image_layers import bag_of
from meristem.nn import Network
from meristem.nn.network import trim_ends
from meristem.sparse import is_sparse
from meristem.targets import Targets
from meristem.train.hyperparameters import Recipe
from meristem.train.run import Run, within_budget
from meristem.train.settle import least_open, smallest
from meristem.train.training_data import Prepared

ROWS, IMAGES = 256, 16  # that set the ranges of integers, on which the size does not depend
TRAININGS, MARGIN = 3, 0.97


@dataclass(frozen=True, eq=False)
class FlashBudget:
    """The bytes that a C file may take, and what it holds besides the network; of images it reads pixels as floats."""

    n_bytes: int
    bits: int | None
    inputs: Inputs | None  # of a table; the network of images scales its pixels itself
    targets: Targets
    rows: np.ndarray  # as the C file reads them
    compacted: Callable[[Network], CompactNetwork]  # a trained network, as it is shipped
    least_cost: float = 0.0  # of the smallest network; of several each
    least_bytes: int = 0  # of the file of the smallest network, or of all of several

    @classmethod
    def of(
        cls,
        estimator: Any,
        table: EncodedTable | EncodedImages,
        network: Network,
        recipe: Recipe,
        n_networks: int = 1,
        columns: tuple[Inputs, np.ndarray] | None = None,
    ) -> Self | None:
        """Return the budget of an estimator, None where it is none of bytes; ValueError where no network is within it.

        `network` has the shape of those to be trained; `columns`: what a table's C file reads in place of the features.
        """
        if not isinstance(estimator.budget, str):
            return None
        if recipe.price == "units" or not recipe.settle:
            raise ValueError(f"budget={estimator.budget!r} needs a price other than 'units', and settle=True.")
        if table.is_stream:
            raise ValueError(f"budget={estimator.budget!r} is for fit; for partial_fit give a number of {estimator.price}.")
        self = cls(bytes_of(estimator.budget), estimator.bits, *_as_shipped(table, columns))
        least = self.bytes_of([least_open(network)] * n_networks)
        if least > self.n_bytes:
            kind = "float" if self.bits is None else f"{self.bits} bits"
            takes = f"{self.n_bytes:,} bytes, and the smallest network's C file takes up to {least:,} in {kind}"
            raise ValueError(f"budget={estimator.budget!r} is {takes}; raise it.")
        return replace(self, least_cost=float(smallest(network, recipe)), least_bytes=least)

    def first(self, n_networks: int = 1) -> float:
        """Return what each of the networks may cost at first."""
        return self.least_cost + (self.n_bytes - self.least_bytes) / ((self.bits or 32) / 8) / n_networks

    def bytes_of(self, networks: list[Network]) -> int:
        """Return the most bytes of the C file of a network, or of the mean of several; they may be padded."""
        return self.compact_bytes(bag_of([self.compacted(network) for network in networks]))

    def compact_bytes(self, network: CompactNetwork) -> int:
        options = COptions("model", bits=self.bits, X=self.rows)
        return flash_bound(network, options, scaling=self.inputs, ending=ending_of(self.targets))

    def limited(
        self, runs: list[Run], prepared: Prepared, retrained: Callable[[float, int], list[Run] | None] | None = None
    ) -> list[Run]:
        """Return the runs, or others whose best networks' file is within the budget.

        `retrained(cost, number)` trains the networks another time, to cost no more, or returns None where there is no time.
        """
        number, cost = 0, np.inf
        while (takes := self.bytes_of([run.best for run in runs])) > self.n_bytes:
            if cost <= self.least_cost:  # it costs no more than the smallest network, but has other layers or inputs
                return [replace(run, best=least_open(run.best)) for run in runs]
            allowed = float(np.max(np.asarray(runs[0].knobs.budget)))
            share = (self.n_bytes - self.least_bytes) / (takes - self.least_bytes)
            cost = self.least_cost + MARGIN * share * (allowed - self.least_cost)
            cost = cost if cost >= self.least_cost + 1 else self.least_cost
            number += 1
            trained = retrained(cost, number) if retrained is not None and number <= TRAININGS else None
            runs = trained or [within_budget(replace(run, knobs=run.knobs._replace(budget=cost)), prepared) for run in runs]
        return runs


def _as_shipped(table: EncodedTable | EncodedImages, columns: tuple[Inputs, np.ndarray] | None) -> tuple[Any, ...]:
    """Return the inputs, the targets, some rows, and what makes a trained network compact."""
    targets = table.targets
    if isinstance(table, EncodedImages):
        return None, targets, table.x[:IMAGES], partial(compact_on_pixels, takes_bytes=table.x.dtype == np.uint8)
    few = table.x[:ROWS]
    inputs, rows = (table.inputs, few.toarray() if is_sparse(few) else few) if columns is None else columns

    def compacted(network: Network) -> CompactNetwork:
        return as_numpy(compact(trim_ends(network, inputs.n_inputs, targets.n_out)))

    return inputs, targets, np.asarray(rows[:ROWS], float), compacted
