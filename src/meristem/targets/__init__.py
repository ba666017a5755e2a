"""Encodings of y: classes, labels, numbers, counts or quantiles; shared by estimators, files and export.

    targets.encode(y) → what training takes; a one-line ValueError where y does not fit     decode(outputs [n, n_out]) → y
    targets.with_more(y, weight) → the targets after more rows of a stream
    targets.columns(encoded) → numbers [n, columns], and typical(encoded) → the rows [n] that are no outliers, for statistics
    targets.pack() → a JSON header and arrays           unpack(header, arrays) → targets of the kind that the header names

Imports NumPy and the objectives, not scikit-learn. A new kind is a class like the others and an entry in `KINDS`.
"""

from typing import Any

import numpy as np

from meristem.targets.categorical import Classes as Classes, Labels as Labels
from meristem.targets.numeric import Counts as Counts, Numbers as Numbers, Quantiles as Quantiles, losses as losses
from meristem.targets.scaling import Scaling as Scaling

Targets = Classes | Labels | Numbers
KINDS: dict[str, type[Targets]] = {kind.kind: kind for kind in (Classes, Labels, Numbers, Counts, Quantiles)}


def unpack(header: Any, arrays: dict[str, np.ndarray]) -> Targets:
    """Return the targets that `pack` described; raise a one-line ValueError for an inconsistent header or arrays."""
    kind = header.get("kind") if isinstance(header, dict) else None
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError("its targets have no known kind.")
    try:
        return KINDS[kind].unpack(header, arrays)
    except (KeyError, TypeError) as error:
        raise ValueError(f"its targets of kind {kind!r} are not complete.") from error
