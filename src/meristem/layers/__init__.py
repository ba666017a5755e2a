"""Compact layers: what a trained network is made of, each formula written once over a few operations.

    layer.py  the kinds of layer;  ops/  the operations, in JAX, NumPy, ONNX and PyTorch;  activation.py  σ
    compact_network.py  layers one after another;  join.py  a body's layers between embedding and head, in few products

Below nn: a body says which layers it is (`Body.compact_layers`). Exports, files and inference read nothing else.
"""
