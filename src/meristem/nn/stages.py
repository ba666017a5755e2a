"""Several parts one after another as one body: stages with trunks of their own, and the maps between them.

    Stages([first, map, second])        what leaves a part enters the next; the price is the sum of the bodies' prices

A part is a body, or a map such as `Linear`, whose rows are the trunk of the body after it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from meristem.layers.layer import Layer
from meristem.nn.axes import ArrayAxes, Axes, Axis, is_entry
from meristem.nn.body import Body, GrowthInfo, Part, described, is_body
from meristem.nn.model_growth import grow_each, with_mirrors


class Stages(Body):
    """The parts in their order.

    >>> from meristem.nn import Linear, Tunnel
    >>> keys = jax.random.split(jax.random.key(0), 3)
    >>> body = Stages([Tunnel(3, 2, key=keys[0]), Linear(3, 5, key=keys[1]), Tunnel(5, 2, key=keys[2])])
    >>> body(jnp.ones(3)).shape, body.axes().trunks
    ((5,), ('trunk', 'out 2'))
    """

    parts: tuple[Part, ...]
    positions: tuple[int, ...] = eqx.field(static=True)  # of what enters

    def __init__(self, parts: Any):
        self.parts = tuple(parts)
        if not self.parts or not all(isinstance(part, Part) for part in self.parts):
            raise ValueError("parts must be bodies and maps of meristem.nn, at least one: Stages([Tunnel(…), Linear(…), …]).")
        self.positions = getattr(self.parts[0], "positions", ())

    def priced(self, x: Float[Array, "..."]) -> tuple[Float[Array, "..."], Float[Array, ""]]:
        total = jnp.zeros((), x.dtype)
        for part in self.parts:
            if isinstance(part, Body):
                x, price = part.priced(x)
                total = total + price
            else:
                x = part(x)
        return x, total

    def axes(self, inputs: Any = None, weight: Any = None) -> Axes:
        """What leaves a part and what enters the next is one axis, with the gates of whichever has some.

        All other names of the parts after the first get a number behind them, and the depths of their layers go on where those
        of the part before ended.
        """
        declared: list[Axes] = []
        axes: dict[str, Axis] = {}
        trunks: list[str] = []
        depth: Callable[[], Any] = lambda: 0  # noqa: E731
        for number, part in enumerate(self.parts, start=1):
            own = part.axes(inputs, weight) if isinstance(part, Body) else part.axes()
            inputs = None if inputs is None else jax.vmap(part)(inputs)
            if declared:
                entries = jax.tree.leaves(own.arrays, is_leaf=is_entry)
                names = {*own.axes, *own.trunks, *(name for entry in entries for name in entry.names)}
                own = renamed(own, {name: f"{name} {number}" for name in names} | {own.trunks[0]: trunks[-1]})
            for name, axis in own.axes.items():
                if name not in axes or axes[name].openness is None:
                    axes[name] = _deeper(axis, depth) if declared else axis
            trunks, depth = [*trunks, *own.trunks], _end_of(own, depth)
            declared.append(own)
        in_use = [own.in_use for own in declared if own.in_use is not None]
        shares = [own.n_shares for own in declared if own.n_shares is not None]
        return Axes(
            _with_parts(self, [own.arrays for own in declared]),
            axes,
            size=tuple(name for own in declared for name in own.sizes),
            trunks=tuple(dict.fromkeys(trunks)),
            capacity=max(own.capacity for own in declared),
            in_use=(lambda: reduce(jnp.maximum, [count() for count in in_use])) if in_use else None,
            is_fused=declared[0].is_fused,
            n_shares=(lambda: sum(count() for count in shares)) if shares else None,
        )

    def compact_layers(self) -> list[Layer]:
        return [layer for part in self.parts for layer in part.compact_layers()]

    def after_update(self, mirrors: Sequence[Any], key: PRNGKeyArray) -> tuple[Self, list[Any], GrowthInfo]:
        numbers = [number for number, part in enumerate(self.parts) if is_body(part)]
        copies = [mirror.parts for mirror in mirrors]
        parts, moved, info = grow_each(self.parts, copies, lambda index: jax.random.fold_in(key, numbers[index]))
        return _with_parts(self, parts), list(map(_with_parts, mirrors, moved)), info

    def with_capacity(self, capacity: int, mirrors: Sequence[Any]) -> tuple[Self, list[Any]]:
        copies = [mirror.parts for mirror in mirrors]
        parts, moved = with_mirrors(lambda part, own, _: part.with_capacity(capacity, own), self.parts, copies)
        return _with_parts(self, parts), list(map(_with_parts, mirrors, moved))

    def options(self) -> dict[str, Any]:
        return {"parts": [described(part) for part in self.parts]}

    def fault(self) -> str | None:
        return next((fault for part in self.parts if (fault := part.fault()) is not None), None)


def _with_parts(body: Any, parts: Sequence[Any]) -> Any:
    """The same body of other parts, whatever they hold: arrays, entries of a declaration, nothing."""
    return eqx.tree_at(lambda b: b.parts, body, tuple(parts))


def renamed(declared: Axes, names: Mapping[str, str]) -> Axes:
    """The same declaration with other names: two stages of a network have a trunk each."""

    def new(name: Any) -> Any:
        return names.get(name, name)

    def entry(own: ArrayAxes) -> ArrayAxes:
        return own._replace(names=tuple(map(new, own.names)), reads=new(own.reads))

    return replace(
        declared,
        arrays=jax.tree.map(entry, declared.arrays, is_leaf=is_entry),
        axes={new(name): replace(axis, per=new(axis.per), on=new(axis.on)) for name, axis in declared.axes.items()},
        size=tuple(map(new, declared.sizes)),
        trunks=tuple(map(new, declared.trunks)),
    )


def _end_of(declared: Axes, begin: Callable[[], Any]) -> Callable[[], Any]:
    """How deep the layers of a part go that begin at a depth; asked for when rates are."""
    axes = [axis for axis in declared.axes.values() if axis.depth is not None]

    def end() -> Any:
        layers = [axis.part_of[1] if axis.part_of is not None else axis.depth().max() + 1 for axis in axes if axis.depth]
        return begin() + jnp.stack([jnp.asarray(n, jnp.int32) for n in layers]).max()

    return end if axes else begin


def _deeper(axis: Axis, by: Callable[[], Any]) -> Axis:
    own = axis.depth
    return axis if own is None else replace(axis, depth=lambda: own() + by())
