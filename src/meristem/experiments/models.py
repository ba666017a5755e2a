"""The models that studies compare: a body by name, and whether its complexity has a price."""

from inspect import signature
from typing import Any, NamedTuple

from meristem.nn import Network
from meristem.nn.network import BODIES


class Model(NamedTuple):
    """A kind of network."""

    body: str
    is_penalized: bool

    def create(self, n_in: int, n_out: int, *, width: int, depth: int, learns_width: bool = False, key: object) -> Network:
        """A fresh network; `depth` is for bodies of a fixed number of layers."""
        options: dict[str, Any] = {"depth": depth} if "depth" in signature(BODIES[self.body]).parameters else {}
        size: dict[str, Any] = {"width": "auto", "max_width": width} if learns_width else {"width": width}
        return Network.create(self.body, n_in, n_out, **size, key=key, **options)


MODELS = {
    "tunnel": Model("tunnel", is_penalized=True),
    "budding": Model("budding", is_penalized=True),
    "highway": Model("highway", is_penalized=False),
    "highway-penalized": Model("highway", is_penalized=True),
}
