"""Links from a page to the repository: `[text](../src/meristem/gate.py)` leads to a copy of the file within the site.

    rewrite   ../X → kept:X, which conf.py resolves to files/X; a folder is its summary.json; SECURITY.md is a page
    copy      the files that are linked; sources and logs as text, which a browser shows

Pictures, `![…](../results/…)`, are Sphinx's own affair. conf.py imports it.
"""

import re
import shutil
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
SCHEME, FILES = "kept", "files"
LINK = re.compile(r"(!?)\[([^\]]*)\]\(\.\./([^)#\s]+)\)")
PAGES = {"SECURITY.md": "security.md", "README.md": "index.md"}
AS_TEXT = {".py", ".md", ".jsonl", ".cff", ".toml"}


def rewrite(app, name: str, source: list[str]) -> None:
    """A page as the site reads it."""
    source[0] = LINK.sub(_link, source[0])


def copy(app, failure) -> None:
    """What pages link to, beside them."""
    if failure is not None or app.builder.format != "html":
        return
    for page in Path(app.srcdir).glob("*.md"):
        for is_picture, _, path in LINK.findall(page.read_text()):
            if not is_picture and path not in PAGES:
                kept = Path(app.outdir) / FILES / shown_as(path)
                kept.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / file_of(path), kept)


def _link(found: re.Match[str]) -> str:
    is_picture, text, path = found.groups()
    if is_picture:
        return found.group()
    return f"[{text}]({PAGES[path] if path in PAGES else f'{SCHEME}:{shown_as(path)}'})"


def file_of(path: str) -> str:
    """The file that a link means; of a folder of a study its summary."""
    return f"{path.rstrip('/')}/summary.json" if (ROOT / path).is_dir() else path


def shown_as(path: str) -> str:
    path = file_of(path)
    return f"{path}.txt" if Path(path).suffix in AS_TEXT else path
