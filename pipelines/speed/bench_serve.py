"""Answers per second of ``ordrec serve``, asked over loopback by a bounded client.

    python pipelines/speed/bench_serve.py MODEL [--requests 200] [--clients 4] [--cores 1]

The server is a process of its own with this number of threads. Each kind of request is sent by a
few clients at a time, each of which waits for its answer; answers are compared with those that one
client gets. Printed are answers per second and per second of the server's processor time, which is
what one core would give on a machine that does nothing else.

* `/health`: what HTTP itself costs;
* lists of users that were not asked for before, and the same lists again;
* fold-ins of five ratings of popular items, with a list of ten.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psutil

SECONDS_TO_START = 300


def main() -> None:
    """Start a server, ask it, and print a table."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("model")
    options.add_argument("--requests", type=int, default=200)
    options.add_argument("--clients", type=int, default=4)
    options.add_argument("--cores", type=int, default=1)
    chosen = options.parse_args()
    threads = {name: str(chosen.cores) for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS")}
    command = [sys.executable, "-m", "ordrec.cli", "serve", chosen.model, "--port", "0"]
    server = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, **threads}
    )
    try:
        measure(server, port_of(server), chosen.requests, chosen.clients)
    finally:
        server.terminate()
        server.wait()


def port_of(server: subprocess.Popen[str]) -> int:
    """Return the port that the server says it listens at."""
    assert server.stderr is not None
    for line in server.stderr:
        if "http://127.0.0.1:" in line:
            return int(line.split("http://127.0.0.1:")[1].split()[0])
    raise SystemExit("the server ended before it listened")


def ask(port: int, path: str, body: Any = None) -> Any:
    """Return one answer; anything but 200 ends the benchmark."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS_TO_START)
    try:
        text = None if body is None else json.dumps(body)
        headers = {"Content-Type": "application/json"} if text else {}
        connection.request("POST" if text else "GET", path, text, headers)
        answer = connection.getresponse()
        read = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{path}: {answer.status} {read[:200]!r}")
        return json.loads(read)
    finally:
        connection.close()


def measure(server: subprocess.Popen[str], port: int, n_requests: int, n_clients: int) -> None:
    """Print a line for each kind of request."""
    process, draw = psutil.Process(server.pid), random.Random(0)
    about = ask(port, "/api/model")
    items = [row["item"] for row in ask(port, "/api/items?n=50")["items"]]
    scale = about["scale"]  # ids are taken to count from 1, as those of MovieLens do
    lists = [("/api/recommend", {"user": str(k + 1), "n": 10}) for k in range(n_requests)]
    ratings = [
        [{"item": item, "rating": draw.choice(scale)} for item in draw.sample(items, 5)]
        for _ in range(n_requests)
    ]
    fold_ins = [("/api/fold-in", {"ratings": each, "n": 10}) for each in ratings]
    ask(port, *fold_ins[0])  # what is loaded at the first request
    print(f"{about['model']}, {about['n_users']:,} users x {about['n_items']:,} items; ", end="")
    print(f"{process.memory_info().rss / 1e6:,.0f} MB; {n_clients} clients")
    print(f"{'request':22s} {'per second':>11s} {'per core-second':>16s} {'CPU ms':>8s}  serial")
    for name, requests in {
        "health": [("/health", None)] * n_requests,
        "lists, first time": lists,
        "lists, again": lists,
        "fold-ins": fold_ins,
    }.items():
        answers, seconds, cpu = timed(process, n_clients, [_asked(port, *r) for r in requests])
        same = all(ask(port, *requests[k]) == answers[k] for k in range(0, n_requests, 10))
        print(f"{name:22s} {n_requests / seconds:11.1f} {n_requests / cpu:16.1f} ", end="")
        print(f"{1000 * cpu / n_requests:8.1f}  {'equal' if same else 'NOT EQUAL'}", flush=True)


def _asked(port: int, path: str, body: Any) -> Callable[[], Any]:
    return lambda: ask(port, path, body)


def timed(
    process: psutil.Process, n_clients: int, requests: list[Callable[[], Any]]
) -> tuple[list[Any], float, float]:
    """Return answers, seconds, and seconds of the server's processors."""
    began, used = time.perf_counter(), sum(process.cpu_times()[:2])
    with ThreadPoolExecutor(n_clients) as clients:
        answers = list(clients.map(lambda request: request(), requests))
    return answers, time.perf_counter() - began, sum(process.cpu_times()[:2]) - used


if __name__ == "__main__":
    main()
