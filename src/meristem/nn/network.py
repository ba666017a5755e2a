"""Network = embed → body → head: a linear projection without bias, a body of equal width, a linear output."""

import inspect
from typing import Any, Self

import equinox as eqx
import jax
from jaxtyping import Array, Float

from meristem.check import as_key, check_size, unknown
from meristem.nn.body import Body
from meristem.nn.budding import Budding
from meristem.nn.highway import Highway
from meristem.nn.linear import Linear
from meristem.nn.stack import Plain, Residual
from meristem.nn.tunnel import Tunnel

BODIES = {"tunnel": Tunnel, "budding": Budding, "highway": Highway, "plain": Plain, "residual": Residual}


class Network(eqx.Module):
    """One sample [n_in] → [n_out].

    >>> import jax, jax.numpy as jnp
    >>> network = Network.create("tunnel", n_in=2, n_out=1, width=10, depth=10, key=jax.random.key(0))
    >>> network(jnp.ones(2)).shape
    (1,)
    """

    embed: Linear
    body: Body
    head: Linear

    @classmethod
    def create(cls, body: str, n_in: int, n_out: int, *, width: int = 10, key: Any, **options: Any) -> Self:
        """A fresh network with a body by name.

        `options` go to the body: `activation`; `depth` of a tunnel, highway, plain or residual body, which needs it;
        `gate_bias` of a highway; `capacity` and `probe` of a budding body.
        """
        if body not in BODIES:
            raise unknown("body", body, list(BODIES))
        known = list(inspect.signature(BODIES[body]).parameters)
        for option in options:
            if option not in known or option == "width":
                raise unknown(f"option of body={body!r}", option, [name for name in known if name not in ("width", "key")])
        if "depth" in known and "depth" not in options:
            raise ValueError(f"body={body!r} needs its number of layers: Network.create({body!r}, …, depth=10).")
        embed_key, body_key, head_key = jax.random.split(as_key("key", key), 3)
        width = check_size("width", width)
        return cls(
            Linear(n_in, width, use_bias=False, key=embed_key),
            BODIES[body](width, key=body_key, **options),
            Linear(width, n_out, key=head_key),
        )

    def __call__(self, x: Float[Array, "..."]) -> Float[Array, " out"]:
        if x.ndim != 1:
            raise ValueError(f"A network takes one sample [features], got shape {x.shape}; use jax.vmap(network)(x).")
        return self.priced(x)[0]

    def priced(self, x: Float[Array, " in"]) -> tuple[Float[Array, " out"], Float[Array, ""]]:
        """The output and the body's price."""
        h, price = self.body.priced(self.embed(x))
        return self.head(h), price

    def half_norm(self) -> Float[Array, ""]:
        """½ ‖W‖² over embed, body and head."""
        return 0.5 * ((self.embed.weight**2).sum() + (self.head.weight**2).sum()) + self.body.half_norm()

    def compact(self) -> Any:
        """Exactly the live network, as a `meristem.compact.CompactNetwork`.

        >>> import jax
        >>> network = Network.create("tunnel", n_in=2, n_out=1, depth=10, key=jax.random.key(0))
        >>> [type(layer).__name__ for layer in network.compact().layers]
        ['Affine']
        """
        from meristem.compact import compact  # it knows all bodies, and so imports this file

        return compact(self)
