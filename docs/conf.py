"""The site: `make docs` builds it from the pages of this folder, the docstrings and four notebooks that run in the build.

Pages are written to be read in the repository, too; what they link to outside this folder is copied into the site
(site/links.py). Docstrings are plain text; site/docstrings.py makes pages of them. Warnings are errors (Makefile).
"""

import os
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER / "site"))

import docstrings  # noqa: E402
import links  # noqa: E402

import meristem  # noqa: E402

os.environ.setdefault("MERISTEM_CACHE", str(FOLDER.parent / "out" / "docs-programs"))  # a second build compiles nothing

project = "meristem"
author = "the authors of meristem"
copyright = author
release = version = meristem.__version__

extensions = ["sphinx.ext.autodoc", "myst_nb"]
exclude_patterns = ["site"]
default_role = "literal"
smartquotes = False  # 'auto' is a value, not a quotation

myst_heading_anchors = 3
myst_url_schemes = {"http": None, "https": None, "mailto": None, links.SCHEME: {"url": f"{links.FILES}/{{{{path}}}}"}}
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 170

autodoc_typehints = "none"
autodoc_member_order = "bysource"
python_maximum_signature_line_length = 90

html_theme = "furo"
html_title = "meristem"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False


def setup(app) -> None:
    app.connect("source-read", links.rewrite)
    app.connect("build-finished", links.copy)
    app.connect("autodoc-process-docstring", docstrings.process)
