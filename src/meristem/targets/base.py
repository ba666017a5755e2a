"""What a meaning of y must say: how y becomes what training takes, and how a network's outputs become y again.

    objective             what it is trained with (train/objectives)
    n_out                 how many outputs the network needs
    encode(y)             as training takes it
    columns(encoded)      the encoded y as numbers [n, columns], for statistics
    typical(encoded)      the rows [n] that statistics should go by
    decode(outputs)       what the outputs [n, n_out] say y is
    pack(), unpack(…)     its form in a file: a header of JSON's values, and arrays

Every kind of targets imports it.
"""

import abc
from typing import Any, ClassVar, Self

import numpy as np

from meristem.train.objectives import Objective


class Targets(abc.ABC):
    """A meaning of y; see the module's header."""

    kind: ClassVar[str]  # its name in files

    @property
    @abc.abstractmethod
    def objective(self) -> Objective:
        """What it is trained with."""

    @property
    @abc.abstractmethod
    def n_out(self) -> int:
        """How many outputs the network needs."""

    @abc.abstractmethod
    def encode(self, y: np.ndarray) -> np.ndarray:
        """As training takes it; a ValueError of one line where it does not fit."""

    def columns(self, encoded: np.ndarray) -> np.ndarray:
        """The encoded y as numbers, [n, columns]."""
        return encoded

    def typical(self, encoded: np.ndarray) -> np.ndarray:
        """The rows [n] that statistics should go by: all, unless outliers are meant to be disregarded."""
        return np.ones(len(encoded), bool)

    @abc.abstractmethod
    def decode(self, outputs: np.ndarray) -> np.ndarray:
        """What the outputs [n, n_out] say y is."""

    @abc.abstractmethod
    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """A header, whose "kind" is the class's, and arrays by name."""

    @classmethod
    @abc.abstractmethod
    def unpack(cls, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        """What `pack` wrote; also what its earliest version wrote."""
