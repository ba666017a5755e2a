"""The rows that a report is made with: whether they fit the model, what is doubtful about them, their digest.

    X, judge = checked(model, X, y);  caveats(model, X, judge) → sentences;  digest_of(X, y) → SHA-256

Imports judge; evidence and provenance import it.
"""

import hashlib
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import jax
import numpy as np

import meristem
from meristem.inputs import Preprocessor
from meristem.report.judge import CLASS, Judge


def checked(plain: Any, X: Any, y: Any) -> tuple[Any, Judge]:
    """X as the estimator takes it, and what y is; raises ValueError of one line where they do not fit."""
    X, y = plain._checked_rows(X, y, reset=False)
    targets = plain._targets_
    columns = y.shape[1] if y.ndim == 2 else 1
    expected = targets.n_out // len(targets.levels) if hasattr(targets, "levels") else targets.n_out
    if (hasattr(targets, "count") or not hasattr(plain, "classes_")) and columns != expected:
        raise ValueError(f"y has {columns} columns; this model predicts {expected}.")
    return X, Judge.of(plain, y)


def read_features(model: Any) -> np.ndarray:
    """Which features [n_features] any of its networks reads."""
    networks = getattr(model, "estimators_", [model])
    return np.any([plain._inputs_.read_features(plain._input_gates) for plain in networks], axis=0)


def caveats(model: Any, X: Any, judge: Judge) -> list[str]:
    """What is doubtful about the rows that a report is made with."""
    lines = []
    learned, seen = model._inputs_.preprocessor, getattr(model, "n_samples_seen_", None) or model._model_.n_samples_seen_
    if X.shape[0] == seen and _same_means(learned, X):
        lines.append("These are the rows that it learned from, as far as can be told: on others it will be worse.")
    if judge.kind == CLASS and (n := int((judge.y < 0).sum())):
        lines.append(f"{n:,} of the rows have a class that the model has never seen; they count as wrong.")
    if judge.kind == CLASS and len(np.unique(judge.y)) == 1:
        lines.append("All rows are of one class: whether it tells classes apart cannot be seen here.")
    if judge.base.sum() <= 0:
        lines.append("All rows have the same number: R² says nothing here.")
    return lines


def _same_means(learned: Preprocessor, X: Any) -> bool:
    """Whether features have the same mean in these rows as in those that were learned from."""
    return np.allclose(Preprocessor.of(X, selected=learned.selected).fill, learned.fill, rtol=1e-6, atol=0)


def digest_of(X: Any, y: Any) -> str:
    """SHA-256 of the rows: of X as float64, a row after the other, then of y as text."""
    found = hashlib.sha256()
    for at in range(0, X.shape[0], 4096):
        block = X[at : at + 4096]
        found.update(np.ascontiguousarray(block.toarray() if hasattr(block, "toarray") else block, "<f8").tobytes())
    rows = y.toarray() if hasattr(y, "toarray") else np.asarray(y)
    found.update("\n".join(map(str, rows.tolist())).encode("utf-8", "replace"))
    return found.hexdigest()


def versions() -> dict[str, str]:
    """Of what this report was made with."""
    found = {
        "meristem": meristem.__version__,
        "Python": sys.version.split()[0],
        "jax": jax.__version__,
        "NumPy": np.__version__,
    }
    for name in ("equinox", "scikit-learn"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
