"""Networks for other programs: an ONNX file, a PyTorch module, a C file. None needs meristem or jax to run."""

from meristem.export.c import c_of as c_of, to_c as to_c
from meristem.export.endings import AnyOf as AnyOf, Ending as Ending, OneOf as OneOf, Raw as Raw, Values as Values
from meristem.export.onnx import onnx_of as onnx_of, to_onnx as to_onnx
from meristem.export.torch import to_torch as to_torch, torch_of as torch_of
