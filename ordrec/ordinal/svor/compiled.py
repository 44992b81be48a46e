"""How all loops of the solver are compiled.

Cached on disk, free of the interpreter lock (so that threads solve side by side), and with
numpy's division: a zero divisor gives infinity, which the step lengths and the stopping rules
understand, and no test for zero prevents vector instructions.
"""

from __future__ import annotations

from numba import njit

__all__ = ["compiled"]

compiled = njit(cache=True, nogil=True, error_model="numpy")
