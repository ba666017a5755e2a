"""Compact layers, what a trained network is made of, each formula written once: layer.py over the operations in ops/.

Below nn: a body says which layers it is (`Body.compact_layers`). Exports, files and inference read nothing else.
"""
