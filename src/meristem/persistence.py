"""`meristem.load`, for files of every kind.

`meristem.files` reads the kinds that are registered; estimators and tables register theirs on import, which needs scikit-learn.
They are imported here when a file holds one.
"""

from typing import Any

from meristem.files import file_kinds
from meristem.files.atomic_write import PATHS
from meristem.files.document import read, short_name


def load(path: PATHS, *, kinds: Any = (), like: Any = None, optimizer: Any = None) -> Any:
    """Return what `save` wrote, to the bit; a run continues as if it had not been interrupted.

    kinds       your own classes that the file names: bodies (`meristem.nn.Body`) and objectives
    like        a model of the same structure, for a file of your own Equinox model: its arrays are replaced
    optimizer   the optax chain of a run that was trained with your own

    >>> load("nowhere.safetensors")
    Traceback (most recent call last):
    ValueError: 'nowhere.safetensors' does not exist; check the path.
    """
    document = read(path)
    if document.kind not in file_kinds.KINDS:
        try:
            import meristem.images  # noqa: F401  it registers its kind of file, as tables and the estimators do theirs
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "sklearn":
                raise
            what = f"{short_name(path)} holds a {document.kind[:40]!r}, which needs scikit-learn"
            raise ImportError(f"{what}: pip install 'meristem-nn[sklearn]'", name="sklearn") from error
    return file_kinds.load(path, document, kinds=kinds, like=like, optimizer=optimizer)
