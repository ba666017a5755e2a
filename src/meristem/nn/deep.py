"""Layers one after another: written out where they are few, a loop where they are many.

    through(step, x, stacks) → the last x, the second results of all steps        step(x, layer, (a [...], …)) → x, result

A program that has every layer written out computes fastest and compiles in time that grows with the layers: two hundred of them
took minutes. From `DEEP` on the layers are a `scan` over the stacked arrays, never an index into them: the gradient of that
would be a scatter in every layer.

Imports nothing of meristem; the bodies that are stacks import it.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

DEEP = 40  # layers


def through(
    step: Callable[[Any, Any, tuple[Any, ...]], tuple[Any, Any]], x: Float[Array, " width"], stacks: tuple[Any, ...]
) -> tuple[Float[Array, " width"], list[Any] | Array | None]:
    """Return the last x and the steps' second results: a list where layers are written out, stacked in a loop.

    >>> double = lambda x, layer, arrays: (arrays[0] * x, None)
    >>> through(double, jnp.ones(1), (jnp.full((3, 1), 2.0),))[0].tolist()
    [8.0]
    """
    depth = stacks[0].shape[0]
    if depth < DEEP:
        results = []
        # Unstacked once: the gradient of indexing the stack in every layer is a scatter in every layer.
        for layer, arrays in enumerate(zip(*map(jnp.unstack, stacks), strict=True)):
            x, result = step(x, layer, arrays)
            results.append(result)
        return x, results
    x, stacked = jax.lax.scan(lambda x, each: step(x, each[0], each[1]), x, (jnp.arange(depth), stacks))
    return x, stacked
