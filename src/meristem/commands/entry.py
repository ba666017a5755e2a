"""Where the process of a command begins: it listens to signals before it imports anything large, and ends by itself.

`meristem` and `python -m meristem` are this function; tests and programs call `meristem.commands.main.main` instead, which
leaves the process as it is. `import meristem` imports nothing large either: its names are looked up when they are asked for.
"""

from meristem.commands import clock
from meristem.commands.ending import leave, listen


def main() -> None:
    """Run the command that the arguments name, and leave with its status."""
    clock.start()
    listen()
    from meristem.commands.main import main as run

    try:
        status = run()
    except SystemExit as end:  # of argparse, which has said what it had to say
        status = end.code if isinstance(end.code, int) else 0 if end.code is None else 2
    leave(status)
