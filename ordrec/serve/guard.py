"""What is refused before a request is read: other hosts, other pages, and large bodies.

A browser lets any page send requests to 127.0.0.1, and a name that its owner points to 127.0.0.1
(DNS rebinding) even lets such a page read the answers. So only requests to this machine's own
names are answered, and those that a page of another origin sends are not.

Connections on which no request arrives are closed (`PatientProtocol`), at once if others come:
silent clients must not keep others out.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections import Counter
from collections.abc import Collection
from typing import Any, ClassVar

from fastapi import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from ordrec.serve.traffic import Traffic

__all__ = ["LARGEST_BODY", "Guard", "PatientProtocol", "problem"]

LARGEST_BODY = 256 * 1024  # bytes
TOO_LARGE = f"a body has at most {LARGEST_BODY} bytes: ask in parts"
HEADERS = [
    (b"cache-control", b"no-store"),
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; "
        b"connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
        b"frame-ancestors 'none'",
    ),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
]


class _PlainJSON(JSONResponse):
    """JSON in ASCII: a message may quote any text, even halves of characters."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content).encode("ascii")


def problem(status: int, text: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """Return an answer that says what is wrong."""
    return _PlainJSON({"error": text}, status, headers)


class Guard:
    """Middleware that refuses what must not be read, and adds headers to what is sent.

    Parameters
    ----------
    app : ASGI application
    hosts : collection of str
        Names in the Host header that are answered, without port; "*" stands for all.
    traffic : Traffic
        Counts the answers.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str], traffic: Traffic) -> None:
        self._app, self._hosts, self._traffic = app, frozenset(hosts), traffic

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        taken, status, began = 0, 500, time.perf_counter()

        async def careful_send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *HEADERS]
                status = message["status"]
            await send(message)

        async def careful_receive() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > LARGEST_BODY:
                raise HTTPException(413, TOO_LARGE)
            return message

        refusal = self._refusal(scope)
        try:
            if refusal is not None:
                await refusal(scope, receive, careful_send)
            else:
                await self._app(scope, careful_receive, careful_send)
        finally:
            seconds = time.perf_counter() - began
            self._traffic.count(scope["method"], scope["path"], status, seconds)

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get(b"host", "")
        if self._hosts.isdisjoint({"*", host, host.rpartition(":")[0]}):
            names = " or ".join(sorted(self._hosts))
            return problem(421, f"this server answers as {names} only: use that address")
        origin = headers.get(b"origin")
        if origin is not None and origin != f"{scope['scheme']}://{host}":
            return problem(403, "pages of other origins may not ask this server: ask it directly")
        length = headers.get(b"content-length", "0")
        if not length.isdigit() or int(length) > LARGEST_BODY:
            return problem(413, TOO_LARGE)
        kind = headers.get(b"content-type", "").partition(";")[0].strip().lower()
        if scope["method"] == "POST" and kind != "application/json":
            return problem(415, "the body must be json: send Content-Type: application/json")
        return None


class PatientProtocol(H11Protocol):
    """HTTP that waits some seconds for a whole request, header and body, and no longer.

    uvicorn itself waits for ever, and few connections are open at a time: as many clients that send
    nothing, or half a header, would lock out everybody else. Where as many are open as may be, a
    new one takes the place of one that waits for a request: of the address that has most of them,
    the one that has waited longest. So clients that come back as soon as they are sent away keep
    out nobody who has something to ask.
    """

    seconds: ClassVar[float] = 10.0
    cycle: Any  # None before the first request
    _limit: asyncio.TimerHandle | None = None  # while it waits
    _since: float = 0.0

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._take_a_place()
        self._wait_while_incomplete()

    def data_received(self, data: bytes) -> None:
        """Take data, and go on waiting unless they complete a request."""
        super().data_received(data)
        self._wait_while_incomplete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _take_a_place(self) -> None:
        """Close a connection on which no request is being answered, if there are too many."""
        there = [
            each
            for each in self.connections
            if isinstance(each, PatientProtocol) and not each.transport.is_closing()
        ]
        waiting = [each for each in there if each._limit is not None]
        if not waiting or len(there) < (self.limit_concurrency or math.inf):
            return
        crowds = Counter(each._address for each in waiting)
        longest = min(waiting, key=lambda each: (-crowds[each._address], each._since))
        longest.transport.abort()

    @property
    def _address(self) -> str | None:
        return self.client[0] if self.client else None

    def _wait_while_incomplete(self) -> None:
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete and not cycle.more_body:
            self._stop_waiting()
        elif self._limit is None:
            self._since = self.loop.time()
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
