"""Every picture of a study, redrawn from its files alone.

    draw(out): out/summary.json + out/history.npz → tunnel, highway, budding, sizes, tried … .png beside them

A picture is drawn for what the files hold: any models, tasks and seeds. Of several seeds the *middle* one is drawn, the
(lower) median by its experiment's measure (`catalog.py`). All settings of matplotlib are put back.
"""

from importlib.util import find_spec
from pathlib import Path

from meristem.pictures.studies.catalog import EXPERIMENTS
from meristem.pictures.studies.files import load
from meristem.pictures.sheet import NAMES, STYLE, Figure


def have_matplotlib() -> bool:
    """Whether pictures can be drawn here."""
    try:
        return find_spec("matplotlib") is not None
    except ValueError:  # blocked on purpose, as sys.modules["matplotlib"] = None does
        return False


def draw(out: Path) -> list[Path]:
    """Draw every picture that the files in `out` hold; the paths of the PNGs, in reading order. Those of an earlier study go.

    ValueError, in one line, where `summary.json` or `history.npz` is missing or does not hold a known experiment's study.
    """
    study = load(out, EXPERIMENTS)
    if not have_matplotlib():
        raise ImportError("Figures need matplotlib; install it with `pip install 'meristem[cli]'`.")
    import matplotlib

    with matplotlib.rc_context(STYLE):
        drawn = [_save(figure(study), out / f"{name}.png") for name, figure in study.experiment.pictures(study).items()]
    for name in ("data", *NAMES, "discriminants", "sizes", "tried"):
        if (stale := out / f"{name}.png") not in drawn:
            stale.unlink(missing_ok=True)
    return drawn


def _save(figure: Figure, path: Path) -> Path:
    figure.savefig(path)
    return path
