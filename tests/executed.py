"""A pytest plugin that records which functions of meristem a run executes, for mutants.py: pytest -p executed.

Into the file $MERISTEM_EXECUTED go lines "src/meristem/gate.py project": a function is recorded when it begins, once, which
costs nothing afterwards. Before Python 3.12, which has no events for that, nothing is written.
"""

import os
import sys
from pathlib import Path
from types import CodeType
from typing import Any

TOOL, MARK = 4, f"{os.sep}src{os.sep}meristem{os.sep}"
executed: set[str] = set()


def begun(code: CodeType, offset: int) -> Any:
    place = code.co_filename.rfind(MARK)
    if place >= 0:
        executed.add(f"{Path(code.co_filename[place + 1 :]).as_posix()} {code.co_qualname}")
    return sys.monitoring.DISABLE  # type: ignore[attr-defined]


if sys.version_info >= (3, 12):
    sys.monitoring.use_tool_id(TOOL, "meristem-executed")
    sys.monitoring.register_callback(TOOL, sys.monitoring.events.PY_START, begun)
    sys.monitoring.set_events(TOOL, sys.monitoring.events.PY_START)


def pytest_sessionfinish() -> None:
    if executed:
        Path(os.environ["MERISTEM_EXECUTED"]).write_text("\n".join(sorted(executed)))
