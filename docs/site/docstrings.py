"""A docstring of the house, which is plain text, as reStructuredText.

    prose            a paragraph; `names` are literals, and no other mark means anything but **bold**
    >>> a call       a block of code
    indented lines   a block as it stands: formulas, calls
    name   what      lines in columns: each name a term and what it is
    Parameters       numpydoc's sections: each entry a term and what it is

conf.py hands `process` to autodoc; tests/test_docs.py asks what becomes of each form.
"""

import re
import textwrap

SECTIONS = {"Parameters", "Attributes", "Examples"}
ITEM = re.compile(r"(?:[-*]|\d+\.) ")


def process(app, what: str, name: str, obj, options, lines: list[str]) -> None:
    """An event of autodoc: the lines are changed in place."""
    lines[:] = restructured(lines)


def restructured(lines: list[str]) -> list[str]:
    """All blocks of a docstring, one after the other."""
    out: list[str] = []
    section = ""
    for block in blocks(lines):
        if len(block) > 1 and block[0] in SECTIONS and set(block[1]) == {"-"}:
            section, block = block[0], block[2:]
            out += [f".. rubric:: {section}", ""]
        if not block:
            continue
        if section in ("Parameters", "Attributes"):
            out += _entries(block)
        elif block[0].lstrip().startswith(">>>"):
            out += _verbatim(block, "pycon")
        elif (terms := _terms(block)) is not None:
            out += terms
        elif block[0].startswith(" ") or _is_table(block):
            out += _verbatim(block, "text")
        elif ITEM.match(block[0]):
            out += _items(block)
        else:
            out += [plain(" ".join(line.strip() for line in block)), ""]
    return out


def blocks(lines: list[str]) -> list[list[str]]:
    """Lines between empty ones; a change between prose and an example, or an indented part, begins another."""
    found: list[list[str]] = [[]]
    for line in lines:
        last = found[-1]
        is_example = line.lstrip().startswith(">>>")
        if not line.strip():
            found.append([])
        elif last and is_example and not last[0].lstrip().startswith(">>>") and last[0] not in SECTIONS:
            found.append([line])
        else:
            last.append(line)
    return [block for block in found if block]


def plain(text: str) -> str:
    """Prose in which nothing is a mark but names and bold words."""
    parts = re.split(r"(`[^`]+`|\*\*[^*]+\*\*)", text)
    out = ""
    for place, part in enumerate(parts):
        if place % 2 == 0:
            out += re.sub(r"([\\*_|`])", r"\\\1", part)
            continue
        marked = f"`{part}`" if part.startswith("`") else part
        before, after = parts[place - 1], parts[place + 1]
        out += ("\\ " if before and not before[-1].isspace() else "") + marked
        out += "\\ " if after and not after[0].isspace() else ""
    return out


def _verbatim(block: list[str], language: str) -> list[str]:
    inside = textwrap.dedent("\n".join(block)).split("\n")
    return [f".. code-block:: {language}", "", *(f"   {line}" for line in inside), ""]


def _entries(block: list[str]) -> list[str]:
    out: list[str] = []
    for line in block:
        if line.startswith(" "):
            out.append(f"   {plain(line.strip())}")
        else:
            name, _, kind = line.partition(" : ")
            out += [*([""] if out else []), f"``{name}`` – {plain(kind)}" if kind else f"``{name}``"]
    return [*_joined(out), ""]


def _joined(lines: list[str]) -> list[str]:
    """The lines of a description as one, so that what is marked never ends with a line."""
    out: list[str] = []
    for line in lines:
        if line.startswith("   ") and out and out[-1].startswith("   "):
            out[-1] += f" {line.strip()}"
        else:
            out.append(line)
    return out


def _items(block: list[str]) -> list[str]:
    items: list[str] = []
    for line in block:
        if ITEM.match(line):
            items.append(line)
        else:
            items[-1] += f" {line.strip()}"
    heads = [ITEM.match(item).group() for item in items]  # type: ignore[union-attr]
    return [*(head + plain(item[len(head) :]) for head, item in zip(heads, items, strict=True)), ""]


def _terms(block: list[str]) -> list[str] | None:
    """Lines in columns, "name   what it is" and more of it below: a list of terms; None where they are something else."""
    if block[0].startswith(" ") or not _is_table(block):
        return None
    found: list[tuple[str, list[str]]] = []
    for line in block:
        if line.startswith(" "):
            found[-1][1].append(line.strip())
        else:
            name, *rest = re.split(r" {2,}", line, maxsplit=1)
            found.append((name, rest))
    if not all(words for _, words in found):
        return None
    terms = [(", ".join(f"``{one}``" for one in re.split(r", ", name)), plain(" ".join(words))) for name, words in found]
    return [line for term, words in terms for line in (term, f"   {words}", "")]


def _is_table(block: list[str]) -> bool:
    return any(re.search(r"\S {2,}\S", line) for line in block) or any(line.startswith(" ") for line in block[1:])
