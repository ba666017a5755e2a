"""Methods of every fitted estimator that write it: a model file, an ONNX file, a PyTorch module. Each imports what it needs."""

from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from meristem.files.whole import PATHS


class Shipping:
    """save, to_onnx, to_torch."""

    def save(self, path: PATHS) -> None:
        """Write the estimator to a file, training state included; `meristem.load(path)` gives it back to the bit."""
        from meristem.files import save

        check_is_fitted(self)
        save(path, self)

    def to_onnx(self, path: PATHS) -> Path:
        """Write the compact network as an ONNX file, scaling and probabilities included; input "X" [N, features], float32."""
        from meristem.export import onnx_of

        check_is_fitted(self)
        return onnx_of(self, path)

    def to_torch(self) -> Any:
        """The compact network as a plain `torch.nn.Module`, scaling and probabilities included."""
        from meristem.export import torch_of

        check_is_fitted(self)
        return torch_of(self)
