"""What may differ between the settings that a study tries, and how that is told: for lines of text and for pictures.

    settings_told([{"learning_rate": 0.001, …}, …]) → ["rate 0.001", …], what they have in common left out

Imports nothing of meristem's.
"""

from collections.abc import Sequence
from typing import Any

KNOBS = {
    "standardised": "{} standardised",
    "input_dropout": "dropout {:g}",
    "learning_rate": "rate {:g}",
    "penalty": "penalty {:g}",
}


def settings_told(settings: Sequence[dict[str, Any]]) -> list[str]:
    """Each setting in words, by what differs between them.

    >>> settings_told([{"learning_rate": rate, "penalty": 0.1} for rate in (0.001, 0.003)])
    ['rate 0.001', 'rate 0.003']
    """
    varied = [knob for knob in KNOBS if len({one.get(knob) for one in settings}) > 1]
    return [", ".join(KNOBS[knob].format(one[knob]) for knob in varied) for one in settings]
