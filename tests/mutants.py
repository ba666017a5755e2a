"""Mutation testing: change the code a little, run the tests that belong to it, and count how many changes they notice.

    make mutants                                   200 mutants into results/mutants.json: two hours on one core
    python tests/mutants.py --jobs 16 --limit 540  sixteen at a time, for nine minutes
    python tests/mutants.py --count 10 --resume    go on with a recorded run, up to ten mutants

A mutant changes one operator, comparison or constant of nn, train, compact, paths or targets. They are drawn with a fixed seed,
so the first ten of 200 are those of a run of ten. First every test file runs unchanged: what fails then (a library is missing
here, or is another version) is left out, by test where that helps and else by file, and recorded. Each mutant is tried in a
copy of the tree: first the module's doctests, then the test files that import the module, then the others of its package
(TESTS), without files that never call the changed function (executed.py; needs Python 3.12); the first failure ends it. A
mutant that takes three times as long as these tests do unchanged is noticed, too. What the limit interrupts is recorded as
unfinished and not counted. A person who finds that a mutant changes nothing adds `"equivalent": "reason"` to its record; it no
longer counts.

Needed: pytest, hypothesis, beartype, and what the tests of a package import; nothing has to be installed of this repository.
"""

import argparse
import ast
import contextlib
import copy
import hashlib
import json
import math
import os
import platform
import queue
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
RECORD = ROOT / "results" / "mutants.json"
UNCHANGED = 3600.0  # seconds for the tests of a file without a mutant
# The tests of a package, quick ones first.
TESTS = {
    "nn": "nn_details forward models axes parts shapes own_body growth stages trunk own_models user_optimizer "
    "compact_ops reference compact live plots",
    "train": "train_details train_values measure objectives temperature over_batch patience population replay "
    "own_objective own_models choice long_epochs streaming training runs reference_trainer settle live io "
    "checkpoints",
    "compact": "nn_details compact_ops forward trunk own_models compact export",
    "paths": "path_details paths replay choice plots cv",
    "targets": "target_details scale columns objectives estimators_prior regression_losses estimators_weights "
    "estimators estimators_training",
}
SKIPPED = (ast.Raise, ast.JoinedStr, ast.Import, ast.ImportFrom, ast.Assert)  # messages, and what says nothing of a result
OPERATORS: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div, ast.Add),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,),
    ast.Mod: (ast.FloorDiv,),
    ast.Pow: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}


class Mutant(NamedTuple):
    """One change of one expression: bytes [start, end) of a file become `after`."""

    path: str  # relative to the tree
    line: int
    start: int
    end: int
    before: str
    after: str
    function: str = ""  # the innermost one around it, as its __qualname__; "" outside of functions

    @property
    def key(self) -> str:
        return f"{self.path}:{self.line} {self.before} → {self.after} @{self.start}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200, help="how many mutants, recorded ones included (200)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="how many mutants at a time, each on its own core (1)")
    parser.add_argument("--limit", type=float, default=math.inf, help="seconds for the whole run (no limit)")
    parser.add_argument("--packages", default=",".join(TESTS), help="which packages to mutate, with commas between")
    parser.add_argument("--resume", action="store_true", help="keep what the record holds of the same sources and seed")
    parser.add_argument("--work", type=Path, help="a folder for trees and compiled programs that the next run finds again")
    parser.add_argument("--out", type=Path, default=RECORD)
    options = parser.parse_args()
    deadline = time.monotonic() + options.limit
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the tests under way end, too
    packages = options.packages.split(",")
    mutants = drawn(packages, options.seed)[: options.count]
    about = {"sources": digest(packages), "seed": options.seed, "packages": packages}
    record = Record(options.out, about, options.resume, [mutant.key for mutant in mutants])
    missing = [mutant for mutant in mutants if mutant.key not in record.mutants]
    calls: dict[str, set[str]] = {}  # by test file, the functions that it executes; empty where that is unknown
    with contextlib.ExitStack() as stack:
        folder = options.work or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="meristem-mutants-")))
        jobs = Jobs(folder, options.jobs, deadline)
        stack.callback(jobs.stop)
        units = units_of(missing)
        for name, entry in jobs.each(units, lambda job, name: unchanged(job, units[name])):
            if entry["outcome"] == "unfinished":
                continue
            record.baseline[name], calls[name] = entry, entry.pop("calls")
            record.write()
            print(f"      {name}, unchanged: {entry['seconds']:.0f} s, {len(entry['left_out'])} left out", flush=True)
        jobs.share_programs()
        left_out = [test for entry in record.baseline.values() for test in entry["left_out"]]
        if not units.keys() <= record.baseline.keys():
            missing = []  # the limit: a failure would mean nothing where it is unknown what fails anyway
        tries = {mutant.key: mutant for mutant in missing}
        for key, entry in jobs.each(tries, lambda job, key: attempt(job, tries[key], left_out, record.baseline, calls)):
            record.add(key, entry)
            print(f"{len(record.mutants):4d}  {entry['outcome']:10s} {entry['seconds']:6.1f} s  {key}", flush=True)
    record.write()
    print(summary(record.mutants))
    open_keys = [mutant.key for mutant in mutants if mutant.key not in record.mutants]
    if open_keys:
        print(f"{len(open_keys)} of {len(mutants)} mutants are left for --resume, {len(record.unfinished)} of them begun.")


