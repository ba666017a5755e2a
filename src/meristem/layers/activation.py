"""Activations by name, each in the five forms that anything of meristem computes in: an activation is one entry of this table.

JAX's form is what trains, and the record called as a function; the others must say the same, to rounding, for any finite input
(tests/test_compact_ops.py). A new name also goes into the list in docs/estimators.md, which a test compares.
"""

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from types import ModuleType
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float

from meristem.check import unknown


@dataclass(frozen=True)
class Activation:
    """σ in five forms, applied to each number by itself.

    >>> ACTIVATIONS["relu"].numpy(np.array([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """

    jax: Callable[[Array], Array]
    numpy: Callable[[np.ndarray], np.ndarray]  # keeps the type; may write over what it is given
    onnx: Callable[[Any, str], str]  # node(operator, *inputs) → name, see layers/ops/onnx.py; operator set 17
    torch: Callable[[ModuleType, Any], Any]  # torch is given: nothing here imports it
    c: str  # an expression in z; it may call `exponential`, `sigmoid`, `hyperbolic` and `log_1_plus`, see export/c_functions.py
    is_homogeneous: bool = False  # σ(g z) = g σ(z) for g ≥ 0: a gate may be multiplied into the weights

    def __call__(self, z: Float[Array, "..."]) -> Float[Array, "..."]:
        return self.jax(z)


def _numpy_sigmoid(z: np.ndarray) -> np.ndarray:
    return 0.5 * (1 + np.tanh(0.5 * z))


def _numpy_gelu(z: np.ndarray) -> np.ndarray:
    return 0.5 * z * (1 + np.tanh(np.float32(np.sqrt(2 / np.pi)) * (z + np.float32(0.044715) * z**3)))


def _onnx_gelu(node: Any, z: str) -> str:
    """By tanh: ONNX knows no other before operator set 20."""
    cube = node("Mul", node("Mul", z, z), z)
    inner = node("Add", z, node("Mul", cube, np.float32(0.044715)))
    share = node("Add", node("Tanh", node("Mul", inner, np.float32(np.sqrt(2 / np.pi)))), np.float32(1))
    return node("Mul", node("Mul", z, np.float32(0.5)), share)


def _node(operator: str) -> Callable[[Any, str], str]:
    return lambda node, z: node(operator, z)


def _torch(function: str, **options: Any) -> Callable[[ModuleType, Any], Any]:
    return lambda torch, z: attrgetter(function)(torch)(z, **options)


ACTIVATIONS: dict[str, Activation] = {
    "relu": Activation(jax.nn.relu, lambda z: np.maximum(z, 0, out=z), _node("Relu"), _torch("relu"), "z > 0 ? z : 0", True),
    "tanh": Activation(jax.numpy.tanh, np.tanh, _node("Tanh"), _torch("tanh"), "hyperbolic(z)"),
    "sigmoid": Activation(jax.nn.sigmoid, _numpy_sigmoid, _node("Sigmoid"), _torch("sigmoid"), "sigmoid(z)"),
    "softplus": Activation(
        jax.nn.softplus,
        lambda z: np.logaddexp(z, 0),
        _node("Softplus"),
        _torch("nn.functional.softplus"),
        "z > 0 ? z + log_1_plus(exponential(-z)) : log_1_plus(exponential(z))",
    ),
    # By tanh, as JAX has it by default.
    "gelu": Activation(
        jax.nn.gelu,
        _numpy_gelu,
        _onnx_gelu,
        _torch("nn.functional.gelu", approximate="tanh"),
        "0.5f * z * (1 + hyperbolic(0.7978845608f * (z + 0.044715f * z * z * z)))",
    ),
    "silu": Activation(
        jax.nn.silu,
        lambda z: z * _numpy_sigmoid(z),
        lambda node, z: node("Mul", z, node("Sigmoid", z)),
        _torch("nn.functional.silu"),
        "z * sigmoid(z)",
    ),
    "elu": Activation(
        jax.nn.elu,
        lambda z: np.where(z > 0, z, np.expm1(np.minimum(z, 0))),
        _node("Elu"),
        _torch("nn.functional.elu"),
        "z > 0 ? z : exponential(z) - 1",
    ),
}


def check_activation(name: str) -> str:
    """The name itself, if it is one of ours."""
    if name not in ACTIVATIONS:
        raise unknown("activation", name, list(ACTIVATIONS))
    return name
