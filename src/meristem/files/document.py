"""A document: named arrays and a JSON header in one safetensors file, written whole or not at all, checked when read.

The file's metadata has one entry, "meristem", a JSON object:

    format      the version of this layout; a reader refuses a newer one
    kind        what the document is, such as "network"
    versions    of meristem, jax and numpy that wrote it
    header      the caller's own
    digest      SHA-256 of the JSON text [the four above, [[name, type, shape] …]] (sorted keys, no spaces, ASCII), then of the
                arrays' bytes (little-endian, rows first), both in the order of the names

Safetensors itself restores flipped bits silently, so the digest is checked before anything is made of the arrays. What cannot
be read is a ValueError of one line that names the file. Only this file imports safetensors, and only when it is used. A
writer that is killed leaves the old file or the new one, and perhaps a `.meristem-*` beside it, which may be deleted.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import meristem
from meristem.files.whole import PATHS, write_whole

FORMAT = 1
ENTRY = "meristem"
LONGEST = 250  # characters of a message

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
    safetensors = _safetensors()
    stored = {name: _stored(name, arrays[name]) for name in sorted(arrays)}
    versions = {"meristem": meristem.__version__, "jax": jax.__version__, "numpy": np.__version__}
    content = {"format": FORMAT, "kind": kind, "versions": versions, "header": _plain(header)}
    table = [[name, CODES[array.dtype.name], list(array.shape)] for name, array in stored.items()]
    text = _text({**content, "digest": _digest(content, table, [array.tobytes() for array in stored.values()])})
    write_whole(path, safetensors.numpy.save(stored, metadata={ENTRY: text}))


def read_document(path: PATHS, kind: str | None = None) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the arrays of a document, of the kind that is asked for. The arrays belong to the caller."""
    document = read(path)
    if kind is not None and document.kind != kind:
        raise ValueError(f"{_name(path)} holds a {document.kind!r}, not a {kind!r}; give another file.")
    return document.header, document.arrays


def read(path: PATHS) -> Document:
    """All of a document, of any kind.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_document(f"{folder}/nothing", "nothing", {}, {})
    ...     read(f"{folder}/nothing").kind
    'nothing'
    """
    safetensors, name, data = _safetensors(), _name(path), _bytes(path)
    entry = _entry(name, data)
    damaged = ValueError(f"{name} is damaged: its content does not match its digest; use a copy, or save it again.")
    try:
        found = sorted(safetensors.deserialize(data))
        table = [[key, part["dtype"], part["shape"]] for key, part in found]
        content = {key: value for key, value in entry.items() if key != "digest"}
        digest = _digest(content, table, [part["data"] for _, part in found])
    except (safetensors.SafetensorError, ValueError, RecursionError) as error:
        raise damaged from error
    fields = {"kind": str, "versions": dict, "header": dict, "digest": str}
    if entry.get("digest") != digest or not all(isinstance(entry.get(key), kind) for key, kind in fields.items()):
        raise damaged
    for key, code, _ in table:
        if code not in TYPES:
            raise ValueError(f"{name}: array {key!r} has the type {code}, which is none of {', '.join(TYPES)}.")
    arrays = {key: _array(part["data"], TYPES[part["dtype"]], part["shape"]) for key, part in found}
    return Document(entry["kind"], entry["header"], arrays, entry["versions"])


@contextlib.contextmanager
def naming_file(path: PATHS) -> Iterator[None]:
    """Whatever is wrong with a document's content becomes a ValueError of one line that names the file.

    >>> with naming_file("model.safetensors"):
    ...     raise ValueError("width=0 must be an integer of at least 1.")
    Traceback (most recent call last):
    ValueError: 'model.safetensors' cannot be loaded: width=0 must be an integer of at least 1.
    """
    try:
        yield
    # Beside our own checks: what Python says where forged content is no text, no number, no dictionary.
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        raise ValueError(f"{_name(path)} cannot be loaded: {in_one_line(error)}") from error


def in_one_line(error: Exception) -> str:
    """What an error says, cut to its first line; an error that is not meant to be read is named.

    >>> in_one_line(KeyError("depth"))
    "its content is not what it should be (KeyError: 'depth')."
    """
    lines = str(error).splitlines() or [""]
    text = lines[0] if len(lines[0]) <= LONGEST else f"{lines[0][:LONGEST]} …"
    return text if type(error) is ValueError else f"its content is not what it should be ({type(error).__name__}: {text})."


def _safetensors() -> ModuleType:
    try:
        import safetensors
        import safetensors.numpy
    except ImportError:
        raise ImportError("Model files need safetensors; install it with `pip install 'meristem-nn[files]'`.") from None
    return safetensors


def _name(path: PATHS) -> str:
    return repr(os.fspath(path))


def _entry(name: str, data: bytes) -> dict[str, Any]:
    """The metadata's entry of ours, of a format that we know; raises ValueError with what is wrong instead."""
    size = int.from_bytes(data[:8], "little")
    if data[8:9] not in (b"", b"{"):
        raise ValueError(f"{name} is not a safetensors file; give one that meristem saved.")
    truncated = ValueError(f"{name} is truncated: it ends after {len(data)} bytes; use a copy, or save it again.")
    if len(data) < 9:
        raise ValueError(f"{name} is truncated, or no model at all: it holds {len(data)} bytes; give one that meristem saved.")
    if len(data) < 8 + size:
        raise truncated
    try:
        table = json.loads(data[8 : 8 + size].decode())
        metadata = table.pop("__metadata__", {})
        is_ours = ENTRY in metadata
        end = max((int(part["data_offsets"][1]) for part in table.values()), default=0)
        entry = json.loads(metadata[ENTRY]) if is_ours else {"format": FORMAT}
        version = entry["format"]
        if type(version) is not int or version < 1:
            raise ValueError(version)
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(f"{name} is damaged: its header cannot be read; use a copy, or save it again.") from error
    if not is_ours:
        raise ValueError(f"{name} is another program's safetensors file; give one that meristem saved.")
    if version > FORMAT:
        raise ValueError(
            f"{name} has format {version}, written by a newer meristem (this one reads {FORMAT}); upgrade meristem."
        )
    if len(data) < 8 + size + end:
        raise truncated
    return entry


def _bytes(path: PATHS) -> bytes:
    if not Path(path).exists():
        raise ValueError(f"{_name(path)} does not exist; check the path.")
    if not Path(path).is_file():
        raise ValueError(f"{_name(path)} is {'a folder' if Path(path).is_dir() else 'no plain file'}; give the file itself.")
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ValueError(f"{_name(path)} cannot be read ({error.strerror}).") from error


def _stored(name: str, array: np.ndarray) -> np.ndarray:
    """The array as its bytes go into the file: little-endian, rows first."""
    if array.dtype.name not in CODES:
        raise ValueError(
            f"Array {name!r} has the type {array.dtype}, which no file holds; convert it to one of {', '.join(CODES)}."
        )
    if not name or name == "__metadata__":
        raise ValueError(f"An array cannot have the name {name!r}; give it another.")
    return np.array(array, array.dtype.newbyteorder("<"), order="C")


def _array(data: bytes | bytearray, dtype: np.dtype, shape: list[int]) -> np.ndarray:
    return np.frombuffer(data, dtype.newbyteorder("<")).astype(dtype).reshape(shape)


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


def _digest(content: dict[str, Any], table: list[list[Any]], data: list[bytes | bytearray]) -> str:
    digest = hashlib.sha256(_text([content, table]).encode())
    for part in data:
        digest.update(part)
    return digest.hexdigest()
