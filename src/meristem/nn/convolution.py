"""What convolutional bodies share: blocks with gated units, on a trunk [width, *positions] whose width may be learned.

    ConvTunnel     h[c] ← g_c σ((W ∗ h + b)[c]) + (1 − g_c) h[c]       conv_tunnel.py
    ConvBranch     h ← h + V ∗ (g ⊙ σ(W ∗ h + b))                      conv_branch.py
    ConvInverted   h ← h + V (g ⊙ σ(D ∗ σ(U h + b) + c))               conv_inverted.py

A kernel has the dimensions of the positions; as many positions come out as go in, with zeros beyond the edge. A block reads
t ⊙ h, t being the gates of the trunk (body.py); price = Σ g, and Σ t where the width is learned. With `normalize` the argument
of each σ is normalized over the batch (batch_norm.py), which compaction multiplies into W or D: no number more is stored.
"""

import abc
import inspect
import math
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from meristem.check import check_number, check_size
from meristem.gate import Confined
from meristem.layers.activation import ACTIVATIONS, check_activation
from meristem.layers.ops.jax import JAX
from meristem.nn.axes import MAP, TRUNK, UNITS, ArrayAxes, Axes, Standing, declare
from meristem.nn.batch_norm import BatchNorm, is_in_batch
from meristem.nn.body import Body
from meristem.nn.rows import Rows, gated_layers

GATE = 0.1  # where gates start


class Convolutional(Body):
    """A body of `depth` blocks of `units` gated units."""

    bias: Float[Array, "depth units"]
    gate: Confined  # [depth, units]
    trunk: Confined | None  # [width]
    rows: Rows | None  # which units there are, in a training that leaves closed ones out
    norm: BatchNorm | None  # [depth, units], of what the first map of a block gives
    positions: tuple[int, ...] = eqx.field(static=True)
    activation: str = eqx.field(static=True)

    expansion: ClassVar[float | None] = None  # gated channels for each of the trunk, by default; None: they are the trunk's

    def __init__(
        self,
        width: int,
        units: int,
        depth: int,
        positions: Sequence[int],
        *,
        kernel: int = 3,
        activation: str = "relu",
        gate_start: float = GATE,
        learn_width: bool = False,
        normalize: bool = False,
        key: PRNGKeyArray,
    ):
        check_number("gate_start", gate_start, "from 0 to 1", lambda value: 0 <= value <= 1)
        shape = (check_size("depth", depth), check_size("units", units))
        self.bias, self.gate = jnp.zeros(shape), Confined(jnp.full(shape, gate_start, jnp.result_type(float)))
        self.trunk, self.rows = Confined(jnp.ones(check_size("width", width))) if learn_width else None, None
        self.norm = BatchNorm.start(shape) if normalize else None
        self.positions = tuple(check_size("positions", n) for n in positions)
        self.activation = check_activation(activation)
        self.draw_maps(width, (check_size("kernel", kernel),) * len(self.positions), key)

    @abc.abstractmethod
    def draw_maps(self, width: int, taps: tuple[int, ...], key: PRNGKeyArray) -> None:
        """Set the maps of a new body, with kernels of these sizes."""

    normalize = property(lambda self: self.norm is not None)
    units = property(lambda self: self.bias.shape[-1])
    depth = property(lambda self: self.bias.shape[-2])
    learn_width = property(lambda self: self.trunk is not None)

    def columns(self, values: Any) -> Any:
        """Values with a dimension of size 1 behind them for each of the positions: [n, 1, 1], or kernels of one tap."""
        return values.reshape(*values.shape, *[1] * len(self.positions))

    def mapped(self, weight: Array, gates: Array | None, bias: Array | None, x: Array) -> Array:
        """W ∗ (g ⊙ x) + b of one sample, gates [in] or None.

        In a step of training the gates are in the kernel: fewer numbers than values at all positions. Elsewhere they are not,
        since their gradient by a single sample, as settling asks for, would then need that of a kernel for each sample.
        """
        if gates is not None and is_in_batch():
            weight = gated_columns(weight, gates)
        elif gates is not None:
            x = self.columns(gates) * x
        return JAX.conv_in_loop(weight, bias, x)

    def norms(self, norm: BatchNorm | None) -> "list[BatchNorm | None]":
        """The normalization of each block."""
        return [None] * self.depth if norm is None else list(norm.layers())

    def convolved(self, weight: Array, norm: BatchNorm | None, bias: Array, x: Array) -> Array:
        """σ of a map of t ⊙ h, of one sample, normalized or not."""
        z = self.mapped(weight, None if self.trunk is None else self.trunk.value, bias if norm is None else None, x)
        return self.sigma(z if norm is None else norm(bias, z))

    def sigma(self, z: Array) -> Array:
        return ACTIVATIONS[self.activation](z)

    def kernel_axes(self, *names: str, reads: str | None = None) -> ArrayAxes:
        """The entry of a map with these axes and a kernel behind them, which is applied at every position."""
        taps = ("tap",) * len(self.positions)
        return ArrayAxes(("layer", *names, *taps), MAP, math.prod(self.positions), reads or names[-1])

    def block_axes(self, **maps: ArrayAxes) -> Axes:
        """The axes of blocks whose units stand on nothing, and whose gates compaction multiplies into a map."""
        names = ArrayAxes(UNITS.names)
        gates = {"gate": names, "norm": names, "trunk": ArrayAxes((TRUNK,)), "rows": Standing("unit")}
        return gated_layers(declare(self, bias=UNITS, **maps, **gates), self.gate, self.trunk, self.rows, on=None)

    def each_block(self, *stacks: Any) -> Iterator[tuple[np.ndarray, ...]]:
        """For every block with an open unit: which are open, their gates, and its arrays in double precision, on the host."""
        for gate, *arrays in zip(*(np.asarray(stack, np.float64) for stack in (self.gate.value, *stacks)), strict=True):
            if len(rows := np.flatnonzero(gate)):
                yield rows, gate[rows], *arrays

    def options(self) -> dict[str, Any]:
        names = set(inspect.signature(type(self)).parameters) - {"gate_start", "key"}  # the gates are an array
        return {name: getattr(self, name) for name in names} | {"positions": list(self.positions)}


def folded(norm: BatchNorm | None, weight: Any, bias: Any) -> tuple[Any, Any]:
    """A map and its bias as they are after training; a host function."""
    return (weight, bias) if norm is None else norm.folded(weight, bias)


def gated_columns(weight: Any, gates: Any) -> Any:
    """A map [out, in, …] with the gates [in] of what it reads in it: fewer numbers than values at all positions."""
    return weight * gates.reshape(1, -1, *[1] * (weight.ndim - 2))
