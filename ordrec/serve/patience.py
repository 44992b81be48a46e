"""Connections that end if a request does not arrive: silent clients must not keep others out."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["PatientProtocol"]


class PatientProtocol(H11Protocol):
    """HTTP that waits some seconds for a whole request, header and body, and no longer.

    uvicorn itself waits for ever, and few connections are open at a time: as many clients that send
    nothing, or half a header, would lock out everybody else.
    """

    seconds: ClassVar[float] = 10.0
    _limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait_while_incomplete()

    def data_received(self, data: bytes) -> None:
        """Take data, and go on waiting unless they complete a request."""
        super().data_received(data)
        self._wait_while_incomplete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait_while_incomplete(self) -> None:
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete and not cycle.more_body:
            self._stop_waiting()
        elif self._limit is None:
            self._limit = self.loop.call_later(self.seconds, self._give_up)

    def _give_up(self) -> None:
        self._limit = None
        cycle = self.cycle
        answering = cycle is not None and not cycle.response_complete and not cycle.more_body
        if not answering and not self.transport.is_closing():
            self.transport.close()

    def _stop_waiting(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None
