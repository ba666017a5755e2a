"""What estimators of one kind of body have in common: its own parameters."""

from dataclasses import dataclass
from typing import Any

from meristem.estimators.base import Growing
from meristem.estimators.settings import Depth, Leaves

FIRST_LEAVES = 4  # that there is room for at first


@dataclass(eq=False, repr=False, kw_only=True)
class Layered(Depth, Growing):
    """A stack of layers: as many as there may be, for a tunnel; as many as there are, for a highway."""

    def _body_options(self) -> dict[str, Any]:
        return super()._body_options() | {"depth": int(self.depth)}


@dataclass(eq=False, repr=False, kw_only=True)
class Fixed(Layered):
    """Of a size that is given: a baseline."""

    width: int | str = 64
    price: str = "units"
    settle: bool = False


@dataclass(eq=False, repr=False, kw_only=True)
class Bud(Leaves, Growing):
    """A tree of layers with at most so many leaves."""

    _body = "budding"

    def _firmness(self, told: float) -> float:
        return 3.0  # it starts as a layer of rectifiers, which can learn noise by heart, however much there is

    def _body_options(self) -> dict[str, Any]:
        return super()._body_options() | {"capacity": min(FIRST_LEAVES, self._max_leaves())}

    def _max_leaves(self) -> int:
        return int(self.max_leaves)
