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

How the cores are shared
------------------------
Every estimator and every rating model keeps to these rules.

1. ``n_jobs=None`` on a model, on `tune` and on functions that solve many small problems means
   threads on all cores that the process may use: those of its affinity mask and its container,
   or fewer where ``OMP_NUM_THREADS``, threadpoolctl or joblib allow BLAS fewer. ``n_jobs=1``
   means one thread, ``n_jobs=-1`` one for each core.
2. ``n_jobs=None`` on what runs whole experiments (`run`, ``evaluate``, ``Experiment``,
   ``predict_scan``, lists for all users) means one task after the other, each model with
   all cores. More jobs are worker processes.
3. Where code runs decides how many threads `loop_threads` starts; BLAS has one thread in all of
   these cases:

   ================================================== ==========================================
   the code runs in                                   threads of `loop_threads`
   ================================================== ==========================================
   no task                                            as many as it is asked for (rules 1 and 2)
   a task, while every worker has one                 1
   one of t tasks left for w workers, t < w           w // t
   a task on a Dask cluster                           1
   a thread that `loop_threads` has started           1
   ================================================== ==========================================
4. While a model is fitted BLAS has one thread (`one_blas_thread`), and ordrec starts the others.
   The threads of BLAS spin while they wait. They take the cores from threads that work, even from
   those of a second copy of the library, and small products take a hundred times as long. The
   exception is a kernel matrix of 1500 rows or more that is factorised as
   a whole (`blas_for`): GPOR and others without threads of their own.
5. How work is divided between threads does not depend on their number, so the results do not
   depend on it either.
"""

from __future__ import annotations

from ordrec.runtime.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
