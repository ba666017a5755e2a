"""What may differ between the settings that a study tries, and the words for it: for lines of text and for pictures.

    describe_settings([{"learning_rate": 0.001, …}, …]) → ["rate 0.001", …], what they have in common left out

Imports nothing of meristem; studies, pictures and claims import it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

SETTINGS = {
    "standardized": "{} standardized",
    "input_dropout": "dropout {:g}",
    "learning_rate": "rate {:g}",
    "penalty": "penalty {:g}",
}
OLD_NAMES = {"standardized": "standardised"}  # in files that were written before it was renamed


def describe_settings(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Each setting in words, by what differs between them.

    >>> describe_settings([{"learning_rate": rate, "penalty": 0.1} for rate in (0.001, 0.003)])
    ['rate 0.001', 'rate 0.003']
    >>> describe_settings([{"standardised": columns} for columns in ("all", "numbers")])
    ['all standardized', 'numbers standardized']
    """
    varied = [name for name in SETTINGS if len({_value(one, name) for one in settings}) > 1]
    return [", ".join(SETTINGS[name].format(_value(one, name)) for name in varied) for one in settings]


def _value(setting: Mapping[str, Any], name: str) -> Any:
    return setting.get(name, setting.get(OLD_NAMES.get(name, name)))


def price_of(estimator: Any) -> float:
    """The penalty that a fitted estimator was trained with, whether it was given or found by the defaults."""
    return float(estimator.penalty_ if isinstance(estimator.penalty, str) else estimator.penalty)
