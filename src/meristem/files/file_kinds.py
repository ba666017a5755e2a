"""`save` and `load`, for every kind of object that is registered.

A FileKind turns an object into a header and arrays, and back; document.py makes these one file. Estimators and tables register
their kinds when they are imported; `meristem.load` (persistence.py) imports them where a file needs them.

`load` validates values as well as structure. `save` reads back what it wrote and validates it the same before the new file
replaces the old one: what is saved can be loaded, and a bad file replaces no good one.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx

from meristem.files.atomic_write import PATHS, write_whole
from meristem.files.document import Document, naming_file, packed, read
from meristem.files.named_arrays import Arrays, on_device
from meristem.files.network_file import pack_model, pack_network, unpack_model, unpack_network
from meristem.files.run_file import pack_run, unpack_run
from meristem.forks import check_fork
from meristem.nn.body import Body
from meristem.nn.network import Network
from meristem.train.objectives import Objective
from meristem.train.run import Run


class FileKind(NamedTuple):
    """One kind of file. `unpack` and `check` take the header, the arrays, and the options of `load` that are named here."""

    name: str  # in files
    holds: Callable[[Any], bool]  # whether an object is of this kind
    pack: Callable[[Any], tuple[dict[str, Any], Arrays]]  # its header, made of JSON's values, and its arrays
    unpack: Callable[..., Any]  # the object; ValueError of one line where its parts do not fit together
    check: Callable[..., Any]  # raises what `unpack` would, for a file that was just written
    options: Mapping[str, Callable[[Any], Any]] = {}  # options of `load`, each with the value that an object itself needs
    not_kept: Callable[[Any], list[str]] = lambda value: []  # attributes of an object that no file holds


KINDS: dict[str, FileKind] = {}
PackedFile = tuple[bytes, Callable[[Path], None]]  # the bytes of a file, and the check of it before it replaces the old one


def register(kind: FileKind) -> None:
    """Make a kind of object known to `save` and `load`."""
    KINDS[kind.name] = kind


def _load(unpack: Callable[..., Any], header: Any, arrays: Arrays, **options: Any) -> Any:
    """Return what `unpack` does, on the device; an array of a user's own model where that of `like` is."""
    value = unpack(header, arrays, **options)
    if isinstance(value, Run):
        return replace(value, state=on_device(value.state), best=on_device(value.best))
    return on_device(value, options.get("like"))


# A Network is an Equinox model, too: the first kind that holds an object counts.
BODY = {"kinds": lambda network: [type(network.body)]}
RUN = {"kinds": lambda run: [type(run.best.body), type(run.recipe.task)], "optimizer": lambda run: run.recipe.optimizer}
LIKE = {"like": lambda model: model}
register(FileKind("network", lambda x: type(x) is Network, pack_network, partial(_load, unpack_network), unpack_network, BODY))
register(FileKind("run", lambda x: isinstance(x, Run), pack_run, partial(_load, unpack_run), unpack_run, RUN))
register(FileKind("model", lambda x: isinstance(x, eqx.Module), pack_model, partial(_load, unpack_model), unpack_model, LIKE))


def save(path: PATHS, thing: Any) -> None:
    """Write a Network, a Run, a fitted estimator or an Equinox model, completely or not at all.

    >>> import jax, tempfile
    >>> network = Network.create("tunnel", n_in=2, n_out=1, width=4, depth=3, key=jax.random.key(0))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(f"{folder}/model.safetensors", network)
    ...     load(f"{folder}/model.safetensors").body.gate.value.shape
    (3, 4)
    """
    for name in kind_of(thing).not_kept(thing):
        warnings.warn(f"{name} is not kept in a file: it will be None when this is loaded.", UserWarning, stacklevel=2)
    write_whole(path, *packed_file(path, thing))


def packed_file(path: PATHS, value: Any) -> PackedFile:
    """Return what `save` writes to `path`; ValueError if the object cannot be saved."""
    kind = kind_of(value)
    header, arrays = kind.pack(value)
    with naming_file(path, "cannot be saved"):
        data = packed(kind.name, arrays, header)

    def check(written: Path) -> None:
        with naming_file(path, "cannot be saved"):
            document = read(written, (data, arrays))
            kind.check(document.header, document.arrays, **{name: option(value) for name, option in kind.options.items()})

    return data, check


def kind_of(value: Any) -> FileKind:
    """Return the first kind of file that holds an object; ValueError if there is none."""
    for kind in KINDS.values():
        if kind.holds(value):
            return kind
    options = "a Network, a Run, an Equinox model or an estimator that has been fitted"
    raise ValueError(f"A {type(value).__name__} cannot be saved; give {options}.")


def load(path: PATHS, document: Document | None = None, *, kinds: Any = (), like: Any = None, optimizer: Any = None) -> Any:
    """Return the object that `save` wrote, if its kind is registered; see `meristem.load`. A document was read from `path`."""
    document = document or read(path)
    check_fork()
    classes = list(kinds) if isinstance(kinds, list | tuple) else [kinds]
    for kind in classes:
        if not isinstance(kind, type) or not issubclass(kind, Body | Objective):
            raise ValueError(f"kinds holds {kind!r}; give classes of bodies (meristem.nn.Body) or objectives: kinds=[MyBody].")
    options = {"kinds": classes, "like": like, "optimizer": optimizer}
    with naming_file(path):
        if document.kind not in KINDS:
            raise ValueError(f"it holds a {document.kind[:40]!r}, which is none of {', '.join(KINDS)}; give another file.")
        file_kind = KINDS[document.kind]
        for name in ("like", "optimizer"):
            if options[name] is not None and name not in file_kind.options:
                raise ValueError(f"it holds a {file_kind.name}, which needs no {name}=…; leave it out.")
        return file_kind.unpack(document.header, document.arrays, **{name: options[name] for name in file_kind.options})
