"""Clients that send nothing, or half a request, do not keep others out."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Iterator

import pytest

pytest.importorskip("fastapi")

from support.serving import titled_ratings

from ordrec.recommend import Popularity

MOST = 8
HALVES = [
    b"",
    b"GET /api/model HTTP/1.1\r\nHost: 127",
    b"POST /api/recommend HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b'Content-Length: 50\r\n\r\n{"user"',
]


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    import uvicorn

    from ordrec.serve.app import make_app
    from ordrec.serve.guard import PatientProtocol

    monkeypatch.setattr(PatientProtocol, "seconds", 0.5)
    opened = socket.create_server(("127.0.0.1", 0))
    app = make_app(Popularity().fit(titled_ratings()), "films")
    config = uvicorn.Config(
        app, log_level="critical", limit_concurrency=MOST, http=PatientProtocol,
        timeout_graceful_shutdown=1,
    )  # fmt: skip
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [opened]})
    thread.start()
    yield opened.getsockname()[1]
    server.should_exit = True
    thread.join()
    opened.close()


def asked(port: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/api/model")
    status = connection.getresponse().status
    connection.close()
    return status


@pytest.mark.parametrize("half", HALVES, ids=["nothing", "half a header", "half a body"])
def test_silent_clients_are_sent_away(port: int, half: bytes) -> None:
    assert asked(port) == 200
    silent = [socket.create_connection(("127.0.0.1", port), timeout=10) for _ in range(MOST + 2)]
    for each in silent:
        each.sendall(half)
    patience = time.monotonic() + 10
    while asked(port) != 200:
        assert time.monotonic() < patience, "the silent clients keep others out"
        time.sleep(0.1)
    for each in silent:
        each.close()


def test_a_second_request_of_a_connection_may_come_late_but_not_in_halves(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    for _ in range(2):
        connection.request("GET", "/api/model")
        answer = connection.getresponse()
        assert (answer.status, bool(answer.read())) == (200, True)
    sock = connection.sock
    sock.sendall(HALVES[1])
    assert sock.recv(1) == b""  # the server has closed it
    connection.close()
