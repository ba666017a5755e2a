"""The settings that shape the compiled program: equal recipes and shapes are one program.

What may differ between the members of a population is in `Knobs`.
"""

import math
from dataclasses import dataclass
from typing import Any

from meristem.check import check_number, check_size, unknown
from meristem.complexity import PRICES
from meristem.train.objectives import Objective, objective
from meristem.train.optimizer import adam, for_models

MEASURES = ["loss", "error", "macro_f1", "cost"]


@dataclass(frozen=True)
class Recipe:
    """How networks are trained; the defaults are the paper's for two spirals.

    objective       "binary" (y of 0 and 1), "multiclass" (y of 0 … n_out − 1), "multilabel" (y [n, n_out] of 0 and 1), or for
                    y [n, n_out] of numbers "squared_error", "absolute_error", "huber", "poisson", "quantile"; or one with
                    parameters of its own, such as `meristem.train.objectives.Quantile((0.1, 0.9))`
    batch_size      samples a step; 1 is online
    depth_decay     a layer's rate relative to the one before it
    b2              how long Adam remembers the squares of gradients: 0.999, a thousand steps
    watch           the development measure of the plateau schedule: "loss", "error" or, for "multilabel", "macro_f1"
    select          that of the best model; ties go to the lower loss. Also "cost": the loss and what the size costs, J
    price           what the penalty is the price of: "units" (the paper's), "parameters" or "multiply-adds"
    settle          whether what is not worth its price closes (train/settle.py): from the first time that the rate shrinks; in
                    the last stage it stays closed, and the model that is kept is one of that stage, the best by the
                    development set, or the last where there is none
    follow          whether what is closed is left out of the steps, from the first time that the rate shrinks, so that their
                    cost follows the size (train/live.py); every fifth epoch is of the whole network until the last stage
    calibrate       whether the loss of a development set is that at the best temperature of the logits (train/temperature.py):
                    what a network has learned, and not how sure of it it is
    patience        epochs without improvement after which the rate shrinks, at last the training ends
    linger          how many times the patience is waited for while it settles: more where closing takes longer than learning
    scales          the factors of the rate, one after the other
    optimizer       None: Adam with an age per layer and layer-wise rates (`meristem.adam(depth_decay)`); or any optax chain.
                    The rate of the knobs times the schedule's factor reaches a chain that ends in `meristem.scale_by_rate()`;
                    one with a rate or an optax schedule of its own follows that, and the plateau only ends the training

    >>> Recipe(objective="multiclass", batch_size=32, watch="error").patience
    20
    >>> import optax
    >>> own = Recipe(optimizer=optax.adam(optax.cosine_decay_schedule(1e-3, 1000)))
    """

    objective: str | Objective = "binary"
    batch_size: int = 1
    depth_decay: float = 0.75
    b2: float = 0.999
    watch: str = "loss"
    select: str = "error"
    patience: int = 20
    scales: tuple[float, ...] = (1.0, 0.3, 0.1)
    optimizer: Any = None
    price: str = "units"
    settle: bool = False
    follow: bool = False
    calibrate: bool = False
    linger: float = 1.0

    def __post_init__(self) -> None:
        task = objective(self.objective)
        object.__setattr__(self, "objective", task)
        for name in ("watch", "select"):
            if getattr(self, name) not in MEASURES:
                raise unknown(name, getattr(self, name), MEASURES)
            if getattr(self, name) == "macro_f1" and not task.outputs_are_labels:
                raise ValueError(f"{name}='macro_f1' needs objective='multilabel'; for {task.name!r} choose loss or error.")
        if self.price not in PRICES:
            raise unknown("price", self.price, PRICES)
        if self.watch == "cost":
            raise ValueError("watch='cost' is no measure of the schedule; choose loss, error or macro_f1.")
        for name in ("batch_size", "patience"):
            check_size(name, getattr(self, name))
        check_number("depth_decay", self.depth_decay, "above 0 and at most 1", lambda v: 0 < v <= 1)
        check_number("linger", self.linger, "above 0", lambda v: 0 < v < math.inf)
        check_number("b2", self.b2, "above 0 and below 1", lambda v: 0 < v < 1)
        object.__setattr__(self, "scales", tuple(self.scales) if isinstance(self.scales, tuple | list) else (self.scales,))
        if not self.scales:
            raise ValueError("scales=() must hold at least one number: the factors of the rate, one after the other.")
        for value in self.scales:
            check_number("scales", value, "above 0", lambda v: 0 < v < math.inf)
        if self.calibrate and not task.outputs_are_logits:
            raise ValueError(f"calibrate=True needs an objective whose outputs are logits, which {task.name!r} has not.")
        for name in ("settle", "follow", "calibrate"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name}={getattr(self, name)!r} must be True or False.")
        if self.settle and len(self.scales) == 1:
            raise ValueError(f"settle=True needs two stages at least, to grow in and to settle in; scales={self.scales}.")
        if self.optimizer is not None and not (hasattr(self.optimizer, "init") and hasattr(self.optimizer, "update")):
            raise ValueError(f"optimizer={self.optimizer!r} must be an optax optimizer, such as optax.adam(1e-3), or None.")

    @property
    def task(self) -> Objective:
        """The objective itself."""
        assert isinstance(self.objective, Objective)
        return self.objective

    @property
    def chain(self) -> Any:
        """The optimizer as training uses it: it takes whole models, and keeps gates in [0, 1]."""
        return adam(self.depth_decay, b2=self.b2) if self.optimizer is None else for_models(self.optimizer)
