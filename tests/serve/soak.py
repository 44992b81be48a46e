"""Ask a server from many sides at once, on this machine, and compare with what it says alone.

    python tests/serve/soak.py [--seconds 60] [--clients 4] [--silent 40]

Honest clients ask for lists, predictions, explanations and new users. Beside them, silent clients
hold connections open and come back when they are sent away, slow ones send a byte now and then,
huge ones send megabytes, and broken ones send what is no HTTP. Every answer to an honest client
must be the one it gets when nobody else asks. Prints how many requests of each kind were made, and
the waiting times of the honest ones alone and in the crowd.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import socket
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).parent.parent.parent), str(Path(__file__).parent.parent)]

from support.serving import titled_ratings  # noqa: E402

HEAD = b"POST /api/recommend HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
JUNK = [
    b"\x16\x03\x01\x02\x00\x01\x00",
    b"GET / HTTP/9.9\r\n\r\n",
    b"\r\n" * 999,
    b"A" * 70_000,
    HEAD + b"Content-Length: -1\r\n\r\n",
    HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
]


def questions() -> list[tuple[str, dict[str, Any]]]:
    """What honest clients ask."""
    found: list[tuple[str, dict[str, Any]]] = []
    for user in range(100, 112):
        found.append(("/api/recommend", {"user": user, "n": 5}))
        pairs = [{"user": user, "item": item} for item in range(500, 506)]
        found.append(("/api/predict", {"pairs": pairs}))
        found.append(("/api/explain", {"user": user, "item": 503}))
        rated = [{"item": 500 + user % 7, "rating": 5}, {"item": 508, "rating": 1}]
        found.append(("/api/fold-in", {"ratings": rated, "n": 4}))
    return found


def asked(port: int, path: str, body: dict[str, Any]) -> tuple[int, bytes]:
    """One question on a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        text = json.dumps(body)
        connection.request("POST", path, text, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


class Crowd:
    """Clients that go on until they are told to stop."""

    def __init__(self, port: int, alone: dict[str, bytes]):
        self.port, self.alone, self.stop = port, alone, threading.Event()
        self.counts: Counter[str] = Counter()
        self.waits: list[float] = []

    def honest(self, seed: int) -> None:
        """Ask what was asked before, and compare."""
        chance, everything = random.Random(seed), questions()
        while not self.stop.is_set():
            path, body = chance.choice(everything)
            begun = time.monotonic()
            try:
                status, said = asked(self.port, path, body)
            except OSError:
                self.counts["honest, no answer"] += 1
                continue
            if status == 503:
                self.counts["honest, told to come back"] += 1
                time.sleep(0.1)
                continue
            self.waits.append(time.monotonic() - begun)
            same = status == 200 and said == self.alone[json.dumps([path, body])]
            self.counts["honest, the same answer" if same else "honest, ANOTHER ANSWER"] += 1

    def _connected(self, kind: str) -> socket.socket:
        self.counts[kind] += 1
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def silent(self, seed: int) -> None:
        """Hold a connection until the server closes it."""
        while not self.stop.is_set():
            with suppress(OSError), self._connected("silent") as own:
                own.sendall(HEAD[: random.Random(seed).randrange(len(HEAD))])
                own.recv(1)

    def slow(self, seed: int) -> None:
        """Send a byte now and then."""
        while not self.stop.is_set():
            with suppress(OSError), self._connected("slow") as own:
                for byte in HEAD:
                    own.sendall(bytes([byte]))
                    if self.stop.wait(0.5):
                        break

    def huge(self, seed: int) -> None:
        """Send what is too large."""
        while not self.stop.is_set():
            with suppress(OSError), self._connected("huge") as own:
                own.sendall(HEAD + b"Content-Length: 999999999\r\n\r\n")
                for _ in range(20):
                    own.sendall(b"x" * 65_536)
            self.stop.wait(0.2)

    def broken(self, seed: int) -> None:
        """Send what is no request, and leave."""
        chance = random.Random(seed)
        while not self.stop.is_set():
            with suppress(OSError), self._connected("broken") as own:
                own.sendall(chance.choice(JUNK))
            self.stop.wait(0.05)


def main() -> None:
    """Serve, ask alone, ask in the crowd, print."""
    import uvicorn

    from ordrec.recommend import OrdinalFactors, Recommender
    from ordrec.serve.app import make_app
    from ordrec.serve.guard import PatientProtocol

    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=60.0)
    options.add_argument("--clients", type=int, default=4, help="of each kind (4)")
    options.add_argument("--silent", type=int, default=40, help="more than may be open (40)")
    chosen = options.parse_args()
    rating = OrdinalFactors(n_factors=2, pattern=2, max_iter=4)
    app = make_app(Recommender(rating=rating).fit(titled_ratings()), "films")
    opened = socket.create_server(("127.0.0.1", 0), backlog=128)
    port = opened.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(
        app, log_level="critical", limit_concurrency=32, http=PatientProtocol,
        timeout_graceful_shutdown=1,
    ))  # fmt: skip
    thread = threading.Thread(target=server.run, kwargs={"sockets": [opened]})
    thread.start()
    try:
        alone, waits = {}, []
        for path, body in questions():
            begun = time.monotonic()
            status, said = asked(port, path, body)
            waits.append(time.monotonic() - begun)
            assert status == 200, (path, said)
            alone[json.dumps([path, body])] = said
        crowd = Crowd(port, alone)
        kinds = [crowd.honest, crowd.slow, crowd.huge, crowd.broken] * chosen.clients
        kinds += [crowd.silent] * chosen.silent
        clients = [threading.Thread(target=kind, args=(seed,)) for seed, kind in enumerate(kinds)]
        for client in clients:
            client.start()
        time.sleep(chosen.seconds)
        crowd.stop.set()
    finally:
        server.should_exit = True
        thread.join()
    for kind, count in sorted(crowd.counts.items()):
        print(f"{kind}: {count}")
    for name, seconds in (("alone", waits), ("in the crowd", crowd.waits)):
        if seconds:
            middle, late = np.quantile(seconds, [0.5, 0.95])
            print(f"honest {name}: median {1000 * middle:.0f} ms, 95 % {1000 * late:.0f} ms")
    for client in clients:
        client.join(timeout=35)
    print(f"clients that hang: {sum(client.is_alive() for client in clients)}")


if __name__ == "__main__":
    main()
