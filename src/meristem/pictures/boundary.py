"""What an estimator learned of two features: its predictions as a shaded plane, the samples on top."""

import warnings
from typing import Any

import numpy as np

from meristem.pictures.canvas import canvas
from meristem.pictures.sheet import CLASSES, Axes, between_classes, pale

GRID = 200  # points along each feature
WHITE = 0.55  # in the shading
MARGIN = 0.07  # beyond the samples, of their span
MORE_CLASSES = ("#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#999999")  # Okabe and Ito's
Plane = tuple[np.ndarray, np.ndarray, np.ndarray]  # the two features along their axes [GRID], and all pairs [GRID², 2]


def plot_decision_boundary(estimator: Any, X: Any, y: Any, *, ax: Any = None) -> Axes:
    """Draw what a fitted estimator of two features says around the samples X [n, 2], and these by their y [n].

    Of two classes the probability of the second is shaded, with a line at ½; of more classes the region of each; of a
    regressor the value, samples in the color of their y on the same scale. Any scikit-learn estimator will do.

    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import make_moons
    >>> from meristem.estimators import TunnelClassifier
    >>> X, y = make_moons(100, random_state=0)
    >>> model = TunnelClassifier(max_epochs=3, random_state=0).fit(X, y)
    >>> plot_decision_boundary(model, X, y, ax=Figure().subplots()).get_xlabel()
    'feature 1'
    """
    points, names = _points(estimator, X)
    plane = _plane(points)
    predicted = _asked(estimator, "predict", plane)
    if predicted.ndim == 2 and predicted.shape[1] == 1:
        predicted = predicted[:, 0]
    y = np.asarray(y)
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if predicted.ndim != 1:
        raise ValueError(f"plot_decision_boundary() draws one value per sample; this estimator predicts {predicted.shape[1]}.")
    if y.shape != (len(points),):
        raise ValueError(f"y has shape {y.shape}; it must hold one value for each of the {len(points)} samples of X.")
    with canvas("ax", ax, size=(6.4, 4.8)) as (ax,):
        if hasattr(estimator, "classes_"):
            _classes(ax, estimator, plane, predicted, points, y)
        else:
            _values(ax, plane, predicted, points, y)
        ax.set(xlim=plane[0][[0, -1]], ylim=plane[1][[0, -1]], xlabel=names[0], ylabel=names[1])
    return ax


def _points(estimator: Any, X: Any) -> tuple[np.ndarray, list[str]]:
    """The samples, and what the features are called."""
    points = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
    fitted = getattr(estimator, "n_features_in_", 2)
    if points.ndim != 2 or points.shape[1] != 2 or fitted != 2:
        raise ValueError(
            f"plot_decision_boundary() draws two features, got X of shape {points.shape} and an estimator fitted to {fitted}; "
            "fit one to two columns: fit(X[:, [0, 1]], y)."
        )
    names = list(getattr(X, "columns", ["feature 1", "feature 2"]))
    learned = list(getattr(estimator, "feature_names_in_", names))
    if hasattr(X, "columns") and learned != names:
        raise ValueError(f"X has the columns {names}; the estimator was fitted to {learned}.")
    return points.astype(float), [str(name) for name in learned]


def _plane(points: np.ndarray) -> Plane:
    low, high = points.min(0), points.max(0)
    margin = np.where(high > low, MARGIN * (high - low), 1.0)
    across, up = np.linspace(low - margin, high + margin, GRID).T
    return across, up, np.stack(np.meshgrid(across, up), -1).reshape(-1, 2)


