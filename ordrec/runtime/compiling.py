"""How all loops of the package are compiled, and where the compiled code is cached.

A first fit waits for the compiler, so the compiled functions are explicit loops over plain arrays
that call each other rarely, and the steps between them are Python. What was measured: the first
array expression of a process takes two seconds to compile, the first `np.where` or `np.argsort`
more than one, the first `np.empty` or view two tenths, `min` and `max` one each; a named tuple of
arrays costs at every access, an array argument five milliseconds; a function that is called in
three places is compiled three times. A call from Python costs half a microsecond.

numba caches compiled code beside the source or in the user's cache folder. Where it can write to
neither (a read-only install and no writable home), it refuses to compile any function with a
cache; then a temporary folder is used. Where a cached file is damaged (a disk that was full, a
machine that was switched off), numba stops with an error of pickle; here the code is compiled
again.

numba reports when it compiles a function, but not when it loads one from its cache;
`ordrec.runtime.progress` shows it, and does not count it as work.
"""

from __future__ import annotations

import gc
import os
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import config, njit
from numba.core import event
from numba.core.caching import FunctionCache

from ordrec.runtime.progress import compiling_began, compiling_ended

__all__ = ["compiled", "compiled_with", "inlined_with", "inner"]


def _use_a_writable_cache() -> None:
    """Let numba keep compiled code in a temporary folder if it finds no other; say so."""
    try:
        njit(cache=True)(_private_folder)  # finds a folder, and compiles nothing yet
    except RuntimeError:
        folder = _private_folder(Path(tempfile.gettempdir()))
        config.CACHE_DIR = str(folder)  # type: ignore[attr-defined]
        os.environ["NUMBA_CACHE_DIR"] = str(folder)  # for processes started from here
        warnings.warn(
            f"neither {Path(__file__).parent} nor a cache folder in the home directory can be "
            f"written to: compiled code is kept in {folder}. Set NUMBA_CACHE_DIR to keep it "
            "elsewhere",
            stacklevel=2,
        )


def _private_folder(parent: Path) -> Path:
    """A folder that only this user can write to, the same one each time if possible."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = parent / f"ordrec-compiled-{user}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.stat()
    if hasattr(os, "getuid") and (found.st_uid != user or found.st_mode & 0o022):
        return Path(tempfile.mkdtemp(prefix="ordrec-compiled-", dir=parent))
    return folder


class _CompilingReported(event.Listener):
    """Reports when compiling begins and ends, and puts off garbage collection until it ends.

    Looking for garbage among the many small objects of the compiler takes an eighth of its time.
    The events come from one thread at a time, which holds numba's lock.
    """

    def __init__(self) -> None:
        self.depth, self.collects = 0, False

    def on_start(self, event: event.Event) -> None:
        function = getattr(event.data.get("dispatcher"), "py_func", None)
        compiling_began(getattr(function, "__name__", "a function"))
        if self.depth == 0:
            self.collects = gc.isenabled()
            gc.disable()
        self.depth += 1

    def on_end(self, event: event.Event) -> None:
        self.depth -= 1
        if self.depth == 0 and self.collects:
            gc.enable()
        compiling_ended()


_use_a_writable_cache()
event.register("numba:compile", _CompilingReported())

# The wrapper for C, which nothing here needs, takes a fifth of the time of a small function.
_WITHOUT_C: Any = {"no_cfunc_wrapper": True}
_WITHOUT_PYTHON: Any = {"no_cpython_wrapper": True}


class _ForgivingCache(FunctionCache):
    """The code of one function on disk, without what cannot be read."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The code for a signature; None if there is none, or if it is damaged."""
        try:
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except Exception:  # whatever pickle and LLVM raise on half a file
            self.flush()  # type: ignore[no-untyped-call]
            return None


def compiled_with(**options: Any) -> Callable[[Any], Any]:
    """A decorator that compiles a function and keeps the code on disk.

    The function is free of the interpreter lock, so that threads work side by side, and has numpy's
    division: a zero divisor gives infinity, and no test for zero prevents vector instructions.
    """
    compile_it = njit(cache=True, nogil=True, error_model="numpy", **_WITHOUT_C, **options)

    def decorate(function: Any) -> Any:
        dispatcher = compile_it(function)
        if dispatcher is not function:  # which it is with NUMBA_DISABLE_JIT
            dispatcher._cache = _ForgivingCache(function)  # type: ignore[no-untyped-call]
        return dispatcher

    return decorate


def inlined_with(**options: Any) -> Callable[[Any], Any]:
    """A decorator for functions that only compiled functions call, which keep their code.

    They become a part of these functions. As functions of their own they would be compiled twice,
    alone and with their callers, and which of the two is called would depend on whether this
    process has compiled the caller or read it from disk: sums that may be reordered differed by
    their rounding.
    """
    options |= _WITHOUT_C | _WITHOUT_PYTHON
    return njit(nogil=True, error_model="numpy", inline="always", **options)


compiled = compiled_with()
inner = inlined_with()
