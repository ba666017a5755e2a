"""A compact network as a PyTorch module: a `torch.nn.Sequential` of modules that know nothing of meristem.

    (standardize)    ((x − mean) − rest) / scale                       where a scaling is given
    (layer_0) …      one module per layer, named after its kind
    (probabilities)  or (predictions), or nothing after a raw ending

Each formula is written once, over stand-ins, and recorded by torch.fx; print a layer's `.code` to read it. So the module can
be pickled, scripted (torch.jit) and exported (torch.export), and opened where there is no meristem and no jax. Weights are
parameters, to be trained further; gates, shares and scales are buffers. Only this file imports torch, and only when it is used.
"""

from collections import OrderedDict
from collections.abc import Callable
from functools import singledispatch
from types import ModuleType
from typing import Any

import numpy as np

from meristem.compact import CompactNetwork, compact
from meristem.compact.layers import Affine, Cascade, Gated, Highway, Layer, Perceptron, Residual, Tree
from meristem.export.ends import AnyOf, Ending, Numbers, OneOf, Raw, check_ending, sizes, standardization
from meristem.nn import Network


def to_torch(network: CompactNetwork | Network, *, scaling: tuple[Any, Any] | None = None, ending: Ending = Raw()) -> Any:
    """A `torch.nn.Module`, [N, n_in] → [N, n_out]: outputs (`Raw`), probabilities (`OneOf`, `AnyOf`) or numbers (`Numbers`).

    Of `OneOf` the columns are `module.classes`; of flat `Numbers` the result is [N]. It computes in the type of the network,
    float32 as a rule, and with a `scaling` takes features of any type; from float64 the mean is subtracted in float64.

    >>> import jax
    >>> from meristem.nn import Network
    >>> network = Network.create("tunnel", n_in=2, n_out=3, depth=10, key=jax.random.key(0))
    >>> module = to_torch(network, ending=OneOf(["a", "b", "c"]))             # doctest: +SKIP
    >>> module(torch.zeros(5, 2)).sum(1)                                      # doctest: +SKIP
    tensor([1., 1., 1., 1., 1.], grad_fn=<SumBackward1>)
    """
    torch, small = _torch(), compact(network)
    n_in, n_out = sizes(small)
    ending = check_ending(ending, n_out)
    dtype = np.float64 if _weight_type(small) == np.float64 else np.float32
    modules = OrderedDict()
    if scaling is not None:
        record = Record(torch, dtype)
        mean, rest, scale = (record.buffer(*pair) for pair in standardization(scaling, n_in, dtype)._asdict().items())
        modules["standardize"] = record.module("Standardize", (((record.input - mean) - rest) / scale).type_as(scale))
    for k, layer in enumerate(small.layers):
        record = Record(torch, dtype)
        modules[f"layer_{k}"] = record.module(type(layer).__name__, apply(layer, record, record.input))
    modules |= finish(ending, Record(torch, dtype), n_out)
    module = torch.nn.Sequential(modules)
    if isinstance(ending, OneOf):
        module.classes = ending.classes.tolist()
    return module


class Record:
    """The forward of one module, recorded while it is computed with `input` and what the methods return."""

    def __init__(self, torch: ModuleType, dtype: Any):
        self.torch, self.dtype = torch, dtype
        self.root, self.graph = torch.nn.Module(), torch.fx.Graph()
        self.tracer = torch.fx.proxy.GraphAppendingTracer(self.graph)
        self.input = self._stand_in(self.graph.placeholder("x"))

    def linear(self, name: str, weight: Any, bias: Any, h: Any) -> Any:
        """W h + b, or W h."""
        n_out, n_in = weight.shape
        linear = self.torch.nn.Linear(n_in, n_out, bias=bias is not None, device="meta")  # draws no random numbers
        linear.weight = self.torch.nn.Parameter(self._tensor(weight))
        if bias is not None:
            linear.bias = self.torch.nn.Parameter(self._tensor(bias))
        self.root.add_module(name, linear)
        return self._stand_in(self.graph.call_module(name, (h.node,)))

    def buffer(self, name: str, values: Any) -> Any:
        """An array that is not trained."""
        self.root.register_buffer(name, self._tensor(values))
        return self._stand_in(self.graph.get_attr(name))

    def module(self, kind: str, output: Any) -> Any:
        """All that led to the output."""
        self.graph.output(output.node)
        return self.torch.fx.GraphModule(self.root, self.graph, kind)

    def _stand_in(self, node: Any) -> Any:
        return self.torch.fx.Proxy(node, self.tracer)

    def _tensor(self, values: Any) -> Any:
        values = np.asarray(values)
        return self.torch.tensor(np.array(values, np.int64 if values.dtype.kind == "i" else self.dtype))


