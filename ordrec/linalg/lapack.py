"""Cholesky factors and solves through the BLAS and LAPACK that scipy ships.

scipy exports their routines as C function pointers. Their addresses change with every
process, so they are passed as an argument (``ADDRESSES``) instead of being compiled in, which
would rule out numba's cache on disk.

The functions are for compiled code, and for threads: called from Python they release the
interpreter lock, which the wrappers in `scipy.linalg` hold. A factor is the upper triangle of a
C-ordered matrix, which is the same memory as a lower triangle L in Fortran's order; right-hand
sides are the rows of a C-ordered matrix.

The integers of LAPACK have 32 bits in most builds of scipy and 64 in some (from 1.18 on). They are
passed by address, so both read the same number from 64 bits whose upper half is zero, as long as
the lower half comes first in memory: on all little-endian machines.

`invert`, `inverse_diagonal`, `from_python` and `factorise_in_threads` are for Python alone, through
ctypes: there is nothing to compile.

Large matrices
--------------
The threads of BLAS spin while they wait for each other, at every step of every routine. On a
machine that does anything else, a factor by two of them takes three times as long as by one. The
threads of `factorise_in_threads` meet only a few times, and sleep meanwhile. With the matrix and
its factor in halves, (n/2, n/2) each:

    A_11 = L_11 L_11'                                               (T1) by halves again
    L_21 = A_21 L_11^-T                                             (T2) by pieces of its rows
    A_22 <- A_22 - L_21 L_21'                                       (T3) by pieces of its rows
    A_22 = L_22 L_22'                                               (T4) by halves again

(T2) and (T3) are three quarters of the work. The pieces depend on the size alone, and so does the
result, whatever the number of threads.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from concurrent.futures import Executor
from itertools import pairwise
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import config
from numba.core import cgutils, types
from numba.extending import get_cython_function_address, intrinsic
from scipy.linalg.lapack import get_lapack_funcs

from ordrec.runtime.compiling import compiled
from ordrec.runtime.parallel import loop_threads, worker_count

__all__ = [
    "ADDRESSES",
    "add_products",
    "factorise",
    "factorise_in_threads",
    "from_python",
    "integer_bits",
    "inverse_diagonal",
    "inverse_diagonal_factorised",
    "invert",
    "mirror_upper",
    "row_blocks",
    "solve_factorised",
    "solve_rows_triangular",
    "upper_block",
]

ROUTINES = ("potrf", "potrs", "trsv", "trtri", "trtrs", "potri", "trsm", "syrk", "gemm")
BLAS = ("trsv", "trsm", "syrk", "gemm")  # the others are LAPACK's
# Rows of ADDRESSES; its columns are the precisions, single and double.
POTRF, POTRS, TRSV, TRTRI, TRTRS = range(5)
GEMM = ROUTINES.index("gemm")
LOWER, NO, YES = np.uint8(76), np.uint8(78), np.uint8(84)  # "L", "N", "T"
LITTLE_ENDIAN = sys.byteorder == "little"
SMALLEST = 600  # rows that `factorise_in_threads` leaves to LAPACK
PIECE = 1000  # rows of a piece, about
MOST_PIECES = 16
ROWS_AT_ONCE = 512  # rows of a matrix that are copied at a time


def _address(name: str) -> int:
    """Where a routine begins, by its name with the letter of its precision."""
    module = "cython_blas" if name[1:] in BLAS else "cython_lapack"
    return get_cython_function_address(f"scipy.linalg.{module}", name)


def integer_bits() -> int:
    """Return whether the integers of scipy's LAPACK have 32 or 64 bits.

    Its version numbers are written over integers of 64 bits that are all ones.

    Examples
    --------
    >>> integer_bits() in (32, 64)
    True
    """
    version = np.full(3, -1, dtype=np.int64)
    places = [ctypes.c_void_p(version[k:].ctypes.data) for k in range(3)]
    ctypes.CFUNCTYPE(None)(_address("ilaver"))(*places)
    return 64 if (version >= 0).all() else 32


if not LITTLE_ENDIAN and integer_bits() != 32:
    raise ImportError(
        "scipy's LAPACK has integers of 64 bits, which ordrec supports on little-endian machines "
        "only: install a build of scipy with integers of 32 bits"
    )

ADDRESSES = np.array([[_address(f"{kind}{name}") for kind in "sd"] for name in ROUTINES])


INTEGER = types.int64 if LITTLE_ENDIAN else types.int32


def _call_by_address(typingctx: Any, address: Any, arguments: Any) -> Any:
    """Call the C function at an address with pointers to a tuple of arrays and numbers.

    Numbers lie on the stack: an array for each would take longer to compile than everything else
    here. Integers of more than a byte have 64 bits there, see above. Returns what the last
    argument, a number, is afterwards: LAPACK's ``info``.
    """

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        target, held = values
        pointers = []
        for position, kind in enumerate(arguments):
            value = builder.extract_value(held, position)
            if isinstance(kind, types.Array):
                data = context.make_array(kind)(context, builder, value=value).data
            else:
                wanted = kind if kind == types.uint8 else INTEGER
                number = context.cast(builder, value, kind, wanted)
                data = cgutils.alloca_once_value(builder, number)
            pointers.append(builder.bitcast(data, cgutils.voidptr_t))
        prototype = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t] * len(pointers))
        builder.call(builder.inttoptr(target, prototype.as_pointer()), pointers)
        return builder.load(data)

    return INTEGER(address, arguments), codegen


_call: Any = intrinsic(_call_by_address)  # numba has no types for it


def upper_block(K: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The upper triangle of K over some rows and columns; what lies below it is not written.

    Examples
    --------
    >>> K = np.arange(9.0).reshape(3, 3)
    >>> np.triu(upper_block(K, np.array([0, 2]))).tolist()
    [[0.0, 2.0], [0.0, 8.0]]
    """
    block = np.empty((rows.size, rows.size), dtype=K.dtype)
    _write_upper(K, rows, block)
    return block


