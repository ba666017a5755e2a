"""Which network of an estimator is drawn: its own, or of a bag the first.

    plain, which = first_of(model)       which: "1 of 5", for the title; nothing where there is no other

What is no bag, or is not fitted, comes back as it is. growth.py and structure.py import it.
"""

from typing import Any


def first_of(model: Any) -> tuple[Any, str]:
    """The plain estimator whose network is drawn, and which it is of how many.

    >>> first_of("model")
    ('model', '')
    """
    networks = model.estimators_ if hasattr(model, "estimators_") and hasattr(model, "path_") else [model]
    return networks[0], f"1 of {len(networks)}" if len(networks) > 1 else ""
