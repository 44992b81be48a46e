"""How often a served model was asked, how it answered, and how long that took."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable

__all__ = ["Traffic", "print_line"]

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)  # seconds
OTHER = "other"  # addresses that do not exist share one line, however many are tried


class Traffic:
    """Counts of answers since the start, in the text format of Prometheus.

    Parameters
    ----------
    paths : iterable of str
        The addresses that are counted separately.
    log : callable, optional
        Called with one line per answer: time, method, address, status and milliseconds.

    Examples
    --------
    >>> traffic = Traffic(["/api/recommend"])
    >>> traffic.count("POST", "/api/recommend", 200, 0.004)
    >>> print(traffic.text().splitlines()[2])
    ordrec_requests_total{path="/api/recommend",method="POST",status="200"} 1
    """

    def __init__(self, paths: list[str], log: Callable[[str], None] | None = None) -> None:
        self._paths, self._log, self._lock = frozenset(paths), log, threading.Lock()
        self._answers: Counter[tuple[str, str, int]] = Counter()
        self._within: Counter[tuple[str, float]] = Counter()  # answers within each bound
        self._seconds: dict[str, float] = {}

    def count(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count one answer."""
        known = path if path in self._paths else OTHER
        method = method if method in ("GET", "POST", "HEAD") else OTHER
        with self._lock:
            self._answers[known, method, status] += 1
            self._seconds[known] = self._seconds.get(known, 0.0) + seconds
            for bound in (*BOUNDS, float("inf")):
                self._within[known, bound] += seconds <= bound
        if self._log is not None:
            now = time.strftime("%Y-%m-%dT%H:%M:%S%z")
            shown = path.encode("ascii", "backslashreplace").decode()[:200]
            shown = "".join(each if each.isprintable() else "?" for each in shown)
            self._log(f"{now} {method} {shown} {status} {1000 * seconds:.1f} ms")

    def text(self) -> str:
        """Return the counts, one metric per line."""
        with self._lock:
            answers, within = dict(self._answers), dict(self._within)
            seconds = dict(self._seconds)
        lines = [
            "# HELP ordrec_requests_total Answers by address, method and status.",
            "# TYPE ordrec_requests_total counter",
        ]
        for (path, method, status), n in sorted(answers.items()):
            lines.append(
                f'ordrec_requests_total{{path="{path}",method="{method}",status="{status}"}} {n}'
            )
        lines += [
            "# HELP ordrec_request_seconds How long answers took.",
            "# TYPE ordrec_request_seconds histogram",
        ]
        for path in sorted(seconds):
            for bound in (*BOUNDS, float("inf")):
                shown = "+Inf" if bound == float("inf") else f"{bound:g}"
                n = within[path, bound]
                lines.append(f'ordrec_request_seconds_bucket{{path="{path}",le="{shown}"}} {n}')
            lines.append(f'ordrec_request_seconds_sum{{path="{path}"}} {seconds[path]:.6f}')
            total = within[path, float("inf")]
            lines.append(f'ordrec_request_seconds_count{{path="{path}"}} {total}')
        return "\n".join(lines) + "\n"


def print_line(line: str) -> None:
    """Write a line of the log to the standard error stream."""
    print(line, file=sys.stderr, flush=True)
