"""What the documentation shows runs: doctests of every module, the README's code and commands; its tables are recorded."""

import doctest
import fnmatch
import importlib
import pkgutil
import re
import runpy
import shlex
from pathlib import Path

import pytest

import meristem
from meristem.commands.main import parser
from meristem.estimators import base
from soak import FACTOR

ROOT = Path(__file__).parent.parent
MODULES = sorted(
    module.name for module in pkgutil.walk_packages(meristem.__path__, "meristem.") if not module.name.endswith("__main__")
)
ORACLES = ["reference", "reference_trainer"]
README = (ROOT / "README.md").read_text()
# Examples that differ from others' by the name of the class: a soak runs them; test_cv.py, test_image_cv.py and
# test_estimators.py run the classes.
ALIKE = {f"meristem.estimators.cv.{name}CV" for name in ("BuddingClassifier", "TunnelRegressor", "BuddingRegressor")}
ALIKE |= {f"meristem.estimators.regressors.{name}Regressor" for name in ("Budding", "Highway")}
ALIKE |= {f"meristem.estimators.classifiers.{name}Classifier" for name in ("Budding", "Highway")}
ALIKE |= {"meristem.estimators.image_cv.TunnelImageClassifierCV"}


@pytest.fixture
def short_trainings(monkeypatch):
    """Examples at the estimators' defaults end sooner than a person's would; in a soak they do not."""
    if FACTOR == 1:
        for name, value in {"EPOCHS": 20, "STEPS": 200, "PATIENCE_STEPS": 50}.items():
            monkeypatch.setattr(base, name, value)


@pytest.mark.usefixtures("short_trainings")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::meristem.GrowthWarning")
@pytest.mark.parametrize("name", [*MODULES, *ORACLES])
def test_docstrings_show_calls_that_run(name):
    runner = doctest.DocTestRunner(verbose=False)
    for test in doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(name)):
        if FACTOR > 1 or test.name not in ALIKE:
            runner.run(test)
    assert runner.summarize(verbose=False).failed == 0


def test_every_public_name_shows_a_call():
    shown = ""
    for name in MODULES:
        module = importlib.import_module(name)
        shown += "".join(example.source for test in doctest.DocTestFinder().find(module) for example in test.examples)
    hidden = {"nn", "DivergedError", "GrowthWarning", "Run", "Any", "TYPE_CHECKING"}
    public = [name for name in dir(meristem) if not name.startswith("_") and name not in hidden]
    functions = [name for name in public if callable(getattr(meristem, name))]
    assert [name for name in functions if not re.search(rf"\b{name}\b", shown)] == []


def test_a_star_imports_every_public_name():
    names: dict[str, object] = {}
    exec("from meristem import *", names)
    public = {
        name for name in dir(meristem) if not name.startswith("_") and callable(getattr(meristem, name)) and name != "Any"
    }
    assert public <= set(names) and {"nn", "load", "TunnelClassifier", "plot_growth"} <= set(names)


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = [
    pytest.param(block, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))
]


