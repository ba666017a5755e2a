"""The interface of targets: how y is encoded for training, and how network outputs are decoded to y."""

import abc
from typing import Any, ClassVar, Self

import numpy as np

from meristem.train.objectives import Objective

Packed = tuple[dict[str, Any], dict[str, np.ndarray]]  # a JSON header, whose "kind" is that of the class; arrays by name


class Targets(abc.ABC):
    """An encoding of y for an `objective`, with `n_out` network outputs."""

    kind: ClassVar[str]  # its name in files

    @property
    @abc.abstractmethod
    def objective(self) -> Objective: ...

    @property
    @abc.abstractmethod
    def n_out(self) -> int: ...

    @abc.abstractmethod
    def encode(self, y: np.ndarray) -> np.ndarray:
        """Return y as training takes it; raise a one-line ValueError if it does not fit."""

    def with_more(self, y: np.ndarray, weight: np.ndarray) -> Self:
        """Return the targets after more rows of a stream."""
        return self

    def columns(self, encoded: np.ndarray) -> np.ndarray:
        """Return the encoded y as numbers [n, columns], for statistics."""
        return encoded

    def typical(self, encoded: np.ndarray) -> np.ndarray:
        """Return which rows [n] are no outliers, for statistics; all, unless the objective is robust to outliers."""
        return np.ones(len(encoded), bool)

    @abc.abstractmethod
    def decode(self, outputs: np.ndarray) -> np.ndarray:
        """Return the predicted y of outputs [n, n_out]."""

    @abc.abstractmethod
    def pack(self) -> Packed:
        """Return what a file holds."""

    @classmethod
    @abc.abstractmethod
    def unpack(cls, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        """Return what any version of `pack` wrote."""
