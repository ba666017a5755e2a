"""As many bytes of a stream as there are of those asked for, in no more memory: a header may say far more than there is.

    read_block(stream, 10**12)        what is there of them, a megabyte at a time
    UNPACKED                          a byte of a packed file becomes at most so many: zlib's limit

Imports nothing of meristem; mnist and arrays import it.
"""

from io import BufferedIOBase

UNPACKED = 1032
AT_ONCE = 2**20


def read_block(stream: BufferedIOBase, size: int) -> bytes:
    """The next `size` bytes, or as many as there are.

    >>> import io
    >>> read_block(io.BytesIO(b"abc"), 10**12)
    b'abc'
    """
    found = bytearray()
    while len(found) < size and (more := stream.read(min(AT_ONCE, size - len(found)))):
        found += more
    return bytes(found)
