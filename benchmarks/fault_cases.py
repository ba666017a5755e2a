"""Generators of faults for other_faults.py: leaks, names, copies, gaps, ways of writing, and changes along the file."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from planted_faults import TARGET, Case, Frame, Part

LATER = [  # known only afterwards, in the manners in which columns are named
    *("closed_at", "closedAt", "ClosedDate", "DATE_CLOSED", "date-of-closing", "outcome_date", "resolution date", "Exit Date"),
    *("terminationDt", "dt_cancelled", "final_payment_on", "end_date", "date_of_death", "Enddatum", "date_de_fin", "fecha_fin"),
]
SPANS = ["days_to_close", "time_to_resolution", "daysUntilChurn", "hours_till_failure", "resolution_days", "TimeToEvent"]
TEXT_GAPS = ["unknown", "missing", "-", "none", "not measured", "nil"]  # "?", "N/A" and "null" are read as gaps
NUMBERS_AS_GAPS = [-1, 0, 9999, 99999, -99, -9, -9999, 888, 1e6, 2147483647, -1e30, 999.9]
DATES_AS_GAPS = ["1900-01-01", "1970-01-01", "9999-12-31", "2099-12-31", "1899-12-30", "1753-01-01"]


def days(n: int, rng: np.random.Generator) -> np.ndarray:
    return np.datetime64("2021-01-01") + rng.integers(0, 700, n)


def texts(values: Any) -> list[str]:
    return [str(value) for value in values]


def amounts(n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.normal(70, 9, n).round(1)


def own_number(part: Part, rng: np.random.Generator) -> str | None:
    """A column of the table with many values."""
    names = [name for name, values in part.frame.items() if name != TARGET and len(np.unique(values)) > 30]
    return str(rng.choice(names)) if names else None


def leaks(part: Part, rng: np.random.Generator) -> Iterator[Case]:
    """The target in a column, or in two."""
    codes, n, is_class = part.codes, len(part.y), part.task == "class"
    kinds = len(np.unique(codes))
    spread = codes.std()
    names = np.array([f"{letter}{number}" for letter in "QXZWJVKY" for number in range(10, 100)])
    coded = rng.permutation(names)[: max(kinds, 1)] if kinds <= len(names) else None
    if is_class and coded is not None:
        yield Case("leak", "one-to-one code", part.plus(planted=list(coded[codes.astype(int)])), ("'planted'",))
        some = np.where(rng.random(n) < 0.4, "", coded[codes.astype(int)])
        yield Case("leak", "in 60 % of the rows", part.plus(planted=list(some)), ("'planted'",))
        split = rng.integers(0, 6, n)
        yield Case(
            "leak",
            "six codes a class",
            part.plus(planted=[f"c{(code * 6 + s) * 37 % 1009}" for code, s in zip(codes.astype(int), split, strict=True)]),
            ("'planted'",),
        )
        key = rng.integers(0, kinds, n)
        pair = {"planted": (codes.astype(int) + key) % kinds, "other": key}
        yield Case("pair", "sum modulo classes", part.plus(**pair), ("'planted'", "'other'"))
    else:
        yield Case("leak", "other unit", part.plus(planted=(1.8 * codes + 32).round(4)), ("'planted'",))
        yield Case("leak", "rounded", part.plus(planted=np.round(codes / spread, 1)), ("'planted'",))
        yield Case(
            "leak", "in 60 % of the rows", part.plus(planted=np.where(rng.random(n) < 0.4, np.nan, codes)), ("'planted'",)
        )
        yield Case("leak", "reciprocal", part.plus(planted=1 / (codes - codes.min() + spread)), ("'planted'",))
        yield Case("leak", "multiplied by noise", part.plus(planted=codes * np.exp(0.03 * rng.normal(size=n))), ("'planted'",))
    shift = 5 * spread * rng.normal(size=n)
    yield Case("pair", "difference", part.plus(planted=codes + shift, other=shift), ("'planted'", "'other'"))
    if not is_class:
        share = rng.uniform(0.1, 0.9, n)
        low = codes.min() - spread
        yield Case(
            "pair",
            "two parts of a sum",
            part.plus(planted=share * (codes - low), other=(1 - share) * (codes - low)),
            ("'planted'", "'other'"),
        )
    by_target = np.empty(n, int)
    by_target[np.lexsort([rng.random(n), codes])] = np.arange(n)
    yield Case("leak", "id in the order of the target", part.plus(record_id=1000 + by_target), ("'record_id'",))
    rows = np.argsort(by_target)
    yield Case("leak", "file sorted, ids in its order", part.rows(rows) | {"record_id": np.arange(n) + 1}, ("'record_id'",))
    if is_class:
        positive = part.positive(rng)
        for share in (0.5, 0.8):
            rare = np.where(positive & (rng.random(n) < share), "cancelled", rng.choice(["open", "paid", "sent"], n))
            yield Case("leak", f"value for {share:.0%} of a class", part.plus(planted=list(rare)), ("'planted'",))


def later(part: Part, rng: np.random.Generator) -> Iterator[Case]:
    n = len(part.y)
    begin = days(n, rng)
    end = begin + rng.integers(1, 90, n)
    for name in rng.permutation(LATER)[:6]:
        name = str(name)
        first = str(rng.choice(["opened_at", "begin", "start_date", "created"]))
        yield Case("afterwards", name, part.plus(**{first: texts(begin), name: texts(end)}), (repr(name),))
    positive = part.positive(rng)
    name = str(rng.choice(LATER))
    yield Case(
        "afterwards",
        "alone, with gaps",
        part.plus(**{name: [str(d) if p else "" for d, p in zip(end, positive, strict=True)]}),
        (repr(name),),
    )
    for name in rng.permutation(SPANS)[:3]:
        yield Case("afterwards", str(name), part.plus(**{str(name): rng.integers(1, 90, n)}), (repr(str(name)),))


def copies(part: Part, rng: np.random.Generator) -> Iterator[Case]:
    """Rows, or individuals, that are there several times."""
    n = len(part.y)
    base = part.rows(np.tile(rng.permutation(n)[: max(n // 3, 40)], 3))
    order = rng.permutation(len(base[TARGET]))

    def jitter(share: float) -> Frame:
        out: Frame = {}
        for name, values in base.items():
            if name != TARGET and np.asarray(values).dtype.kind == "f":
                values = values + share * np.std(values) * rng.normal(size=len(values))
            out[name] = np.asarray(values)[order]
        return out

    words = ("duplicate", "nearly equal", "almost equal")
    yield Case("copies", "jitter 0.01 %", jitter(1e-4), words)
    yield Case("copies", "jitter 1 %", jitter(1e-2), words)
    rounded = {
        name: np.asarray([float(f"{v:.4g}") if i % 2 else v for i, v in enumerate(values)]) if name != TARGET else values
        for name, values in base.items()
    }
    yield Case(
        "copies", "rounded in half of the rows", {name: np.asarray(values)[order] for name, values in rounded.items()}, words
    )
    one = {name: np.asarray(values)[order] for name, values in base.items()}
    yield Case("copies", "with a new id", one | {"id": rng.permutation(len(order))}, words)
    yield Case("copies", "with a new date", one | {"seen": texts(days(len(order), rng))}, words)
    changed = np.asarray(base[TARGET])[order].copy()
    some = rng.random(len(changed)) < 0.3
    changed[some] = rng.permutation(changed[some])
    yield Case("copies", "other target", one | {TARGET: changed}, (*words, "different target", "contradict"))
    name = str(rng.choice(["patient_id", "customer", "SubjectNo", "household", "machine"]))
    people = np.tile(rng.permutation(len(order) // 3), 3)[order]
    for share in (0.05, 0.3):
        yield Case(
            "groups", f"rows of an individual differ by {share:.0%}", jitter(share) | {name: 5000 + people}, (repr(name),)
        )
    codes = rng.permutation([f"u{number}" for number in range(len(order) // 3)])
    yield Case("groups", "texts as ids, 5 %", jitter(0.05) | {name: list(codes[people])}, (repr(name),))


def gaps(part: Part, rng: np.random.Generator) -> Iterator[Case]:
    """What stands for a gap."""
    n = len(part.y)
    own = own_number(part, rng)
    for share in (0.01, 0.05, 0.2):
        is_gap = rng.random(n) < share
        is_gap[:4] = True
        for number in rng.permutation(NUMBERS_AS_GAPS)[:4]:
            yield Case("sentinel", f"{number:g}", part.plus(planted=np.where(is_gap, number, amounts(n, rng))), ("'planted'",))
        if own is not None:
            low, high = part.frame[own].min(), part.frame[own].max()
            far = [number for number in NUMBERS_AS_GAPS if number > high + 2 * (high - low) or number < low - 2 * (high - low)]
            number = rng.choice(far)
            yield Case(
                "sentinel",
                f"{number:g} in a column of the table",
                part.frame | {own: np.where(is_gap, number, part.frame[own])},
                (repr(own),),
            )
        text = str(rng.choice(TEXT_GAPS))
        yield Case(
            "sentinel",
            f"{text} among numbers",
            part.plus(planted=[text if g else str(v) for g, v in zip(is_gap, amounts(n, rng), strict=True)]),
            ("'planted'",),
        )
        date = str(rng.choice(DATES_AS_GAPS))
        yield Case(
            "sentinel",
            f"{date}",
            part.plus(planted=[date if g else str(d) for g, d in zip(is_gap, days(n, rng), strict=True)]),
            ("'planted'",),
        )


def mixed(part: Part, rng: np.random.Generator) -> Iterator[Case]:
    """One column, two ways of writing."""
    n = len(part.y)
    some = rng.random(n) < 0.1
    some[:3] = True
    values = amounts(n, rng)
    for kind, write in {"unit": "{:.1f} kg", "sign": "<{:.0f}", "text": "see note"}.items():
        yield Case(
            "mixed",
            kind,
            part.plus(planted=[write.format(v) if s else str(v) for s, v in zip(some, values, strict=True)]),
            ("'planted'",),
        )
    when = days(n, rng).astype(object)
    yield Case(
        "mixed",
        "dates",
        part.plus(planted=[f"{d:%d/%m/%Y}" if s else str(d) for s, d in zip(some, when, strict=True)]),
        ("'planted'",),
    )
    case = rng.choice(["yes", "no", "maybe"], n)
    yield Case(
        "mixed", "capitals", part.plus(planted=[v.upper() if s else v for s, v in zip(some, case, strict=True)]), ("'planted'",)
    )


def along_the_file(part: Part, rng: np.random.Generator) -> Iterator[Case]:
    """Something that changes on the way."""
    n = len(part.y)
    late = np.arange(n) >= rng.uniform(0.4, 0.8) * n
    values, own = amounts(n, rng), own_number(part, rng)
    for name, change in {
        "× 1000": lambda v: v * 1000,
        "pounds": lambda v: v * 2.2046,
        "Fahrenheit": lambda v: v * 1.8 + 32,
    }.items():
        yield Case(
            "along the file", f"{name} from a row on", part.plus(planted=np.where(late, change(values), values)), ("'planted'",)
        )
    if own is not None:
        yield Case(
            "along the file",
            "× 1000 in a column of the table",
            part.frame | {own: np.where(late, part.frame[own] * 1000, part.frame[own])},
            (repr(own),),
        )
    some = rng.random(n) < 0.2
    yield Case(
        "units", "× 1000 in a fifth of the rows", part.plus(planted=np.where(some, values * 1000, values)), ("'planted'",)
    )
    yield Case("along the file", "constant from a row on", part.plus(planted=np.where(late, 70.0, values)), ("'planted'",))
    yield Case("along the file", "gaps from a row on", part.plus(planted=np.where(late, np.nan, values)), ("'planted'",))
    when = np.sort(days(n, rng))
    yield Case(
        "along the file",
        "drift with a date",
        part.plus(when=texts(when), planted=values + 30 * np.arange(n) / n),
        ("'planted'", "'when'"),
    )
    yield Case(
        "along the file",
        "constant after a date",
        part.plus(when=texts(when), planted=np.where(late, 70.0, values)),
        ("'planted'", "'when'"),
    )
    kinds = rng.choice(["a", "b", "c"], n)
    yield Case(
        "along the file",
        "new names of categories",
        part.plus(planted=list(np.where(late, np.char.add("type ", kinds), kinds))),
        ("'planted'",),
    )
    words = ("shift", "order", "row before", "next row")
    yield Case("labels", "shifted by a row", part.frame | {TARGET: np.roll(part.y, 1)}, words)
    if part.task == "class":
        labels, counts = np.unique(part.y, return_counts=True)
        first, second = labels[np.argsort(counts)[-2:]]
        swapped = np.where(part.y == first, second, np.where(part.y == second, first, part.y))
        yield Case(
            "labels",
            "two classes swapped from a row on",
            part.frame | {TARGET: np.where(late, swapped, part.y)},
            ("swapped", "order", "file"),
        )
    else:
        yield Case(
            "labels",
            "× 1000 from a row on",
            part.frame | {TARGET: np.where(late, 1000 * part.y, part.y)},
            ("target", "order", "file"),
        )
        some = rng.random(n) < 0.03
        yield Case("labels", "-999 as a target", part.frame | {TARGET: np.where(some, -999, part.y)}, ("-999",))


GENERATORS = [leaks, later, copies, gaps, mixed, along_the_file]
