"""What help() and docs/estimators.md say of the estimators: every parameter and attribute, in the same words."""

import pydoc
import re
from pathlib import Path

import pandas
import pytest
from sklearn.base import clone

import meristem
from estimating import CLASSIFIERS, REGRESSORS, iris
from meristem.estimators.documentation import PARAMETERS, attributes_of
from meristem.estimators.parameters import CONSTRAINTS, kind_of, parameters_of

PAGE = (Path(__file__).parent.parent / "docs" / "estimators.md").read_text()
TABULAR = [type(model) for model in (*CLASSIFIERS, *REGRESSORS)]
SEARCHING = [getattr(meristem, f"{kind.__name__}CV") for kind in TABULAR if not kind.__name__.startswith("Highway")]
SEARCHING.append(meristem.TunnelImageClassifierCV)
PLAIN = [*TABULAR, meristem.TunnelImageClassifier]
KINDS = [*PLAIN, *SEARCHING]


def entries(text: str, section: str) -> dict[str, tuple[str, str]]:
    """Name → (type, explanation) of a section in numpydoc's form."""
    body = re.search(rf"^{section}\n-+\n(.*?)(?=^\w+\n-+\n|\Z)", text, re.MULTILINE | re.DOTALL)
    assert body is not None, section
    found = re.findall(r"^(\w+) : (.+)\n((?:^    .+\n)+)", body[1], re.MULTILINE)
    return {name: (kind, " ".join(words.split())) for name, kind, words in found}


@pytest.mark.parametrize("kind", KINDS)
def test_help_explains_every_parameter_with_its_default(kind):
    said = entries(kind.__doc__, "Parameters")
    assert sorted(said) == sorted(kind().get_params())
    for name, default in kind().get_params().items():
        words, text = said[name]
        assert words == f"{kind_of(name)}, default={default!r}" and text == PARAMETERS[name]
    price = "penalty : float or 'auto'" if kind in PLAIN else "penalties : list of float or 'auto'"
    assert f"\n |  {price}, default='auto'\n" in pydoc.render_doc(kind, renderer=pydoc.plaintext)


@pytest.mark.filterwarnings("ignore::meristem.GrowthWarning")  # two epochs
@pytest.mark.parametrize("model", [CLASSIFIERS[0], REGRESSORS[0], meristem.TunnelClassifierCV(max_width=8, cv=2, depth=2)])
def test_help_explains_what_is_learned_and_nothing_else(model):
    X, y = iris()
    model = clone(model).set_params(max_epochs=2).fit(pandas.DataFrame(X, columns=list("abcd")), y)
    learned = {name for name in dir(model) if name.endswith("_") and not name.startswith("_")}
    heads = {head.partition(" : ")[0] for head in attributes_of(model)}
    assert set(entries(type(model).__doc__, "Attributes")) == heads
    assert learned == heads - {"threshold_", "positive_class_"}, "which are of two classes"


@pytest.mark.parametrize("kind", KINDS)
def test_help_shows_a_call(kind):
    examples = kind.__doc__.partition("Examples\n--------\n")[2]
    assert f">>> model = {kind.__name__}(" in examples or f">>> {kind.__name__}(" in examples


def test_every_explanation_is_of_a_parameter():
    assert set(PARAMETERS) == set(CONSTRAINTS) == {name for kind in KINDS for name in parameters_of(kind)}


def row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def test_the_page_has_the_same_words():
    """On failure, paste what is printed."""
    defaults = {name: default for kind in reversed(KINDS) for name, default in parameters_of(kind).items()}
    rows = [row(f"`{name}`", repr(defaults[name]), text) for name, text in PARAMETERS.items()]
    for kind in (meristem.TunnelClassifier, meristem.TunnelClassifierCV, meristem.TunnelImageClassifier):
        heads = {tuple(head.split(" : ")): text for head, text in attributes_of(kind).items()}
        rows += [row(f"`{name}`", words, text) for (name, words), text in heads.items()]
    print("\n".join(rows))
    assert [line for line in rows if line not in PAGE] == []
