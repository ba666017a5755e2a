"""Dependencies point one way: a package imports what is below it, and nothing beside or above, at its top or in a function."""

import ast
import subprocess
import sys
from pathlib import Path

import meristem

SOURCE = Path(meristem.__file__).parent
MAP = SOURCE.parent.parent / "docs" / "map.md"

# From the bottom to the top; packages of one layer do not know each other. docs/map.md says the same.
LAYERS = [
    ["check", "memory", "forks", "xla_flags", "cache", "weighted_quantiles", "sparse"],
    ["gate", "layers", "json_schema"],
    ["nn"],
    ["compact"],
    ["complexity"],
    ["train"],
    ["targets", "show"],
    ["inputs", "files"],
    ["folders", "data", "export"],
    ["pictures", "watch", "loggers", "workers"],
    ["paths"],
    ["report"],
    ["estimators"],
    ["tables", "experiments"],
    ["images"],
    ["persistence"],
    ["commands"],
    ["__init__", "__main__"],
]
LAYER = {package: height for height, packages in enumerate(LAYERS) for package in packages}


def imported(text: str, package: str = "") -> set[str]:
    """The packages of meristem that a module imports, in functions too; `meristem.__version__` is nobody's."""
    names: list[str] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names += [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute, so that they can be read"
            names += [f"{node.module}.{name.name}" for name in node.names]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "meristem":
            names.append(f"meristem.{node.attr}")
    parts = [name.split(".") for name in names]
    found = {part[1] for part in parts if part[0] == "meristem" and len(part) > 1}
    return found - {"__version__", package}


def modules() -> dict[str, str]:
    """Name → text of every module, without "meristem."."""
    paths = sorted(SOURCE.rglob("*.py"))
    return {".".join(path.relative_to(SOURCE).with_suffix("").parts): path.read_text() for path in paths}


def package_of(module: str) -> str:
    return module.split(".")[0]


def test_every_package_has_a_layer():
    assert {package_of(module) for module in modules()} == set(LAYER)
    assert sum(map(len, LAYERS)) == len(LAYER)


def test_dependencies_point_one_way():
    used = {(module, other) for module, text in modules().items() for other in imported(text, package_of(module))}
    assert {other for _, other in used} <= set(LAYER), "import a public name from where it is, not from meristem"
    against = {(module, other) for module, other in used if LAYER[other] >= LAYER[package_of(module)]}
    assert against == set(), "an import that points up or aside; move what is needed below"


def test_lazy_imports_count():
    assert imported("def f():\n    from meristem.compact import compact") == {"compact"}
    assert imported("from meristem import estimators, __version__\nimport meristem\nmeristem.__version__") == {"estimators"}
    assert imported("import meristem\nmeristem.files.load") == {"files"}
    assert imported("from meristem.nn.body import Body", "nn") == set()


def test_the_map_says_the_same():
    (line,) = [line for line in MAP.read_text().splitlines() if line.startswith("Dependencies point one way")]
    arrow = line.split("`")[1]
    layers = [sorted(layer.strip("{} ").replace(" ", "").split(",")) for layer in arrow.split("←")]
    assert layers == [sorted(layer) for layer in LAYERS[:-1]]


CORE = """
import sys
import meristem
assert meristem.compact.compact and meristem.compact.approximate and meristem.compact.layers.Gated
import meristem.pictures.studies
assert not {"matplotlib", "sklearn"} & set(sys.modules), "imported where something is drawn or estimated, not before"
sys.modules.update(dict.fromkeys(["sklearn", "matplotlib", "rich", "safetensors", "onnx", "torch"]))
from meristem import *
assert fit and Run and Knobs and meristem.compact.approximate
"""


def test_the_core_needs_no_extra():
    """Of a package that holds a function of its own name all is reached; a star leaves out what cannot be imported."""
    subprocess.run([sys.executable, "-c", CORE], check=True)
