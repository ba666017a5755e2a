"""The connection between the driver and its workers: each message is a document (files/document.py), and has an answer.

    server = Server(host, answer, lost)             in the driver, a thread for each worker
    client_of(address, key).ask("take", {"task": 3}) → Document

Both ends prove that they know the key before anything else is read (the challenges of multiprocessing.connection). Nothing is
unpickled. Messages are not encrypted: docs/scale.md.
"""

import multiprocessing
import secrets
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager, suppress
from multiprocessing import connection
from typing import Any

from meristem.files.document import Document, packed, unpacked
from meristem.files.named_arrays import Arrays

SILENCE = 60.0  # seconds after which a busy worker that says nothing is taken for dead
Address = tuple[str, int]
Peer = connection.Connection


class ConnectionLostError(BrokenExecutor):
    """The other end is gone: for the driver, a worker that died."""


class Server:
    """Answers messages of workers until it is closed; `lost` is called with a worker whose connection has ended.

    A worker that `is_busy` reports every second.
    """

    def __init__(
        self,
        host: str,
        answer: Callable[[Peer, Document], bytes],
        lost: Callable[[Peer], None],
        is_busy: Callable[[Peer], bool] = lambda peer: False,
    ):
        self._answer, self._lost, self._is_busy, self.key = answer, lost, is_busy, secrets.token_bytes(32)
        self._listener = connection.Listener((host, 0), "AF_INET", backlog=256)
        self.address: Address = self._listener.address
        self._peers: set[Peer] = set()
        self._is_closed = False
        threading.Thread(target=self._accept, name="meristem-server", daemon=True).start()

    def _accept(self) -> None:
        while not self._is_closed:
            with suppress(OSError):  # a worker that was gone at once; or the listener was closed
                peer = self._listener.accept()
                threading.Thread(target=self._serve, args=(peer,), name="meristem-peer", daemon=True).start()

    def _serve(self, peer: Any) -> None:
        try:
            _send_at_once(peer)
            connection.deliver_challenge(peer, self.key)
            connection.answer_challenge(peer, self.key)
            self._peers.add(peer)
            while not self._is_closed:
                if not peer.poll(SILENCE):
                    if self._is_busy(peer):
                        break
                    continue
                peer.send_bytes(self._answer(peer, unpacked(peer.recv_bytes())))
        except (OSError, EOFError, ValueError, multiprocessing.AuthenticationError):
            pass  # it died, or is no worker of ours
        finally:
            self._peers.discard(peer)
            peer.close()
            self._lost(peer)

    def close(self) -> None:
        """End all connections: workers notice, and end their tasks."""
        self._is_closed = True
        with suppress(OSError), socket.create_connection(self.address, timeout=1.0):
            pass  # so that `accept` returns
        self._listener.close()
        for peer in list(self._peers):
            with suppress(OSError), _endpoint(peer) as endpoint:
                endpoint.shutdown(socket.SHUT_RDWR)  # the thread that reads from it closes it


class Client:
    """A worker's end; one for all threads of its process."""

    def __init__(self, address: Address, key: bytes):
        try:
            self._connection: Any = connection.Client(address, "AF_INET")
            _send_at_once(self._connection)
            connection.answer_challenge(self._connection, key)
            connection.deliver_challenge(self._connection, key)
        except (OSError, EOFError) as error:
            host, port = address
            raise ConnectionLostError(f"The driver at {host}:{port} cannot be reached from this worker ({error}).") from error
        self._lock, self.is_broken = threading.Lock(), False

    def ask(self, kind: str, header: Mapping[str, Any], arrays: Arrays | None = None) -> Document:
        """Return the answer to a message; ConnectionLostError if the driver is gone."""
        message = packed(kind, arrays or {}, dict(header))
        with self._lock:
            try:
                self._connection.send_bytes(message)
                return unpacked(self._connection.recv_bytes())
            except (OSError, EOFError) as error:
                self.is_broken = True
                raise ConnectionLostError("The driver has ended, or its connection was lost.") from error


_clients: dict[tuple[Address, bytes], Client] = {}
_lock = threading.Lock()


def client_of(address: Address, key: bytes) -> Client:
    """Return the connection of this process to a driver, which is made when it is first needed."""
    with _lock:
        client = _clients.get((address, key))
        if client is None or client.is_broken:
            _clients.clear()  # those of drivers that have ended
            client = _clients[address, key] = Client(address, key)
        return client


@contextmanager
def _endpoint(peer: Any) -> Iterator[socket.socket]:
    """Yield the socket of a connection, which stays open."""
    endpoint = socket.socket(fileno=peer.fileno())
    try:
        yield endpoint
    finally:
        endpoint.detach()


def _send_at_once(peer: Any) -> None:
    """Send small packets without waiting for the answer to the one before."""
    with _endpoint(peer) as endpoint:
        endpoint.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
