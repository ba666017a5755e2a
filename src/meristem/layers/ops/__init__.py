"""The operations that compact layers compute in, operations.py; and a set of them each for JAX, NumPy, ONNX and PyTorch."""
