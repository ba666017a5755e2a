"""Mutation testing: change the code a little, run the tests that belong to it, and count how many changes they notice.

    make mutants                                   200 mutants into results/mutants.json: two hours on one core
    python tests/mutants.py --count 10 --resume    go on with a recorded run, up to ten mutants

A mutant changes one operator, comparison or constant of nn, train, compact, paths or targets. They are drawn with a fixed seed,
so the first ten of 200 are those of a run of ten. Each is tried in a copy of the tree: first the module's doctests, then the
test files that import the module, then the others of its package (TESTS); the first failure ends it. A timeout counts as
noticed. A person who finds that a mutant changes nothing adds `"equivalent": "reason"` to its record; it no longer counts.
"""

import argparse
import ast
import copy
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
RECORD = ROOT / "results" / "mutants.json"
# The tests of a package, quick ones first.
TESTS = {
    "nn": "forward models axes parts shapes own_body growth trunk reference user_optimizer compact_ops",
    "train": "measure objectives temperature over_batch patience population replay training runs reference_trainer settle "
    "live io",
    "compact": "compact_ops forward trunk compact",
    "paths": "paths replay cv",
    "targets": "scale columns objectives estimators_prior regression_losses estimators_weights",
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

    @property
    def key(self) -> str:
        return f"{self.path}:{self.line} {self.before} → {self.after} @{self.start}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200, help="how many mutants, recorded ones included (200)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=900, help="seconds for one mutant (900)")
    parser.add_argument("--packages", default=",".join(TESTS), help="which packages to mutate, with commas between")
    parser.add_argument("--resume", action="store_true", help="keep what the record holds of the same sources and seed")
    parser.add_argument("--out", type=Path, default=RECORD)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the tests under way end, too
    packages = options.packages.split(",")
    mutants = drawn(packages, options.seed)[: options.count]
    about = {"sources": digest(packages), "seed": options.seed, "packages": packages}
    tried = recorded(options.out, about) if options.resume else {}
    with tempfile.TemporaryDirectory(prefix="meristem-mutants-") as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".*", "__pycache__", "out", "dist", "build", "results"))
        for package in sorted({package_of(mutant) for mutant in mutants if mutant.key not in tried}):
            check_unchanged(tree, package, options.timeout)
        for number, mutant in enumerate(mutants, start=1):
            if mutant.key not in tried:
                tried[mutant.key] = attempt(tree, mutant, options.timeout)
                write(options.out, about, tried)
            entry = tried[mutant.key]
            print(f"{number:4d}  {entry['outcome']:9s} {entry['seconds']:6.1f} s  {mutant.key}", flush=True)
    print(summary({mutant.key: tried[mutant.key] for mutant in mutants}))


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
    for node in expressions(ast.parse(text)):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        before = ast.unparse(node)
        changed = [ast.unparse(variant) for variant in variants(node)]
        form = "({})" if isinstance(node, ast.expr) else "{}"
        places.append([Mutant(path, node.lineno, start, end, before, form.format(after)) for after in changed])
    return [changes for changes in places if changes]


