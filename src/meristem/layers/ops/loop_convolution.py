"""A convolution whose gradients are convolutions of the same layout, for steps of training, which run inside a loop.

    y[n, p, o] = Σ_{t, i} x[n, p + t, i] K[t, i, o]         x [n, *positions, in]        K [*taps, in, out]

On a CPU XLA brings convolutions into the layout of its fast kernels, which is this one, only outside of loops; in a loop the
gradients that JAX derives take 5 to 40 times as long. So both are written out:

    ∂x   the convolution of ∂y with the flipped kernel, in and out exchanged
    ∂K   the convolution of x with ∂y, where `in` are the samples and `n` are the channels
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array

NAME = "loop_convolution"  # of the operation, by which its products are counted (compact/report.py)
Padding = tuple[tuple[int, int], ...]


def convolution(x: Array, kernel: Array, padding: Sequence[tuple[int, int]]) -> Array:
    """Return y, with so many zeros before and behind each dimension of the positions.

    >>> x, kernel = jnp.arange(4.0).reshape(1, 4, 1), jnp.ones((3, 1, 1))
    >>> convolution(x, kernel, [(1, 1)]).ravel().tolist()
    [1.0, 3.0, 6.0, 5.0]
    """
    result: Array = _primitive.bind(x, kernel, padding=tuple(padding))
    return result


def _compute(x: Array, kernel: Array, *, padding: Padding) -> Array:
    names = "DHW"[-len(padding) :]
    layout = f"N{names}C", f"{names}IO", f"N{names}C"
    return jax.lax.conv_general_dilated(x, kernel, [1] * len(padding), padding, dimension_numbers=layout)


def _abstract(x: Any, kernel: Any, *, padding: Padding) -> Any:
    y = jax.eval_shape(lambda x, kernel: _compute(x, kernel, padding=padding), x, kernel)
    return jax.core.ShapedArray(y.shape, y.dtype)


def _gradient_of_x(dy: Array, x: Any, kernel: Array, *, padding: Padding) -> Array:
    taps = kernel.shape[:-2]
    flipped = jnp.swapaxes(jnp.flip(kernel, range(len(taps))), -1, -2)
    return convolution(
        dy, flipped, [(n - 1 - before, n - 1 - behind) for n, (before, behind) in zip(taps, padding, strict=True)]
    )


def _gradient_of_kernel(dy: Array, x: Array, kernel: Any, *, padding: Padding) -> Array:
    by_channel, by_position = jnp.swapaxes(x, 0, -1), jnp.moveaxis(dy, 0, -2)  # [in, *positions, n], [*positions, n, out]
    return jnp.moveaxis(convolution(by_channel, by_position, padding), 0, -2)


def _batch(arrays: Any, axes: Any, *, padding: Padding) -> tuple[Array, int]:
    (x, kernel), (x_axis, kernel_axis) = arrays, axes
    if kernel_axis is not None:  # a kernel for each: convolutions in groups
        return jax.vmap(lambda x, kernel: _compute(x, kernel, padding=padding), axes)(x, kernel), 0
    x = jnp.moveaxis(x, x_axis, 0)
    y = convolution(x.reshape(-1, *x.shape[2:]), kernel, padding)
    return y.reshape(*x.shape[:2], *y.shape[1:]), 0


_primitive = Primitive(NAME)
_primitive.def_impl(jax.jit(_compute, static_argnames="padding"))
_primitive.def_abstract_eval(_abstract)
mlir.register_lowering(_primitive, mlir.lower_fun(_compute, multiple_results=False))
ad.defbilinear(_primitive, _gradient_of_x, _gradient_of_kernel)
batching.primitive_batchers[_primitive] = _batch
