"""What every estimator can be told, whether its price is given or found: the parameters that plain ones and CV ones share.

Fields of dataclasses, stored as given and checked in `fit`; what each does stands in parameters.py. base and cv import it.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from sklearn.base import BaseEstimator

EPOCHS, STEPS = 300, 6000  # passes over the rows, or steps: the most of a training, whichever takes longer
PATIENCE, PATIENCE_STEPS = 10, 300  # the same of waiting
PATIENT, HASTE = 40, 0.25  # where rows are held out: passes, as they may get worse for long before a network finds what is hard
#                            to find; and the share of them that is enough once the rate has shrunk
AT_ONCE = 32  # steps: as many passes are one epoch as there are in so many, where rows are few


@dataclass(eq=False, repr=False, kw_only=True)
class Settings(BaseEstimator):
    """Of all estimators."""

    width: int | str = "auto"
    max_width: int = 64
    feature_gates: bool = False
    price: str = "parameters"
    budget: int | None = None
    settle: bool = True
    learning_rate: float = 3e-3
    batch_size: int = 32
    depth_decay: float = 0.75
    activation: str = "relu"
    max_epochs: int | str = "auto"
    patience: int | str = "auto"
    standardize: bool = True
    random_state: int | None = None
    device: str | None = None
    callbacks: Any = None
    verbose: bool = False
    checkpoint_dir: Any = None
    resume: bool = False

    def _epochs(self, rows: int, share: float = 1.0) -> int:
        """The most that a training on so many rows takes; of the steps, a share of what is usual."""
        if not isinstance(self.max_epochs, str):
            return int(self.max_epochs)
        return -(-max(EPOCHS, round(share * STEPS / self._steps(rows))) // self._passes(rows))

    def _patience(self, rows: int, share: float = 1.0, least: int = PATIENCE) -> int:
        """How many epochs without a better loss are waited for; of the steps, a share of what is usual."""
        if not isinstance(self.patience, str):
            return int(self.patience)
        return -(-max(least, round(share * PATIENCE_STEPS / self._steps(rows))) // self._passes(rows))

    def _steps(self, rows: int) -> int:
        """Of a pass over so many rows."""
        return -(-rows // int(self.batch_size))

    def _passes(self, rows: int) -> int:
        """Over so many rows, that are one epoch; where someone counts epochs, one."""
        are_counted = not isinstance(self.max_epochs, str) or not isinstance(self.patience, str)
        return 1 if are_counted else max(1, AT_ONCE // self._steps(rows))

    # A constructor stores what it is given, `fit` says whether it is any good: the suite's type checker has to wait, too.
    __no_type_check__: ClassVar[bool] = True


@dataclass(eq=False, repr=False, kw_only=True)
class Depth(Settings):
    """Of stacks of layers."""

    depth: int = 5


@dataclass(eq=False, repr=False, kw_only=True)
class Leaves(Settings):
    """Of trees."""

    max_leaves: int = 4


@dataclass(eq=False, repr=False, kw_only=True)
class ClassWeight(Settings):
    """Of classifiers."""

    class_weight: dict[Any, float] | str | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class Loss(Settings):
    """Of regressors."""

    loss: str = "squared_error"
    quantiles: tuple[float, ...] = (0.5,)