# Drawing mutants ------------------------------------------------------------------------------------------------------------


def drawn(packages: list[str], seed: int) -> list[Mutant]:
    """All expressions that can be changed, in random order, one change each."""
    generator = random.Random(seed)
    files = [path for package in packages for path in sorted((ROOT / "src" / "meristem" / package).rglob("*.py"))]
    places = [changes for path in files for changes in mutations(path.read_bytes(), path.relative_to(ROOT).as_posix())]
    generator.shuffle(places)
    return [generator.choice(changes) for changes in places]


def mutations(text: bytes, path: str = "") -> list[list[Mutant]]:
    """For each expression of a module the changes that can be made to it."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    places = []
    for node, function in expressions(ast.parse(text)):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        before = ast.unparse(node)
        changed = [ast.unparse(variant) for variant in variants(node)]
        form = "({})" if isinstance(node, ast.expr) else "{}"
        places.append([Mutant(path, node.lineno, start, end, before, form.format(after), function) for after in changed])
    return [changes for changes in places if changes]


def expressions(node: ast.AST, function: str = "", scope: str = "") -> Iterator[tuple[Any, str]]:
    """What is computed, and in which function, `x += 1` included: without annotations, messages and unions of types."""
    if isinstance(node, ast.FunctionDef):
        function, scope = f"{scope}{node.name}", f"{scope}{node.name}.<locals>."
    elif isinstance(node, ast.ClassDef):
        scope = f"{scope}{node.name}."
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "type_params"):
            continue
        if isinstance(node, ast.keyword) and node.arg == "strict":
            continue  # of zip: an assertion
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass", "warnings.warn"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, SKIPPED):
                if isinstance(child, ast.expr | ast.AugAssign):
                    yield child, "" if name in ("defaults", "kw_defaults", "decorator_list") else function
                yield from expressions(child, function, scope)


def variants(node: ast.expr | ast.AugAssign) -> Iterator[ast.AST]:
    """The same expression with another operator, comparison or constant."""
    match node:
        case ast.BinOp(op=operator) | ast.BoolOp(op=operator) | ast.AugAssign(op=operator):
            for other in OPERATORS.get(type(operator), ()):
                changed = copy.deepcopy(node)
                changed.op = other()  # type: ignore[attr-defined]
                yield changed
        case ast.Compare(ops=operators):
            for place, operator in enumerate(operators):
                for other in OPERATORS[type(operator)]:
                    changed = copy.deepcopy(node)
                    changed.ops[place] = other()  # type: ignore[attr-defined]
                    yield changed
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield from (ast.Constant(value + 1), ast.Constant(value - 1))
        case ast.Constant(value=float(value)):
            yield from (ast.Constant(value * 2 + (value == 0)), ast.Constant(value / 2 - (value == 0)))


# Running tests --------------------------------------------------------------------------------------------------------------


class Job(NamedTuple):
    """A place where one process runs tests."""

    tree: Path
    programs: Path  # compiled ones, a folder for each job: JAX writes them in place, and another process could read half of one
    core: int | None
    deadline: float
    processes: set[subprocess.Popen[str]]  # of all jobs, those that run


class Jobs:
    """Runs a function on several copies of the tree at once."""

    def __init__(self, folder: Path, count: int, deadline: float):
        cores: Sequence[int | None] = [None]
        if count > 1 and hasattr(os, "sched_getaffinity"):
            cores = sorted(os.sched_getaffinity(0))  # else each of them would compile with threads for all cores
        self.processes: set[subprocess.Popen[str]] = set()
        self.jobs = []
        for number in range(count):
            place = folder / f"job-{number}"
            shutil.rmtree(place / "tree", ignore_errors=True)
            omitted = shutil.ignore_patterns(".*", "__pycache__", "out", "dist", "build", "results")
            shutil.copytree(ROOT, place / "tree", ignore=omitted)
            (place / "programs").mkdir(exist_ok=True)
            core = cores[number % len(cores)]
            self.jobs.append(Job(place / "tree", place / "programs", core, deadline, self.processes))

    def each(
        self, names: Iterable[str], function: Callable[[Job, str], dict[str, Any]]
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield each name with its result, as they come."""
        free: queue.SimpleQueue[Job] = queue.SimpleQueue()
        for job in self.jobs:
            free.put(job)

        def call(name: str) -> dict[str, Any]:
            job = free.get()
            try:
                return function(job, name)
            finally:
                free.put(job)

        with ThreadPoolExecutor(len(self.jobs)) as pool:
            futures = {pool.submit(call, name): name for name in names}
            try:
                for future in as_completed(futures):
                    yield futures[future], future.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                self.stop()
                raise

    def share_programs(self) -> None:
        """Every job finds what each of them has compiled."""
        files = {file.name: file for job in self.jobs for file in job.programs.iterdir()}
        for job in self.jobs:
            for name in files.keys() - {file.name for file in job.programs.iterdir()}:
                os.link(files[name], job.programs / name)

    def stop(self) -> None:
        for process in list(self.processes):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def run_tests(job: Job, tests: list[str], timeout: float, options: Sequence[str] = ()) -> tuple[str, list[str]]:
    """The outcome ("passed", "failed", "timeout", "unfinished") and the tests that failed."""
    inherited = os.environ.get("PYTHONPATH")
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, [str(job.tree / "src"), str(job.tree / "tests"), inherited])),
        "PYTHONDONTWRITEBYTECODE": "1",  # a mutant can have the size and the second of the one before
        "MERISTEM_TEST_PROGRAMS": str(job.programs),
        "MERISTEM_EXECUTED": str(job.tree / "executed"),
        "JAX_PLATFORMS": "cpu",
        "COLUMNS": "1000",  # lines that are not cut
    }
    command = [sys.executable, "-m", "pytest", "--no-header", "--tb=no", "-rfE", "--hypothesis-seed=0", *options, *tests]
    seconds = min(timeout, job.deadline - time.monotonic())
    if seconds <= 0:
        return "unfinished", []
    with subprocess.Popen(
        command,
        cwd=job.tree,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        job.processes.add(process)
        try:
            if job.core is not None:
                os.sched_setaffinity(process.pid, {job.core})
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            return ("timeout" if timeout <= seconds else "unfinished"), []
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            job.processes.discard(process)
    lines = [line.removeprefix("FAILED ").removeprefix("ERROR ") for line in output.splitlines()]
    failed = [line.split(" - ")[0].strip() for line in lines if line.startswith("tests/")]
    return "passed" if process.returncode == 0 else "failed", failed  # a crash or an import that fails has another status


# The tests of a mutant ------------------------------------------------------------------------------------------------------


def package_of(mutant: Mutant) -> str:
    return Path(mutant.path).parts[2]


def module_of(path: str) -> str:
    return ".".join(Path(path).with_suffix("").parts[1:]).removesuffix(".__init__")


def doctests_of(path: str) -> str:
    return f"tests/test_docs.py::test_docstrings_show_calls_that_run[{module_of(path)}]"


def files_of(package: str) -> list[str]:
    return [f"tests/test_{name}.py" for name in TESTS[package].split()]


def tests_of(mutant: Mutant) -> list[str]:
    """What is run for a mutant, in this order."""
    imported = f"{module_of(mutant.path)} import"
    files = sorted(files_of(package_of(mutant)), key=lambda file: imported not in (ROOT / file).read_text())
    return [doctests_of(mutant.path), *files]


def units_of(mutants: list[Mutant]) -> dict[str, list[str]]:
    """What is run unchanged, by name: the slow test files first."""
    packages = sorted({package_of(mutant) for mutant in mutants})
    places = {file: place for package in packages for place, file in enumerate(reversed(files_of(package)))}
    paths = sorted({mutant.path for mutant in mutants})
    modules = {package: [path for path in paths if Path(path).parts[2] == package] for package in packages}
    doctests = {f"doctests of {package}": list(map(doctests_of, modules[package])) for package in packages}
    return doctests | {file: [file] for file in sorted(places, key=places.__getitem__)}


def unchanged(job: Job, tests: list[str]) -> dict[str, Any]:
    """The record of tests without a mutant: those that fail are left out; all of them, where that is not enough."""
    began, executed = time.monotonic(), job.tree / "executed"
    executed.unlink(missing_ok=True)
    left_out: list[str] = []
    outcome, failed = run_tests(job, tests, UNCHANGED, ["-p", "executed"])
    if outcome == "failed" and failed and all("::" in test for test in failed):
        outcome, _ = run_tests(job, tests, UNCHANGED, deselected(failed))
        left_out = failed
    if outcome in ("failed", "timeout"):
        left_out = tests
    calls = set(executed.read_text().splitlines()) if executed.exists() else set()
    seconds = round(time.monotonic() - began, 1)
    return {"outcome": outcome, "seconds": seconds, "left_out": sorted(left_out), "calls": calls}


def deselected(tests: list[str]) -> list[str]:
    return [f"--deselect={test}" for test in tests]


def attempt(
    job: Job, mutant: Mutant, left_out: list[str], baseline: dict[str, Any], calls: dict[str, set[str]]
) -> dict[str, Any]:
    """The record of one mutant."""
    file = job.tree / mutant.path
    text = file.read_bytes()
    called = f"{mutant.path} {mutant.function}"
    skipped = {test for test, functions in calls.items() if mutant.function and functions and called not in functions}
    skipped |= {*left_out}
    tests = [test for test in tests_of(mutant) if test not in skipped and test.split("::")[0] not in skipped]
    timeout = 60 + 3 * sum(baseline[test]["seconds"] for test in tests if test in baseline)
    options = ["-x", *deselected([test for test in left_out if test.split("::")[0] in tests])]
    began = time.monotonic()
    try:
        file.write_bytes(text[: mutant.start] + mutant.after.encode() + text[mutant.end :])
        outcome, failed = run_tests(job, tests, timeout, options) if tests else ("untested", [])
    finally:
        file.write_bytes(text)
    line = text.decode().splitlines()[mutant.line - 1].strip()
    return {
        "outcome": {"passed": "unnoticed", "failed": "noticed"}.get(outcome, outcome),
        "seconds": round(time.monotonic() - began, 1),
        "by": failed[:1],
        "source": line,
    }


# The record -----------------------------------------------------------------------------------------------------------------


def digest(packages: list[str]) -> str:
    """Names the sources that mutants are drawn from."""
    files = [path for package in packages for path in sorted((ROOT / "src" / "meristem" / package).rglob("*.py"))]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]


