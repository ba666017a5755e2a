"""Several parts of a network as one declaration: what leaves a part and what enters the next is one axis.

    chained(parts, arrays) → Axes          renamed(declared, names) → Axes

Imports axes; network and stages import it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from meristem.nn.axes import ArrayAxes, Axes, Axis, Standing, is_entry


def chained(parts: Iterable[Axes], arrays: Callable[[list[Any]], Any]) -> Axes:
    """Return the declaration of parts of which each reads what the one before it says; `arrays` makes one tree of theirs.

    What leaves a part and what enters the next is one axis, with the gates of whichever has some. All other names of the parts
    after the first get a number behind them, and the depths of their layers go on where those of the part before ended.
    """
    all_parts: list[Axes] = []
    axes: dict[str, Axis] = {}
    trunks: tuple[str, ...] = ()
    depth: Callable[[], Any] = lambda: 0  # noqa: E731
    for number, part in enumerate(parts, start=1):
        names = {name: f"{name} {number}" for name in {*part.axes, *_names(part)}} if number > 1 else {}
        if trunks:
            names[part.trunks[0]] = trunks[-1]
        part = renamed(part, names)
        for name, axis in part.axes.items():
            if name not in axes or axes[name].openness is None:
                axes[name] = _deeper(axis, depth) if number > 1 else axis
        trunks, depth = (*trunks, *part.trunks[1 if trunks else 0 :]), _end_of(part, depth)
        all_parts.append(part)
    growing = [part for part in all_parts if part.capacity]
    return Axes(
        arrays([part.arrays for part in all_parts]),
        axes,
        size=tuple(name for part in all_parts for name in part.sizes),
        trunks=tuple(dict.fromkeys(trunks)),
        capacity=max((part.capacity for part in growing), default=0),
        in_use=_most([part.in_use for part in growing if part.in_use is not None]),
        is_fused=all_parts[0].is_fused,
        n_shares=_sum([part.n_shares for part in all_parts if part.n_shares is not None]),
    )


def renamed(declared: Axes, names: Mapping[str, str]) -> Axes:
    """The same declaration with other names: two stages of a network have a trunk each."""
    if not names:
        return declared

    def new(name: Any) -> Any:
        return names.get(name, name)

    def entry(old: Any) -> Any:
        if isinstance(old, Standing):
            return Standing(new(old.axis))
        return old._replace(names=tuple(map(new, old.names)), reads=new(old.reads))

    axes = {new(name): replace(axis, per=new(axis.per), on=new(axis.on)) for name, axis in declared.axes.items()}
    return replace(
        declared,
        arrays=jax.tree.map(entry, declared.arrays, is_leaf=is_entry),
        axes=axes,
        size=tuple(map(new, declared.sizes)),
        trunks=tuple(map(new, declared.trunks)),
    )


def _names(declared: Axes) -> set[str]:
    entries = jax.tree.leaves(declared.arrays, is_leaf=is_entry)
    return {name for entry in entries if isinstance(entry, ArrayAxes) for name in entry.names} | set(declared.trunks)


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


def _most(counts: list[Callable[[], Any]]) -> Callable[[], Any] | None:
    if len(counts) < 2:
        return counts[0] if counts else None
    return lambda: jnp.stack([jnp.asarray(count()) for count in counts]).max(0)


def _sum(counts: list[Callable[[], Any]]) -> Callable[[], Any] | None:
    return (lambda: sum(count() for count in counts)) if counts else None