SIGMA: dict[str, Callable[[ModuleType, Any], Any]] = {
    "relu": lambda torch, z: torch.relu(z),
    "tanh": lambda torch, z: torch.tanh(z),
    "sigmoid": lambda torch, z: torch.sigmoid(z),
    "softplus": lambda torch, z: torch.nn.functional.softplus(z),
    "gelu": lambda torch, z: torch.nn.functional.gelu(z, approximate="tanh"),  # as JAX has it by default
    "silu": lambda torch, z: torch.nn.functional.silu(z),
    "elu": lambda torch, z: torch.nn.functional.elu(z),
}


# ---- layers: the formulas of compact.layers, a sample per row


@singledispatch
def apply(layer: Layer, record: Record, h: Any) -> Any:
    """One layer, [N, in] → [N, out]."""
    raise ValueError(f"No PyTorch form is known of a {type(layer).__name__}; register it with export.torch.apply.register.")


def _perceptron(record: Record, layer: Any, h: Any, name: str = "linear") -> Any:
    return SIGMA[layer.activation](record.torch, record.linear(name, layer.weight, layer.bias, h))


@apply.register
def _(layer: Affine, record: Record, h: Any) -> Any:
    return record.linear("linear", layer.weight, layer.bias, h)


@apply.register
def _(layer: Perceptron, record: Record, h: Any) -> Any:
    return _perceptron(record, layer, h)


@apply.register
def _(layer: Residual, record: Record, h: Any) -> Any:
    return _perceptron(record, layer, h) + h


@apply.register
def _(layer: Gated, record: Record, h: Any) -> Any:
    gate, is_whole = record.buffer("gate", layer.gate), len(layer.rows) == layer.weight.shape[1]
    if is_whole:
        return gate * _perceptron(record, layer, h) + (1 - gate) * h
    rows = record.buffer("rows", np.array(layer.rows))
    return h.index_copy(1, rows, gate * _perceptron(record, layer, h) + (1 - gate) * h.index_select(1, rows))


@apply.register
def _(layer: Cascade, record: Record, h: Any) -> Any:
    torch, sigma = record.torch, SIGMA[layer.activation]
    sums, last = torch.split(record.linear("linear", layer.weight, layer.bias, h), _parts(layer), 1), len(layer.couplings)
    active = sigma(torch, sums[0])
    for k, coupling in enumerate(layer.couplings[:-1], start=1):
        new = sigma(torch, sums[k] + record.linear(f"coupling_{k}", coupling, None, active))
        active = torch.cat([active, new], 1)
    return sums[last] + record.linear(f"coupling_{last}", layer.couplings[-1], None, active)


def _parts(layer: Cascade) -> list[int]:
    return [*layer.units, layer.couplings[-1].shape[0]]


@apply.register
def _(layer: Highway, record: Record, h: Any) -> Any:
    gate = record.torch.sigmoid(record.linear("gate", layer.gate_weight, layer.gate_bias, h))
    return gate * _perceptron(record, layer, h) + (1 - gate) * h


@apply.register
def _(layer: Tree, record: Record, h: Any) -> Any:
    active: list[Any] = []
    for j, leaf in enumerate(layer.leaves):
        active.append(SIGMA[layer.activation](record.torch, record.linear(f"leaf_{j}", leaf.weight, leaf.bias, h)))
        shares = record.buffer(f"shares_{j}", leaf.shares)
        first, *others = [shares[i] * active[k] for i, k in enumerate(leaf.reads)]
        h = sum(others, start=first)
    return h


# ---- endings


@singledispatch
def finish(ending: Ending, record: Record, n_out: int) -> dict[str, Any]:
    """The last module by its name, if there is one."""
    raise ValueError(f"ending={ending!r} is not known; give Raw(), OneOf(classes), AnyOf() or Numbers(mean, scale).")


@finish.register
def _(ending: Raw, record: Record, n_out: int) -> dict[str, Any]:
    return {}


@finish.register
def _(ending: OneOf, record: Record, n_out: int) -> dict[str, Any]:
    torch, z = record.torch, record.input
    if len(ending.classes) == n_out:
        return {"probabilities": torch.nn.Softmax(1)}
    return {"probabilities": record.module("Pair", torch.sigmoid(torch.cat([-z, z], 1)))}


@finish.register
def _(ending: AnyOf, record: Record, n_out: int) -> dict[str, Any]:
    return {"probabilities": record.torch.nn.Sigmoid()}


@finish.register
def _(ending: Numbers, record: Record, n_out: int) -> dict[str, Any]:
    y = record.input * record.buffer("scale", ending.scale) + record.buffer("mean", ending.mean)
    return {"predictions": record.module("Numbers", y.squeeze(1) if ending.is_flat else y)}


def _weight_type(network: CompactNetwork) -> Any:
    first: Any = network.layers[0]
    return np.dtype((first.leaves[0] if isinstance(first, Tree) else first).weight.dtype)


def _torch() -> ModuleType:
    try:
        import torch
        import torch.fx
    except ImportError:
        raise ImportError("PyTorch modules need torch; install it with `pip install 'meristem[torch]'`.") from None
    return torch
