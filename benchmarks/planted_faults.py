"""Faults planted in parts of real tables, and how many of them the warnings of `meristem fit` name.

python benchmarks/planted_faults.py --data tables.npz --out results/planted-faults.json [--seeds 2] [--first-seed 0]

The generator was committed before the detectors (meristem/tables/data_faults.py) and is not changed for them. A part is at most
1,500 rows and 15 columns of a table. A fault is found if one line of the warnings has all of its `words`: the column, the value
of a sentinel, the class. Controls are parts without a fault, some with an honest column that is like one. On a control any line
is a false alarm; duplicates and classes of few test rows that are really there are listed and not counted.
"""

import argparse
import json
import shlex
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

MOST_ROWS, MOST_COLUMNS, LEAST_DRIFT_ROWS = 1500, 15, 200
SHARES, SENTINELS = (0.02, 0.05, 0.2), (-999, -1, 9999, 0, 99)
NAMES = [  # an event, and what is known only after it
    *(("opened_at", "closed_at"), ("admission_date", "discharge_date"), ("order_date", "delivered_at")),
    *(("signup_date", "churn_date"), ("loan_issued", "repaid_on"), ("created", "resolved")),
]
HONEST_DATES = ["birth_date", "opened_at", "signup_date", "created", "order_date"]
TARGET, PLANTED = "answer", "planted"
Frame = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A table with a fault, or a control: `words` are empty."""

    kind: str
    strength: str
    frame: Frame
    words: tuple[str, ...] = ()
    test: Any = 0.2  # or a frame


@dataclass(frozen=True)
class Part:
    """Rows and columns of a table; classes are texts."""

    name: str
    task: str
    frame: Frame  # with the target last

    @property
    def y(self) -> np.ndarray:
        return np.asarray(self.frame[TARGET])

    @property
    def codes(self) -> np.ndarray:
        """The index of each class; the number itself."""
        return np.unique(self.y, return_inverse=True)[1].astype(float) if self.task == "class" else self.y

    def plus(self, **columns: Any) -> Frame:
        return columns | self.frame

    def rows(self, rows: np.ndarray) -> Frame:
        return {name: np.asarray(values)[rows] for name, values in self.frame.items()}

    def positive(self, rng: np.random.Generator) -> np.ndarray:
        """A class of a twentieth of the rows or more; numbers of the upper half or quarter."""
        if self.task != "class":
            level = np.quantile(self.y, rng.choice([0.5, 0.75]))
            return self.y > level if (self.y > level).any() else self.y >= level
        labels, counts = np.unique(self.y, return_counts=True)
        return self.y == rng.choice(labels[counts >= 0.05 * len(self.y)])


def part_of(name: str, X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> Part:
    rows = np.sort(rng.permutation(len(X))[:MOST_ROWS])
    columns = np.sort(rng.permutation(X.shape[1])[:MOST_COLUMNS])
    frame: Frame = {f"x{column}": np.round(X[rows, column].astype(float), 5) for column in columns}
    is_class = not name.startswith("reg.")
    return Part(
        name, "class" if is_class else "number", frame | {TARGET: [f"k{label}" for label in y[rows]] if is_class else y[rows]}
    )


def leaks(part: Part, rng: np.random.Generator) -> Iterator[Case]:
    """The target in another column: as it is, with noise, transformed, as text, by ranges."""
    codes, n, words = part.codes, len(part.y), (repr(PLANTED),)
    for share in (0.02, 0.05):
        if part.task == "class":  # that share of the rows has a class drawn at random
            noisy = np.where(rng.random(n) < share, rng.permutation(codes), codes)
        else:
            noisy = codes + share * codes.std() * rng.normal(size=n)
        yield Case("leak", f"noise {share:.0%}", part.plus(planted=noisy), words)
    order = rng.permutation(len(np.unique(codes)))
    ranks = np.argsort(np.argsort(codes, kind="stable")) / n
    tenths = np.searchsorted(np.unique(np.quantile(codes, np.arange(1, 10) / 10)), codes, side="right")
    if part.task == "class":
        monotone, texts = 17.5 * codes + 3, [f"type {order[int(code)]}" for code in codes]
        ranges = order[codes.astype(int)] * 10 + rng.uniform(0, 9, n)
    else:
        monotone, texts = -np.exp(2 * ranks), [f"grade {'ABCDEFGHIJ'[tenth]}" for tenth in tenths]
        ranges = rng.permutation(10)[tenths] * 10 + rng.uniform(0, 9, n)
    yield Case("leak", "copy", part.plus(planted=part.frame[TARGET]), words)
    yield Case("leak", "monotone", part.plus(planted=monotone), words)
    yield Case("leak", "as text", part.plus(planted=texts), words)
    yield Case("leak", "ranges", part.plus(planted=ranges), words)


def patterns(part: Part, rng: np.random.Generator) -> Iterator[Case]:
    """A column whose gaps give the target away, in up to a twentieth of the rows not."""
    n = len(part.y)
    values, days = rng.normal(50, 10, n).round(1), np.datetime64("2021-01-01") + rng.integers(0, 700, n)
    for share in (0.0, 0.05):
        is_filled = part.positive(rng) ^ (rng.random(n) < share)
        yield Case("gaps", f"{share:.0%} wrong", part.plus(planted=np.where(is_filled, values, np.nan)), (repr(PLANTED),))
        is_filled = ~part.positive(rng) ^ (rng.random(n) < share)
        yield Case(
            "gaps", f"reversed, {share:.0%} wrong", part.plus(planted=np.where(is_filled, values, np.nan)), (repr(PLANTED),)
        )
    dates = [str(day) if is_filled else "" for day, is_filled in zip(days, part.positive(rng), strict=True)]
    yield Case("gaps", "date", part.plus(planted=dates), (repr(PLANTED),))


def afterwards(part: Part, rng: np.random.Generator) -> Iterator[Case]:
    """A date that is later than another by its name and its values, and says nothing of the target."""
    n = len(part.y)
    before = np.datetime64("2021-01-01") + rng.integers(0, 700, n)
    after = before + rng.integers(1, 60, n)
    for number in rng.permutation(len(NAMES))[:3]:
        first, second = NAMES[number]
        dates = {first: [str(day) for day in before], second: [str(day) for day in after]}
        yield Case("afterwards", second, part.plus(**dates), (repr(second),))


def duplicates(part: Part, rng: np.random.Generator) -> Iterator[Case]:
    """Rows that are there several times: anywhere, or in a test table."""
    n = len(part.y)
    for strength, rows in {
        "four times": np.repeat(np.arange(n), 4),
        "a third": np.concatenate([np.arange(n), rng.permutation(n)[: n // 3]]),
        "a tenth": np.concatenate([np.arange(n), rng.permutation(n)[: n // 10]]),
    }.items():
        yield Case("duplicates", strength, part.rows(rng.permutation(rows)), ("duplicate",))
    for share in (0.2, 0.5):
        rows, n_train = rng.permutation(n), round(0.8 * n)
        train, test = rows[:n_train], rows[n_train:]
        copies = np.where(rng.random(len(test)) < share, rng.choice(train, len(test)), test)
        yield Case("duplicates", f"{share:.0%} of a test table", part.rows(train), ("duplicate", "test"), part.rows(copies))


def sentinels(part: Part, rng: np.random.Generator) -> Iterator[Case]:
    """A number that means "missing", outside of the range of the others."""
    names = [name for name, values in part.frame.items() if name != TARGET and len(np.unique(values)) >= 20]
    fits = {  # whether such a number is clearly no value; otherwise the column is scaled to a range of which it is not
        -999: lambda x: x.min() >= -100,
        -1: lambda x: x.min() >= 0 and x.max() >= 10,
        9999: lambda x: x.max() <= 3000,
        0: lambda x: x.min() > 0 and x.min() >= 0.25 * np.median(x),
        99: lambda x: x.max() <= 60,
    }
    for value in SENTINELS if names else ():
        for share in SHARES:
            name = names[rng.integers(len(names))]
            column = part.frame[name]
            if not fits[value](column):
                column = (20 + 40 * (column - column.min()) / np.ptp(column)).round(1)
            rows = rng.permutation(len(column))[: max(5, round(share * len(column)))]
            planted = column.copy()
            planted[rows] = value
            yield Case("sentinel", f"{value} in {share:.0%}", part.frame | {name: planted}, (repr(name), str(value)))


def drift(part: Part, rng: np.random.Generator) -> Iterator[Case]:
    """A test table of another place or time: the top of a column, another unit, another mixture, other targets."""
    n, names = len(part.y), [name for name, values in part.frame.items() if name != TARGET and len(np.unique(values)) >= 10]
    if n < LEAST_DRIFT_ROWS:
        return
    n_test, words = n // 5, ("drift",)
    if names:
        name = names[rng.integers(len(names))]
        order = np.argsort(part.frame[name] + 1e-9 * rng.random(n), kind="stable")
        yield Case("drift", "top fifth", part.rows(order[:-n_test]), (*words, repr(name)), part.rows(order[-n_test:]))
        rows = rng.permutation(n)
        test = part.rows(rows[:n_test])
        test[name] = test[name] + part.frame[name].std()
        yield Case("drift", "one column, by a deviation", part.rows(rows[n_test:]), (*words, repr(name)), test)
        weights = np.where(np.argsort(order) >= n // 2, 0.85, 0.15)
        rows = rng.choice(n, n_test, replace=False, p=weights / weights.sum())
        yield Case("drift", "mixture", part.rows(np.setdiff1d(np.arange(n), rows)), (*words, repr(name)), part.rows(rows))
    if part.task == "class":
        labels, counts = np.unique(part.y, return_counts=True)
        weights = np.where(part.y == labels[counts.argmax()], 0.2, 1.0)
    else:
        weights = np.where(np.argsort(np.argsort(part.y)) >= n // 2, 0.85, 0.15)
    rows = rng.choice(n, n_test, replace=False, p=weights / weights.sum())
    yield Case("drift", "targets", part.rows(np.setdiff1d(np.arange(n), rows)), (*words, repr(TARGET)), part.rows(rows))


def rare_classes(part: Part, rng: np.random.Generator) -> Iterator[Case]:
    """A class with one to three rows in a test of a fifth."""
    if part.task != "class":
        return
    labels, counts = np.unique(part.y, return_counts=True)
    for n_test in (1, 2, 3):
        if len(enough := labels[counts >= 5 * n_test]):
            label = rng.choice(enough)
            of_class = rng.permutation(np.flatnonzero(part.y == label))
            rows = np.setdiff1d(np.arange(len(part.y)), of_class[5 * n_test :])
            yield Case("rare class", f"{n_test} in the test", part.rows(rows), (repr(str(label)), "test"))


def controls(part: Part, rng: np.random.Generator) -> Iterator[Case]:
    """Parts as they are, and with honest columns."""
    n, codes = len(part.y), part.codes
    scaled = (np.argsort(np.argsort(codes + 1e-9 * rng.random(n))) / n - 0.5) * np.sqrt(12)
    amounts = np.exp(rng.normal(4, 1, n)).round(2)
    gaps = {name: values for name, values in part.frame.items() if name != TARGET}
    for name in list(gaps)[:2]:
        gaps[name] = np.where(rng.random(n) < 0.1, np.nan, gaps[name])
    dates = rng.permutation(HONEST_DATES)[:2]
    rows = rng.permutation(n)
    yield Case("control", "as it is", part.frame)
    yield Case("control", "gaps at random", part.frame | gaps)
    yield Case("control", "a good column", part.plus(honest=scaled + rng.normal(size=n)))
    yield Case("control", "half zeros", part.plus(honest=np.where(rng.random(n) < 0.5, 0, amounts)))
    yield Case("control", "capped", part.plus(honest=np.minimum(amounts, np.quantile(amounts, 0.95))))
    yield Case("control", "heavy tail", part.plus(honest=amounts**2))
    yield Case("control", "counts", part.plus(honest=rng.poisson(2, n)))
    yield Case("control", "a score", part.plus(honest=rng.choice([-1, 0, 1], n, p=[0.1, 0.3, 0.6])))
    yield Case("control", "a date", part.plus(**{dates[0]: np.datetime64("2021-01-01") + rng.integers(0, 700, n)}))
    if n >= LEAST_DRIFT_ROWS:
        yield Case("control", "a test table", part.rows(rows[n // 5 :]), (), part.rows(rows[: n // 5]))


GENERATORS = [leaks, patterns, afterwards, duplicates, sentinels, drift, rare_classes, controls]


def cases(data: Any, seeds: Iterable[int]) -> Iterator[tuple[Part, int, Case]]:
    names = sorted(key.removesuffix(".X") for key in data.files if key.endswith(".X"))
    for number, name in enumerate(names):
        X, y = data[f"{name}.X"], data[f"{name}.y"]
        for seed in seeds:
            part = part_of(name, X, y, np.random.default_rng([number, seed]))
            for place, generate in enumerate(GENERATORS):
                for case in generate(part, np.random.default_rng([number, seed, place])):
                    yield part, seed, case


def is_real(line: str) -> bool:
    """Whether a line on a control is about what is really there: equal (not nearly equal) rows, or a class of few test rows."""
    return ("duplicate" in line and "near duplicates" not in line) or (
        "class" in line and "test" in line and "drift" not in line
    )


def main() -> None:
    from meristem.tables.data_faults import data_faults
    from meristem.tables.frames import table_of
    from meristem.tables.split import TableSplit

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first-seed", type=int, default=0)
    args = parser.parse_args()
    counts: dict[str, dict[str, list[int]]] = {}
    missed, alarms, real, seconds = [], [], [], []
    for part, seed, case in cases(np.load(args.data), range(args.first_seed, args.first_seed + args.seeds)):
        test = case.test if isinstance(case.test, float) else table_of(case.test)
        split = TableSplit.of(table_of(case.frame), target=TARGET, task=part.task, test=test, seed=seed)
        begun = time.perf_counter()
        lines = data_faults(split)
        seconds.append(time.perf_counter() - begun)
        where = f"{part.name}, seed {seed}, {case.kind}, {case.strength}"
        if case.words:
            is_hit = any(all(word in line for word in case.words) for line in lines)
            missed += [] if is_hit else [f"{where}: {lines}"]
        else:
            wrong = [line for line in lines if not is_real(line)]
            real += [f"{where}: {line}" for line in lines if is_real(line)]
            alarms += [f"{where}: {line}" for line in wrong]
            is_hit = bool(wrong)
        count = counts.setdefault(case.kind, {}).setdefault(case.strength, [0, 0])
        count[0] += is_hit
        count[1] += 1
    totals = {kind: [sum(column) for column in zip(*by.values(), strict=True)] for kind, by in counts.items()}
    faults = [sum(column) for column in zip(*(total for kind, total in totals.items() if kind != "control"), strict=True)]
    for kind, (hits, n) in totals.items():
        print(f"{kind:12} {hits:5} of {n:5}  {hits / n:.1%}")
    print(f"faults found {faults[0] / faults[1]:.1%}, median {np.median(seconds):.3f} s, longest {max(seconds):.3f} s")
    if args.out:
        record = {
            "command": shlex.join(["python", *sys.argv]),
            "found": [*faults, round(faults[0] / faults[1], 4)],
            "false_alarms": [*totals["control"], round(totals["control"][0] / totals["control"][1], 4)],
            "by_kind": totals,
            "by_strength": counts,
            "seconds": {"median": round(float(np.median(seconds)), 4), "longest": round(max(seconds), 4)},
            "missed": missed,
            "alarms": alarms,
            "really_there": real,
        }
        args.out.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
