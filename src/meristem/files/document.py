"""A document: named arrays and a JSON header in one safetensors file, verified by a digest when it is read.

The file's metadata has one entry, "meristem", a JSON object:

    format      the version of this layout; a reader refuses a newer one
    kind        what the document is, such as "network"
    versions    of meristem, jax and numpy that wrote it
    header      the caller's own
    digest      SHA-256 of the JSON text [the four above, [[name, type, shape] …]] (sorted keys, no spaces, ASCII), then of the
                arrays' bytes (little-endian, row-major), both sorted by name

Safetensors does not notice flipped bits, so the digest is checked before the arrays are used. A file that cannot be read is a
ValueError of one line, of at most 300 characters, that names it. Only this module imports safetensors, and only to write.
"""

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import meristem
from meristem.check import cut
from meristem.files.atomic_write import PATHS, write_whole
from meristem.files.byte_layout import (
    ERRORS,
    RESAVE,
    UNREADABLE,
    Misread,
    check_same,
    open_file,
    read_arrays,
    read_header,
    short_name,
)
from meristem.json_schema import ANY, OBJECT, POSITIVE, TEXT, check_json

FORMAT = 1
ENTRY = "meristem"
CONTENT = {"format": POSITIVE, "kind": TEXT, "versions": OBJECT, "header": OBJECT, "digest": TEXT}
LONGEST = 300  # characters of a message

TYPES: dict[str, np.dtype] = {  # safetensors' codes: BOOL, U8 … U64, I8 … I64, F16 … F64, BF16
    "BOOL": np.dtype(np.bool_),
    **{f"{letter.upper()}{8 * size}": np.dtype(f"{letter}{size}") for letter in "ui" for size in (1, 2, 4, 8)},
    **{f"F{8 * size}": np.dtype(f"f{size}") for size in (2, 4, 8)},
    "BF16": np.dtype(jnp.bfloat16),
}
CODES = {dtype.name: code for code, dtype in TYPES.items()}


class Document(NamedTuple):
    """The content of a file."""

    kind: str
    header: dict[str, Any]
    arrays: dict[str, np.ndarray]  # sorted by name
    versions: dict[str, str]  # of the libraries that wrote it


def write_document(path: PATHS, kind: str, arrays: Mapping[str, np.ndarray], header: dict[str, Any]) -> None:
    """Write a document to `path`, completely or not at all; the same content gives the same bytes.

    `header` is made of JSON's values: lists, not tuples; finite numbers; texts as keys. Arrays are booleans, integers or
    floats (16, 32, 64 bits or bfloat16).
    """
    write_whole(path, packed(kind, arrays, header))


def packed(kind: str, arrays: Mapping[str, np.ndarray], header: dict[str, Any]) -> bytes:
    """Return the bytes of a document's file."""
    try:
        import safetensors.numpy
    except ImportError:
        raise ImportError("Model files need safetensors; install it with `pip install 'meristem-nn[files]'`.") from None
    stored = {name: _stored(name, arrays[name]) for name in sorted(arrays)}
    versions = {"meristem": meristem.__version__, "jax": jax.__version__, "numpy": np.__version__}
    content = {"format": FORMAT, "kind": kind, "versions": versions, "header": _json_values(header)}
    text = _text(content | {"digest": _digest(content, stored)})
    data: bytes = safetensors.numpy.save(stored, metadata={ENTRY: text})
    return data


def read(path: PATHS, written: tuple[bytes, Mapping[str, np.ndarray]] | None = None) -> Document:
    """Return the document in a file.

    `written`: the bytes and the arrays that the file was just made of. Comparing every byte with them is stricter than the
    digest and takes a third of the time.
    """
    with open_file(path) as (file, length):
        metadata, places = read_header(file, length)
        entry = _entry(metadata)
        if written is not None:
            check_same(file, written[0])
            arrays = {place.name: written[1][place.name] for place in places}
        else:
            arrays = read_arrays(file, places, TYPES)
            if not _is_intact(entry, arrays):
                raise Misread(f"is damaged: its content does not match its digest; {RESAVE}")
            arrays = {name: array.astype(array.dtype.newbyteorder("="), copy=False) for name, array in arrays.items()}
    return Document(entry["kind"], entry["header"], arrays, entry["versions"])


@contextlib.contextmanager
def naming_file(path: PATHS, what: str = "cannot be loaded") -> Iterator[None]:
    """Turn any error about a document's content into a ValueError of one line that names the file.

    >>> with naming_file("model.safetensors"):
    ...     raise ValueError("width=0 must be an integer of at least 1.")
    Traceback (most recent call last):
    ValueError: 'model.safetensors' cannot be loaded: width=0 must be an integer of at least 1.
    """
    try:
        yield
    except ImportError:  # it says which package to install
        raise
    except Exception as error:  # forged content can raise anything
        start = f"{short_name(path)} {what}: "
        raise ValueError(start + in_one_line(error, LONGEST - len(start))) from error


def in_one_line(error: Exception, longest: int = LONGEST) -> str:
    """Return the first line of an error's message, shortened; an error other than ValueError is named."""
    text = (str(error).splitlines() or [""])[0]
    if type(error) is not ValueError:
        text = f"its content is not what it should be ({type(error).__name__}: {cut(text, longest // 2)})."
    return cut(text, longest)


def _entry(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata's entry "meristem", if this version can read its format."""
    if ENTRY not in metadata:
        raise Misread("is another program's safetensors file; give one that meristem saved.")
    try:
        entry = json.loads(metadata[ENTRY])
        check_json(entry, {"format": POSITIVE, TEXT: ANY})
        version = entry["format"]
        if version <= FORMAT:
            check_json(entry, CONTENT)
    except ERRORS as error:
        raise Misread(UNREADABLE) from error
    if version > FORMAT:
        raise Misread(f"has format {version}, written by a newer meristem (this one reads {FORMAT}); upgrade meristem.")
    return entry


def _stored(name: str, array: np.ndarray) -> np.ndarray:
    """Return the array as its bytes go into the file: little-endian, row-major."""
    if array.dtype.name not in CODES:
        options = ", ".join(CODES)
        raise ValueError(f"Array {name!r} has the type {array.dtype}, which no file holds; convert it to one of {options}.")
    if not name or name == "__metadata__":
        raise ValueError(f"An array cannot have the name {name!r}; give it another.")
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(array.shape)


def _json_values(header: dict[str, Any]) -> dict[str, Any]:
    """Return the header as it will be read back; ValueError if that differs."""
    try:
        plain = json.loads(_text(header))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"The header cannot be written as JSON: {error}.") from error
    if plain != header:
        raise ValueError("The header would not be read as it is: make tuples lists and keys texts.")
    return plain


def _text(value: Any) -> str:
    """Return the canonical JSON text of a value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _digest(content: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> str:
    table = [[name, CODES[array.dtype.name], list(array.shape)] for name, array in arrays.items()]
    digest = hashlib.sha256(_text([content, table]).encode())
    for array in arrays.values():
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _is_intact(entry: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> bool:
    try:
        return entry["digest"] == _digest({key: value for key, value in entry.items() if key != "digest"}, arrays)
    except ERRORS:  # forged content that is no JSON
        return False
