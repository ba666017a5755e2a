"""The operations as recorded by torch.fx: the forward of a PyTorch module. A sample is a row: values are [N, units, …].

Weights and biases become parameters, in a `torch.nn.Linear` of the name that the layer gives; gates, rows, shares and scales
become buffers. So the module can be pickled, scripted and exported, and opened where there is no meristem and no jax.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np

from meristem.layers.activation import ACTIVATIONS
from meristem.layers.ops.operations import InputOps, padding


class Record(InputOps[Any]):
    """The forward of one module, recorded while it is computed with `input` and what the operations return."""

    def __init__(self, torch: ModuleType, dtype: Any):
        self.torch, self.dtype = torch, dtype
        self.root, self.graph = torch.nn.Module(), torch.fx.Graph()
        self.tracer = torch.fx.proxy.GraphAppendingTracer(self.graph)
        self.input = self._stand_in(self.graph.placeholder("x"))
        self.prefix = ""

    def module(self, kind: str, output: Any) -> Any:
        """All that led to the output."""
        self.graph.output(output.node)
        return self.torch.fx.GraphModule(self.root, self.graph, kind)

    def buffer(self, name: str, values: Any) -> Any:
        """An array that is not trained."""
        name = self.prefix + name
        self.root.register_buffer(name, self._tensor(values))
        return self._stand_in(self.graph.get_attr(name))

    def pick(self, rows: Sequence[int], h: Any) -> Any:
        return h.index_select(1, self.buffer("rows", np.array(rows)))

    def affine(self, weight: Any, bias: Any, h: Any, *, plus: Any = None, name: str = "linear") -> Any:
        z = self._applied(self.torch.nn.Linear, weight, bias, h, name)
        return z if plus is None else plus + z

    def conv(self, weight: Any, bias: Any, h: Any, *, name: str = "conv") -> Any:
        return self._convolved(weight, bias, h, name, 1)

    def depthwise(self, weight: Any, bias: Any, h: Any, *, name: str = "depthwise") -> Any:
        return self._convolved(weight[:, None], bias, h, name, len(weight))

    def _convolved(self, weight: Any, bias: Any, h: Any, name: str, groups: int) -> Any:
        kind = (self.torch.nn.Conv1d, self.torch.nn.Conv2d, self.torch.nn.Conv3d)[weight.ndim - 3]
        around = [n for pair in reversed(padding(weight.shape[2:])) for n in pair]
        return self._applied(kind, weight, bias, self.torch.nn.functional.pad(h, around), name, groups=groups)

    def pool(self, window: Sequence[int], h: Any) -> Any:
        functional = self.torch.nn.functional
        return (functional.avg_pool1d, functional.avg_pool2d, functional.avg_pool3d)[len(window) - 1](h, list(window))

    def channels_first(self, positions: int, has_channels: bool, h: Any) -> Any:
        return h.movedim(-1, 1) if has_channels else h.unsqueeze(1)

    def _applied(self, kind: Any, weight: Any, bias: Any, h: Any, name: str, *, groups: int | None = None) -> Any:
        """A module of torch with these parameters, applied to h."""
        n_out, n_in, *kernel = weight.shape
        options = {} if groups is None else {"kernel_size": kernel, "groups": groups}
        module = kind(n_in * (groups or 1), n_out, bias=bias is not None, device="meta", **options)  # draws nothing
        module.weight = self.torch.nn.Parameter(self._tensor(weight))
        if bias is not None:
            module.bias = self.torch.nn.Parameter(self._tensor(bias))
        self.root.add_module(self.prefix + name, module)
        return self._stand_in(self.graph.call_module(self.prefix + name, (h.node,)))

    def mean(self, positions: int, h: Any) -> Any:
        return h.mean(list(range(2, 2 + positions)))

    def activate(self, activation: str, z: Any) -> Any:
        return ACTIVATIONS[activation].torch(self.torch, z)

    def scale(self, factor: Any, z: Any, *, name: str) -> Any:
        return self.buffer(name, factor) * z

    def merge_rows(self, gate: Any, rows: Sequence[int], width: int, new: Any, old: Any, *, positions: int = 0) -> Any:
        share = self.buffer("gate", np.asarray(gate).reshape(-1, *[1] * positions))
        if len(rows) == width:
            return self.mix(share, new, old)
        places = self.buffer("rows", np.array(rows))
        return old.index_copy(1, places, self.mix(share, new, old.index_select(1, places)))

    def split(self, z: Any, sizes: Sequence[int]) -> list[Any]:
        parts = self.torch.split(z, list(sizes), 1)
        return [parts[k] for k in range(len(sizes))]

    def concat(self, parts: Sequence[Any]) -> Any:
        return self.torch.cat(list(parts), 1)

    def combine(self, shares: Any, values: Sequence[Any], *, name: str) -> Any:
        factors = self.buffer(name, shares)
        first, *others = [factors[i] * value for i, value in enumerate(values)]
        return sum(others, start=first)

    def one_hot(self, places: Any, width: int, codes: Any) -> Any:
        place = self.buffer("places", np.asarray(places))[codes.long()]
        return (place == self.buffer("columns", np.arange(width))).double()

    def is_missing(self, x: Any) -> Any:
        return (~self.torch.isfinite(x)).double()

    def fill(self, values: Any, x: Any) -> Any:
        return self.torch.where(self.torch.isfinite(x), x, self.buffer("fill", values))

    def standardize(self, mean: Any, scale: Any, x: Any) -> Any:
        return (x - self.buffer("mean", mean)) / self.buffer("scale", scale)

    def limit(self, limit: float, z: Any) -> Any:
        cut = self.torch.clamp(z, -limit, limit)
        return cut + limit * self.torch.tanh((z - cut) / limit)

    def single(self, z: Any) -> Any:
        return z.float()

    @contextmanager
    def named(self, name: str) -> Iterator[None]:
        before, self.prefix = self.prefix, f"{self.prefix}{name}_"
        try:
            yield
        finally:
            self.prefix = before

    def _stand_in(self, node: Any) -> Any:
        return self.torch.fx.Proxy(node, self.tracer)

    def _tensor(self, values: Any) -> Any:
        values = np.asarray(values)
        return self.torch.tensor(np.array(values, np.int64 if values.dtype.kind == "i" else self.dtype))
