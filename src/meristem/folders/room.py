"""Whether a disk has room for what a run will write: found out before anything is computed.

    check_room(out, n_bytes)        OutputError of one line where there is less

Imports whole.py; commands import it.
"""

import shutil
from pathlib import Path

from meristem.files.whole import OutputError


def check_room(out: Path, n_bytes: int) -> None:
    """Raise OutputError where the disk of a folder, which need not be there yet, has less room than that."""
    place = next(folder for folder in (out.absolute(), *out.absolute().parents) if folder.exists())
    free = shutil.disk_usage(place).free
    if free < n_bytes:
        raise OutputError(
            f"--out={str(out)!r}: the disk has {free / 2**20:,.1f} MiB left, the files of this run take about "
            f"{n_bytes / 2**20:,.1f}; free some, or choose another disk. Nothing was written."
        )
