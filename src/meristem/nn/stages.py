"""Several parts one after another as one body: stages with trunks of their own, and the maps between them.

    Stages([first, map, second])        what leaves a part enters the next; the price is the sum of the bodies' prices

The axes of the parts are chained (axes.py): the rows of a map are the trunk of the body after it. A part is a body, or a map
such as `Linear`. Imports body and linear; nn.network and models of one's own use it.
"""

from collections.abc import Sequence
from typing import Any, Self

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from meristem.layers.layer import Layer
from meristem.nn.axes import Axes
from meristem.nn.body import Body, GrowthInfo, is_body
from meristem.nn.chain import chained
from meristem.nn.part import Part, described


class Stages(Body):
    """The parts in their order.

    >>> from meristem.nn import Linear, Tunnel
    >>> keys = jax.random.split(jax.random.key(0), 3)
    >>> body = Stages([Tunnel(3, 2, key=keys[0]), Linear(3, 5, key=keys[1]), Tunnel(5, 2, key=keys[2])])
    >>> body(jnp.ones(3)).shape, body.axes().trunks
    ((5,), ('trunk', 'out 2'))
    """

    parts: tuple[Part, ...]

    def __init__(self, parts: Any):
        self.parts = tuple(parts)
        if not self.parts or not all(isinstance(part, Part) for part in self.parts):
            raise ValueError("parts must be bodies and maps of meristem.nn, at least one: Stages([Tunnel(…), Linear(…), …]).")

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
        declared = []
        for part in self.parts:
            declared.append(part.axes(inputs, weight) if isinstance(part, Body) else part.axes())
            inputs = None if inputs is None else jax.vmap(part)(inputs)
        return chained(declared, lambda arrays: _with_parts(self, arrays))

    def compact_layers(self) -> list[Layer]:
        return [layer for part in self.parts for layer in part.compact_layers()]

    def after_update(self, mirrors: Sequence[Any], key: PRNGKeyArray) -> tuple[Self, list[Any], GrowthInfo]:
        infos = [GrowthInfo(*[jnp.zeros((), jnp.int32)] * 3)]

        def change(part: Body, own: list[Any], number: int) -> tuple[Body, list[Any]]:
            part, own, info = part.after_update(own, jax.random.fold_in(key, number))
            infos.append(info)
            return part, own

        body, moved = self._each(mirrors, change)
        return body, moved, jax.tree.map(lambda *counts: sum(counts[1:], start=counts[0]), *infos)

    def with_capacity(self, capacity: int, mirrors: Sequence[Any]) -> tuple[Self, list[Any]]:
        return self._each(mirrors, lambda part, own, _: part.with_capacity(capacity, own))

    def options(self) -> dict[str, Any]:
        return {"parts": [described(part) for part in self.parts]}

    def fault(self) -> str | None:
        return next((fault for part in self.parts if (fault := part.fault()) is not None), None)

    def _each(self, mirrors: Sequence[Any], change: Any) -> tuple[Self, list[Any]]:
        """The bodies among the parts, and what mirrors them, changed."""
        parts, moved = list(self.parts), [list(mirror.parts) for mirror in mirrors]
        for number, part in enumerate(parts):
            if is_body(part):
                parts[number], own = change(part, [mirror[number] for mirror in moved], number)
                for mirror, new in zip(moved, own, strict=True):
                    mirror[number] = new
        return _with_parts(self, parts), [_with_parts(old, new) for old, new in zip(mirrors, moved, strict=True)]


def _with_parts(body: Stages, parts: Sequence[Any]) -> Any:
    """The same body of other parts, whatever they hold: arrays, entries of a declaration, nothing."""
    leaves, structure = jax.tree.flatten(body, is_leaf=lambda node: isinstance(node, Part) and node is not body)
    assert len(leaves) == len(parts)
    return jax.tree.unflatten(structure, list(parts))
