"""Encodings of y: classes, labels, numbers, counts or quantiles; shared by estimators, files and export.

    targets.pack() → header, arrays        unpack(header, arrays) → targets of the kind that the header names
    losses() → name: kind                  the objectives with numeric targets, and how each encodes y

Imports NumPy and the objectives, not scikit-learn. A new kind is a class like the others and an entry in `KINDS`.
"""

from typing import Any

import numpy as np

from meristem.targets.base import Targets as Targets
from meristem.targets.categorical import Classes as Classes, Labels as Labels
from meristem.targets.numeric import Counts as Counts, Numbers as Numbers, Quantiles as Quantiles
from meristem.targets.scaling import Scaling as Scaling
from meristem.train.objectives import OBJECTIVES, SquaredError

KINDS: dict[str, type[Targets]] = {kind.kind: kind for kind in (Classes, Labels, Numbers, Counts, Quantiles)}


def losses() -> dict[str, type[Numbers]]:
    """Return the registered objectives with numeric targets, the squared error first, and the kind of target of each.

    >>> {name: kind.kind for name, kind in losses().items()}["poisson"]
    'counts'
    """
    names = sorted(OBJECTIVES, key=lambda name: name != SquaredError.name)
    kinds = {name: KINDS.get(OBJECTIVES[name].target_kind) for name in names}
    return {name: kind for name, kind in kinds.items() if kind is not None and issubclass(kind, Numbers)}


def unpack(header: Any, arrays: dict[str, np.ndarray]) -> Targets:
    """Return the targets that `pack` described; raise a one-line ValueError for an inconsistent header or arrays.

    >>> unpack(*Labels(3).pack())
    Labels(count=3)
    """
    kind = header.get("kind") if isinstance(header, dict) else None
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError("its targets have no known kind.")
    try:
        return KINDS[kind].unpack(header, arrays)
    except (KeyError, TypeError) as error:
        raise ValueError(f"its targets of kind {kind!r} are not complete.") from error
