"""The price of large weights with `l2="auto"`, by how much of the targets the inputs tell.

From 0.6 of the targets' variance on, which clean data have, the price is `clear`; at half of it or less it is `noisy`;
between them it goes from one to the other in equal factors.
"""

import numpy as np

NOISY, CLEAR = 0.5, 0.6


def between(clear: float, noisy: float, predictability: float) -> float:
    """The price for data of this predictability.

    >>> [round(between(0.001, 0.01, share), 4) for share in (0.2, 0.55, 0.9)]
    [0.01, 0.0032, 0.001]
    """
    noise = float(np.clip((CLEAR - predictability) / (CLEAR - NOISY), 0, 1))
    return clear ** (1 - noise) * noisy**noise
