"""The Cholesky factor of a large matrix, in threads of our own.

The threads of BLAS spin while they wait for each other, at every step of every routine. On a
machine that does anything else, a factor by two of them takes three times as long as by one. Here
the threads meet only a few times, and sleep meanwhile.

Equations here
--------------
With the matrix and its factor in halves, (n/2, n/2) each:

    A_11 = L_11 L_11'                                               (T1) by halves again
    L_21 = A_21 L_11^-T                                             (T2) by pieces of its rows
    A_22 <- A_22 - L_21 L_21'                                       (T3) by pieces of its rows
    A_22 = L_22 L_22'                                               (T4) by halves again

(T2) and (T3) are three quarters of the work. The pieces depend on the size alone, and so does the
result, whatever the number of threads.
"""

from __future__ import annotations

from concurrent.futures import Executor
from itertools import pairwise

import numpy as np

from ordrec.linalg.lapack import from_python
from ordrec.runtime.parallel import loop_threads, worker_count

__all__ = ["factorise_in_threads"]

SMALLEST = 600  # rows that are left to LAPACK
PIECE = 1000  # rows of a piece, about
MOST_PIECES = 16


def factorise_in_threads(A: np.ndarray) -> bool:
    """Overwrite the upper triangle of a symmetric C-ordered matrix by its Cholesky factor.

    As `lapack.factorise`, which is faster for fewer than a thousand rows. The lower triangle is
    left as it is. Returns whether the matrix is positive definite.

    Examples
    --------
    >>> A = np.eye(1000) + 1.0
    >>> factorise_in_threads(A)
    True
    >>> A[0, :2].round(3).tolist()
    [1.414, 0.707]
    """
    with loop_threads(worker_count(None)) as threads:
        return _factorise(A, 0, A.shape[0], threads)


def _factorise(A: np.ndarray, first: int, last: int, threads: Executor) -> bool:
    """Factorise the block of some rows and columns."""
    n = A.shape[0]
    if last - first <= SMALLEST:
        return from_python("potrf", A, b"L", last - first, A[first:, first:], n) == 0
    middle = (first + last) // 2
    if not _factorise(A, first, middle, threads):  # (T1)
        return False
    pieces = min(max((last - middle) // PIECE, 2), MOST_PIECES)
    share = np.arange(pieces + 1) / pieces
    for work, shares in (_solve, share), (_subtract, np.sqrt(share)):  # (T2), (T3): a triangle
        edges = (middle + shares * (last - middle)).astype(np.int64).tolist()
        tasks = [threads.submit(work, A, first, middle, *edge) for edge in pairwise(edges)]
        for task in tasks:
            task.result()
    return _factorise(A, middle, last, threads)  # (T4)


# A C-ordered upper triangle is Fortran's lower one: entry (row, column) of L is A[column, row].


def _solve(A: np.ndarray, first: int, middle: int, low: int, high: int) -> None:
    """Rows low..high of L_21, (T2)."""
    n, one = A.shape[0], np.ones(1, dtype=A.dtype)
    size, known, rows = (high - low, middle - first), A[first:, first:], A[first:, low:]
    from_python("trsm", A, b"R", b"L", b"T", b"N", *size, one, known, n, rows, n)


def _subtract(A: np.ndarray, first: int, middle: int, low: int, high: int) -> None:
    """Rows low..high of A_22, up to the diagonal, (T3)."""
    n, width = A.shape[0], middle - first
    one, minus = np.ones(1, dtype=A.dtype), -np.ones(1, dtype=A.dtype)
    rows, above = A[first:, low:], A[first:, middle:]
    if low > middle:
        size, target = (high - low, low - middle, width), A[middle:, low:]
        from_python("gemm", A, b"N", b"T", *size, minus, rows, n, above, n, one, target, n)
    corner = A[low:, low:]
    from_python("syrk", A, b"L", b"N", high - low, width, minus, rows, n, one, corner, n)
