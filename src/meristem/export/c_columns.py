"""What x of an exported C file holds, in words for its comment: a name for each place, its unit, range and gaps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from meristem.export.endings import Scaling
from meristem.inputs import Inputs
from meristem.inputs.schema import CATEGORY, DATE
from meristem.layers.ops.c import Column
from meristem.layers.ops.c_input_scale import InputScale


@dataclass(frozen=True)
class Columns:
    """What x holds: a name and a description for each place, and the place of each feature."""

    names: list[str]
    notes: list[str]
    places: list[int]  # [features]
    summary: str = ""  # of all, in place of one by one

    @classmethod
    def of_image(cls, shape: Sequence[int], pixels: str | None, numbers: str) -> Self:
        """Return the pixels of an image [height, width] or [height, width, channels]."""
        height, width, channels = (*shape, 1)[:3]
        order = f", {channels} channels of a pixel side by side" * (channels > 1)
        missing = "INT32_MIN is" if numbers == "int" else "NaN and infinities are"
        gaps = "" if pixels else f"; {missing} missing: the mean of their channel"
        n = height * width * channels
        return cls(["pixels"] * n, [""] * n, list(range(n)), f"the pixels of {height} rows of {width}{order}{gaps}")

    @classmethod
    def of(cls, scaling: Scaling | None, n: int, names: Sequence[str] | None, numbers: str) -> Self:
        """Return the columns of a model with n numbers for inputs, or those of its schema; x holds such numbers."""
        missing = "INT32_MIN" if numbers == "int" else "NaN"
        if not isinstance(scaling, Inputs):
            labels = [f"input {place}" for place in range(n)] if names is None else [str(name) for name in names]
            return cls(
                labels, ["" if scaling is None else f"a number; {missing} missing, read as the mean"] * n, list(range(n))
            )
        columns, groups, preprocessor = scaling.column_names, scaling.groups, scaling.preprocessor
        used = {int(feature): k for k, feature in enumerate(preprocessor.feature_of_input[: len(preprocessor.fill)])}
        mean, scale, limit = preprocessor.scaling.mean, preprocessor.scaling.scale, preprocessor.limit
        notes, places = [], [place for place, group in enumerate(groups) for _ in group]
        for place, group in enumerate(groups):
            field = None if scaling.schema is None else scaling.schema.fields[place]
            if field is not None and field.kind == CATEGORY:
                texts = ", ".join(f"{code} {text}" for code, text in enumerate(field.texts))
                notes.append(f"a code: {texts}; -1 or {missing} missing, others unseen")
                continue
            k = used.get(int(group[0]))
            kind = "days since 1970-01-01" if field is not None and field.kind == DATE else "a number"
            if k is None:
                notes.append("is not read")
            elif np.isfinite(limit):
                low, high = mean[k] - limit * scale[k], mean[k] + limit * scale[k]
                spread = f"{mean[k]:.5g} +- {scale[k]:.3g}; read from {low:.5g} to {high:.5g}, limited beyond"
                notes.append(f"{kind}, {spread}; {missing} missing")
            else:
                notes.append(f"{kind}; {missing} missing")
        return cls(columns, notes, places)

    def of_feature(self, feature: int) -> str:
        return self.names[self.places[feature]]

    def cut_off(self, scalings: Mapping[Column, InputScale]) -> Self:
        """Return the columns with what integers hold of their numbers, in place of what the network in float reads."""
        notes = list(self.notes)
        for column, scaling in scalings.items():
            low, high = scaling.interval
            kind, *others = notes[column.place].split("; ")
            parts = [kind, f"read from {low:.5g} to {high:.5g}, cut off beyond", *others[-1:]]
            notes[column.place] = "; ".join(filter(None, parts))
        return self if self.summary else replace(self, notes=notes)
