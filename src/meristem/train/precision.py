"""The precision that a step computes in: weights and moments stay as they are, what runs through the network may be shorter.

bfloat16 has the range of float32 and 8 bits of precision; where matrix units take it, as on a GPU, a step of a convolutional
network takes about half the time. On a CPU it is slower. Gradients are those of the float32 weights; measures are in float32.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PyTree

PRECISIONS = ["float32", "bfloat16"]


def in_precision(precision: str, compute: Callable[..., PyTree], *arguments: PyTree) -> PyTree:
    """Return what a function computes of its arguments with floats of this precision, in that of the arguments.

    >>> float(in_precision("bfloat16", lambda x: x, jnp.asarray(1.001)))
    1.0
    """
    if precision == "float32":  # as they are, be they float64
        return compute(*arguments)

    def cast(tree: PyTree, dtype: Any) -> PyTree:
        return jax.tree.map(lambda leaf: leaf.astype(dtype) if eqx.is_inexact_array(leaf) else leaf, tree)

    return cast(compute(*cast(arguments, jnp.bfloat16)), jnp.result_type(float))
