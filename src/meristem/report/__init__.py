"""A report about a model: one HTML file with its score, baselines, size, importances and caveats.

    model.report("report.html", X, y)        every estimator
    table_model.report("report.html")        written by `meristem fit`, next to summary.json

report_data.py collects the facts (scoring, baselines, importance); report_text.py and sections*.py make text, tables and
figures, page.py and report.html.jinja make the page. No script, no network access. Estimators and tables import
it where `report` is called; it uses attributes of a model, never its type.
"""

from pathlib import Path
from typing import Any

from meristem.files.atomic_write import PATHS, write_whole


def write_report(path: PATHS, model: Any, X: Any, y: Any, *, train: Any = None) -> Path:
    """Write the report of an estimator, evaluated on X and y.

    >>> import tempfile, numpy as np, meristem
    >>> x, y = np.arange(40.0)[:, None], np.arange(40) // 20
    >>> model = meristem.TunnelClassifier(width=4, depth=1, max_epochs=5, random_state=0).fit(x, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = model.report(f"{folder}/report.html", x, y).read_text()
    >>> "<h1" in page and "<script" not in page
    True
    """
    from meristem.report.page import render_page
    from meristem.report.report_data import from_estimator

    write_whole(path, render_page(from_estimator(model, X, y, train)).encode())
    return Path(path)


def table_page(model: Any, frame: Any = None, *, seconds: float = 3.0) -> bytes:
    """Return the report of a TableModel."""
    from meristem.report.page import render_page
    from meristem.report.report_data import from_table

    return render_page(from_table(model, frame, seconds=seconds)).encode()


def write_table_report(path: PATHS, model: Any, frame: Any = None, *, seconds: float = 3.0) -> Path:
    """Write the report of a TableModel."""
    write_whole(path, table_page(model, frame, seconds=seconds))
    return Path(path)
