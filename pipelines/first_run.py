"""What a process pays once, printed beside the figures that do not contain it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

__all__ = ["first_run"]


def first_run(work: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function for the first time and print its seconds, compiling or loading included."""
    started = time.perf_counter()
    result = work(*arguments)
    spent = time.perf_counter() - started
    print(f"first run of this process, on little data, not in what follows: {spent:.1f} s")
    return result
