"""The operations that compact layers compute in, base.py; and a set of them each for JAX, NumPy, ONNX and PyTorch."""
