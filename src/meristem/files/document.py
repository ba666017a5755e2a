"""A document: named arrays and a JSON header in one safetensors file, written whole or not at all, checked when read.

The file's metadata has one entry, "meristem", a JSON object:

    format      the version of this layout; a reader refuses a newer one
    kind        what the document is, such as "network"
    versions    of meristem, jax and numpy that wrote it
    header      the caller's own
    digest      SHA-256 of the JSON text [the four above, [[name, type, shape] …]] (sorted keys, no spaces, ASCII), then of the
                arrays' bytes (little-endian, rows first), both in the order of the names

Safetensors itself restores flipped bits silently, so the digest is checked before anything is made of the arrays. What cannot
be read is a ValueError of one line, of at most 300 characters, that names the file. Only this file imports safetensors, and
only to write; how a file is read, once and not beyond its header where that does not fit, is in layout.py. A writer that is
killed leaves the old file or the new one, and perhaps a `.meristem-*` beside it, which may be deleted.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import meristem
from meristem.check import cut
from meristem.files import layout
from meristem.files.whole import PATHS, write_whole

FORMAT = 1
ENTRY = "meristem"
LONGEST, LONGEST_NAME = 300, 130  # characters of a message, and of a file's name in it

TYPES: dict[str, np.dtype] = {
    "BOOL": np.dtype(np.bool_),
    "U8": np.dtype(np.uint8),
    "I8": np.dtype(np.int8),
    "U16": np.dtype(np.uint16),
    "I16": np.dtype(np.int16),
    "U32": np.dtype(np.uint32),
    "I32": np.dtype(np.int32),
    "U64": np.dtype(np.uint64),
    "I64": np.dtype(np.int64),
    "F16": np.dtype(np.float16),
    "BF16": np.dtype(jnp.bfloat16),
    "F32": np.dtype(np.float32),
    "F64": np.dtype(np.float64),
}
CODES = {dtype.name: code for code, dtype in TYPES.items()}


class Document(NamedTuple):
    """What a file holds."""

    kind: str
    header: dict[str, Any]
    arrays: dict[str, np.ndarray]  # by name, in the order of the names
    versions: dict[str, str]  # of the libraries that wrote it


def write_document(path: PATHS, kind: str, arrays: Mapping[str, np.ndarray], header: dict[str, Any]) -> None:
    """Write a document in place of `path`; a reader sees the old file or the new one, never a part.

    `header` is made of JSON's values: lists, not tuples; finite numbers; texts as keys. Arrays are booleans, integers or
    floats (16, 32, 64 bits or bfloat16). The same content gives the same bytes.

    >>> import tempfile, numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_document(f"{folder}/means", "means", {"mean": np.zeros(3)}, {"labels": ["a", "b", "c"]})
    ...     header, arrays = read_document(f"{folder}/means", "means")
    >>> header, arrays["mean"].shape
    ({'labels': ['a', 'b', 'c']}, (3,))
    """
    write_whole(path, packed(kind, arrays, header))


def packed(kind: str, arrays: Mapping[str, np.ndarray], header: dict[str, Any]) -> bytes:
    """A document as the bytes of its file."""
    safetensors = _safetensors()
    stored = {name: _stored(name, arrays[name]) for name in sorted(arrays)}
    versions = {"meristem": meristem.__version__, "jax": jax.__version__, "numpy": np.__version__}
    content = {"format": FORMAT, "kind": kind, "versions": versions, "header": _plain(header)}
    table = [[name, CODES[array.dtype.name], list(array.shape)] for name, array in stored.items()]
    text = _text({**content, "digest": _digest(content, table, stored)})
    data: bytes = safetensors.numpy.save(stored, metadata={ENTRY: text})
    return data


def read_document(path: PATHS, kind: str | None = None) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the arrays of a document, of the kind that is asked for. The arrays belong to the caller."""
    document = read(path)
    if kind is not None and document.kind != kind:
        raise ValueError(f"{short_name(path)} holds a {document.kind!r}, not a {kind!r}; give another file.")
    return document.header, document.arrays


def read(path: PATHS) -> Document:
    """All of a document, of any kind.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_document(f"{folder}/nothing", "nothing", {}, {})
    ...     read(f"{folder}/nothing").kind
    'nothing'
    """
    try:
        with layout.opened(path) as (file, length):
            metadata, places = layout.header_of(file, length)
            entry = _entry(metadata)
            arrays = layout.arrays_of(file, places, TYPES)
            table = [[place.name, place.code, list(place.shape)] for place in places]
            _check_digest(entry, table, arrays)
    except layout.Misread as error:
        raise ValueError(f"{short_name(path)} {error}") from error
    here = {
        name: array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("=")) for name, array in arrays.items()
    }
    return Document(entry["kind"], entry["header"], here, entry["versions"])


