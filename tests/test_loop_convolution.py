"""The convolution of training steps on a CPU: values and gradients of JAX's own, in the layout that is fast inside a loop."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from meristem.layers.ops.jax import JAX
from meristem.layers.ops.loop_convolution import convolution
from meristem.nn import Network

SHAPES = {
    "row": ((5,), (3,), [(1, 1)]),
    "even": ((5, 6), (2, 4), [(1, 0), (2, 1)]),
    "space": ((3, 4, 2), (3, 1, 2), [(1, 1), (0, 0), (1, 0)]),
}


@pytest.mark.parametrize("name", SHAPES)
def test_values_and_gradients_are_those_of_jax(name):
    positions, taps, padding = SHAPES[name]
    keys = jax.random.split(jax.random.key(0), 2)
    x, kernel = jax.random.normal(keys[0], (3, *positions, 2)), jax.random.normal(keys[1], (*taps, 2, 4))
    names = "DHW"[-len(taps) :]
    layout = f"N{names}C", f"{names}IO", f"N{names}C"

    def of_jax(x, kernel):
        return jax.lax.conv_general_dilated(x, kernel, [1] * len(taps), padding, dimension_numbers=layout)

    def sample_by_sample(x, kernel):
        return jax.vmap(lambda sample: convolution(sample[None], kernel, padding)[0])(x)

    def derived(function):
        cube = jax.value_and_grad(lambda x, kernel: (function(x, kernel) ** 3).sum(), (0, 1))
        twice = jax.jvp(lambda kernel: cube(x, kernel)[1][0], (kernel,), (kernel,))[1]
        return function(x, kernel), cube(x, kernel), twice

    for function in (lambda x, kernel: convolution(x, kernel, padding), sample_by_sample):
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-4), derived(function), derived(of_jax))
    kernels = jnp.stack([kernel, 2 * kernel])
    each = jax.vmap(lambda kernel: convolution(x, kernel, padding))(kernels)
    np.testing.assert_allclose(each[1], 2 * of_jax(x, kernel), rtol=1e-5, atol=1e-5)
    shared = jax.vmap(lambda x, kernel: convolution(x, kernel, padding), (None, 0))(x, kernels)
    np.testing.assert_allclose(shared, each)


def test_it_is_the_operation_of_compact_networks():
    weight, h = jax.random.normal(jax.random.key(0), (4, 2, 3, 2)), jax.random.normal(jax.random.key(1), (2, 5, 6))
    np.testing.assert_allclose(JAX.conv_in_loop(weight, jnp.ones(4), h), JAX.conv(weight, jnp.ones(4), h), rtol=1e-5, atol=1e-5)


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="other devices choose layouts inside loops, too")
@pytest.mark.parametrize(("body", "least"), [("conv-branch", 6), ("conv-inverted", 2), ("conv-tunnel", 6)])
def test_every_convolution_in_a_loop_has_the_layout_that_is_fast_there(body, least):
    """Those of one tap are products: of inverted blocks only the stem is left."""
    network = Network.create(body, input_shape=(8, 8, 2), n_out=3, max_width=(2, 3), depth=1, key=jax.random.key(0))
    x = jnp.ones((4, 8, 8, 2))

    @jax.jit
    def descend(network):
        def step(_, network):
            slopes = jax.grad(lambda network: (jax.vmap(network)(x) ** 2).sum(), allow_int=True)(network)
            return jax.tree.map(lambda a, d: a - 0.1 * d, network, slopes)

        return jax.lax.fori_loop(0, 3, step, network)

    layouts = re.findall(r" convolution\(.*dim_labels=(\S+?)[,\s]", descend.lower(network).compile().as_text())
    assert len(layouts) >= least and set(layouts) == {"b01f_01io->b01f"}
