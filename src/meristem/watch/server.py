"""A run in a browser on this machine: one page, and its picture as server-sent events, whole at first and then what changed.

    with serving(out, port, on_problem) as url: …       port 0: one that is free

It listens on 127.0.0.1 alone, and answers only those who call it by that name or as localhost: a page from elsewhere that
resolves its own name to 127.0.0.1 is refused. The page asks nobody else for anything, which its Content-Security-Policy holds
it to. A port can be used again at once. Only this file and connections.py import starlette and uvicorn (the extra `live`);
commands/watch.py imports it.
"""

import asyncio
import json
import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from meristem.watch.changes import changes
from meristem.watch.connections import Connection
from meristem.watch.state import State
from meristem.watch.view import View

HOST, NAMES = "127.0.0.1", ["127.0.0.1", "localhost"]
SECONDS = 0.5  # between two looks
SILENCE = 10.0  # seconds, after which a line is sent in any case
START = 10.0  # seconds that it may take to listen
MOST_CALLERS = 64  # that are sent events at a time
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


class Feed:
    """The picture for any number of callers: the files are read once, however many there are."""

    def __init__(self, view: View, on_problem: Callable[[ValueError], None]):
        self._view, self._on_problem, self._lock = view, on_problem, asyncio.Lock()
        self._state: State = {}
        self._when = -SECONDS
        self.n_callers = 0

    async def now(self) -> State:
        """The picture, at most half a second old."""
        async with self._lock:
            if time.monotonic() - self._when >= SECONDS:
                try:
                    self._state = await asyncio.to_thread(self._view.now)
                except ValueError as error:
                    self._on_problem(error)
                    raise
                self._when = time.monotonic()
            return self._state

    async def events(self) -> AsyncIterator[bytes]:
        """For one caller: the picture, then its changes."""
        self.n_callers += 1
        try:
            async for part in self._events():
                yield part
        finally:
            self.n_callers -= 1

    async def _events(self) -> AsyncIterator[bytes]:
        sent = await self.now()
        yield event("state", sent)
        last = time.monotonic()
        while True:
            await asyncio.sleep(SECONDS)
            state = await self.now()
            change = changes(sent, state)
            if change is not None:
                yield event("change", change)
                sent, last = state, time.monotonic()
            elif time.monotonic() - last > SILENCE:
                yield b": still here\n\n"
                last = time.monotonic()


def event(name: str, data: object) -> bytes:
    """As it is sent.

    >>> event("change", {"is": 1})
    b'event: change\\ndata: {"is":1}\\n\\n'
    """
    return f"event: {name}\ndata: {json.dumps(data, separators=(',', ':'), allow_nan=False)}\n\n".encode()


def application(view: View, on_problem: Callable[[ValueError], None]) -> Starlette:
    """The page and its events."""
    feed = Feed(view, on_problem)
    text = files("meristem.watch").joinpath("page.html").read_text(encoding="utf-8")

    async def page(request: Request) -> Response:
        nonce = secrets.token_urlsafe(16)
        policy = {"Content-Security-Policy": POLICY.format(nonce=nonce)}
        return HTMLResponse(text.replace("NONCE", nonce), headers=HEADERS | policy)

    async def events(request: Request) -> Response:
        if feed.n_callers >= MOST_CALLERS:
            return Response("Too many pages are open.", 503, headers=HEADERS)
        return StreamingResponse(feed.events(), media_type="text/event-stream", headers=HEADERS)

    return Starlette(
        routes=[Route("/", page), Route("/events", events)],
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=NAMES, www_redirect=False)],
    )


@contextmanager
def serving(out: Path, port: int = 0, on_problem: Callable[[ValueError], None] = lambda error: None) -> Iterator[str]:
    """The page's address, while it is served by a thread; ValueError where the folder or the port cannot be used.

    `on_problem` is told, by that thread, of a run that cannot be followed any more.
    """
    if not 0 <= port < 65536:
        raise ValueError(f"--port={port} must be a whole number from 0, which takes one that is free, to 65535.")
    view = View(out)
    view.now()  # what cannot be followed is said now
    app = application(view, on_problem)
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if os.name != "nt":  # there, it would let two servers share a port
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((HOST, port))
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise ValueError(f"--port={port} cannot be used ({error.strerror}); leave it out, and one is found.") from error
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    config = uvicorn.Config(
        app, http=Connection, ws="none", log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, name="meristem-page", daemon=True)
    thread.start()
    try:
        begin = time.monotonic()
        while not server.started and thread.is_alive() and time.monotonic() - begin < START:
            time.sleep(0.01)
        yield f"http://{HOST}:{listening.getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join(5.0)
        listening.close()