@pytest.mark.usefixtures("short_trainings")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::meristem.GrowthWarning")
@pytest.mark.parametrize("block", BLOCKS)
def test_the_code_of_the_pages_runs(block, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write files
    monkeypatch.setenv("MPLBACKEND", "agg")
    exec(compile(block, "a page", "exec"), {})
    assert "print(" not in block or capsys.readouterr().out


def test_the_notebooks_are_sources_that_the_build_runs():
    """Their code is run by `make docs`; here it is at least Python, and all of it is in cells."""
    notebooks = sorted((ROOT / "docs" / "notebooks").glob("*.md"))
    assert [page.stem for page in notebooks] == ["own-model", "path", "population", "table"]
    for page in notebooks:
        text = page.read_text()
        assert text.startswith("---\njupytext:") and "```python" not in text
        cells = re.findall(r"```\{code-cell\} ipython3\n(.*?)```", text, re.DOTALL)
        assert len(cells) >= 4
        for cell in cells:
            compile(cell, page.name, "exec")


def test_the_reference_has_every_public_name():
    shown = "".join(page.read_text() for page in (ROOT / "docs" / "reference").glob("*.rst"))
    named = set(re.findall(r"^\.\. auto\w+:: meristem\.(?:\w+\.)*(\w+)$", shown, re.MULTILINE))
    public = {name for name in meristem.__all__ if name != "nn"}
    assert public <= named


def test_every_page_is_in_the_sites_contents():
    """Sphinx says so, too, where it is installed."""
    index = (ROOT / "docs" / "index.md").read_text()
    listed = [
        entry for tree in re.findall(r"```\{toctree\}\n(.*?)```", index, re.DOTALL) for entry in tree.split("\n\n")[1].split()
    ]
    docs = ROOT / "docs"
    pages = [
        page.relative_to(docs).with_suffix("").as_posix() for kind in ("*.md", "*/*.md", "*/*.rst") for page in docs.glob(kind)
    ]
    assert [page for page in pages if page != "index" and not any(fnmatch.fnmatch(page, entry) for entry in listed)] == []


def test_a_docstring_becomes_a_page():
    site = runpy.run_path(str(ROOT / "docs" / "site" / "docstrings.py"))
    lines = [
        "What `fit_` does, *not* |more|, **bold**.",
        "",
        "    y = g · x",
        "",
        "a, b",
        "     one",
        "     two",
        "c    three",
        "",
        ">>> 1 + 1",
        "2",
    ]
    assert site["restructured"](lines) == [
        "What ``fit_`` does, \\*not\\* \\|more\\|, **bold**\\ .",
        "",
        *[".. code-block:: text", "", "   y = g · x", ""],
        *["``a``, ``b``", "   one two", "", "``c``", "   three", ""],
        *[".. code-block:: pycon", "", "   >>> 1 + 1", "   2", ""],
    ]
    entries = ["Parameters", "----------", "width : int, default='auto'", "    Units of", "    every layer."]
    assert site["restructured"](entries)[2:] == ["``width`` – int, default='auto'", "   Units of every layer.", ""]


def test_what_pages_link_to_is_a_file_that_the_site_can_hold():
    site = runpy.run_path(str(ROOT / "docs" / "site" / "links.py"))
    for page in (ROOT / "docs").glob("*.md"):
        for is_picture, _, path in site["LINK"].findall(page.read_text()):
            assert is_picture or (ROOT / site["file_of"](path)).is_file(), f"{page.name} links to {path}"
    source = ["[a](../src/meristem/gate.py), [b](../results/mnist), [c](../SECURITY.md), ![d](../results/x.png)"]
    site["rewrite"](None, "page", source)
    kept = ["kept:src/meristem/gate.py.txt", "kept:results/mnist/summary.json", "security.md", "../results/x.png"]
    assert re.findall(r"\]\((.*?)\)", source[0]) == kept


def test_every_anchor_of_a_link_is_a_heading():
    for page in [*ROOT.glob("docs/*.md"), *ROOT.glob("docs/notebooks/*.md")]:
        for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text()):
            there = (page.parent / target if target else page).read_text()
            headings = re.findall(r"^#+ (.*)$", there, re.MULTILINE)
            slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in slugs, f"{page.name} links to {target}#{anchor}"


def test_every_parameter_is_explained_with_its_default():
    from meristem import BuddingClassifier, TunnelClassifier, TunnelRegressor

    page = (ROOT / "docs" / "estimators.md").read_text()
    explained = dict(re.findall(r"^\| `(\w+)` \| ([^|]*) \|", page.split("<!-- parameters -->")[1], re.MULTILINE))
    for kind in (TunnelClassifier, BuddingClassifier, TunnelRegressor):
        for name, value in kind().get_params().items():
            assert repr(value) in explained[name], (kind.__name__, name, value)


def test_the_readmes_commands_exist():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\w+)", README, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
    commands = re.findall(r"^(?:\.venv/bin/)?meristem (.*)", README, re.MULTILINE)
    assert commands
    for command in commands:
        parser().parse_args(shlex.split(command, comments=True))


def test_links_and_pictures_are_there():
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("results/**/*.md")]:
        words = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)  # without code, which has brackets of its own
        for target in re.findall(r"\]\(([^)#]+)[)#]", words):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("name", ["table", "mnist", "tagging", "speed", "gpu", "tabular"])
def test_the_tables_are_those_of_the_recorded_runs(name):
    """The numbers are not typed in: benchmarks/tables.py would change nothing."""
    tables = runpy.run_path(str(ROOT / "benchmarks" / "tables.py"))["tables"]()
    assert f"<!-- {name} -->\n\n{tables[name]}\n\n" in (ROOT / "docs" / "results.md").read_text()


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 150


def test_every_recorded_picture_is_shown_somewhere():
    """Of results/ the data are kept, and the pictures that a page links."""
    pages = [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("results/**/*.md")]
    linked = {
        (page.parent / target).resolve() for page in pages for target in re.findall(r"\]\(([^)#]+\.png)\)", page.read_text())
    }
    pictures = [*(ROOT / "results").rglob("*.png"), *(ROOT / "docs").glob("*.png")]
    assert {path.resolve() for path in pictures} == linked


def test_the_reference_names_members_that_there_are():
    for page in (ROOT / "docs" / "reference").glob("*.rst"):
        for name, members in re.findall(
            r"^\.\. autoclass:: (meristem\.\S+)\n   :members: (.+)$", page.read_text(), re.MULTILINE
        ):
            owner = meristem
            for part in name.split(".")[1:]:
                owner = getattr(owner, part)
            missing = [member for member in members.split(", ") if not hasattr(owner, member)]
            assert not missing, f"{page.name}: {name} has no {missing}"