def _asked(estimator: Any, method: str, plane: Plane) -> np.ndarray:
    """What the estimator says all over the plane, which has no names for its columns."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return np.asarray(getattr(estimator, method)(plane[2]))


def _classes(ax: Axes, estimator: Any, plane: Plane, predicted: np.ndarray, points: np.ndarray, y: np.ndarray) -> None:
    from matplotlib.colors import ListedColormap

    classes = np.asarray(estimator.classes_)
    strange = np.setdiff1d(y, classes)
    if strange.size:
        raise ValueError(f"y holds {strange[0]!r}, which is not among the estimator's classes {classes.tolist()}.")
    colors = _class_colors(len(classes))
    probability = _asked(estimator, "predict_proba", plane) if hasattr(estimator, "predict_proba") else None
    if len(classes) == 2 and probability is not None:
        shading = _shade(
            ax, plane, probability[:, 1], cmap=between_classes(colors, WHITE), vmin=0, vmax=1, interpolation="bilinear"
        )
        _border(ax, plane, probability[:, 1] - 0.5)
        _bar(ax, shading, f"probability of {_name(classes[1])}", ticks=[0, 0.25, 0.5, 0.75, 1])
    else:
        regions = ListedColormap([pale(color, WHITE) for color in colors])
        _shade(ax, plane, np.searchsorted(classes, predicted), cmap=regions, vmin=-0.5, vmax=len(classes) - 0.5)
        if probability is not None:
            for k in range(len(classes) if len(classes) > 1 else 0):
                _border(ax, plane, probability[:, k] - np.delete(probability, k, 1).max(1))
    for name, color in zip(classes, colors, strict=True):
        ax.scatter(*points[y == name].T, color=color, label=_name(name), **_marks(points))
    frame = {"frameon": True, "facecolor": "white", "framealpha": 0.85, "edgecolor": "none", "handletextpad": 0.2}
    marks = 1.0 if len(points) <= 1000 else 1.7
    ax.legend(loc="best", ncols=1 if len(classes) <= 8 else 2, markerscale=marks, borderpad=0.3, **frame)


def _values(ax: Axes, plane: Plane, predicted: np.ndarray, points: np.ndarray, y: np.ndarray) -> None:
    """The scale is that of y: a prediction beyond it has the color of its end."""
    y = y.astype(float)
    low, high = float(y.min()), float(y.max())
    scale = {"vmin": low, "vmax": high if high > low else low + 1, "cmap": "viridis"}
    shading = _shade(ax, plane, predicted, interpolation="bilinear", **scale)
    ax.scatter(*points.T, c=y, **scale, **_marks(points))
    below, above = bool(predicted.min() < low), bool(predicted.max() > high)
    extend = {(False, False): "neither", (True, False): "min", (False, True): "max", (True, True): "both"}[below, above]
    _bar(ax, shading, "predicted value; points: y", extend=extend)


def _shade(ax: Axes, plane: Plane, values: np.ndarray, **style: Any) -> Any:
    """The values are at the centers of the pixels."""
    across, up, _ = plane
    dx, dy = (across[1] - across[0]) / 2, (up[1] - up[0]) / 2
    extent = (across[0] - dx, across[-1] + dx, up[0] - dy, up[-1] + dy)
    return ax.imshow(values.reshape(GRID, GRID), origin="lower", extent=extent, aspect="auto", **style)


def _border(ax: Axes, plane: Plane, difference: np.ndarray) -> None:
    if difference.min() < 0 < difference.max():
        ax.contour(*plane[:2], difference.reshape(GRID, GRID), levels=[0], colors="black", linewidths=1.1)


def _bar(ax: Axes, shading: Any, label: str, **options: Any) -> None:
    bar = ax.figure.colorbar(shading, ax=ax, label=label, aspect=30, pad=0.02, **options)
    bar.outline.set_visible(False)


def _name(value: Any) -> str:
    """A class by its own name; a number alone would not say what it is."""
    return f"class {value:g}" if isinstance(value, int | float | np.number) else str(value)


def _marks(points: np.ndarray) -> dict[str, Any]:
    size, edge = (22, 0.5) if len(points) <= 1000 else (8, 0.2)
    return {"s": size, "edgecolors": "white", "linewidths": edge, "zorder": 3}


def _class_colors(count: int) -> list[Any]:
    from matplotlib import colormaps

    named = [*CLASSES, *MORE_CLASSES]
    return named[:count] if count <= len(named) else list(colormaps["turbo"](np.linspace(0.05, 0.95, count))[:, :3])
