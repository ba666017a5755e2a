"""The predictions of an estimator of two features as a shaded plane, with the samples on top."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from meristem.pictures.figure_style import CLASSES, Axes, canvas, distinct_colors

GRID = 200  # points along each feature
WHITE = 0.55  # share of white in the shading
MARGIN = 0.07  # around the samples, relative to their span
MANY_POINTS = 1000  # above it markers are smaller
MORE_CLASSES = ("#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#999999")  # Okabe and Ito's
SMOOTH: dict[str, Any] = {"interpolation": "bilinear", "vmin": 0, "vmax": 1}
Grid = tuple[np.ndarray, np.ndarray]  # the two features along their axes


def plot_decision_boundary(estimator: Any, X: Any, y: Any, *, ax: Any = None) -> Axes:
    """Draw the predictions of a fitted estimator of two features around the samples X [n, 2], and these by their y [n].

    For two classes the probability of the second is shaded, with a line at ½; for more classes the region of each; for a
    regressor the value, with the samples on the same color scale. Any scikit-learn estimator will do.

    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import make_moons
    >>> from meristem.estimators import TunnelClassifier
    >>> X, y = make_moons(100, random_state=0)
    >>> model = TunnelClassifier(max_epochs=3, random_state=0).fit(X, y)
    >>> plot_decision_boundary(model, X, y, ax=Figure().subplots()).get_xlabel()
    'feature 1'
    """
    points, names = _points_and_names(estimator, X)
    low, high = points.min(0), points.max(0)
    margin = np.where(high > low, MARGIN * (high - low), 1.0)
    across, up = grid = tuple(np.linspace(low - margin, high + margin, GRID).T)
    predicted, y = (
        values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
        for values in (_on_grid(estimator, "predict", grid), np.asarray(y))
    )
    if predicted.ndim != 1:
        raise ValueError(f"plot_decision_boundary() draws one value per sample; this estimator predicts {predicted.shape[1]}.")
    if y.shape != (len(points),):
        raise ValueError(f"y has shape {y.shape}; it must hold one value for each of the {len(points)} samples of X.")
    size, edge = (22, 0.5) if len(points) <= MANY_POINTS else (8, 0.2)
    marker: dict[str, Any] = {"s": size, "edgecolors": "white", "linewidths": edge, "zorder": 3}
    with canvas("ax", ax, size=(6.4, 4.8)) as (ax,):
        if hasattr(estimator, "classes_"):
            _draw_classes(ax, estimator, grid, predicted, points, y, marker)
        else:
            # The scale is that of y; predictions beyond it have the color of its end.
            low_y, high_y = float(y.min()), float(y.max())
            scale = {"vmin": low_y, "vmax": high_y if high_y > low_y else low_y + 1, "cmap": "viridis"}
            shading = shade(ax, grid, predicted, **(SMOOTH | scale))
            ax.scatter(*points.T, c=y.astype(float), **scale, **marker)
            extend = ("neither", "min", "max", "both")[(predicted.min() < low_y) + 2 * (predicted.max() > high_y)]
            _colorbar(ax, shading, "predicted value; points: y", extend=extend)
        ax.set(xlim=across[[0, -1]], ylim=up[[0, -1]], xlabel=names[0], ylabel=names[1])
    return ax


def _points_and_names(estimator: Any, X: Any) -> tuple[np.ndarray, list[str]]:
    points = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
    fitted = getattr(estimator, "n_features_in_", 2)
    if points.ndim != 2 or points.shape[1] != 2 or fitted != 2:
        raise ValueError(
            f"plot_decision_boundary() draws two features, got X of shape {points.shape} and an estimator fitted to {fitted}; "
            "fit one to two columns: fit(X[:, [0, 1]], y)."
        )
    names = list(getattr(X, "columns", ["feature 1", "feature 2"]))
    fitted_names = list(getattr(estimator, "feature_names_in_", names))
    if hasattr(X, "columns") and fitted_names != names:
        raise ValueError(f"X has the columns {names}; the estimator was fitted to {fitted_names}.")
    return points.astype(float), [str(name) for name in fitted_names]


def _on_grid(estimator: Any, method: str, grid: Grid) -> np.ndarray:
    """Return the estimator's predictions for all pairs, which have no column names."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return np.asarray(getattr(estimator, method)(np.stack(np.meshgrid(*grid), -1).reshape(-1, 2)))


