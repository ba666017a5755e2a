"""What y means: classes, labels, numbers, counts or quantiles; shared by estimators, files and export.

    targets.pack() → header, arrays        unpack(header, arrays) → targets, of whichever kind the header names
    losses() → name: kind                  what y means to each objective that learns numbers

Imports NumPy and the objectives, not scikit-learn. A new kind is a file like its neighbors and a name in `KINDS`.
"""

from typing import Any

import numpy as np

from meristem.targets.base import Targets as Targets
from meristem.targets.classes import Classes as Classes
from meristem.targets.counts import Counts as Counts
from meristem.targets.labels import Labels as Labels
from meristem.targets.numbers import Numbers as Numbers
from meristem.targets.quantiles import Quantiles as Quantiles
from meristem.targets.scaling import Scaling as Scaling
from meristem.train.objectives import OBJECTIVES, SquaredError

KINDS: dict[str, type[Targets]] = {kind.kind: kind for kind in (Classes, Labels, Numbers, Counts, Quantiles)}


def losses() -> dict[str, type[Numbers]]:
    """The registered objectives that learn numbers, the squared error first, and what y means to each (its `target_kind`).

    >>> {name: kind.kind for name, kind in losses().items()}["poisson"]
    'counts'
    """
    named = sorted(OBJECTIVES.items(), key=lambda item: item[0] != SquaredError.name)
    kinds = {name: KINDS.get(objective.target_kind) for name, objective in named}
    return {name: kind for name, kind in kinds.items() if kind is not None and issubclass(kind, Numbers)}


def unpack(header: Any, arrays: dict[str, np.ndarray]) -> Targets:
    """What `pack` made a header and arrays of; a ValueError of one line where they do not hold together.

    >>> unpack(*Labels(3).pack())
    Labels(count=3)
    """
    kind = header.get("kind") if isinstance(header, dict) else None
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError("it does not say what y means.")
    try:
        return KINDS[kind].unpack(header, arrays)
    except (KeyError, TypeError) as error:
        raise ValueError(f"its targets of kind {kind!r} are not complete.") from error
