"""A compact network applied to a matrix with NumPy alone: nothing is compiled, and any process can do it.

    Predictor(network).outputs(x [n, in]) → [n, out]
    Predictor(network).decisive_outputs(x, unsure) → [n, out], good enough to decide by

The layers compute in double precision, so that a row's output does not depend on the rows beside it (to 1e-15; in single
precision BLAS makes 1e-7 of it). Which class it is can be told in single precision, in half the time, but for the few rows
where it hangs on the last digits. Rows go through in blocks, so that activations stay in the cache.
"""

from collections.abc import Callable, Sequence

import jax
import numpy as np

from meristem.compact.spread import Spread, spread
from meristem.layers.layer import Layer
from meristem.layers.network import CompactNetwork
from meristem.layers.ops.numpy import NUMPY

BLOCK = 1024  # rows
CLOSE = 1e-3  # of the largest output: far more than single precision rounds by


def as_numpy(network: CompactNetwork) -> CompactNetwork:
    """The same network with NumPy arrays."""
    return jax.tree.map(np.asarray, network)


class Predictor:
    """A compact network whose weights have been cast and laid out for NumPy, once for all calls.

    >>> from meristem.layers.layer import Affine
    >>> predictor = Predictor(CompactNetwork((Affine(np.array([[1.0, 2.0]]), None),)))
    >>> predictor.outputs(np.ones((3, 2))).tolist()
    [[3.0], [3.0], [3.0]]
    """

    def __init__(self, network: CompactNetwork):
        self.network = network
        self._layers: dict[type[np.floating], list[Layer | Spread]] = {}

    def layers(self, dtype: type[np.floating]) -> list[Layer | Spread]:
        """The layers in that precision."""
        if dtype not in self._layers:
            cast = jax.tree.map(lambda a: np.asarray(a, dtype), self.network.layers)
            self._layers[dtype] = [spread(layer) for layer in cast]
        return self._layers[dtype]

    def outputs(self, x: np.ndarray, dtype: type[np.floating] = np.float64) -> np.ndarray:
        """Return the outputs [n, out] for rows [n, in]."""
        layers = self.layers(dtype)
        blocks = (x[start : start + BLOCK].astype(dtype, copy=False) for start in range(0, len(x), BLOCK))
        return np.concatenate([_through(layers, block) for block in blocks])

    def decisive_outputs(self, x: np.ndarray, unsure: Callable[[np.ndarray, float], np.ndarray]) -> np.ndarray:
        """Return outputs in single precision; in double for rows of which `unsure(outputs, margin)` says that it matters."""
        rough = self.outputs(x, np.float32)
        margin = CLOSE * float(np.abs(rough).max(initial=0))
        if not np.isfinite(margin):  # more than single precision can hold
            return self.outputs(x)
        rows, fine = unsure(rough, margin), rough.astype(np.float64)
        if rows.any():
            fine[rows] = self.outputs(x[rows])
        return fine

    def __getstate__(self) -> dict[str, CompactNetwork]:
        return {"network": self.network}  # what is pickled holds the weights once

    def __setstate__(self, state: dict[str, CompactNetwork]) -> None:
        self.__init__(state["network"])  # type: ignore[misc]


def outputs(network: CompactNetwork, x: np.ndarray, dtype: type[np.floating] = np.float64) -> np.ndarray:
    """Return the outputs of a network that is asked once.

    >>> from meristem.layers.layer import Affine
    >>> outputs(CompactNetwork((Affine(np.array([[1.0, 2.0]]), None),)), np.ones((3, 2))).tolist()
    [[3.0], [3.0], [3.0]]
    """
    return Predictor(network).outputs(x, dtype)


def _through(layers: Sequence[Layer | Spread], h: np.ndarray) -> np.ndarray:
    """One block of rows. A layer may not write over what it is given: x is the caller's, and a formula may read h twice."""
    h = h.view()
    for layer in layers:
        h.flags.writeable = False
        h = layer(NUMPY, h)
    return h
