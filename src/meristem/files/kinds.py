"""save and load: one place for every kind of thing that a file holds.

    save(path, thing)
    load(path, *, kinds=(), like=None, optimizer=None) → the thing, to the bit

    network     a Network, or a population of them (network.py)
    run         a training that goes on where it was: `meristem.Run` (run.py)
    estimator   a fitted one (estimator.py)
    search      a fitted one that found its price (search.py)
    table       a table's model: the schema of its columns and such an estimator (table.py)
    model       an Equinox model of one's own (model.py)

Each kind is a file that says how a thing becomes a header and arrays, and back: `pack`, `unpack`. How these become one file is
in document.py. Nothing in a file is executed; what is wrong with it is a ValueError of one line.

A file is true or refused. `load` asks what things mean, not only how they are written (meaning.py), and `save` reads back what
it wrote and asks the same before the file takes its place: what is saved can be loaded, and a bad file replaces no good one.
"""

import warnings
from collections.abc import Callable
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

ESTIMATOR, SEARCH, TABLE = "estimator", "search", "table"
KINDS = [network.KIND, run.KIND, ESTIMATOR, SEARCH, TABLE, model.KIND]


def save(path: PATHS, thing: Any) -> None:
    """Write a Network, a Run, a fitted estimator or an Equinox model; a reader sees the old file or the new one, never a part.

    >>> import jax, tempfile
    >>> network = Network.create("tunnel", n_in=2, n_out=1, width=4, depth=3, key=jax.random.key(0))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(f"{folder}/model.safetensors", network)
    ...     load(f"{folder}/model.safetensors").body.gate.value.shape
    (3, 4)
    """
    if hasattr(thing, "network_") or hasattr(thing, "estimators_"):
        for name in not_kept(thing):
            warnings.warn(f"{name} is not kept in a file: it will be None when this is loaded.", UserWarning, stacklevel=2)
    write_whole(path, *packed_file(path, thing))


class PackedFile(NamedTuple):
    """The bytes of a file, and what is asked of it when it is written, before it takes its place."""

    data: bytes
    check: Callable[[Path], None]


def packed_file(path: PATHS, thing: Any) -> PackedFile:
    """Return what `save` writes to `path`, for whoever writes it; ValueError where the thing cannot be saved."""
    kind, (header, arrays), ask = _packed(thing)
    with naming_file(path, "cannot be saved"):
        data = packed(kind, arrays, header)

    def check(beside: Path) -> None:
        with naming_file(path, "cannot be saved"):
            ask(read_back(beside, data, arrays))

    return PackedFile(data, check)


def _packed(thing: Any) -> tuple[str, tuple[dict[str, Any], Arrays], Callable[[Document], Any]]:
    """What kind of thing it is, its header and arrays, and what `load` would ask of them."""
    if isinstance(thing, Run):
        own = [type(thing.best.body), type(thing.recipe.task)]
        return run.KIND, run.pack(thing), lambda found: run.checked(found.header, found.arrays, own, thing.recipe.optimizer)
    if type(thing) is Network:
        own = [type(thing.body)]
        return network.KIND, network.pack(thing), lambda found: network.checked(found.header, found.arrays, own)
    if hasattr(thing, "network_"):
        from meristem.files import estimator  # it needs scikit-learn

        return ESTIMATOR, estimator.pack(thing), lambda found: estimator.checked(found.header, found.arrays)
    if hasattr(thing, "estimators_") and hasattr(thing, "path_"):
        from meristem.files import search

        return SEARCH, search.pack(thing), lambda found: search.checked(found.header, found.arrays)
    if isinstance(thing, eqx.Module):
        return model.KIND, model.pack(thing), lambda found: model.checked(found.header, found.arrays, thing)
    if hasattr(thing, "schema") and hasattr(thing, "estimator"):
        from meristem.files import table

        return TABLE, table.pack(thing), lambda found: table.unpack(found.header, found.arrays)
    raise ValueError(
        f"A {type(thing).__name__} cannot be saved; give a Network, a Run, an Equinox model or an estimator that has been "
        "fitted."
    )


def not_kept(thing: Any) -> list[str]:
    """The parameters of an estimator that no file holds and that are of use only while it learns."""
    from meristem.files import estimator

    return [name for name in vars(thing) if estimator.is_passing(name, getattr(thing, name))]


def load(path: PATHS, *, kinds: Any = (), like: Any = None, optimizer: Any = None) -> Any:
    """What `save` wrote, to the bit: a network computes the same, a run goes on as if it had not been interrupted.

    kinds       classes of one's own that the file names: bodies (`meristem.nn.Body`) and objectives
    like        a model of the same structure, for a file of an Equinox model of one's own: its arrays are replaced
    optimizer   the optax chain of a run that was trained with one of one's own

    >>> load("nowhere.safetensors")
    Traceback (most recent call last):
    ValueError: 'nowhere.safetensors' does not exist; check the path.
    """
    check_fork()
    known = _checked(kinds)
    document = read(path)
    kind, header, arrays = document.kind, document.header, document.arrays
    if kind in (ESTIMATOR, SEARCH, TABLE):
        from meristem.files import estimator, search, table  # they need scikit-learn, and say so
    with naming_file(path):
        if kind not in KINDS:
            raise ValueError(f"it holds a {kind[:40]!r}, which is none of {', '.join(KINDS)}; give another file.")
        if like is not None and kind != model.KIND:
            raise ValueError(f"it holds a {kind}, which needs no like=…; leave it out.")
        if optimizer is not None and kind != run.KIND:
            raise ValueError(f"it holds a {kind}, which needs no optimizer=…; leave it out.")
        if kind == network.KIND:
            return network.unpack(header, arrays, known)
        if kind == run.KIND:
            return run.unpack(header, arrays, known, optimizer)
        if kind == model.KIND:
            return model.unpack(header, arrays, like)
        return {ESTIMATOR: estimator.unpack, SEARCH: search.unpack, TABLE: table.unpack}[kind](header, arrays)


def _checked(kinds: Any) -> list[type]:
    given = list(kinds) if isinstance(kinds, list | tuple) else [kinds]
    for kind in given:
        if not isinstance(kind, type) or not issubclass(kind, Body | Objective):
            raise ValueError(f"kinds holds {kind!r}; give classes of bodies (meristem.nn.Body) or objectives: kinds=[MyBody].")
    return given
