"""The changes that `make mutants` tries: what is changed, what is not, and which tests are run. Nothing is compiled here."""

import ast

import mutants


def test_operators_comparisons_and_constants_change_and_nothing_else():
    text = "def f(a: int = 3) -> 'b':\n    x = a < 1 or not a\n    x += 2.0\n    raise E(f'{4}', 5)\nzip(strict=True)\n"
    changes = {(mutant.before, mutant.after) for place in mutants.mutations(text.encode()) for mutant in place}
    assert changes == {
        *{("3", "(4)"), ("3", "(2)"), ("a < 1 or not a", "(a < 1 and (not a))"), ("a < 1", "(a <= 1)"), ("a < 1", "(a > 1)")},
        *{("1", "(2)"), ("1", "(0)"), ("not a", "(a)"), ("x += 2.0", "x -= 2.0"), ("2.0", "(4.0)"), ("2.0", "(1.0)")},
    }


def test_every_mutant_compiles_and_differs():
    drawn = mutants.drawn(list(mutants.TESTS), seed=0)
    for mutant in drawn[:200]:
        text = (mutants.ROOT / mutant.path).read_bytes()
        changed = text[: mutant.start] + mutant.after.encode() + text[mutant.end :]
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(text)), mutant.key
    assert [mutant.key for mutant in mutants.drawn(list(mutants.TESTS), seed=0)] == [mutant.key for mutant in drawn]


def test_the_tests_of_each_package_exist():
    for names in mutants.TESTS.values():
        assert all((mutants.ROOT / "tests" / f"test_{name}.py").is_file() for name in names.split())


def test_the_summary_leaves_equivalent_mutants_out():
    first, second = "src/meristem/nn/a.py:1 1 → (2) @3", "src/meristem/nn/b.py:1 1 → (2) @3"
    tried = {first: {"outcome": "noticed", "seconds": 1.0}, second: {"outcome": "unnoticed", "seconds": 2.0}}
    assert "50.0% of 2" in mutants.summary(tried) and second in mutants.summary(tried)
    tried[second]["equivalent"] = "a rounding"
    assert "100.0% of 1" in mutants.summary(tried)


def test_counts_are_by_package_and_outcome():
    tried = {
        "src/meristem/nn/a.py:1 1 → (2) @3": {"outcome": "noticed", "seconds": 1.0},
        "src/meristem/nn/a.py:2 1 → (2) @9": {"outcome": "unnoticed", "seconds": 1.0, "equivalent": "a rounding"},
        "src/meristem/paths/b.py:1 1 → (2) @3": {"outcome": "timeout", "seconds": 1.0},
    }
    assert mutants.counts(tried) == {"nn": {"equivalent": 1, "noticed": 1}, "paths": {"timeout": 1}}
    assert "paths: 1 timeout" in mutants.summary(tried)


def test_every_test_of_a_mutant_runs_unchanged_first():
    drawn = mutants.drawn(["nn", "paths"], seed=0)[:20]
    unchanged = {test for tests in mutants.units_of(drawn).values() for test in tests}
    assert all(set(mutants.tests_of(mutant)) <= unchanged for mutant in drawn)
