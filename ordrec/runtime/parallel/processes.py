"""Tasks in processes of this machine, which loky starts.

What is shared is written to a folder once: one pickle in which large arrays are references to
files that the workers map. How many cores a worker may use is in a file of that folder, too.
Workers are kept for a while after a run, because starting them often takes longer than the run
itself.
"""

from __future__ import annotations

import io
import os
import pickle
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from ordrec.runtime.parallel.forks import after_fork
from ordrec.runtime.parallel.tasks import Cores, Outcome, attempt

__all__ = ["ProcessPool"]

MAPPED_BYTES = 1 << 20  # arrays from this size on are mapped
IDLE_SECONDS = 120  # after which an idle worker ends
CORES = "cores"  # the file with the number of cores of each worker
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}

# Number of workers and executor; taken out by a run, so that no two runs share one.
_idle: list[tuple[int, Any]] = []
_idle_lock = threading.Lock()


class ProcessPool:
    """Worker processes; a run that ends without an error leaves them to the next one."""

    lost: tuple[type[BaseException], ...] = (BrokenProcessPool,)
    attempts = 4

    def __init__(self, n_workers: int, function: Callable[..., Any], shared: tuple[Any, ...]):
        self.width = 2 * n_workers
        self._n_workers = n_workers
        self._folder = tempfile.TemporaryDirectory(prefix="ordrec-", ignore_cleanup_errors=True)
        self._executor: Any = None
        try:
            write_shared(Path(self._folder.name), (function, shared))
            self._executor = _take_executor(n_workers)
        except BaseException:
            self._folder.cleanup()
            raise

    def submit(self, task: Any) -> Future[Outcome]:
        """Start a task."""
        return self._executor.submit(_work, self._folder.name, self._n_workers, task)

    def share(self, cores: int) -> None:
        """Let each of the last tasks use this many cores."""
        with suppress(OSError):  # on a full disk they stay with one
            Path(self._folder.name, CORES).write_text(str(cores))

    def results_lost(self) -> bool:
        """Never: the future of a process that died raises an error."""
        return False

    def renew(self) -> None:
        """Replace all workers after one of them died."""
        self._executor.shutdown(wait=True, kill_workers=True)
        self._executor = _new_executor(self._n_workers)

    def close(self, kill: bool) -> None:
        """Leave the workers to the next run, or kill them."""
        try:
            if kill:
                self._executor.shutdown(wait=True, kill_workers=True)
            else:
                with _idle_lock:
                    _idle.append((self._n_workers, self._executor))
        finally:
            self._folder.cleanup()


# ---- here ----------------------------------------------------------------------------------


def _take_executor(n_workers: int) -> Any:
    """Idle workers of the right number, or new ones; other idle workers are shut down."""
    with _idle_lock:
        others = list(_idle)
        _idle.clear()
        fitting = [pair for pair in others if pair[0] == n_workers]
        reused = fitting.pop() if fitting else None
        _idle.extend(fitting)
    for pair in others:
        if pair[0] != n_workers:
            pair[1].shutdown(wait=False)
    return _new_executor(n_workers) if reused is None else reused[1]


def _forget_idle() -> None:
    """Leave the idle workers to the parent: in a forked process they never answer."""
    global _idle, _idle_lock
    _idle, _idle_lock = [], threading.Lock()


after_fork(_forget_idle)


def _new_executor(n_workers: int) -> Any:
    from loky import ProcessPoolExecutor  # type: ignore[import-untyped]

    return ProcessPoolExecutor(
        n_workers,
        timeout=IDLE_SECONDS,
        initializer=_begin,
        initargs=(os.getpid(),),
        env=ONE_THREAD,
    )


def write_shared(folder: Path, content: Any) -> None:
    """Pickle the content; each large array is written to its own file, and only once."""
    from cloudpickle import CloudPickler  # type: ignore[import-untyped]

    written: dict[int, tuple[str, np.ndarray]] = {}

    class Pickler(CloudPickler):
        def persistent_id(self, value: Any) -> str | None:
            if (
                type(value) is not np.ndarray
                or value.nbytes < MAPPED_BYTES
                or value.dtype.hasobject
            ):
                return None
            if id(value) not in written:
                written[id(value)] = f"{len(written)}.npy", value
                np.save(folder / written[id(value)][0], value, allow_pickle=False)
            return written[id(value)][0]

    with open(folder / "content", "wb") as stream:
        Pickler(stream, protocol=5).dump(content)


def read_shared(folder: Path) -> Any:
    """What `write_shared` wrote, large arrays mapped.

    Maps are copied on writing, so that compiled code sees the array type it was compiled for.
    """

    class Unpickler(pickle.Unpickler):
        def persistent_load(self, name: str) -> np.ndarray:
            return np.load(folder / name, mmap_mode="c").view(np.ndarray)

    return Unpickler(io.BytesIO((folder / "content").read_bytes())).load()


# ---- in a worker -----------------------------------------------------------------------------

_held: tuple[str, Any] = ("", None)


def _begin(parent: int) -> None:
    """Leave Ctrl-C to the parent process, and exit when that is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _work(folder: str, n_workers: int, task: Any) -> Outcome:
    """Run a task whose shared objects are in a folder."""
    global _held
    if _held[0] != folder:
        _held = ("", None)  # frees the old ones first
        _held = (folder, read_shared(Path(folder)))
    function, shared = _held[1]
    return attempt(function, task, shared, Cores(lambda: _cores(folder), n_workers))


def _cores(folder: str) -> int:
    """How many cores this worker may use: one, until the pool says otherwise."""
    try:
        return int(Path(folder, CORES).read_text())
    except (OSError, ValueError):  # not written yet, or just being written
        return 1
