"""Tunnel networks (equations 1 and 2): every unit has a gate between copying its input and a nonlinearity.

h_l = g_l · σ(W_l h_{l−1} + b_l) + (1 − g_l) · h_{l−1}          g_l ∈ [0, 1]^width, at first 0
price = Σ_l Σ_k g_lk                                            and Σ t, where the width of the trunk is learned (trunk.py)
"""

from typing import Any, ClassVar, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped

from meristem.check import check_size
from meristem.gate import Confined
from meristem.nn.activation import ACTIVATIONS, check_activation
from meristem.nn.body import Body, Live, Maps, Mesh, by_layer, is_mesh, layered_axes
from meristem.nn.deep import through
from meristem.nn.linear import he_layer
from meristem.nn.rows import Rows, placed, stood
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
    rows: Rows | None  # where the units stand, in a training that leaves closed ones out; None: one on every dimension

    copies_pay: ClassVar[bool] = True

    def __init__(self, width: int, depth: int, *, activation: str = "relu", learn_width: bool = False, key: PRNGKeyArray):
        width, depth = check_size("width", width), check_size("depth", depth)
        self.weight, self.bias = he_layer(key, (depth, width, width))
        self.gate = Confined(jnp.zeros((depth, width)))
        self.activation = check_activation(activation)
        self.trunk = trunk_gates(width, learn_width)
        self.rows = None

    def priced(self, x: Float[Array, " width"]) -> tuple[Float[Array, " width"], Float[Array, ""]]:
        sigma = ACTIVATIONS[self.activation]

        def step(x: Array, layer: Any, arrays: tuple[Any, ...]) -> tuple[Array, None]:
            weight, bias, gate = arrays
            new = gate * sigma(weight @ read(self.trunk, x) + bias) + (1 - gate) * stood(self.rows, layer, x)
            return placed(self.rows, layer, x, new), None

        x, _ = through(step, x, (self.weight, self.bias, self.gate.value))
        return read(self.trunk, x), with_price(self.trunk, self._there().sum())

    def _there(self) -> Float[Array, "depth units"]:
        """The gates of units on open dimensions; of others, 0."""
        if self.trunk is None:
            return self.gate.value
        return jnp.where(self._on(self.trunk.is_open), self.gate.value, 0)

    def _on(self, dimensions: Shaped[Array, " width"]) -> Shaped[Array, "#depth units"]:
        """The values of the dimensions that the units stand on."""
        return dimensions[None, :] if self.rows is None else dimensions.at[self.rows.at].get(mode="fill", fill_value=0)

    def half_norm(self) -> Float[Array, ""]:
        # A closed unit sees no error; under Adam L2 alone would shrink it at the full rate.
        is_open = self.gate.is_open[..., None]
        if self.trunk is not None:
            is_open = is_open & self._on(self.trunk.is_open)[..., None] & self.trunk.is_open[None, None, :]
        return 0.5 * jnp.where(is_open, self.weight**2, 0).sum()

    def depths(self) -> Self:
        return by_layer(self, None if self.rows is None else self.rows.layer)

    def trunk_axes(self) -> Self:
        return layered_axes(self)

    def maps(self) -> Maps:
        there = counted(self.trunk, self.width)
        return Maps((self.gate.value * self._on(there)).sum(1), jnp.full(self.gate.value.shape[-2], there.sum()), 2)

    def open_units(self) -> Bool[np.ndarray, "*members layers width"]:
        return np.asarray(self.gate.value) > 0

    def mesh(self, live: Live) -> Self:
        axes = (live.layers, live.rows, live.dims)
        mine = jax.tree.map(lambda leaf: Mesh(axes[: leaf.ndim]), self)
        return mine if self.trunk is None else eqx.tree_at(lambda b: b.trunk.value, mine, Mesh((live.dims,)), is_leaf=is_mesh)

    def packed(self, arrays: Self, live: Live | None, *, mirrors: bool = False) -> Self:
        rows = None if live is None else Rows(live.layers, live.at, live.unit, self.depth)
        if mirrors:  # where the units stand is no parameter
            rows = jax.tree.map(lambda _: None, rows)
        return eqx.tree_at(lambda b: b.rows, arrays, rows, is_leaf=lambda node: node is None or isinstance(node, Rows))

    @property
    def width(self) -> int:
        return self.weight.shape[-1]

    @property
    def depth(self) -> int:
        return self.bias.shape[-2]

    @property
    def learn_width(self) -> bool:
        return self.trunk is not None

    def sizes(
        self, inputs: Float[Array, "n width"], weight: Float[Array | np.ndarray, " n"] | None = None
    ) -> Float[Array, " layers"]:
        sizes = self._there().sum(1)
        return (
            sizes if self.rows is None else jnp.zeros(self.rows.depth, sizes.dtype).at[self.rows.layer].add(sizes, mode="drop")
        )

    def hard_size(self) -> Int[Array, ""]:
        return (self._there() > 0).sum(dtype=jnp.int32)

    def live_parameters(self) -> Int[Array, ""]:
        return self.hard_size() * (self.width + 2)  # an open unit's weights, bias and gate

    def structure(self, inputs: Float[Array, "n width"] | None = None) -> Gates:
        return Gates(np.asarray(self._there()), "parameters")

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
