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

from meristem.watch.json_diff import changes
from meristem.watch.view import View
from meristem.watch.view_text import State

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
    """HTTP/1.1 with a time limit for a request to arrive, which uvicorn itself does not have."""

    _deadline: asyncio.TimerHandle | None = None  # while no request is being answered

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._set_timer()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._set_timer()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._set_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._set_timer()
        super().connection_lost(exc)

    def _set_timer(self) -> None:
        is_waiting = not self.transport.is_closing() and (self.cycle is None or self.cycle.response_complete)
        if is_waiting and self._deadline is None:
            self._deadline = self.loop.call_later(REQUEST_SECONDS, self._abort)
            others = [other for other in self.connections if isinstance(other, Connection)]
            waiting = {other: other._deadline.when() for other in others if other._deadline is not None}
            if len(waiting) > MOST_WAITING:
                min(waiting, key=waiting.__getitem__)._abort()
        elif not is_waiting and self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _abort(self) -> None:
        self.transport.abort()
        self._set_timer()


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
    """Return an event as it is sent.

    >>> server_event("change", {"is": 1})
    b'event: change\\ndata: {"is":1}\\n\\n'
    """
    return f"event: {name}\ndata: {json.dumps(data, separators=(',', ':'), allow_nan=False)}\n\n".encode()


def application(view: View, on_problem: Callable[[ValueError], None]) -> Starlette:
    """Return the application: the page and its events."""
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
    server = uvicorn.Server(uvicorn.Config(application(view, on_problem), http=Connection, ws="none", **quiet))
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
