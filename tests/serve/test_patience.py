"""Clients that send nothing, or half a request, do not keep others out."""

from __future__ import annotations

import contextlib
import http.client
import socket
import sys
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


def asked(port: int, pause: float = 0.0) -> int:
    """The status of an answer; the request is sent in halves with a pause between them."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(b"GET /api/model HTTP/1.1\r\n")
        time.sleep(pause)
        connection.sendall(b"Host: 127.0.0.1\r\n\r\n")
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        return answer.status


def silent(port: int, address: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), 10, source_address=(address, 0))


def left_by_the_server(connection: socket.socket) -> bool:
    """Whether the server closes the connection, within ten seconds.

    A request whose header came while too many others were open may have been told so first.
    """
    try:
        while connection.recv(1024):
            pass
        return True
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


@pytest.mark.parametrize("half", HALVES, ids=["nothing", "half a header", "half a body"])
def test_silent_clients_are_sent_away(port: int, half: bytes) -> None:
    assert asked(port) == 200
    waiting = [silent(port) for _ in range(MOST + 2)]
    for each in waiting:
        with contextlib.suppress(ConnectionResetError):  # sent away already
            each.sendall(half)
    assert asked(port) == 200
    assert all(map(left_by_the_server, waiting))
    for each in waiting:
        each.close()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="127.0.0.2 is this machine too")
def test_clients_that_come_back_keep_out_neither_a_fast_nor_a_slow_one(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They wait for half a minute, and are back as soon as they are sent away."""
    from ordrec.serve.guard import PatientProtocol

    monkeypatch.setattr(PatientProtocol, "seconds", 30.0)
    crowd = [silent(port, "127.0.0.2") for _ in range(MOST)]
    for round_ in range(4):
        assert [asked(port), asked(port, pause=0.05)] == [200, 200], round_
        for each in crowd:
            each.setblocking(False)
        back = []
        for each in crowd:
            with contextlib.suppress(BlockingIOError):
                back.append(each if left_by_the_server(each) else None)
        assert back  # a place was needed
        crowd = [each for each in crowd if each not in back]
        crowd += [silent(port, "127.0.0.2") for _ in back]
    for each in crowd:
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
