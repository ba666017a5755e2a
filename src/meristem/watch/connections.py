"""Connections that wait for no one: who asks for nothing in time is disconnected, and who only waits gives way to others.

    uvicorn.Config(app, http=Connection)

A connection that has sent no whole request within a few seconds is closed, however slowly it goes on sending: uvicorn itself
has no such limit. At most so many may wait; with one more, the one that has waited longest is closed, so that many half-open
ones keep nobody out. Imports uvicorn (the extra `live`); server.py imports it.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

SECONDS = 5.0  # for a whole request
MOST_WAITING = 128


class Connection(H11Protocol):
    """HTTP/1.1 with a limit on how long a request may take to arrive."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_answering or self.transport.is_closing():
            self._end_wait()
        else:
            self._wait()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing() and not self._is_answering:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_wait()
        super().connection_lost(exc)

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _wait(self) -> None:
        """From now on, unless it waits already."""
        if self._deadline is not None:
            return
        self._deadline = self.loop.call_later(SECONDS, self._give_up)
        waiting = {
            other: other._deadline.when()
            for other in self.connections
            if isinstance(other, Connection) and other._deadline is not None
        }
        if len(waiting) > MOST_WAITING:
            min(waiting, key=waiting.__getitem__)._give_up()

    def _end_wait(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._end_wait()
        self.transport.abort()
