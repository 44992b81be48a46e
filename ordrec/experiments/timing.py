"""What scripts that measure speed and memory share."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ordrec.runtime.fit_report import peak_memory

__all__ = ["first_run", "peak_memory"]


def first_run(work: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function for the first time and print its seconds, compiling or loading included.

    A process pays for this once; the figures that follow do not contain it.
    """
    started = time.perf_counter()
    result = work(*arguments)
    spent = time.perf_counter() - started
    print(f"first run of this process, on little data, not in what follows: {spent:.1f} s")
    return result
