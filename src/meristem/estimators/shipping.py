"""Methods of every fitted estimator that write it: a model file, an ONNX file, a PyTorch module, a page about it.

What needs an extra is imported where it is called.
"""

from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from meristem.files import save
from meristem.files.atomic_write import PATHS


class Shipping:
    """save, to_onnx, to_torch, report."""

    def save(self, path: PATHS) -> None:
        """Write the estimator to a file, training state included; `meristem.load(path)` gives it back to the bit."""
        check_is_fitted(self)
        save(path, self)

    def to_onnx(self, path: PATHS) -> Path:
        """Write the compact network as an ONNX file, scaling and probabilities included.

        Its input is "X" [N, features], float32; double where rounding a column to float32 would change what is said, such as
        seconds since 1970.
        """
        from meristem.export import onnx_of

        check_is_fitted(self)
        return onnx_of(self, path)

    def to_torch(self) -> Any:
        """The compact network as a plain `torch.nn.Module`, scaling and probabilities included."""
        from meristem.export import torch_of

        check_is_fitted(self)
        return torch_of(self)

    def report(self, path: PATHS, X: Any = None, y: Any = None, *, train: Any = None) -> Path:
        """Write a page that says how good it is on X and y, what it is beside simpler models, and what it became.

        X and y are rows that it has not learned from. With `train=(X, y)`, the rows that it has, a constant, a linear model and
        an MLP learn from the same; without, the constant is the best for these rows, and the others learn from other parts of
        them. One HTML file, no network; see docs/report.md.
        """
        from meristem.report import write_report

        check_is_fitted(self)
        if X is None or y is None:
            missing = "X and y are" if X is None and y is None else f"{'X' if X is None else 'y'} is"
            raise ValueError(
                f"{missing} not given; a report needs rows that the model has not learned from: report(path, X, y)."
            )
        return write_report(path, self, X, y, train=train)