class Record:
    """The file that a run writes after each mutant."""

    def __init__(self, out: Path, about: dict[str, Any], resume: bool, order: list[str]):
        self.out, self.about, self.order = out, about, order
        self.mutants: dict[str, Any] = {}
        self.unfinished: list[str] = []  # of this run
        self.baseline: dict[str, Any] = {}
        tests = hashlib.sha256(b"".join(path.read_bytes() for path in sorted((ROOT / "tests").glob("*.py")))).hexdigest()[:16]
        self.surroundings = {"python": platform.python_version(), "jax": version("jax"), "tests": tests}
        if resume and out.exists():
            record = json.loads(out.read_text())
            if record["about"] != about:
                raise SystemExit(
                    f"{out} is of other sources, packages or another seed; run without --resume, or give another --out."
                )
            self.mutants = record["mutants"]

    def add(self, key: str, entry: dict[str, Any]) -> None:
        if entry["outcome"] == "unfinished":
            if entry["seconds"] > 0:
                self.unfinished.append(key)
        else:
            self.mutants[key] = entry
        self.write()

    def write(self) -> None:
        place = {key: number for number, key in enumerate(self.order)}
        self.mutants = dict(sorted(self.mutants.items(), key=lambda item: place.get(item[0], len(place))))
        content = {
            "about": self.about,
            "surroundings": self.surroundings,
            "summary": summary(self.mutants),
            "packages": counts(self.mutants),
            "unfinished": self.unfinished,
            "left_out": sorted({test for entry in self.baseline.values() for test in entry["left_out"]}),
            "baseline": self.baseline,
            "mutants": self.mutants,
        }
        beside = self.out.with_suffix(".part")
        beside.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
        beside.replace(self.out)


