"""Every picture of a study, redrawn from its files alone.

    draw(out): out/summary.json + out/history.npz → tunnel, highway, budding, sizes, tried … .png beside them

A picture is drawn for what the files hold: any models, tasks and seeds. Of several seeds the *middle* one is drawn, the
(lower) median by the study's measure. All settings of matplotlib are put back. Commands import it.
"""

from pathlib import Path

from meristem.pictures.sheet import NAMES, STYLE, Figure, require_matplotlib
from meristem.pictures.studies.files import load

KNOWN = ("data", *NAMES, "discriminants", "sizes", "tried")


def draw(out: Path) -> list[Path]:
    """Draw every picture that the files in `out` hold; the paths of the PNGs, in reading order.

    Those of the usual names that an earlier study left there go. ValueError, in one line, where `summary.json` or
    `history.npz` is missing or does not hold a study of which pictures are known.
    """
    files = load(out)
    require_matplotlib()
    import matplotlib

    with matplotlib.rc_context(STYLE):
        drawn = [_save(figure(files), out / f"{name}.png") for name, figure in files.pictures.drawings(files).items()]
    for name in KNOWN:
        if (stale := out / f"{name}.png") not in drawn:
            stale.unlink(missing_ok=True)
    return drawn


def _save(figure: Figure, path: Path) -> Path:
    figure.savefig(path)
    return path
