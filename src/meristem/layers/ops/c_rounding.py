"""Weights as integers: rounded one after the other, each error made good by those that are still to come, as rows allow.

    min Σ_rows ((w − q) · (x − mean x))²        q integers; the mean of what is left goes into the bias

With H = Σ (x − mean)(x − mean)ᵀ and the Cholesky factor U of its inverse, H⁻¹ = Uᵀ U, the error e of a weight is spread over
later ones as e · U[j, later] / U[j, j]: least squares, solved again after each rounding (Frantar et al., GPTQ, 2023).
"""

import numpy as np

DAMPING = 0.01  # of the mean variance, added to each: for values that are alike or constant in the rows


def rounded_weights(weight: np.ndarray, x: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return integers [out, in] up to `most`, and what to add to a bias [out], given integer values x [rows, in].

    >>> weight, x = np.array([[0.4, 0.4, 0.4]]), np.repeat([[0], [10], [20]], 3, 1)
    >>> int(rounded_weights(weight, x, 127)[0].sum())    # of 1.2
    1
    """
    mean = x.mean(0)
    centered = x - mean
    h = centered.T @ centered
    variance = np.diag(h)
    h[np.diag_indices_from(h)] += DAMPING * max(float(variance.mean()), 1e-6)
    order = np.argsort(-variance, kind="stable")
    factor = np.linalg.cholesky(np.linalg.inv(h[np.ix_(order, order)])).T  # upper
    left, integers = weight[:, order].copy(), np.zeros(weight.shape, np.int64)
    for k, column in enumerate(order):
        integers[:, column] = np.clip(np.rint(left[:, k]), -most, most)
        error = (left[:, k] - integers[:, column]) / factor[k, k]
        left[:, k + 1 :] -= np.outer(error, factor[k, k + 1 :])
    return integers, (weight - integers) @ mean
