"""A run in a browser on this machine: one page, and server-sent events with the state of the run, then its changes.

    with serving(out, port, on_problem) as url: …       port 0: any free port

The server listens on 127.0.0.1 only and answers only requests for that name or localhost, so that a web site cannot reach it
by DNS rebinding; the Content-Security-Policy lets the page load nothing from elsewhere. A connection without a complete request
within a few seconds is closed, and of too many waiting ones the oldest: slow clients block nobody. Only this module imports
starlette and uvicorn (the extra `live`).
"""

import asyncio
import json
import logging
import secrets
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from meristem.watch.view import State, View

HOST, HOST_NAMES = "127.0.0.1", ["127.0.0.1", "localhost"]
POLL_SECONDS = 0.5
KEEP_ALIVE_SECONDS = 10.0  # without a change, after which a comment is sent
START_SECONDS = 10.0  # that the server may take to listen
REQUEST_SECONDS = 5.0  # within which a complete request must arrive
MOST_WAITING = 128  # connections without a complete request
MOST_CLIENTS = 64  # that receive events at the same time
BACKLOG = 128  # connections that are not accepted yet
HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
POLICY = (
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class Connection(H11Protocol):
    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.made_at = time.monotonic()


class Server(uvicorn.Server):
    """A server that closes connections on which no complete request arrives in time, which uvicorn itself keeps open."""

    def __init__(self, config: uvicorn.Config):
        super().__init__(config)
        self._waiting: dict[Any, float] = {}  # connections and their last request → since when, the oldest first

    async def on_tick(self, counter: int) -> bool:
        """Called every 0.1 s."""
        now, connections = time.monotonic(), list[Any](self.server_state.connections)
        idle = {(each, each.cycle) for each in connections if each.cycle is None or each.cycle.response_complete}
        self._waiting = {key: since for key, since in self._waiting.items() if key in idle}
        self._waiting |= dict.fromkeys(sorted(idle - self._waiting.keys(), key=lambda key: key[0].made_at), now)
        for n_before, ((connection, _), since) in enumerate(self._waiting.items()):
            if now - since > REQUEST_SECONDS or len(self._waiting) - n_before > MOST_WAITING:
                connection.transport.abort()
        return await super().on_tick(counter)


class Feed:
    """The state of the run for any number of clients: the files are read once for all of them."""

    def __init__(self, view: View, on_problem: Callable[[ValueError], None]):
        self._view, self._on_problem, self._lock = view, on_problem, asyncio.Lock()
        self._state: State = {}
        self._polled_at = -POLL_SECONDS
        self.n_clients = 0

    async def now(self) -> State:
        """Return the state, at most half a second old."""
        async with self._lock:
            if time.monotonic() - self._polled_at >= POLL_SECONDS:
                try:
                    self._state = await asyncio.to_thread(self._view.now)
                except ValueError as error:
                    self._on_problem(error)
                    raise
                self._polled_at = time.monotonic()
            return self._state

    async def events(self) -> AsyncIterator[bytes]:
        """Yield the state, then its changes, for one client."""
        self.n_clients += 1
        try:
            sent, sent_at = await self.now(), time.monotonic()
            yield server_event("state", sent)
            while True:
                await asyncio.sleep(POLL_SECONDS)
                state = await self.now()
                change = changes(sent, state)
                if change is not None or time.monotonic() - sent_at > KEEP_ALIVE_SECONDS:
                    yield b": keep-alive\n\n" if change is None else server_event("change", change)
                    sent, sent_at = state, time.monotonic()
        finally:
            self.n_clients -= 1


def server_event(name: str, data: object) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data, separators=(',', ':'), allow_nan=False)}\n\n".encode()


def changes(before: Any, after: Any) -> Any:
    """Return the change from one JSON value to another, None where they are equal; page.html applies it (`patched`).

    [value] replaces the value; {"at": {key: change, …}, "without": [key, …]} changes and removes entries of an object or a
    list, whose keys are its indices.

    >>> changes({"loss": [3, 2], "epoch": 2}, {"loss": [3, 2, 1], "epoch": 3})
    {'at': {'loss': {'at': {'2': [1]}}, 'epoch': [3]}}
    """
    if type(before) is not type(after) or not isinstance(after, dict | list):
        return None if before == after and type(before) is type(after) else [after]
    old, new = (dict(enumerate(value)) if isinstance(value, list) else value for value in (before, after))
    entries = {str(key): changes(old[key], value) if key in old else [value] for key, value in new.items()}
    at = {key: change for key, change in entries.items() if change is not None}
    removed = [str(key) for key in old if key not in new]
    return ({"at": at} | ({"without": removed} if removed else {})) if at or removed else None


def application(view: View, on_problem: Callable[[ValueError], None]) -> Starlette:
    feed = Feed(view, on_problem)
    html = files("meristem.watch").joinpath("page.html").read_text(encoding="utf-8")

    async def page(request: Request) -> Response:
        nonce = secrets.token_urlsafe(16)
        policy = {"Content-Security-Policy": POLICY.format(nonce=nonce)}
        return HTMLResponse(html.replace("NONCE", nonce), headers=HEADERS | policy)

    async def events(request: Request) -> Response:
        if feed.n_clients >= MOST_CLIENTS:
            return Response("Too many pages are open.", 503, headers=HEADERS)
        return StreamingResponse(feed.events(), media_type="text/event-stream", headers=HEADERS)

    return Starlette(
        routes=[Route("/", page), Route("/events", events)],
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=HOST_NAMES, www_redirect=False)],
    )


@contextmanager
def serving(out: Path, port: int = 0, on_problem: Callable[[ValueError], None] = lambda error: None) -> Iterator[str]:
    """Serve the page from a thread and yield its address; ValueError where the folder or the port cannot be used.

    That thread calls `on_problem` when the run can no longer be read.
    """
    if not 0 <= port < 65536:
        raise ValueError(f"--port={port} must be an integer from 0 (any free port) to 65535.")
    view = View(out)
    view.now()  # raises now, not in the thread
    try:
        listener = socket.create_server((HOST, port), backlog=BACKLOG)
    except OSError as error:
        raise ValueError(f"--port={port} cannot be used ({error.strerror}); leave it out to use any free port.") from error
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    quiet: dict[str, Any] = {"log_config": None, "access_log": False, "lifespan": "off", "timeout_graceful_shutdown": 1}
    server = Server(uvicorn.Config(application(view, on_problem), http=Connection, ws="none", **quiet))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="meristem-page", daemon=True)
    thread.start()
    try:
        begin = time.monotonic()
        while not server.started and thread.is_alive() and time.monotonic() - begin < START_SECONDS:
            time.sleep(0.01)
        yield f"http://{HOST}:{listener.getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join(5.0)
        listener.close()
