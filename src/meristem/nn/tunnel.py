"""Tunnel networks (equations 1 and 2): every unit has a gate between copying its input and a nonlinearity.

h_l = g_l · σ(W_l h_{l−1} + b_l) + (1 − g_l) · h_{l−1}          g_l ∈ [0, 1]^width, at first 0
price = Σ_l Σ_k g_lk                                            and Σ t, where the width of the trunk is learned (trunk.py)
"""

from typing import ClassVar, Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from meristem.check import check_size
from meristem.gate import Confined
from meristem.nn.activation import ACTIVATIONS, check_activation
from meristem.nn.body import Body, Maps, by_layer, layered_axes
from meristem.nn.linear import he_layer
from meristem.nn.structure import Gates
from meristem.nn.trunk import counted, read, trunk_gates, with_price

SHUT = 0.05  # a gate below it hardly does anything
OPEN = 0.95  # of the units with gates above 1/2: it wants more room


class Tunnel(Body):
    """`depth` layers of `width` units, all closed at first: the identity.

    >>> import jax, jax.numpy as jnp
    >>> tunnel = Tunnel(width=3, depth=2, key=jax.random.key(0))
    >>> tunnel(jnp.array([1.0, 2.0, 3.0])).tolist()
    [1.0, 2.0, 3.0]
    """

    weight: Float[Array, "depth width width"]
    bias: Float[Array, "depth width"]
    gate: Confined  # [depth width]; 0 copies, 1 transforms
    activation: str = eqx.field(static=True)
    trunk: Confined | None  # [width]

    copies_pay: ClassVar[bool] = True

    def __init__(self, width: int, depth: int, *, activation: str = "relu", learn_width: bool = False, key: PRNGKeyArray):
        width, depth = check_size("width", width), check_size("depth", depth)
        self.weight, self.bias = he_layer(key, (depth, width, width))
        self.gate = Confined(jnp.zeros((depth, width)))
        self.activation = check_activation(activation)
        self.trunk = trunk_gates(width, learn_width)

    def priced(self, x: Float[Array, " width"]) -> tuple[Float[Array, " width"], Float[Array, ""]]:
        sigma = ACTIVATIONS[self.activation]
        # Unstacked once: the gradient of indexing the stack in every layer is a scatter in every layer.
        for weight, bias, gate in zip(*map(jnp.unstack, (self.weight, self.bias, self.gate.value)), strict=True):
            x = gate * sigma(weight @ read(self.trunk, x) + bias) + (1 - gate) * x
        return read(self.trunk, x), with_price(self.trunk, self.gate.value.sum())

    def half_norm(self) -> Float[Array, ""]:
        # A closed unit sees no error; under Adam L2 alone would shrink it at the full rate.
        is_open = self.gate.is_open[..., None]
        if self.trunk is not None:
            is_open = is_open & self.trunk.is_open[None, :, None] & self.trunk.is_open[None, None, :]
        return 0.5 * jnp.where(is_open, self.weight**2, 0).sum()

    def depths(self) -> Self:
        return by_layer(self)

    def trunk_axes(self) -> Self:
        return layered_axes(self)

    def maps(self) -> Maps:
        there = counted(self.trunk, self.width)
        return Maps((self.gate.value * there[None, :]).sum(1), jnp.full(self.depth, there.sum()), 2)

    @property
    def width(self) -> int:
        return self.bias.shape[-1]

    @property
    def depth(self) -> int:
        return self.bias.shape[-2]

    @property
    def learn_width(self) -> bool:
        return self.trunk is not None

    def sizes(
        self, inputs: Float[Array, "n width"], weight: Float[Array | np.ndarray, " n"] | None = None
    ) -> Float[Array, " layers"]:
        return self.gate.value.sum(1)

    def hard_size(self) -> Int[Array, ""]:
        return (self.gate.value > 0).sum(dtype=jnp.int32)

    def live_parameters(self) -> Int[Array, ""]:
        return self.hard_size() * (self.width + 2)  # an open unit's weights, bias and gate

    def structure(self, inputs: Float[Array, "n width"] | None = None) -> Gates:
        return Gates(np.asarray(self.gate.value), "parameters")

    def unopened(self) -> str | None:
        gates = np.asarray(self.gate.value)
        if gates.max() >= SHUT:
            return None
        n_open = int((gates > 0).sum())
        return f"of {n_open} open units none is open by more than {gates.max():.2g}" if n_open else "no unit opened"

    def crowded(self, *, most: int, waited: bool) -> str | None:
        share = (np.asarray(self.gate.value) > 0.5).mean()
        if share <= OPEN:
            return None
        return (
            f"{share:.0%} of the units are open: the network would be larger if it could. "
            "Give it more room (width, depth), or raise penalty."
        )
