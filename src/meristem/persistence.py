"""`meristem.load`: files of everything that meristem makes.

`meristem.files` reads the kinds that are registered. Estimators and tables register theirs when they are imported, which
needs scikit-learn; here, above them, they are imported when a file holds one. Imports files and tables.
"""

from typing import Any

from meristem.files.atomic_write import PATHS
from meristem.files.document import read, short_name
from meristem.files.file_kinds import KINDS, restore


def load(path: PATHS, *, kinds: Any = (), like: Any = None, optimizer: Any = None) -> Any:
    """What `save` wrote, to the bit: a network computes the same, a run goes on as if it had not been interrupted.

    kinds       classes of one's own that the file names: bodies (`meristem.nn.Body`) and objectives
    like        a model of the same structure, for a file of an Equinox model of one's own: its arrays are replaced
    optimizer   the optax chain of a run that was trained with one of one's own

    >>> load("nowhere.safetensors")
    Traceback (most recent call last):
    ValueError: 'nowhere.safetensors' does not exist; check the path.
    """
    document = read(path)
    if document.kind not in KINDS:
        try:
            import meristem.tables  # noqa: F401  it registers its kind of file, and the estimators theirs
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "sklearn":
                raise
            what = f"{short_name(path)} holds a {document.kind[:40]!r}, which needs scikit-learn"
            raise ImportError(f"{what}: pip install 'meristem-nn[sklearn]'", name="sklearn") from error
    return restore(path, document, kinds=kinds, like=like, optimizer=optimizer)
