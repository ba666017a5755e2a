"""Every picture of the two-spirals study, redrawn from its files alone.

    draw(out): out/summary.json + out/history.npz → data, tunnel, highway, budding, discriminants, sizes … .png beside them

A picture is drawn for what the files hold: any models, tasks and seeds. Of several seeds the *middle* one is drawn, whose
zero-error epoch is the (lower) median, a seed that never got there counting as ∞. All settings of matplotlib are put back.
"""

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from meristem.figures.files import Study, load
from meristem.figures.overview import overview
from meristem.figures.plane import data, discriminants
from meristem.figures.sheet import NAMES, STYLE, Figure
from meristem.figures.training import training


def have_matplotlib() -> bool:
    """Whether pictures can be drawn here."""
    try:
        return find_spec("matplotlib") is not None
    except ValueError:  # blocked on purpose, as sys.modules["matplotlib"] = None does
        return False


def draw(out: Path) -> list[Path]:
    """Draw every picture that the files in `out` hold; the paths of the PNGs, in reading order. Those of an earlier study go.

    ValueError, in one line, where `summary.json` or `history.npz` is missing or does not hold a two-spirals study.
    """
    study = load(out)
    if not have_matplotlib():
        raise ImportError("Figures need matplotlib; install it with `pip install 'meristem[cli]'`.")
    import matplotlib

    with matplotlib.rc_context(STYLE):
        drawn = [_save(figure(study), out / f"{name}.png") for name, figure in _pictures(study).items()]
    for name in ("data", *NAMES, "discriminants", "sizes"):
        if (stale := out / f"{name}.png") not in drawn:
            stale.unlink(missing_ok=True)
    return drawn


def _pictures(study: Study) -> dict[str, Callable[[Study], Figure]]:
    """Name → what draws it, in reading order."""
    pictures: dict[str, Callable[[Study], Figure]] = {"data": data}
    for model in study.models:
        if model in NAMES:
            pictures[model] = partial(training, model=model)
    if study.pictured:
        pictures["discriminants"] = discriminants
    if any(model in NAMES for model in study.models):
        pictures["sizes"] = overview
    return pictures


def _save(figure: Figure, path: Path) -> Path:
    figure.savefig(path)
    return path
