"""A document: named arrays and a JSON header in one safetensors file, verified by a digest when it is read.

    8 bytes, little-endian: the header's length │ the header, JSON │ the arrays, one after the other, without a gap

The header's metadata has one entry, "meristem", a JSON object:

    format      the version of this layout; a reader refuses a newer one
    kind        what the document is, such as "network"
    versions    of meristem, jax and numpy that wrote it
    header      the caller's own
    digest      SHA-256 of the JSON text [the four above, [[name, type, shape] …]] (sorted keys, no spaces, ASCII), then of the
                arrays' bytes (little-endian, row-major), both sorted by name

Safetensors does not notice flipped bits, so the digest is checked before the arrays are used. The whole header is checked
against the file's length before memory is allocated. A file that cannot be read is a ValueError of one line, of at most 300
characters, that names it. Only this module imports safetensors, and only to write.
"""

import contextlib
import hashlib
import json
import math
import os
import stat
from collections.abc import Iterator, Mapping
from io import BufferedIOBase, BytesIO
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import meristem
from meristem.check import cut
from meristem.files.atomic_write import PATHS
from meristem.json_schema import ANY, OBJECT, POSITIVE, TEXT, check_json, integer

FORMAT = 1
NONBLOCK = getattr(os, "O_NONBLOCK", 0)
ENTRY, METADATA = "meristem", "__metadata__"
SIZES = [integer(0, bits=63)]
HEADER = {f"{METADATA}?": OBJECT, TEXT: {"dtype": TEXT, "shape": SIZES, "data_offsets": SIZES}}
CONTENT = {"format": POSITIVE, "kind": TEXT, "versions": OBJECT, "header": OBJECT, "digest": TEXT}
LONGEST_HEADER = 100_000_000  # bytes, the limit of safetensors
LONGEST, LONGEST_NAME = 300, 130  # characters of a message, and of a file's name in it
MOST_AXES = 32
BLOCK = 1 << 18  # bytes compared at a time: what fits in a cache
ALIGNMENT = 64  # bytes: on a CPU, JAX uses an array that starts at a multiple without a copy
RESAVE = "use a copy, or save it again."
DAMAGED = f"is damaged: its header cannot be read; {RESAVE}"
FORGED = (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError)  # what a forged header raises
PROBLEMS: dict[type, str] = {
    FileNotFoundError: "does not exist; check the path.",
    IsADirectoryError: "is a folder; give the file itself.",
}
TYPES: dict[str, np.dtype] = {  # safetensors' codes: BOOL, U8 … U64, I8 … I64, F16 … F64, BF16
    "BOOL": np.dtype(np.bool_),
    **{f"{letter.upper()}{8 * size}": np.dtype(f"{letter}{size}") for letter in "ui" for size in (1, 2, 4, 8)},
    **{f"F{8 * size}": np.dtype(f"f{size}") for size in (2, 4, 8)},
    "BF16": np.dtype(jnp.bfloat16),
}
CODES = {dtype.name: code for code, dtype in TYPES.items()}


class Document(NamedTuple):
    kind: str
    header: dict[str, Any]
    arrays: dict[str, np.ndarray]  # sorted by name
    versions: dict[str, str]  # of the libraries that wrote it


class Misread(Exception):
    """What is wrong with a file, in words that follow its name; `read` makes a ValueError of it."""


def packed(kind: str, arrays: Mapping[str, np.ndarray], header: dict[str, Any]) -> bytes:
    """Return the bytes of a document's file; the same content gives the same bytes.

    `header` is made of JSON's values: lists, not tuples; finite numbers; texts as keys. Arrays are booleans, integers or
    floats (16, 32, 64 bits or bfloat16).
    """
    try:
        import safetensors.numpy
    except ImportError:
        raise ImportError("Model files need safetensors; install it with `pip install 'meristem-nn[files]'`.") from None
    stored = {}
    for name in sorted(arrays):
        dtype = arrays[name].dtype
        if dtype.name not in CODES:
            options = ", ".join(CODES)
            raise ValueError(f"Array {name!r} has the type {dtype}, which no file holds; convert it to one of {options}.")
        if name in ("", METADATA):
            raise ValueError(f"An array cannot have the name {name!r}; give it another.")
        stored[name] = np.asarray(arrays[name], dtype.newbyteorder("<"), order="C")
    try:
        plain = json.loads(_text(header))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"The header cannot be written as JSON: {error}.") from error
    if plain != header:
        raise ValueError("The header would not be read as it is: make tuples lists and keys texts.")
    versions = {"meristem": meristem.__version__, "jax": jax.__version__, "numpy": np.__version__}
    content = {"format": FORMAT, "kind": kind, "versions": versions, "header": header}
    text = _text(content | {"digest": _digest(content, stored)})
    data: bytes = safetensors.numpy.save(stored, metadata={ENTRY: text})
    return data


