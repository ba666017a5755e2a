"""Pages from Jinja templates; only this module imports jinja2.

    render_template("meristem.report", "report.html.jinja", title="a < b")

A template lies in the folder of the package that uses it. In HTML every value is escaped and cleaned of control characters,
except `Markup`.
"""

from functools import cache
from typing import Any

from meristem.show.elements import clean


def render_template(package: str, name: str, **values: Any) -> str:
    """Return the text of a template in a package's folder; raises ImportError with advice if jinja2 is missing."""
    return str(_environment(package).get_template(name).render(**values))


@cache
def _environment(package: str) -> Any:
    try:
        import jinja2
    except ImportError as error:
        raise ImportError("jinja2 is not installed; run: pip install 'meristem-nn[sklearn]'") from error
    return jinja2.Environment(
        loader=jinja2.PackageLoader(package, ""),
        autoescape=lambda name: name is not None and ".html" in name,
        finalize=lambda value: clean(value) if type(value) is str else value,  # Markup is escaped already
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