def counts(tried: dict[str, Any]) -> dict[str, dict[str, int]]:
    """How many mutants of each package came to what."""
    found: dict[str, Counter[str]] = {}
    for key, entry in tried.items():
        outcome = "equivalent" if "equivalent" in entry else entry["outcome"]
        found.setdefault(Path(key).parts[2], Counter())[outcome] += 1
    return {package: dict(sorted(found[package].items())) for package in sorted(found)}


def summary(tried: dict[str, Any]) -> str:
    """The share that was noticed, in all and by package, and every mutant that was not."""
    counted = {key: entry for key, entry in tried.items() if "equivalent" not in entry and entry["outcome"] != "untested"}
    missed = [key for key, entry in counted.items() if entry["outcome"] == "unnoticed"]
    share = 1 - len(missed) / max(1, len(counted))
    seconds = sum(entry["seconds"] for entry in tried.values())
    head = f"{share:.1%} of {len(counted)} mutants noticed, {len(tried) - len(counted)} equivalent or untested, {seconds:.0f} s"
    packages = [
        f"  {package}: " + ", ".join(f"{number} {outcome}" for outcome, number in outcomes.items())
        for package, outcomes in counts(tried).items()
    ]
    return "\n".join([head, *packages, *(f"  not noticed: {key}\n    {counted[key].get('source', '')}" for key in missed)])


if __name__ == "__main__":
    main()
