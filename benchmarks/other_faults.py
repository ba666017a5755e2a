"""Faults of kinds that planted_faults.py does not have, planted in parts of real tables, and how many the warnings name.

python benchmarks/other_faults.py --data tables.npz --out results/other-faults.json [--seed 0] [--only KIND]

Written without a look at the detectors. A fault is found if a line of the warnings, which the same part without it does not
have, has one of `words`: a column's name, or what such a fault is called. Controls are honest columns that are like a fault;
any line on them is a false alarm, but lines that the part has as it is are counted once, for the control "as it is".
"""

import argparse
import json
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fault_cases import GENERATORS, days, texts
from planted_faults import TARGET, Case, Frame, Part, is_real, part_of

EVERY = 2  # of the 42 tables


def tests(part: Part, rng: np.random.Generator) -> Iterator[Case]:
    """A test table that is not like the training table."""
    n = len(part.y)
    rows = rng.permutation(n)
    test, train = part.rows(rows[: n // 4]), part.rows(rows[n // 4 :])
    numbers = [name for name, values in part.frame.items() if name != TARGET and len(np.unique(values)) > 10]
    if len(numbers) >= 2 and n >= 200:
        first, second = (str(name) for name in rng.permutation(numbers)[:2])
        yield Case(
            "test table",
            "two columns exchanged",
            train,
            (repr(first), repr(second)),
            test | {first: test[second], second: test[first]},
        )
        yield Case("test table", "a column × 100", train, (repr(first),), test | {first: 100 * test[first]})
        yield Case("test table", "a column without a value", train, (repr(first),), test | {first: np.full(n // 4, np.nan)})
        yield Case(
            "test table",
            "a column shuffled with the training mean",
            train,
            (repr(first),),
            test | {first: np.full(n // 4, train[first].mean())},
        )
        noisy = {
            name: values + 1e-4 * np.std(values) * rng.normal(size=n // 4) if name != TARGET else values
            for name, values in part.rows(rows[-(n // 4) :]).items()
        }
        yield Case(
            "test table", "rows of the training table, jittered", train, ("duplicate", "nearly equal", "almost equal"), noisy
        )
    kinds = rng.choice(["north", "south", "east"], n)
    named = {"planted": list(kinds[rows[n // 4 :]])}, {"planted": list(np.char.upper(kinds[rows[: n // 4]]))}
    yield Case("test table", "categories in capitals", train | named[0], ("'planted'",), test | named[1])
    if part.task == "class" and len(np.unique(part.y)) <= 10 and n > 300:
        labels, counts = np.unique(part.y, return_counts=True)
        label = labels[np.argmin(counts)]
        keep = np.flatnonzero(part.y != label)
        few = np.concatenate([keep, np.flatnonzero(part.y == label)[:12]])
        if len(np.unique(part.y[few])) == len(labels):
            yield Case("rare class", "twelve rows", part.rows(np.sort(few)), (repr(str(label)), f" {label} "))


def controls(part: Part, rng: np.random.Generator) -> Iterator[Case]:
    n = len(part.y)
    codes = part.codes
    z = (np.argsort(np.argsort(codes + 1e-9 * rng.random(n))) / n - 0.5) * np.sqrt(12)
    yield Case("control", "as it is", part.frame)
    made: dict[str, Any] = {
        "a random id": 10_000 + rng.permutation(n),
        "an id in the order of the file": np.arange(n) + 1,
        "region": list(rng.choice(["north", "south", "east", "west", "centre"], n, p=[0.5, 0.2, 0.15, 0.1, 0.05])),
        "unimportant groups": rng.integers(1000, 1000 + n // 5, n),
        "temperature in whole degrees": np.round(rng.normal(3, 6, n)),
        "age, at most 90": np.minimum(rng.gamma(6, 7, n).astype(int), 90),
        "years": rng.integers(1985, 2022, n),
        "prices that end in 9": np.round(rng.lognormal(4, 0.7, n)) + 0.99,
        "two modes": np.where(rng.random(n) < 0.4, rng.normal(165, 6, n), rng.normal(179, 7, n)).round(1),
        "percent with many 0 and 100": np.clip(rng.normal(50, 60, n), 0, 100).round(),
        "money with a tail": rng.lognormal(3, 2, n).round(2),
        "a correlated walk": np.cumsum(rng.normal(size=n)),
        "a flag": rng.random(n) < 0.07,
        "a rare flag": (rng.random(n) < 0.01).astype(int),
        "months": rng.integers(1, 13, n),
        "longitude": rng.uniform(-10, 4, n).round(4),
        "waiting time in days": rng.exponential(12, n).astype(int),
        "good category": list(
            np.where(z + rng.normal(size=n) > 0.5, "gold", np.where(z + rng.normal(size=n) > -0.5, "silver", "none"))
        ),
        "answers on a scale": rng.choice([1, 2, 3, 4, 5], n, p=[0.05, 0.1, 0.2, 0.4, 0.25]),
    }
    for name, values in made.items():
        yield Case("control", name, part.plus(honest=values))
    first = days(n, rng)
    yield Case(
        "control", "start and birth", part.plus(birthday=texts(first - rng.integers(7000, 20000, n)), start_date=texts(first))
    )
    yield Case("control", "planned date", part.plus(booked_on=texts(first), days_since_last_visit=rng.integers(0, 300, n)))
    rows = rng.permutation(n)
    if n >= 200:
        yield Case("control", "a test table", part.rows(rows[n // 4 :]), (), part.rows(rows[: n // 4]))
    shift = 3 * codes.std() * rng.normal(size=n)
    yield Case("control", "two columns of noise", part.plus(a=shift + codes.std() * rng.normal(size=n), b=shift))


def main() -> None:
    from meristem.tables.data_faults import data_faults
    from meristem.tables.frames import table_of
    from meristem.tables.split import TableSplit

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--loud", action="store_true")
    parser.add_argument("--every", type=int, default=EVERY)
    args = parser.parse_args()
    data = np.load(args.data)
    counts: dict[str, dict[str, list[int]]] = {}
    missed, alarms, seconds = [], [], []

    def lines_of(part: Part, frame: Frame, test: Any) -> list[str]:
        begun = time.process_time()
        frame = {name: values for name, values in frame.items() if name != TARGET} | {TARGET: frame[TARGET]}
        split = TableSplit.of(
            table_of(frame),
            target=TARGET,
            task=part.task,
            test=test if isinstance(test, float) else table_of(test),
            seed=args.seed,
        )
        lines = data_faults(split) + split.table_warnings()
        seconds.append(time.process_time() - begun)
        return lines

    names = sorted(key.removesuffix(".X") for key in data.files if key.endswith(".X"))[args.seed % args.every :: args.every]
    for number, name in enumerate(names):
        print(name, f"{time.process_time():.0f}", flush=True)
        part = part_of(name, data[f"{name}.X"], data[f"{name}.y"], np.random.default_rng([77, number, args.seed]))
        usual = lines_of(part, part.frame, 0.2)
        usual_faults = {line.partition(":")[0] for line in usual}  # numbers in the rest differ
        for place, generate in enumerate([*GENERATORS, tests, controls]):
            if args.only not in generate.__name__:
                continue
            for case in generate(part, np.random.default_rng([78, number, args.seed, place])):
                try:
                    lines = lines_of(part, case.frame, case.test)
                except ValueError as error:  # the reader's advice is seen by the user, too
                    lines = [f"ERROR {error}"]
                where = f"{name}, {case.kind}, {case.strength}"
                if case.words:
                    new = [line for line in lines if line not in usual]
                    is_hit = any(word in line for line in new for word in case.words)
                    missed += [] if is_hit else [f"{where}: {lines}"]
                    if not is_hit and args.loud:
                        print("MISS", missed[-1][:300], flush=True)
                else:
                    is_new = {line: line.partition(":")[0] not in usual_faults for line in lines}
                    new = [line for line in lines if is_new[line] or case.strength == "as it is"]
                    wrong = [line for line in new if not is_real(line) and "counts the rows" not in line]
                    alarms += [f"{where}: {line}" for line in wrong]
                    if wrong and args.loud:
                        print("ALARM", where, wrong, flush=True)
                    is_hit = bool(wrong)
                count = counts.setdefault(case.kind, {}).setdefault(case.strength, [0, 0])
                count[0] += is_hit
                count[1] += 1
    totals = {kind: [sum(column) for column in zip(*by.values(), strict=True)] for kind, by in counts.items()}
    for kind, by in counts.items():
        print(f"{kind:16} {totals[kind][0]:5} of {totals[kind][1]:5}  {totals[kind][0] / totals[kind][1]:.1%}")
        for strength, (hits, n) in by.items():
            if (hits > 0) if kind == "control" else hits < n:
                print(f"    {strength:45} {hits:3} of {n:3}")
    faults = [
        sum(column) for column in zip(*(total for kind, total in totals.items() if kind != "control"), (0, 0), strict=True)
    ]
    print(f"found {faults[0]} of {faults[1]}, median {np.median(seconds):.3f} s, longest {max(seconds):.3f} s")
    if args.out:
        record = {
            "command": shlex.join(["python", *sys.argv]),
            "found": faults,
            "by_kind": totals,
            "by_strength": counts,
            "seconds": {"median": round(float(np.median(seconds)), 4), "longest": round(max(seconds), 4)},
            "missed": missed,
            "alarms": alarms,
        }
        args.out.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
