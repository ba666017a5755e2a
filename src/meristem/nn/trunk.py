"""The trunk: the values h [width] that run through a body, and how many of them there are.

    what a layer reads, and what comes out, is t ⊙ h                t ∈ [0, 1]^width, a gate for each dimension (channel)

With h̃ = t ⊙ h it is the same as t on what enters and on every nonlinearity, and never on a copy:

    h̃_0 = t ⊙ x        h̃_l = g · (t ⊙ σ(W_l h̃_{l−1} + b_l)) + (1 − g) · h̃_{l−1}        y = h̃_L

so that a copied value meets its gate once, however deep the network is. Where t_i = 0, row i of the embedding, row and column i
of every layer and column i of the head take no part, and compaction leaves them out. Its price is Σ t.

At first all dimensions are open: with all closed nothing reaches the gates but through the biases, a saddle.
Imports gate alone; bodies import it.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float, Num

from meristem.gate import Confined


def trunk_gates(width: int, learn_width: bool) -> Confined | None:
    """The gates of a trunk whose width is learned; None: all of it is there, always."""
    return Confined(jnp.ones(width)) if learn_width else None


def read(trunk: Confined | None, h: Float[Array, "width ..."]) -> Float[Array, "width ..."]:
    """What a layer reads of the trunk.

    >>> read(Confined(jnp.array([1.0, 0.5, 0.0])), jnp.ones(3)).tolist()
    [1.0, 0.5, 0.0]
    """
    return h if trunk is None else trunk.value.reshape(-1, *[1] * (h.ndim - 1)) * h


def with_price(trunk: Confined | None, price: Float[Array, ""]) -> Float[Array, ""]:
    """The price of a body, and that of its trunk where its width is learned: the soft number of dimensions."""
    return price if trunk is None else price + trunk.value.sum()


def among(trunk: Confined | None, values: Num[Array, "... width"]) -> Num[Array, "... width"]:
    """The values of the dimensions that are open, 0 for the others: what stands on those is not there.

    >>> among(Confined(jnp.array([1.0, 0.5, 0.0])), jnp.ones(3)).tolist()
    [1.0, 1.0, 0.0]
    """
    return values if trunk is None else jnp.where(trunk.is_open, values, 0)
