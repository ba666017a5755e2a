"""The docstrings of the estimators in numpydoc's form, composed of the words that stand with parameters and attributes.

    @documented
    class TunnelClassifier(…): '''Summary. Examples …'''       → the same with the sections Parameters and Attributes

Only this folder imports it; the test of docs/estimators.md reads the same words.
"""

import textwrap
from typing import Any, TypeVar

from meristem.estimators.attributes import attributes_of
from meristem.estimators.parameters import parameters_of

WIDTH = 100
EXAMPLES = "Examples\n--------\n"

K = TypeVar("K", bound=type)


def documented(kind: K) -> K:
    """The class with all of its parameters and attributes explained, before its examples."""
    text = textwrap.dedent(f"    {kind.__doc__}")
    summary, _, examples = text.partition(EXAMPLES)
    sections = [summary.strip(), "", *parameters_section(kind), *attributes_section(kind), EXAMPLES + examples.strip(), ""]
    kind.__doc__ = "\n".join(sections)
    return kind


def parameters_section(kind: Any) -> list[str]:
    lines = ["Parameters", "----------"]
    for name, (parameter, default) in parameters_of(kind).items():
        lines += [f"{name} : {parameter.kind}, default={default!r}", *_indented(parameter.text)]
    return [*lines, ""]


def attributes_section(kind: Any) -> list[str]:
    lines = ["Attributes", "----------"]
    for name, (words, text) in attributes_of(kind).items():
        lines += [f"{name} : {words}", *_indented(text)]
    return [*lines, ""]


def _indented(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
