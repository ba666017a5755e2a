"""A page about a model: how good it is, how sure that is, how large it became, beside what, and what to doubt.

    model.report("report.html", X, y)        every estimator
    table_model.report("report.html")        what `meristem fit` writes beside summary.json

evidence.py gathers what is said as plain data (judge, beside, importance); words.py and doubting.py say it in sentences,
sections.py in sections, figures/ in SVG; page.py is the HTML, style.py how it looks. No script, no network, no matplotlib.
Below estimators and tables, which import it where their `report` is called: it asks a model, never for its type. scoring.py and
baselines.py are for tables, too.
"""

from pathlib import Path
from typing import Any

from meristem.files.atomic_write import PATHS, write_whole


def write_report(path: PATHS, model: Any, X: Any, y: Any, *, train: Any = None) -> Path:
    """The page of an estimator, judged by rows X and y; see `Shipping.report`.

    >>> import tempfile, numpy as np, meristem
    >>> x, y = np.arange(40.0)[:, None], np.arange(40) // 20
    >>> model = meristem.TunnelClassifier(width=4, depth=1, max_epochs=5, random_state=0).fit(x, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = model.report(f"{folder}/report.html", x, y).read_text()
    >>> "<h1" in page and "<script" not in page
    True
    """
    from meristem.report.evidence import of_estimator
    from meristem.report.page import page_of

    write_whole(path, page_of(of_estimator(model, X, y, train)).encode())
    return Path(path)


def table_page(model: Any, frame: Any = None, *, seconds: float = 3.0) -> bytes:
    """The page of a TableModel; see `TableModel.report`."""
    from meristem.report.evidence import of_table
    from meristem.report.page import page_of

    return page_of(of_table(model, frame, seconds=seconds)).encode()


def write_table_report(path: PATHS, model: Any, frame: Any = None, *, seconds: float = 3.0) -> Path:
    """The same, written."""
    write_whole(path, table_page(model, frame, seconds=seconds))
    return Path(path)