def _draw_classes(
    ax: Axes, estimator: Any, grid: Grid, predicted: np.ndarray, points: np.ndarray, y: np.ndarray, marker: dict[str, Any]
) -> None:
    from matplotlib.colors import ListedColormap

    classes = np.asarray(estimator.classes_)
    unseen = np.setdiff1d(y, classes)
    if unseen.size:
        raise ValueError(f"y holds {unseen[0]!r}, which is not among the estimator's classes {classes.tolist()}.")
    labels = [f"class {value:g}" if isinstance(value, int | float | np.number) else str(value) for value in classes]
    colors = distinct_colors([*CLASSES, *MORE_CLASSES], len(classes))
    probability = _on_grid(estimator, "predict_proba", grid) if hasattr(estimator, "predict_proba") else None
    if len(classes) == 2 and probability is not None:
        shading = shade_probability(ax, grid, probability[:, 1], colors)
        _colorbar(ax, shading, f"probability of {labels[1]}", ticks=[0, 0.25, 0.5, 0.75, 1])
    else:
        regions = ListedColormap(lighten(colors))
        shade(ax, grid, np.searchsorted(classes, predicted), cmap=regions, vmin=-0.5, vmax=len(classes) - 0.5)
        if probability is not None and len(classes) > 1:
            for k in range(len(classes)):
                _draw_border(ax, grid, probability[:, k] - np.delete(probability, k, 1).max(1))
    for value, label, color in zip(classes, labels, colors, strict=True):
        ax.scatter(*points[y == value].T, color=color, label=label, **marker)
    frame = {"frameon": True, "facecolor": "white", "framealpha": 0.85, "edgecolor": "none", "handletextpad": 0.2}
    marker_scale = 1.0 if len(points) <= MANY_POINTS else 1.7
    ax.legend(loc="best", ncols=1 if len(classes) <= 8 else 2, markerscale=marker_scale, borderpad=0.3, **frame)


def shade(ax: Axes, grid: Grid, values: np.ndarray, **style: Any) -> Any:
    """Draw the values of all pairs as an image, at the centers of its pixels."""
    halves = [(line[-1] - line[0]) / (2 * max(1, len(line) - 1)) for line in grid]
    extent = [end for line, half in zip(grid, halves, strict=True) for end in (line[0] - half, line[-1] + half)]
    return ax.imshow(values.reshape(len(grid[1]), -1), origin="lower", extent=extent, aspect="auto", **style)


def shade_probability(ax: Axes, grid: Grid, probability: np.ndarray, colors: Sequence[Any], white: float = WHITE) -> Any:
    """Draw the probability of the second of two classes, from color to color through white, with a line at ½."""
    from matplotlib.colors import LinearSegmentedColormap

    first, second = lighten(colors, white)
    through_white = LinearSegmentedColormap.from_list("classes", [first, (1.0, 1.0, 1.0), second])
    _draw_border(ax, grid, probability - 0.5)
    return shade(ax, grid, probability, cmap=through_white, **SMOOTH)


def lighten(colors: Sequence[Any], white: float = WHITE) -> np.ndarray:
    """Return colors [n, 3] mixed with that share of white, so that points stand out on them."""
    from matplotlib.colors import to_rgba_array

    return white + (1 - white) * to_rgba_array(colors)[:, :3]


def _draw_border(ax: Axes, grid: Grid, difference: np.ndarray) -> None:
    """Draw where the difference is 0."""
    if difference.min() < 0 < difference.max():
        ax.contour(*grid, difference.reshape(len(grid[1]), -1), levels=[0], colors="black", linewidths=1.1)


def _colorbar(ax: Axes, shading: Any, label: str, **options: Any) -> None:
    ax.figure.colorbar(shading, ax=ax, label=label, aspect=30, pad=0.02, **options).outline.set_visible(False)
