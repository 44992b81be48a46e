"""One execution layer for everything that runs in parallel: threads, processes or a cluster.

`run` calls a function for each of many tasks and yields the results as they finish. One argument
decides where the work is done. It does not change the numbers: a task sees nothing but itself and
what is shared, BLAS has one thread in it, and tasks started within a task run serially in its
worker.

`loop_threads` is for compiled loops inside one computation: a pool of threads for a block of code.

=========== ============================================================================
engine      where
=========== ============================================================================
"serial"    here, in order
"threads"   in threads of this process: for compiled code that releases Python's lock
"processes" in processes of this machine; large shared arrays are mapped, not copied
"dask"      on a Dask cluster, given by its address, or one started for the run
=========== ============================================================================
"""

from __future__ import annotations

from ordrec.parallel.blas import one_blas_thread
from ordrec.parallel.engine import Engine, default_engine, worker_count
from ordrec.parallel.forks import forked, openmp_that_returns
from ordrec.parallel.loops import loop_threads
from ordrec.parallel.running import run, run_all

__all__ = [
    "Engine",
    "default_engine",
    "forked",
    "loop_threads",
    "one_blas_thread",
    "openmp_that_returns",
    "run",
    "run_all",
    "worker_count",
]
