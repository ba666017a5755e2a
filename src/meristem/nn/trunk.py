"""The trunk: the values h [width] that run through a body, and how many of them there are.

    what a layer reads, and what comes out, is t ⊙ h                t ∈ [0, 1]^width, a gate for each dimension (channel)

With h̃ = t ⊙ h it is the same as t on what enters and on every nonlinearity, and never on a copy:

    h̃_0 = t ⊙ x        h̃_l = g · (t ⊙ σ(W_l h̃_{l−1} + b_l)) + (1 − g) · h̃_{l−1}        y = h̃_L

so that a copied value meets its gate once, however deep the network is. Where t_i = 0, row i of the embedding, row and column i
of every layer and column i of the head take no part, and compaction leaves them out. Its price is Σ t. At first all dimensions
are open: with all closed nothing reaches the gates but through the biases, a saddle.
"""

from jaxtyping import Array, Float

from meristem.gate import Confined


def read(trunk: Confined | None, h: Float[Array, "width ..."]) -> Float[Array, "width ..."]:
    """What a layer reads of the trunk; without gates all of it."""
    return h if trunk is None else trunk.value.reshape(-1, *[1] * (h.ndim - 1)) * h


def with_price(trunk: Confined | None, price: Float[Array, ""]) -> Float[Array, ""]:
    """The price of a body, and that of its trunk where its width is learned: the soft number of dimensions."""
    return price if trunk is None else price + trunk.value.sum()
