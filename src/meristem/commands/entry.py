"""The start of a command's process: it listens to signals before large imports, and ends itself.

`meristem` and `python -m meristem` call `main` here; tests and programs call `meristem.commands.main.main`, which leaves the
process alone. `import meristem` imports nothing large either: its names are imported on first use.
"""

import time

from meristem.commands.shutdown import leave, listen

_started_at: float | None = None


def started_at() -> float:
    """Return when this process started, by `time.monotonic`, which --seconds counts from; now, without a process of its own."""
    return time.monotonic() if _started_at is None else _started_at


def main() -> None:
    """Run the command that the arguments name, and exit with its status."""
    global _started_at  # one per process
    _started_at = time.monotonic()
    listen()
    from meristem.commands.main import main as run

    leave(run())
