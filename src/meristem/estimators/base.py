"""What all estimators share: parameters, the length of training, predictions, and methods that write or display a fitted one.

Parameters are dataclass fields, stored as they are and checked in `fit` (parameters.py); fitted attributes end in an
underscore. Modules that need an extra are imported when they are called.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import jax
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from meristem.compact import CompactNetwork
from meristem.compact.inference import Predictor
from meristem.estimators.input_checks import check_data
from meristem.estimators.size_card import size_card
from meristem.files import save
from meristem.files.atomic_write import PATHS, write_whole
from meristem.sparse import is_sparse, rows_at_once

EPOCHS, STEPS = 300, 6000  # passes over the rows, or steps: the most of a training, whichever is longer
PATIENCE, PATIENCE_STEPS = 10, 300  # likewise, of patience
HELD_OUT_PATIENCE = 40  # passes, with held-out rows: their loss may rise for long before a network finds a difficult pattern
HELD_OUT_LINGER = 0.25  # the share of these that is enough after the first drop of the learning rate
STEPS_PER_EPOCH = 32  # at least: where rows are few, an epoch is several passes
BATCH, MOST_BATCH = 32, 1024
RATE, MOST_RATE_FACTOR = 3e-3, 2.0


@dataclass(eq=False, repr=False, kw_only=True)
class Estimator(BaseEstimator):
    """An estimator whose network finds its own size."""

    width: int | str = "auto"
    max_width: int = 64
    feature_gates: bool = False
    price: str = "parameters"
    budget: int | str | None = None
    bits: int | None = 8
    settle: bool = True
    learning_rate: float | str = "auto"
    batch_size: int | str = "auto"
    depth_decay: float = 0.75
    activation: str = "relu"
    max_epochs: int | str = "auto"
    patience: int | str = "auto"
    standardize: bool = True
    random_state: int | None = None
    device: str | None = None
    callbacks: Any = None
    verbose: bool = False
    checkpoint_dir: Any = None
    resume: bool = False

    _rows_per_doubling: ClassVar[int] = 1000  # of the batch size
    # Parameters are checked in `fit`, not by the type checker of the tests.
    __no_type_check__: ClassVar[bool] = True

    def _epochs(self, rows: int, share: float = 1.0) -> int:
        """Return the most epochs of a training on so many rows; `share`: of the usual steps."""
        return self._counted(self.max_epochs, EPOCHS, share * STEPS, rows)

    def _patience(self, rows: int, share: float = 1.0, *, is_patient: bool = False) -> int:
        """Return the epochs without a better loss before the learning rate drops; `share`: of the usual steps."""
        return self._counted(self.patience, HELD_OUT_PATIENCE if is_patient else PATIENCE, share * PATIENCE_STEPS, rows)

    def _counted(self, epochs: int | str, passes: int, steps: float, rows: int) -> int:
        """Return the user's number of epochs, or for "auto" that of so many passes or steps, whichever is longer."""
        if not isinstance(epochs, str):
            return int(epochs)
        return -(-max(passes, round(steps / -(-rows // self._batch_of(rows)))) // self._passes(rows))

    def _batch_of(self, rows: int) -> int:
        """Return the batch size; by default 32, doubled from twice `_rows_per_doubling` rows on whenever the rows double."""
        if not isinstance(self.batch_size, str):
            return int(self.batch_size)
        return min(BATCH << max(0, (rows // self._rows_per_doubling).bit_length() - 1), MOST_BATCH)

    def _rate_of(self, rows: int) -> float:
        """Return the learning rate; by default it grows with the square root of the batch size, up to twice."""
        if not isinstance(self.learning_rate, str):
            return float(self.learning_rate)
        return RATE * float(np.clip(np.sqrt(self._batch_of(rows) / BATCH), 1.0, MOST_RATE_FACTOR))

    def _passes(self, rows: int) -> int:
        """Return the passes over the rows in an epoch; 1 where the user counts epochs."""
        are_counted = not isinstance(self.max_epochs, str) or not isinstance(self.patience, str)
        return 1 if are_counted else max(1, STEPS_PER_EPOCH // -(-rows // self._batch_of(rows)))

    def _outputs(self, X: Any, compute: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Return what `compute` makes of the network inputs of all rows, dense ones; warn of rows that are not finite."""
        check_is_fitted(self)
        x, inputs = check_data(self, X, reset=False), self._inputs_
        step = rows_at_once(inputs.n_inputs) if is_sparse(x) else x.shape[0]
        outputs = np.concatenate([compute(inputs(x[at : at + step])) for at in range(0, x.shape[0], step)])
        if not (is_valid := np.isfinite(outputs).reshape(len(outputs), -1).all(1)).all():
            warnings.warn(
                f"{type(self).__name__} has no finite prediction for {(~is_valid).sum()} of {len(is_valid)} rows, such as row "
                f"{is_valid.argmin()}: they overflow a float. Check the scale of X, and fit again.",
                RuntimeWarning,
                stacklevel=3,
            )
        return outputs

    @property
    def _predictor_(self) -> Predictor:
        """The compact network, ready for NumPy."""
        ready: Predictor | None = self.__dict__.get("_ready_")
        if ready is None or ready.network is not self._compact_:
            ready = self._ready_ = Predictor(self._compact_)
        return ready

    def compact(self) -> CompactNetwork:
        """Return the network without closed gates, of a bag all of them as one; it takes standardized features."""
        check_is_fitted(self)
        return jax.device_put(self._compact_)

    @property
    def n_parameters_(self) -> int:
        return self._compact_.n_parameters

    def save(self, path: PATHS) -> None:
        """Write the estimator with its training state to a file, which `meristem.load(path)` restores to the bit."""
        check_is_fitted(self)
        save(path, self)

    def to_onnx(self, path: PATHS, **options: Any) -> Path:
        """Write the compact network as an ONNX file, including scaling and probabilities.

        Its input is "X" [N, features], float32; double if rounding a column to float32 would change predictions, such as
        seconds since 1970. With bits=8 and the training rows X weights are int8, and the file is smaller.
        """
        from meristem.export import onnx_of

        check_is_fitted(self)
        return onnx_of(self, path, **self._with_checked_rows(options))

    def to_c(self, path: PATHS, **options: Any) -> Path:
        """Write the compact network as a C99 file without dependencies, and its header, including scaling and probabilities.

        The function is `int NAME_predict(const float *x, float *y)`; docs/devices.md shows how to use it. Options are those of
        `meristem.export.to_c`: numbers, class_names, bits (with the training rows X) and budget.
        """
        from meristem.export import c_of

        check_is_fitted(self)
        return c_of(self, path, **self._with_checked_rows(options))

    def _with_checked_rows(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return options of an export whose rows X, if any, have been checked; of sparse ones some."""
        if options.get("X") is None:
            return options
        rows = check_data(self, options["X"], reset=False)
        if is_sparse(rows):
            rows = rows[np.random.default_rng(0).permutation(rows.shape[0])[: rows_at_once(rows.shape[1])]].toarray()
        return options | {"X": rows}

    def to_torch(self) -> Any:
        """Return the compact network as a plain `torch.nn.Module`, including scaling and probabilities."""
        from meristem.export import torch_of

        check_is_fitted(self)
        return torch_of(self)

    def report(self, path: PATHS, X: Any = None, y: Any = None, *, train: Any = None) -> Path:
        """Write an HTML report with scores on X and y, a comparison with simpler models, and the structure of the network.

        X and y are rows that were not trained on. With the training rows, `train=(X, y)`, the baselines are fitted to them;
        without, the constant is the best one for X and y, and the others are cross-validated on them.
        The file is self-contained; see docs/report.md.
        """
        from meristem.report import from_estimator, render_page

        check_is_fitted(self)
        if missing := [name for name, value in (("X", X), ("y", y)) if value is None]:
            names = f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'}"
            raise ValueError(f"{names} not given; a report needs rows that were not trained on: report(path, X, y).")
        write_whole(path, render_page(from_estimator(self, X, y, train)).encode())
        return Path(path)

    def _repr_html_inner(self) -> str:
        """Return scikit-learn's diagram, followed by the size and structure of a fitted estimator."""
        return super()._repr_html_inner() + (size_card(self) if self.__sklearn_is_fitted__() else "")

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        return bundle | ({"text/html": self._repr_html_inner()} if "text/html" in bundle else {})

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_compact_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.target_tags.multi_output = True
        return tags