@compiled
def _write_upper(K: np.ndarray, rows: np.ndarray, block: np.ndarray) -> None:
    """Write the upper triangle into the block."""
    for i in range(rows.size):
        for k in range(i, rows.size):
            block[i, k] = K[rows[i], rows[k]]


@compiled
def factorise(A: np.ndarray, addresses: np.ndarray) -> int:
    """Overwrite the upper triangle of a symmetric C-ordered matrix by its Cholesky factor.

    Returns 0, or the order of the first leading minor that is not positive.
    """
    # a C-ordered upper triangle is a Fortran-ordered lower one
    n = A.shape[0]
    routine = addresses[POTRF, A.itemsize // 8]
    return _call(routine, (LOWER, n, A, n, 0))


@compiled
def add_products(
    n: int,
    left: np.ndarray,
    right: np.ndarray,
    one: np.ndarray,
    out: np.ndarray,
    addresses: np.ndarray,
) -> None:
    """Add ``left[:n].T @ right[:n]``, which must be symmetric; ``one`` is an array of a one."""
    m = out.shape[0]
    routine = addresses[GEMM, out.itemsize // 8]
    _call(routine, (NO, YES, m, m, n, one, left, m, right, m, one, out, m))


@compiled
def solve_factorised(factor: np.ndarray, B: np.ndarray, addresses: np.ndarray) -> None:
    """Overwrite each row of B, (m, n), by the solution for it, given the factor."""
    n = factor.shape[0]
    m = B.shape[0]
    if m > 1:
        routine = addresses[POTRS, factor.itemsize // 8]
        _call(routine, (LOWER, n, m, factor, n, B, n, 0))
        return
    # one right-hand side: two triangular solves are several times faster for small n
    routine = addresses[TRSV, factor.itemsize // 8]
    _call(routine, (LOWER, NO, NO, n, factor, n, B, m))
    _call(routine, (LOWER, YES, NO, n, factor, n, B, m))


@compiled
def solve_rows_triangular(
    factor: np.ndarray, B: np.ndarray, transposed: bool, addresses: np.ndarray
) -> None:
    """Overwrite each row b of B, (m, n), by L^-1 b, or by L'^-1 b."""
    trans = YES if transposed else NO
    n = factor.shape[0]
    m = B.shape[0]
    routine = addresses[TRTRS, factor.itemsize // 8]
    _call(routine, (LOWER, trans, NO, n, m, factor, n, B, n, 0))


@compiled
def inverse_diagonal_factorised(factor: np.ndarray, addresses: np.ndarray) -> np.ndarray:
    """Diagonal of the inverse: sums of squares in the inverse of the factor, which is lost."""
    n = factor.shape[0]
    routine = addresses[TRTRI, factor.itemsize // 8]
    _call(routine, (LOWER, NO, n, factor, n, 0))
    result = np.zeros(factor.shape[0])
    for j in range(factor.shape[0]):
        for i in range(j, factor.shape[0]):
            result[j] += factor[j, i] * factor[j, i]
    return result


def invert(A: np.ndarray) -> bool:
    """Overwrite a symmetric C-ordered matrix by its inverse.

    Returns whether it is positive definite; if not, what is left of it is of no use.

    Examples
    --------
    >>> A = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> invert(A)
    True
    >>> (3 * A).round(9).tolist()
    [[2.0, -1.0], [-1.0, 2.0]]
    """
    n = A.shape[0]
    if from_python("potrf", A, b"L", n, A, n) or from_python("potri", A, b"L", n, A, n):
        return False
    mirror_upper(A)
    return True


def row_blocks(n_rows: int) -> Iterator[slice]:
    """Slices of rows, so that no second matrix of the same size is needed."""
    for first in range(0, n_rows, ROWS_AT_ONCE):
        yield slice(first, min(first + ROWS_AT_ONCE, n_rows))


def mirror_upper(A: np.ndarray) -> None:
    """Copy the upper triangle to the lower one, some rows at a time.

    Examples
    --------
    >>> A = np.array([[1.0, 2.0], [0.0, 3.0]])
    >>> mirror_upper(A)
    >>> A.tolist()
    [[1.0, 2.0], [2.0, 3.0]]
    """
    for rows in row_blocks(A.shape[0]):
        A[rows.stop :, rows] = A[rows, rows.stop :].T
        corner = A[rows, rows]
        np.copyto(corner, corner.T, where=np.tri(corner.shape[0], k=-1, dtype=np.bool_))


def inverse_diagonal(A: np.ndarray) -> np.ndarray | None:
    """Diagonal of the inverse of a symmetric C-ordered matrix, which is lost.

    None if it is not positive definite.

    Examples
    --------
    >>> inverse_diagonal(np.array([[2.0, 1.0], [1.0, 2.0]])).round(3).tolist()
    [0.667, 0.667]
    """
    n = A.shape[0]
    if from_python("potrf", A, b"L", n, A, n):
        return None
    from_python("trtri", A, b"L", b"N", n, A, n)
    diagonal = np.empty(n)
    for rows in row_blocks(n):  # a triangle of A as a whole would be a copy of it
        factor = np.triu(A[rows, rows.start :])
        diagonal[rows] = np.einsum("ij,ij->i", factor, factor, dtype=np.float64)
    return diagonal


def from_python(name: str, A: np.ndarray, *arguments: bytes | int | np.ndarray) -> int:
    """Call LAPACK for the precision of A, with pointers to all arguments; returns its ``info``.

    Routines of BLAS have none: they ignore the last pointer, and zero is returned. Of a slice of a
    matrix its first entry is what counts. The interpreter lock is released.
    """
    address = ADDRESSES[ROUTINES.index(name), A.itemsize // 8]
    integer = ctypes.c_int64 if LITTLE_ENDIAN else ctypes.c_int32
    pointers: list[Any] = []
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            pointers.append(ctypes.c_void_p(argument.ctypes.data))
        elif isinstance(argument, bytes):
            pointers.append(ctypes.c_char_p(argument))
        else:
            pointers.append(ctypes.byref(integer(argument)))
    info = integer(0)
    ctypes.CFUNCTYPE(None)(int(address))(*pointers, ctypes.byref(info))
    return info.value


def factorise_in_threads(A: np.ndarray) -> bool:
    """Overwrite the upper triangle of a symmetric C-ordered matrix by its Cholesky factor.

    As `factorise`, which is faster for fewer than a thousand rows. The lower triangle is
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
        return _factorise_block(A, 0, A.shape[0], threads)


def _factorise_block(A: np.ndarray, first: int, last: int, threads: Executor) -> bool:
    """Factorise the block of some rows and columns."""
    n = A.shape[0]
    if last - first <= SMALLEST:
        return from_python("potrf", A, b"L", last - first, A[first:, first:], n) == 0
    middle = (first + last) // 2
    if not _factorise_block(A, first, middle, threads):  # (T1)
        return False
    pieces = min(max((last - middle) // PIECE, 2), MOST_PIECES)
    share = np.arange(pieces + 1) / pieces
    for work, shares in (_solve, share), (_subtract, np.sqrt(share)):  # (T2), (T3): a triangle
        edges = (middle + shares * (last - middle)).astype(np.int64).tolist()
        tasks = [threads.submit(work, A, first, middle, *edge) for edge in pairwise(edges)]
        for task in tasks:
            task.result()
    return _factorise_block(A, middle, last, threads)  # (T4)


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


if config.DISABLE_JIT:  # type: ignore[attr-defined]

    def factorise(A: np.ndarray, addresses: np.ndarray) -> int:
        """As above, through scipy: without compilation there are no pointers to call."""
        (potrf,) = get_lapack_funcs(("potrf",), (A,))
        factor, info = potrf(A.T, lower=1)
        A.T[:] = factor
        return info

    def add_products(
        n: int,
        left: np.ndarray,
        right: np.ndarray,
        one: np.ndarray,
        out: np.ndarray,
        addresses: np.ndarray,
    ) -> None:
        """As above, through numpy."""
        out += left[:n].T @ right[:n]

    def solve_factorised(factor: np.ndarray, B: np.ndarray, addresses: np.ndarray) -> None:
        """As above, through scipy."""
        (potrs,) = get_lapack_funcs(("potrs",), (factor,))
        B.T[:] = potrs(factor.T, B.T, lower=1)[0]

    def solve_rows_triangular(
        factor: np.ndarray, B: np.ndarray, transposed: bool, addresses: np.ndarray
    ) -> None:
        """As above, through scipy."""
        (trtrs,) = get_lapack_funcs(("trtrs",), (factor,))
        B.T[:] = trtrs(factor.T, B.T, lower=1, trans=int(transposed))[0]

    def inverse_diagonal_factorised(factor: np.ndarray, addresses: np.ndarray) -> np.ndarray:
        """As above, through scipy."""
        (trtri,) = get_lapack_funcs(("trtri",), (factor,))
        lower = np.tril(trtri(factor.T, lower=1)[0]).astype(np.float64)
        return np.einsum("ij,ij->j", lower, lower)
