"""A part of a network: its embedding, its body, its head, or a map between two stages. Features first, then positions.

A class registers itself for files, by its name in small letters. The last class of a name counts, but for those of meristem.
An embedding also has `input_shape`, the shape of a sample; a head has `n_out`.
"""

import abc
import inspect
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from meristem.layers.layer import Layer
from meristem.nn.axes import Axes

OURS, PART = "meristem.", "part"
REGISTRY: dict[str, type["Part"]] = {}  # the classes that files can name


class Part(eqx.Module):
    """A map of one sample: [in], [in, time] or [in, height, width]."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        name = part_name(cls)
        if not name.startswith("_") and (is_ours(cls) or not is_ours(REGISTRY.get(name, object))):
            REGISTRY[name] = cls

    @abc.abstractmethod
    def __call__(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        """The output of one sample."""

    def axes(self) -> Axes:
        """The axes of its arrays (axes.py), from which all that is counted, priced, closed and left out follows."""
        raise NotImplementedError(f"{type(self).__name__} declares no axes; write its axes(), as meristem.nn.Linear does.")

    def compact_layers(self) -> list[Layer]:
        """The layers that compute the same, of NumPy arrays; none at all: it copies its input. A host function."""
        name = type(self).__name__
        raise ValueError(f"compact() does not know the body {name}: write its compact_layers(), of meristem.compact.layers.")

    def options(self) -> dict[str, Any]:
        """The arguments of the constructor but for the key, as JSON has them; by default the attributes of these names."""
        names = [name for name in inspect.signature(type(self)).parameters if name != "key"]
        missing = [name for name in names if not hasattr(self, name)]
        if missing:
            raise ValueError(
                f"A {type(self).__name__} cannot be saved: its constructor takes {missing[0]!r}, of which it keeps nothing. "
                f"Make it a field or a property, or write options()."
            )
        return {name: getattr(self, name) for name in names}

    def fault(self) -> str | None:
        """What is wrong with its numbers, of one part or of a population; by default all must be finite. A host function."""
        for path, leaf in jax.tree_util.tree_flatten_with_path(self)[0]:
            values = np.asarray(leaf)
            is_float = values.size and jnp.issubdtype(values.dtype, jnp.inexact)
            if is_float and not (np.isfinite(values.min()) and np.isfinite(values.max())):  # a NaN is both
                return f"{jax.tree_util.keystr(path, simple=True, separator='.')} holds numbers that are not finite."
        return None


def described(part: Part) -> dict[str, Any]:
    """Return what files say of a part: its class and its options."""
    name = part_name(type(part))
    if REGISTRY.get(name) is not type(part) and is_ours(REGISTRY.get(name, object)):
        raise ValueError(f"{name!r} is a part of meristem's own; give your {type(part).__name__} another name to save it.")
    return {PART: name, **part.options()}


def part_name(kind: type) -> str:
    return kind.__name__.lower()


def is_ours(kind: type) -> bool:
    return kind.__module__.startswith(OURS)
