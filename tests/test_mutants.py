"""The changes that `make mutants` tries: what is changed, what is not, and which tests are run. Nothing is compiled here."""

import ast

import mutants


def test_operators_comparisons_and_constants_change_and_nothing_else():
    text = "def f(a: int = 3) -> 'b':\n    x = a < 1 or not a\n    x += 2.0\n    raise ValueError(f'{a} {4}', 5)\n"
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
    tried = {"a": {"outcome": "noticed", "seconds": 1.0}, "b": {"outcome": "unnoticed", "seconds": 2.0}}
    assert "50.0% of 2" in mutants.summary(tried) and "b" in mutants.summary(tried)
    tried["b"]["equivalent"] = "a rounding"
    assert "100.0% of 1" in mutants.summary(tried)
