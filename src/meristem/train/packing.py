"""Many small arrays as one: what an epoch says of itself crosses to the host at once, not number by number.

    pack(tree) → Packed                     in a compiled program: the bytes of all arrays, one after the other
    unpack(packed) → tree                   on the host: views of these bytes, to the bit

To fetch an array takes about 5 µs on a CPU and 20 on a GPU, however small it is; an epoch of a small network takes 100.
"""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree, UInt8


class Packed(eqx.Module):
    """The bytes, and what they are."""

    data: UInt8[Array, " bytes"]
    structure: Any = eqx.field(static=True)
    leaves: tuple[tuple[tuple[int, ...], str], ...] = eqx.field(static=True)  # shape and type of each array


def pack(tree: PyTree) -> Packed:
    """The arrays of a tree as one.

    >>> packed = pack({"loss": jnp.ones(2), "stopped": jnp.array(True)})
    >>> packed.data.shape
    (9,)
    """
    leaves, structure = jax.tree.flatten(tree)
    arrays = [jnp.asarray(leaf) for leaf in leaves]
    described = tuple((array.shape, array.dtype.name) for array in arrays)
    return Packed(jnp.concatenate([_bytes(array) for array in arrays]), structure, described)


def unpack(packed: Packed) -> PyTree:
    """The tree, of NumPy's arrays. Waits until they are computed.

    >>> unpack(pack({"loss": jnp.ones(2), "epoch": jnp.array(3)}))["epoch"].item()
    3
    """
    data = np.asarray(packed.data)
    leaves, start = [], 0
    for shape, name in packed.leaves:
        dtype = np.dtype(name)
        stop = start + dtype.itemsize * math.prod(shape)
        leaves.append(np.ndarray(shape, dtype, data[start:stop].tobytes()))
        start = stop
    return jax.tree.unflatten(packed.structure, leaves)


def _bytes(array: Array) -> UInt8[Array, " bytes"]:
    if array.dtype == bool:
        return array.astype(jnp.uint8).reshape(-1)
    return jax.lax.bitcast_convert_type(array, jnp.uint8).reshape(-1)
