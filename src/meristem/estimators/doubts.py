"""Two doubts about a training, by what a quick model predicts in rows that it has not seen (predictability.py).

    tells_nothing(p)                  it sees nothing: noise, or something that only a network would find
    is_chance(error, constant, rows)  … and a network did not find it either, in rows held out: then a firm prior (ALPHA / rows)
                                      keeps one from learning noise by heart
    began_badly(p, error, constant)   it sees much of which the network has learned little: a tunnel begins linear, and some
                                      trainings end before anything opens; from another start, BOLDER times as fast and as
                                      patient, they do not (the difficult spirals: 6 of 6, in place of 1)

Errors are means over rows; `constant` is that of the best constant prediction. base imports it.
"""

import numpy as np

NOTHING = 0.02  # of the variance: 21 tables with shuffled classes all show less, 27 with their own all more than twice that
ALPHA = 30.0
LEARNED = 0.5  # of what the quick model predicts, at least
MUCH = 0.2  # of the variance
TRIES = 3
BOLDER = 3.0  # rate and patience of a second try


def tells_nothing(predictability: float) -> bool:
    return predictability < NOTHING


def is_chance(error: float, constant: float, rows: int) -> bool:
    """Whether an error in so many rows held out is no less than a constant's, but for two standard errors.

    >>> is_chance(0.4, 0.5, 40), is_chance(0.1, 0.5, 40)
    (True, False)
    """
    return not error < constant - 2 * np.sqrt(constant * max(1 - constant, 0.0) / rows)


def began_badly(predictability: float, error: float, constant: float) -> bool:
    """Whether the training error is that of a network that has learned too little.

    >>> began_badly(0.99, 0.35, 0.5), began_badly(0.99, 0.01, 0.5), began_badly(0.1, 0.5, 0.5)
    (True, False, False)
    """
    return predictability > MUCH and error > (1 - LEARNED * predictability) * constant > 0
