"""How hard the tests try that draw at random: `make soak` tries many times as often as the suite does.

many(30): 30 examples in the suite, 30 · MERISTEM_SOAK in a soak.
"""

import os

FACTOR = int(os.environ.get("MERISTEM_SOAK", "1"))


def many(tries: int) -> int:
    """So many tries in the suite."""
    return tries * FACTOR
