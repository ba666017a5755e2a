"""Names say what they are: vague identifiers are bound nowhere in the package, and no module has another one's name.

The list is that of the project's style: a word that says nothing without the sentence around it. An exception is a standard
term, or a name that users type.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import meristem

SOURCE = Path(meristem.__file__).parent
VAGUE = {
    *("one", "told", "said", "kept", "given", "held", "apart", "found", "known", "whole", "still", "spared", "within", "about"),
    *("doubt", "doubts", "course", "look", "looks", "way", "ways", "shown", "wanted", "got", "here", "there", "again", "thing"),
    *("things", "ours", "theirs", "understood", "everyone", "somebody", "nobody", "beside", "besides", "off", "lacking"),
    *("stand_ins", "go_on", "goes_on", "enough", "keeping", "keep_going", "telling", "asked", "heard", "seen", "checked"),
}
EXCEPTIONS: dict[str, set[str]] = {  # module → names
    "files.file_kinds": {"thing"},  # save(path, thing)
    "tables.table_model": {"doubts"},  # an alias that users know
    "paths.result": {"stand_ins"},  # deprecated
    "folders.checkpoints": {"keeping"},  # Checkpoints(folder).keeping()
}
# Module names that several packages may have: a data set and its study; operations of a backend and the export to it.
REPEATED = {"__init__", "__main__", "mnist", "cifar10", "mirflickr", "onnx", "torch", "c"}


@cache
def modules() -> dict[str, ast.Module]:
    paths = sorted(SOURCE.rglob("*.py"))
    return {".".join(path.relative_to(SOURCE).with_suffix("").parts): ast.parse(path.read_text()) for path in paths}


def bound(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Every name that a module binds, and where; without the underscores in front."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name.lstrip("_"), node.lineno
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name.lstrip("_").lower(), node.lineno
            case ast.arg(arg=name):
                yield name.lstrip("_"), node.lineno
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.ExceptHandler(name=str(name)):
                yield name.lstrip("_"), node.lineno


def vague(module: str, tree: ast.Module) -> list[str]:
    exempt = EXCEPTIONS.get(module, set())
    return [f"{module}:{line} {name}" for name, line in bound(tree) if name in VAGUE and name not in exempt]


def test_no_vague_name_is_bound():
    places = [place for module, tree in modules().items() for place in vague(module, tree)]
    assert places == []


def test_no_module_has_a_vague_name():
    assert [module for module in modules() if module.split(".")[-1].strip("_") in VAGUE] == []


def test_no_two_modules_have_the_same_name():
    names = Counter(module.split(".")[-1] for module in modules())
    assert [name for name, count in names.items() if count > 1 and name not in REPEATED] == []


def test_exceptions_are_needed():
    trees = modules()
    for module, names in EXCEPTIONS.items():
        assert names <= {name for name, _ in bound(trees[module])}, module


def test_the_rule_sees_every_kind_of_binding():
    text = "def told(one): pass\nfor kept in []: said = 1\nclass Given: pass\nx = [found for found in []]\nself.held = 1"
    assert {name for name, _ in bound(ast.parse(text))} >= {"told", "one", "kept", "said", "given", "found", "held"}