def _text(value: Any) -> str:
    """Return the canonical JSON text of a value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _digest(content: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> str:
    table = [[name, CODES[array.dtype.name], list(array.shape)] for name, array in arrays.items()]
    digest = hashlib.sha256(_text([content, table]).encode())
    for array in arrays.values():
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def read(path: PATHS, written: tuple[bytes, Mapping[str, np.ndarray]] | None = None) -> Document:
    """Return the document in a plain file; anything else, such as a pipe, is refused without waiting.

    `written`: the bytes and the arrays that the file was just made of. Comparing the bytes, block by block without a second
    copy in memory, is stricter than the digest and takes a third of the time.
    """
    try:
        with open(os.fspath(path), "rb", opener=lambda name, flags: os.open(name, flags | NONBLOCK)) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise Misread("is no plain file; give the file itself.")
            return _read(file, status.st_size, written)
    except (Misread, OSError, *FORGED) as error:
        unreadable = f"cannot be read ({error.strerror})." if isinstance(error, OSError) else DAMAGED
        problem = error if isinstance(error, Misread) else PROBLEMS.get(type(error), unreadable)
        raise ValueError(f"{short_name(path)} {problem}") from error


def unpacked(data: bytes) -> Document:
    """Return the document that `packed` made these bytes of; ValueError where they are damaged."""
    try:
        return _read(BytesIO(data), len(data))
    except (Misread, *FORGED) as error:
        raise ValueError(f"The message {error if isinstance(error, Misread) else DAMAGED}") from error


def _read(file: BufferedIOBase, length: int, written: tuple[bytes, Mapping[str, np.ndarray]] | None = None) -> Document:
    content, places = _read_header(file, length)
    digest = content.pop("digest")
    if written is not None:
        data, arrays = written[0], {name: written[1][name] for name in sorted(places)}
        file.seek(0)
        if any(file.read(BLOCK) != data[start : start + BLOCK] for start in range(0, len(data) + 1, BLOCK)):
            raise Misread("was not written as it is: the disk holds something else; choose another place.")
    else:
        arrays = _read_arrays(file, places)
        if digest != _digest(content, arrays):
            raise Misread(f"is damaged: its content does not match its digest; {RESAVE}")
    return Document(content["kind"], content["header"], arrays, content["versions"])


def _read_header(file: BufferedIOBase, length: int) -> tuple[dict[str, Any], dict[str, tuple[np.dtype, list[int]]]]:
    """Return the entry "meristem", if this version can read it, and the arrays' types and shapes in the file's order."""
    start = file.read(9)
    if start[8:9] not in (b"", b"{"):
        raise Misread("is not a safetensors file; give one that meristem saved.")
    if length < 9:
        raise Misread(f"is truncated, or no model at all: it holds {length} bytes; give one that meristem saved.")
    size = int.from_bytes(start[:8], "little")
    truncated = Misread(f"is truncated: it ends after {length} bytes; {RESAVE}")
    if length < 8 + size:
        raise truncated
    if size > LONGEST_HEADER:
        raise Misread(f"is damaged: its header is too long; {RESAVE}")
    table = json.loads("{" + file.read(size - 1).decode())
    check_json(table, HEADER)
    metadata, places, end = table.pop(METADATA, {}), {}, 0
    for name, entry in sorted(table.items(), key=lambda item: item[1]["data_offsets"]):
        (begin, stop), shape, array = entry["data_offsets"], entry["shape"], f"array {name[:40]!r}"
        if begin != end or stop < begin or len(shape) > MOST_AXES:
            raise Misread(f"is damaged: its {array} is not where it should be; {RESAVE}")
        if entry["dtype"] not in TYPES:
            what = f"{array} has the type {entry['dtype'][:20]}, none of {', '.join(TYPES)}"
            raise Misread(f"cannot be read by this version: {what}.")
        dtype = TYPES[entry["dtype"]]
        if math.prod(shape) * dtype.itemsize != stop - begin:
            raise Misread(f"is damaged: its {array} has another size; {RESAVE}")
        places[name], end = (dtype, shape), stop
    if 8 + size + end > length:
        raise truncated
    if 8 + size + end < length:
        raise Misread(f"is damaged: it goes on after its last array, for {length - 8 - size - end} bytes; use a copy.")
    if ENTRY not in metadata:
        raise Misread("is another program's safetensors file; give one that meristem saved.")
    content = json.loads(metadata[ENTRY])
    check_json(content, {"format": POSITIVE, TEXT: ANY})
    if content["format"] > FORMAT:
        version = f"has format {content['format']}, written by a newer meristem"
        raise Misread(f"{version} (this one reads {FORMAT}); upgrade meristem.")
    check_json(content, CONTENT)
    return content, places


def _read_arrays(file: BufferedIOBase, places: dict[str, tuple[np.dtype, list[int]]]) -> dict[str, np.ndarray]:
    """Return the arrays sorted by name, each in memory of its own, aligned for JAX."""
    arrays = {}
    for name, (dtype, shape) in places.items():
        n_bytes = math.prod(shape) * dtype.itemsize
        try:
            data = np.empty(n_bytes + ALIGNMENT, np.uint8)
            data = data[-data.ctypes.data % ALIGNMENT :][:n_bytes]
            arrays[name] = data.view(dtype.newbyteorder("<")).reshape(shape)
        except (MemoryError, ValueError) as error:
            raise Misread(f"has an array {name[:40]!r} for which there is no memory: {tuple(shape)}.") from error
        if file.readinto(data.data) < n_bytes:
            raise Misread(f"is truncated: it became shorter while it was read; {RESAVE}")
    return {name: arrays[name] for name in sorted(arrays)}


@contextlib.contextmanager
def naming_file(path: PATHS, what: str = "cannot be loaded") -> Iterator[None]:
    """Turn any error about a document's content into a ValueError of one line that names the file."""
    try:
        yield
    except ImportError:  # it says which package to install
        raise
    except Exception as error:  # forged content can raise anything, and so can a user's constructor
        text, start = (str(error).splitlines() or [""])[0], f"{short_name(path)} {what}: "
        if type(error) is not ValueError:
            text = f"its content is not what it should be ({type(error).__name__}: {cut(text, 100)})."
        raise ValueError(start + cut(text, LONGEST - len(start))) from error


def short_name(path: PATHS) -> str:
    """Return a file's name for a message: the end of a long path."""
    name = repr(os.fspath(path))
    return name if len(name) <= LONGEST_NAME else f"'…{name[2 - LONGEST_NAME :]}"
