"""Random tables for the contract of inputs: columns of every type as raw values, in files, frames and matrices.

    table = RandomTable.draw(seed);  table.as_csv(path), table.as_frame(), table.as_parquet(path);  table.raw() → feeds

`raw` says what an outsider gives an ONNX runtime for each column, from the values as they were written: it knows nothing of
how meristem reads them but what docs/first-fit.md says.
"""

import csv
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas

ROWS = 60
TEXTS = ["gold", "silver", "tin", "very good", "é", "7", "x" * 40]
PADDED = ["{}", "{}", "{}", "{} ", " {}", " {} ", "{}  ", "\t{}"]
MISSING = ["", "?", "NA", " ?", "nan", "   "]


@dataclass
class RandomColumn:
    """Its values as Python has them, and as a file has them."""

    kind: str  # number, date, text
    values: list[Any]  # float, np.datetime64 or str; None: missing
    written: list[str]


@dataclass
class RandomTable:
    columns: dict[str, RandomColumn]
    target: list[Any]

    @classmethod
    def draw(cls, seed: int, *, n_columns: int | None = None, new: "RandomTable | None" = None) -> "RandomTable":
        """A table; `new`: rows of another one with the same columns, in which there are unseen values."""
        rng = np.random.default_rng(seed)
        names = [f"c{place}" for place in range(n_columns or rng.choice([1, 2, 5]))] if new is None else list(new.columns)
        columns = {}
        for place, name in enumerate(names):
            kind = str(rng.choice(["number", "number", "date", "text", "text"])) if new is None else new.columns[name].kind
            shape = np.random.default_rng([seed if new is None else seed - 10**6, place])
            columns[name] = _column(kind, shape, rng, is_new=new is not None)
        signal = sum(
            (np.array([_hash(value) for value in column.values]) for column in columns.values()), start=rng.normal(0, 0.1, ROWS)
        )
        return cls(columns, _target(rng, signal))

    def as_frame(self, *, typed: bool = True, target: bool = True) -> pandas.DataFrame:
        """Numbers, datetimes and texts; with pandas' own nullable types where `typed`."""
        frame = pandas.DataFrame({name: _series(column) for name, column in self.columns.items()})
        frame = frame.convert_dtypes() if typed else frame
        return frame.assign(y=self.target) if target else frame

    def as_csv(self, path: Path, *, target: bool = True) -> Path:
        parts = [column.written for column in self.columns.values()] + ([[str(y) for y in self.target]] if target else [])
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([*self.columns, *(["y"] if target else [])])
            writer.writerows(zip(*parts, strict=True))
        return path

    def raw(self, *, is_file: bool) -> dict[str, np.ndarray]:
        """What an ONNX runtime is given for each column."""
        feeds = {}
        for name, column in self.columns.items():
            if column.kind == "text":
                texts = column.written if is_file else ["" if value is None else value for value in column.values]
                feeds[name] = np.array(texts, object)[:, None]
            elif column.kind == "date":
                since = [np.nan if day is None else float(day.astype("datetime64[D]").astype(int)) for day in column.values]
                feeds[name] = np.array(since)[:, None]
            else:
                feeds[name] = np.array([np.nan if value is None else value for value in column.values], float)[:, None]
        return feeds


def _series(column: RandomColumn) -> Any:
    if column.kind == "text":
        return pandas.Series(column.values, dtype=object)
    if column.kind == "date":
        return pandas.to_datetime(pandas.Series([None if day is None else str(day) for day in column.values]))
    return pandas.Series([np.nan if value is None else value for value in column.values], dtype=float)


def _column(kind: str, shape: np.random.Generator, rng: np.random.Generator, *, is_new: bool) -> RandomColumn:
    """`shape` draws what a column is, the same for new rows; `rng` its values."""
    gap = shape.choice([0.0, 0.0, 0.1])
    is_gap = rng.random(ROWS) < gap
    if kind == "number":
        scale = 10.0 ** shape.uniform(-150, 138) if shape.random() < 0.3 else 10.0 ** shape.uniform(-3, 3)
        offset = scale * shape.choice([0.0, 1.0, 30.0, 1e3, 2e6, 1e10]) * shape.choice([-1, 1])
        drawn = offset + scale * rng.standard_normal(ROWS)
        if shape.random() < 0.3:
            drawn[0] = offset + 1e6 * scale  # an outlier
        if shape.random() < 0.2 and scale > 1e-3 and abs(offset) < 2**52:
            drawn = np.round(drawn)
        values = [None if missing else float(value) for missing, value in zip(is_gap, drawn, strict=True)]
        return RandomColumn(
            kind, values, [rng.choice(["", "NA", "?"]) if v is None else f"{v!r}{' ' * rng.integers(2)}" for v in values]
        )
    if kind == "date":
        day = np.datetime64("1950-01-01") + shape.integers(0, 40_000)
        days = [None if missing else day + int(n) for missing, n in zip(is_gap, rng.integers(0, 500, ROWS), strict=True)]
        return RandomColumn(kind, days, ["" if d is None else str(d) for d in days])
    texts = list(shape.choice(TEXTS, shape.integers(2, 6), replace=False)) + (["never seen", "gold!"] if is_new else [])
    pad = PADDED if shape.random() < 0.5 else ["{}"]
    written = [rng.choice(MISSING) if missing else str(rng.choice(pad)).format(rng.choice(texts)) for missing in is_gap]
    return RandomColumn(kind, [str(text) for text in written], [str(text) for text in written])


def _target(rng: np.random.Generator, signal: np.ndarray) -> list[Any]:
    kind = rng.choice(["texts", "whole", "bool", "three", "number", "number"])
    if kind == "number":
        scale = 10.0 ** rng.uniform(-140, 140) if rng.random() < 0.5 else 1.0
        return [float(value) for value in scale * (signal + rng.choice([0.0, 5.0, 1e6, 1e9]))]
    high = signal > np.median(signal)
    if kind == "three":
        return np.where(high, "high", np.where(signal < np.quantile(signal, 0.25), "low", "middle")).tolist()
    return {"texts": np.where(high, "yes", "no"), "whole": np.where(high, 2**53 + 1, 2**53), "bool": high}[str(kind)].tolist()


def _hash(value: Any) -> float:
    """A number between 0 and 1 that depends on a value."""
    return 0.3 if value is None else zlib.crc32(str(value).strip().encode()) / 2**32
