"""Every picture of a study, drawn from what its files hold.

    drawn(files) → name → PNG                           of what the two files hold, or will hold
    draw(out): out/summary.json + out/history.npz → tunnel, highway, budding, sizes, tried … .png beside them

A picture is drawn for what the files hold: any models, tasks and seeds. Of several seeds the *middle* one is drawn, the
(lower) median by the study's measure. All settings of matplotlib are put back. Commands import it.
"""

import hashlib
from pathlib import Path

from meristem.files.atomic_write import write_whole
from meristem.folders import ownership
from meristem.folders.run_folder import RunFolder
from meristem.pictures.png import is_picture, png
from meristem.pictures.sheet import NAMES, STYLE, require_matplotlib
from meristem.pictures.studies.files import load
from meristem.pictures.studies.records import StudyFiles

OTHERS = ("data", "discriminants", "sizes", "tried", "frontier")
KNOWN = ("data", *NAMES, *OTHERS[1:])


def drawn(files: StudyFiles) -> dict[str, bytes]:
    """Every picture by the name of its file, in reading order."""
    require_matplotlib()
    import matplotlib

    with matplotlib.rc_context(STYLE):
        return {f"{name}.png": png(figure(files)) for name, figure in files.pictures.drawings(files).items()}


def draw(out: Path) -> list[Path]:
    """Draw every picture that the files in `out` hold; the paths of the PNGs, in reading order.

    Those of the usual names that an earlier study left there go. ValueError, in one line, where `summary.json` or
    `history.npz` is missing or does not hold a study of which pictures are known, or where a file that is not such a picture
    has the name of one.
    """
    files = load(out)
    if not (out / ownership.OWN).is_dir():  # files that were copied here, or an earlier meristem's: no process holds them
        return _replace(out, drawn(files))
    with RunFolder.take(out):
        return _replace(out, drawn(load(out)))


def _replace(out: Path, pictures: dict[str, bytes]) -> list[Path]:
    """The pictures in place of those that are there; a summary that names its files names the new ones."""
    taken = [name for name in pictures if (out / name).exists() and not is_picture(out / name)]
    if taken:
        raise ValueError(f"{str(out / taken[0])!r} is no picture of meristem's; move it away, then draw again.")
    for name, data in pictures.items():
        write_whole(out / name, data)
    stale = [name for name in (f"{known}.png" for known in KNOWN) if name not in pictures and is_picture(out / name)]
    for name in stale:
        (out / name).unlink(missing_ok=True)
    summary = ownership.read_json(out / ownership.SUMMARY) or {}
    if isinstance(summary.get("files"), dict):
        digests = {name: hashlib.sha256(data).hexdigest() for name, data in pictures.items()}
        named = {name: digest for name, digest in summary["files"].items() if name not in stale} | digests
        if named != summary["files"]:
            ownership.write_summary(out, summary, str(summary.get("run")), named)
    return [out / name for name in pictures]
