"""One execution layer for everything that runs side by side: threads, processes or a cluster.

`run` calls a function for each of many tasks and hands the results over as they finish. Where
the work is done is a matter of one argument; the numbers are not, as a task sees only itself
and what is shared, BLAS has one thread in it, and tasks within a task run where they are.

=========== ============================================================================
engine      where
=========== ============================================================================
"serial"    here, in order
"threads"   in threads of this process: for compiled code that lets go of Python's lock
"processes" in processes of this machine; large shared arrays are mapped, not copied
"dask"      on a Dask cluster, given by its address, or one made for the occasion
=========== ============================================================================
"""

from __future__ import annotations

from ordrec.parallel.blas import one_blas_thread
from ordrec.parallel.engine import Engine, default_engine, worker_count
from ordrec.parallel.running import run, run_all

__all__ = ["Engine", "default_engine", "one_blas_thread", "run", "run_all", "worker_count"]