def expressions(node: ast.AST) -> Iterator[Any]:
    """What is computed, `x += 1` included: without annotations, messages and unions of types."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "type_params"):
            continue
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass", "warnings.warn"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, SKIPPED):
                if isinstance(child, ast.expr | ast.AugAssign):
                    yield child
                yield from expressions(child)


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


# Trying one -----------------------------------------------------------------------------------------------------------------


def package_of(mutant: Mutant) -> str:
    return Path(mutant.path).parts[2]


def tests_of(mutant: Mutant) -> list[str]:
    """What is run for a mutant, in this order."""
    module = ".".join(Path(mutant.path).with_suffix("").parts[1:]).removesuffix(".__init__")
    doctests = f"tests/test_docs.py::test_docstrings_show_calls_that_run[{module}]"
    files = [f"tests/test_{name}.py" for name in TESTS[package_of(mutant)].split()]
    return [doctests, *sorted(files, key=lambda file: f"{module} import" not in (ROOT / file).read_text())]


def run_tests(tree: Path, tests: list[str], timeout: float) -> tuple[str, str]:
    """The outcome ("passed", "failed", "timeout") and the last lines of the output."""
    environment = os.environ | {
        "PYTHONPATH": str(tree / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",  # a mutant can have the size and the second of the one before
        "MERISTEM_TEST_PROGRAMS": str(tree.parent / "programs"),  # shared: a program is found by what it computes
    }
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "--tb=line", "--hypothesis-seed=0", *tests]
    with subprocess.Popen(
        command, cwd=tree, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        try:
            output, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            return "timeout", ""
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode not in (0, 1, 2):  # 2: an import failed
        raise SystemExit(f"pytest ended with status {process.returncode}:\n{output}")
    return "passed" if process.returncode == 0 else "failed", output[-600:]


def attempt(tree: Path, mutant: Mutant, timeout: float) -> dict[str, Any]:
    """The record of one mutant."""
    file = tree / mutant.path
    text = file.read_bytes()
    began = time.monotonic()
    try:
        file.write_bytes(text[: mutant.start] + mutant.after.encode() + text[mutant.end :])
        outcome, output = run_tests(tree, tests_of(mutant), timeout)
    finally:
        file.write_bytes(text)
    noticed_by = [line.split(" ")[1] for line in output.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    name = {"passed": "unnoticed", "failed": "noticed", "timeout": "timeout"}[outcome]
    line = text.decode().splitlines()[mutant.line - 1].strip()
    return {"outcome": name, "seconds": round(time.monotonic() - began, 1), "by": noticed_by[:1], "source": line}


def check_unchanged(tree: Path, package: str, timeout: float) -> None:
    """Without a change the tests of a package must pass; this also compiles what all its mutants share."""
    files = [f"tests/test_{name}.py" for name in TESTS[package].split()]
    began = time.monotonic()
    outcome, output = run_tests(tree, files, 4 * timeout)
    if outcome != "passed":
        raise SystemExit(f"The tests of {package} do not pass without a mutant ({outcome}):\n{output}")
    print(f"      {package}, unchanged: passed in {time.monotonic() - began:.0f} s", flush=True)


# The record -----------------------------------------------------------------------------------------------------------------


def digest(packages: list[str]) -> str:
    """Names the sources that mutants are drawn from."""
    files = [path for package in packages for path in sorted((ROOT / "src" / "meristem" / package).rglob("*.py"))]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]


def recorded(out: Path, about: dict[str, Any]) -> dict[str, Any]:
    if not out.exists():
        return {}
    record = json.loads(out.read_text())
    if record["about"] != about:
        raise SystemExit(f"{out} is of other sources, packages or another seed; run without --resume, or give another --out.")
    return record["mutants"]


def write(out: Path, about: dict[str, Any], tried: dict[str, Any]) -> None:
    beside = out.with_suffix(".part")
    text = json.dumps({"about": about, "summary": summary(tried), "mutants": tried}, indent=1, ensure_ascii=False)
    beside.write_text(text + "\n")
    beside.replace(out)


def summary(tried: dict[str, Any]) -> str:
    """The share that was noticed, and every mutant that was not."""
    counted = {key: entry for key, entry in tried.items() if "equivalent" not in entry}
    missed = [key for key, entry in counted.items() if entry["outcome"] == "unnoticed"]
    share = 1 - len(missed) / max(1, len(counted))
    seconds = sum(entry["seconds"] for entry in tried.values())
    head = f"{share:.1%} of {len(counted)} mutants noticed, {len(tried) - len(counted)} equivalent, {seconds:.0f} s"
    return "\n".join([head, *(f"  not noticed: {key}\n    {counted[key].get('source', '')}" for key in missed)])


if __name__ == "__main__":
    main()
