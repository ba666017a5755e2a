"""What travels between the driver and its workers, as the headers and arrays of documents: runs, data and epochs.

    runs        {"3": {"run": {…}, "rows": {"weight": "5f0c…"}}}        arrays: 3.state.…, as in the file of a run
    data        {"x": "91ab…", "y": "77d0…", …, "rows_at_once": null}   a Scattered array has four digests
    epochs      [[3, 12], [4, 11]]       twelve epochs of member 3, then 11 of member 4; arrays: 0.loss [12], 1.loss [11], …

Arrays of rows (data, weights of rows) are the same for many members and tasks: a message has their digests in their place, and
the `ArrayShelf` of either end holds those that it has seen.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from typing import Any

import jax
import numpy as np

from meristem.files.file_kinds import RUN
from meristem.files.named_arrays import Arrays, on_device
from meristem.files.run_file import pack_run, unpack_run
from meristem.folders.checkpoints import digest_of
from meristem.sparse import Scattered
from meristem.train.run import Run
from meristem.train.train_state import FIELDS, EpochInfo
from meristem.train.training_data import Data, Prepared, rows_that_fit

ROWS = ("weight", "dev_weight", "measured")  # knobs with a value for each row
Header = dict[str, Any]
Epochs = list[tuple[int, EpochInfo]]  # with the number of their member


class ArrayShelf:
    """Arrays by their digest."""

    def __init__(self) -> None:
        self._arrays: dict[str, Any] = {}
        self._digests: dict[int, tuple[Any, str]] = {}  # by id; the arrays are held, so that no other gets their id

    def add(self, array: Any) -> str:
        """Return the digest of an array, which is computed once."""
        digest = self.digest(array) or digest_of([array]).hex()
        self.put(digest, array)
        return digest

    def put(self, digest: str, array: Any) -> None:
        self._arrays.setdefault(digest, array)
        self._digests[id(array)] = array, digest

    def digest(self, array: Any) -> str | None:
        """Return the digest of an array that is on the shelf; None for any other."""
        return self._digests.get(id(array), (None, None))[1]

    def __getitem__(self, digest: str) -> Any:
        return self._arrays[digest]

    def __contains__(self, digest: str) -> bool:
        return digest in self._arrays

    def clear(self) -> None:
        self._arrays.clear()
        self._digests.clear()


def pack_runs(runs: Mapping[int, Run], shelf: ArrayShelf) -> tuple[Header, Arrays]:
    """Return runs without those arrays of rows that are on the shelf."""
    header: Header = {}
    arrays: Arrays = {}
    for number, run in runs.items():
        digests = {name: shelf.digest(getattr(run.knobs, name)) for name in ROWS}
        rows = {name: digest for name, digest in digests.items() if digest is not None}
        without: dict[str, Any] = dict.fromkeys(rows)
        packed_header, packed_arrays = pack_run(replace(run, knobs=run.knobs._replace(**without)))
        header[str(number)] = {"run": packed_header, "rows": rows}
        arrays |= {f"{number}.{name}": array for name, array in packed_arrays.items()}
    return header, arrays


def unpack_runs(
    header: Header, arrays: Mapping[str, np.ndarray], find: Callable[[str], Any], classes: Header
) -> dict[int, Run]:
    """Return the runs, on the device; `find` returns the array of a digest, `classes` are options of the file kind."""
    runs, own = {}, dict[str, Arrays]()
    for name, array in arrays.items():
        number, _, rest = name.partition(".")
        own.setdefault(number, {})[rest] = array
    for number, entry in header.items():
        run = unpack_run(entry["run"], own[number], **classes)
        rows = {name: find(digest) for name, digest in entry["rows"].items()}
        state, best, knobs = on_device((run.state, run.best, run.knobs))
        runs[int(number)] = replace(run, state=state, best=best, knobs=knobs._replace(**rows))
    return runs


def classes_of(run: Run) -> Header:
    """Return what a file of the run does not hold, and a worker needs: classes of its parts, and a user's own optimizer."""
    return {name: option(run) for name, option in RUN.items()}


def pack_data(prepared: Prepared, shelf: ArrayShelf) -> Header:
    """Return the digests of the data, whose arrays are then on the shelf."""
    header: Header = {"rows_at_once": prepared.rows_at_once}
    for name, part in prepared.data._asdict().items():
        digests = [shelf.add(array) for array in (part.arrays if isinstance(part, Scattered) else [part]) if array is not None]
        header[name] = digests if isinstance(part, Scattered) else digests[0] if digests else None
    return header


def unpack_data(header: Header, find: Callable[[str], Any]) -> Prepared:
    """Return the data, on this process's device if they fit; rows are sent in blocks if the driver does so, too."""
    parts: dict[str, Any] = {}
    for name in Data._fields:
        value = header[name]
        is_digest = value is None or isinstance(value, str)
        parts[name] = (None if value is None else find(value)) if is_digest else Scattered(*map(find, value))
    data, rows = Data(**parts), header["rows_at_once"]
    rows = rows_that_fit(data) if rows is None else rows
    return Prepared(data if rows is not None else jax.device_put(data), rows)


def digests_of(header: Header) -> set[str]:
    """Return the digests of data."""
    values = [value for name, value in header.items() if name != "rows_at_once" and value is not None]
    return {digest for value in values for digest in ([value] if isinstance(value, str) else value)}


def pack_epochs(epochs: Epochs) -> tuple[list[list[int]], Arrays]:
    """Return the epochs of each member, in their order, in as few arrays as their shapes allow."""
    chunks: list[list[int]] = []
    arrays: Arrays = {}
    by_member = sorted(epochs, key=lambda epoch: epoch[0])  # stable
    for (member, _), group in groupby(by_member, key=lambda epoch: (epoch[0], np.shape(epoch[1].layer_sizes))):
        infos = [info for _, info in group]
        for name in FIELDS:
            if getattr(infos[0], name) is not None:
                arrays[f"{len(chunks)}.{name}"] = np.stack([np.asarray(getattr(info, name)) for info in infos])
        chunks.append([member, len(infos)])
    return chunks, arrays


def unpack_epochs(chunks: list[list[int]], arrays: Mapping[str, np.ndarray]) -> Iterator[tuple[int, EpochInfo]]:
    """Yield the epochs, each with the number of its member."""
    for chunk, (member, count) in enumerate(chunks):
        values = {name: arrays.get(f"{chunk}.{name}") for name in FIELDS}
        for row in range(count):
            own: dict[str, Any] = {name: None if each is None else np.asarray(each[row]) for name, each in values.items()}
            yield member, EpochInfo(**own)
