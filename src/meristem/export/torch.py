"""A compact network as a PyTorch module: a `torch.nn.Sequential` of modules that do not need meristem.

    (standardize)    categories as 0 and 1, missing values filled, (x − mean) / scale, clipped    if a scaling is passed
    (layer_0) …      one module per layer, named after its kind
    (probabilities)  or (predictions), or nothing after a raw ending

Each layer's formula is recorded by torch.fx (layers/ops/torch.py); print a layer's `.code` to read it. So the module can be
pickled, scripted (torch.jit) and exported (torch.export), and loaded without meristem and jax. Weights are parameters, to be
trained further; gates, shares and scales are buffers. Only this module imports torch, and only when it is used.
"""

from collections import OrderedDict
from typing import Any

import jax
import numpy as np

from meristem.compact import CompactNetwork
from meristem.export.endings import AnyOf, Ending, FeatureScaling, OneOf, Raw, Scaling, Values, check_export, ending_of
from meristem.inputs import Inputs
from meristem.layers.ops.torch import Record
from meristem.nn import Network


def to_torch(network: CompactNetwork | Network, *, scaling: Scaling | None = None, ending: Ending = Raw()) -> Any:
    """Return a `torch.nn.Module`, [N, n_in] → [N, n_out]: outputs (`Raw`), probabilities (`OneOf`, `AnyOf`) or `Values`.

    Of `OneOf` the columns are `module.classes`; of flat `Values` the result is [N]. It computes in the type of the network,
    usually float32, and with a `scaling` takes features of any type, which it scales in float64. With the Inputs of a table it
    takes [N, columns]: numbers, days since 1970-01-01 and codes of categories, as `TableModel.codes` returns them. An example:
    to_torch(network, ending=OneOf(["a", "b", "c"]))(torch.zeros(5, 2)) are probabilities [5, 3].
    """
    torch, small, n_in, n_out, ending = check_export("torch", network, ending)
    dtype = np.float64 if any(leaf.dtype == np.float64 for leaf in jax.tree.leaves(small)) else np.float32
    modules = OrderedDict()
    if scaling is not None:
        record = Record(torch, np.float64)
        x = record.input.double()
        if isinstance(scaling, Inputs) and scaling.schema is not None:
            z = scaling.trace(record, record.split(x, [1] * len(scaling.schema.fields)))
        else:
            z = FeatureScaling.of(scaling, n_in).trace(record, x)
        modules["standardize"] = record.module("Standardize", z.double() if dtype == np.float64 else z)
    for k, layer in enumerate(small.layers):
        record = Record(torch, dtype)
        modules[f"layer_{k}"] = record.module(type(layer).__name__, layer(record, record.input))
    modules |= _last_module(ending, Record(torch, dtype), n_out)
    module = torch.nn.Sequential(modules)
    if isinstance(ending, OneOf):
        module.classes = ending.classes.tolist()
    return module


def torch_of(estimator: Any, *, raw: bool = False) -> Any:
    """Return a `torch.nn.Module`: X → probabilities or predictions; if `raw`, logits or standardized numbers."""
    network = estimator.compact()
    return to_torch(network, scaling=estimator._inputs_, ending=Raw() if raw else ending_of(estimator._targets_))


def _last_module(ending: Ending, record: Record, n_out: int) -> dict[str, Any]:
    torch, z = record.torch, record.input
    match ending:
        case Raw():
            return {}
        case OneOf() if len(ending.classes) == n_out:
            return {"probabilities": torch.nn.Softmax(1)}
        case OneOf():
            return {"probabilities": record.module("Pair", torch.sigmoid(torch.cat([-z, z], 1)))}
        case AnyOf():
            return {"probabilities": torch.nn.Sigmoid()}
        case Values():
            record = Record(torch, ending.dtype)
            z = record.input.double() if ending.dtype == np.float64 else record.input
            y = (z + record.buffer("offset", ending.mean / ending.scale)) * record.buffer("scale", ending.scale)
            y = torch.exp(y) if ending.link == "log" else y
            return {"predictions": record.module("Values", y.squeeze(1) if ending.is_flat else y)}