def read_back(path: PATHS, data: bytes, arrays: Mapping[str, np.ndarray]) -> Document:
    """What a file holds that was just written: its header as a reader finds it, and the arrays that these bytes are of.

    Every byte is compared, which says more than a digest and takes a third of the time.
    """
    try:
        with layout.opened(path) as (file, length):
            metadata, places = layout.header_of(file, length)
            entry = _entry(metadata)
            layout.check_same(file, data)
    except layout.Misread as error:
        raise ValueError(str(error)) from error
    return Document(entry["kind"], entry["header"], {place.name: arrays[place.name] for place in places}, entry["versions"])


@contextlib.contextmanager
def naming_file(path: PATHS, what: str = "cannot be loaded") -> Iterator[None]:
    """Whatever is wrong with a document's content becomes a ValueError of one line that names the file.

    >>> with naming_file("model.safetensors"):
    ...     raise ValueError("width=0 must be an integer of at least 1.")
    Traceback (most recent call last):
    ValueError: 'model.safetensors' cannot be loaded: width=0 must be an integer of at least 1.
    """
    try:
        yield
    except ImportError:  # something that is not installed, with the command that does
        raise
    except Exception as error:  # beside our own checks: whatever Python says where forged content is something else
        start = f"{short_name(path)} {what}: "
        raise ValueError(start + in_one_line(error, LONGEST - len(start))) from error


def in_one_line(error: Exception, longest: int = LONGEST) -> str:
    """What an error says, cut to its first line and a length; an error that is not meant to be read is named.

    >>> in_one_line(KeyError("depth"))
    "its content is not what it should be (KeyError: 'depth')."
    """
    text = (str(error).splitlines() or [""])[0]
    if type(error) is not ValueError:
        text = f"its content is not what it should be ({type(error).__name__}: {cut(text, longest // 2)})."
    return cut(text, longest)


def short_name(path: PATHS) -> str:
    """How a message names a file: of a long path the end.

    >>> short_name("model.safetensors"), len(short_name("folder/" * 40 + "model.safetensors"))
    ("'model.safetensors'", 130)
    """
    name = repr(os.fspath(path))
    return name if len(name) <= LONGEST_NAME else f"'…{name[1 - LONGEST_NAME + 1 :]}"


def _safetensors() -> ModuleType:
    try:
        import safetensors
        import safetensors.numpy
    except ImportError:
        raise ImportError("Model files need safetensors; install it with `pip install 'meristem-nn[files]'`.") from None
    return safetensors


def _entry(metadata: dict[str, Any]) -> dict[str, Any]:
    """The metadata's entry of ours, of a format that we know."""
    if ENTRY not in metadata:
        raise layout.Misread("is another program's safetensors file; give one that meristem saved.")
    try:
        entry = json.loads(metadata[ENTRY])
        version = entry["format"]
        if type(version) is not int or version < 1:
            raise ValueError(version)
    except layout.ERRORS as error:
        raise layout.Misread("is damaged: its header cannot be read; use a copy, or save it again.") from error
    if version > FORMAT:
        raise layout.Misread(
            f"has format {str(version)[:20]}, written by a newer meristem (this one reads {FORMAT}); upgrade meristem."
        )
    return entry


def _check_digest(entry: dict[str, Any], table: list[list[Any]], arrays: Mapping[str, np.ndarray]) -> None:
    fields = {"kind": str, "versions": dict, "header": dict, "digest": str}
    try:
        digest = _digest({key: value for key, value in entry.items() if key != "digest"}, table, arrays)
    except layout.ERRORS:
        digest = None
    if entry.get("digest") != digest or not all(isinstance(entry.get(key), kind) for key, kind in fields.items()):
        raise layout.Misread("is damaged: its content does not match its digest; use a copy, or save it again.")


def _stored(name: str, array: np.ndarray) -> np.ndarray:
    """The array as its bytes go into the file: little-endian, rows first."""
    if array.dtype.name not in CODES:
        raise ValueError(
            f"Array {name!r} has the type {array.dtype}, which no file holds; convert it to one of {', '.join(CODES)}."
        )
    if not name or name == "__metadata__":
        raise ValueError(f"An array cannot have the name {name!r}; give it another.")
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(array.shape)


def _plain(header: dict[str, Any]) -> dict[str, Any]:
    """The header as it will be read, if that is the same."""
    try:
        plain = json.loads(_text(header))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"The header cannot be written as JSON: {error}.") from error
    if plain != header:
        raise ValueError("The header would not be read as it is: make tuples lists and keys texts.")
    return plain


def _text(value: Any) -> str:
    """The one JSON text of a value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _digest(content: dict[str, Any], table: list[list[Any]], arrays: Mapping[str, np.ndarray]) -> str:
    digest = hashlib.sha256(_text([content, table]).encode())
    for array in arrays.values():
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
