"""What a fitted estimator can become: a file, an ONNX graph, a PyTorch module; the doors to where each is made."""

from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from meristem.files.document import PATHS


class Shipping:
    """Methods of every estimator."""

    def save(self, path: PATHS) -> None:
        """Write the estimator to a file, training state included; `meristem.load(path)` gives it back to the bit."""
        from meristem.files.models import save

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
