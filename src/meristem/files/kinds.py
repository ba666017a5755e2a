"""save and load, of every kind of thing that is registered here.

    save(path, thing)
    load(path, *, kinds=(), like=None, optimizer=None) → the thing, to the bit
    register(FileKind("estimator", …))                     one more kind, from the package whose things it holds

A FileKind says how a thing becomes a header and arrays, and back; how these become one file is in document.py. Networks
(network.py), runs (run.py) and Equinox models of one's own (model.py) are registered below; estimators and tables register
theirs when they are imported, and `meristem.load` (persistence.py) imports them for a file that needs them. Nothing in a file
is executed; what is wrong with it is a ValueError of one line.

A file is true or refused. `load` asks what things mean, not only how they are written (meaning.py), and `save` reads back what
it wrote and asks the same before the file takes its place: what is saved can be loaded, and a bad file replaces no good one.
"""

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx

from meristem.files import model, network, run
from meristem.files.arrays import Arrays
from meristem.files.document import Document, naming_file, packed, read, read_back
from meristem.files.whole import PATHS, write_whole
from meristem.forks import check_fork
from meristem.nn.body import Body
from meristem.nn.network import Network
from meristem.train.objectives import Objective
from meristem.train.run import Run


class FileKind(NamedTuple):
    """One kind of file. `unpack` and `check` take the header, the arrays, and the options of `load` that are named here."""

    name: str  # as files have it
    holds: Callable[[Any], bool]  # whether a thing is of this kind
    pack: Callable[[Any], tuple[dict[str, Any], Arrays]]  # its header, made of JSON's values, and its arrays
    unpack: Callable[..., Any]  # the thing; ValueError of one line where its parts do not fit together
    check: Callable[..., Any]  # raises what `unpack` would, for a file that was just written
    options: Mapping[str, Callable[[Any], Any]] = {}  # of `load`, each with the value that a thing itself needs
    not_kept: Callable[[Any], list[str]] = lambda thing: []  # attributes of a thing that no file holds


KINDS: dict[str, FileKind] = {}


def register(kind: FileKind) -> None:
    """Make `save` and `load` know a kind of thing."""
    KINDS[kind.name] = kind


register(
    FileKind(
        network.KIND,
        holds=lambda thing: type(thing) is Network,
        pack=network.pack,
        unpack=network.unpack,
        check=network.checked,
        options={"kinds": lambda thing: [type(thing.body)]},
    )
)
register(
    FileKind(
        run.KIND,
        holds=lambda thing: isinstance(thing, Run),
        pack=run.pack,
        unpack=run.unpack,
        check=run.checked,
        options={
            "kinds": lambda thing: [type(thing.best.body), type(thing.recipe.task)],
            "optimizer": lambda thing: thing.recipe.optimizer,
        },
    )
)
register(
    FileKind(
        model.KIND,
        holds=lambda thing: isinstance(thing, eqx.Module),  # after those that are modules, too
        pack=model.pack,
        unpack=model.unpack,
        check=model.checked,
        options={"like": lambda thing: thing},
    )
)


def save(path: PATHS, thing: Any) -> None:
    """Write a Network, a Run, a fitted estimator or an Equinox model; a reader sees the old file or the new one, never a part.

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


class PackedFile(NamedTuple):
    """The bytes of a file, and what is asked of it when it is written, before it takes its place."""

    data: bytes
    check: Callable[[Path], None]


def packed_file(path: PATHS, thing: Any) -> PackedFile:
    """Return what `save` writes to `path`, for whoever writes it; ValueError where the thing cannot be saved."""
    kind = kind_of(thing)
    header, arrays = kind.pack(thing)
    with naming_file(path, "cannot be saved"):
        data = packed(kind.name, arrays, header)

    def check(beside: Path) -> None:
        with naming_file(path, "cannot be saved"):
            document = read_back(beside, data, arrays)
            kind.check(document.header, document.arrays, **{name: value(thing) for name, value in kind.options.items()})

    return PackedFile(data, check)


def kind_of(thing: Any) -> FileKind:
    """Return the first kind of file that holds a thing; ValueError where none does."""
    for kind in KINDS.values():
        if kind.holds(thing):
            return kind
    raise ValueError(
        f"A {type(thing).__name__} cannot be saved; give a Network, a Run, an Equinox model or an estimator that has been "
        "fitted."
    )


def load(path: PATHS, *, kinds: Any = (), like: Any = None, optimizer: Any = None) -> Any:
    """What `save` wrote, of the kinds that are registered; see `meristem.load`.

    >>> load("nowhere.safetensors")
    Traceback (most recent call last):
    ValueError: 'nowhere.safetensors' does not exist; check the path.
    """
    return restore(path, read(path), kinds=kinds, like=like, optimizer=optimizer)


def restore(path: PATHS, document: Document, *, kinds: Any = (), like: Any = None, optimizer: Any = None) -> Any:
    """Return what a document that was read from `path` holds; the options are those of `load`."""
    check_fork()
    options = {"kinds": _checked(kinds), "like": like, "optimizer": optimizer}
    with naming_file(path):
        if document.kind not in KINDS:
            raise ValueError(f"it holds a {document.kind[:40]!r}, which is none of {', '.join(KINDS)}; give another file.")
        kind = KINDS[document.kind]
        for name in ("like", "optimizer"):
            if options[name] is not None and name not in kind.options:
                raise ValueError(f"it holds a {kind.name}, which needs no {name}=…; leave it out.")
        return kind.unpack(document.header, document.arrays, **{name: options[name] for name in kind.options})


def _checked(kinds: Any) -> list[type]:
    given = list(kinds) if isinstance(kinds, list | tuple) else [kinds]
    for kind in given:
        if not isinstance(kind, type) or not issubclass(kind, Body | Objective):
            raise ValueError(f"kinds holds {kind!r}; give classes of bodies (meristem.nn.Body) or objectives: kinds=[MyBody].")
    return given
