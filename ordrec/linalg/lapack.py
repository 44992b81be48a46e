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

`invert`, `inverse_diagonal` and `from_python` are for Python alone, through ctypes: there is
nothing to compile.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import config
from numba.core import cgutils, types
from numba.extending import get_cython_function_address, intrinsic
from scipy.linalg.lapack import get_lapack_funcs

from ordrec.runtime.compiling import compiled

__all__ = [
    "ADDRESSES",
    "add_products",
    "factorise",
    "from_python",
    "integer_bits",
    "inverse_diagonal",
    "inverse_diagonal_factorised",
    "invert",
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


@intrinsic
def _call(typingctx: Any, address: Any, arguments: Any) -> Any:
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
    return _call(routine, (LOWER, n, A, n, 0))  # type: ignore[call-arg]


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
    _call(routine, (NO, YES, m, m, n, one, left, m, right, m, one, out, m))  # type: ignore[call-arg]


@compiled
def solve_factorised(factor: np.ndarray, B: np.ndarray, addresses: np.ndarray) -> None:
    """Overwrite each row of B, (m, n), by the solution for it, given the factor."""
    n = factor.shape[0]
    m = B.shape[0]
    if m > 1:
        routine = addresses[POTRS, factor.itemsize // 8]
        _call(routine, (LOWER, n, m, factor, n, B, n, 0))  # type: ignore[call-arg]
        return
    # one right-hand side: two triangular solves are several times faster for small n
    routine = addresses[TRSV, factor.itemsize // 8]
    _call(routine, (LOWER, NO, NO, n, factor, n, B, m))  # type: ignore[call-arg]
    _call(routine, (LOWER, YES, NO, n, factor, n, B, m))  # type: ignore[call-arg]


@compiled
def solve_rows_triangular(
    factor: np.ndarray, B: np.ndarray, transposed: bool, addresses: np.ndarray
) -> None:
    """Overwrite each row b of B, (m, n), by L^-1 b, or by L'^-1 b."""
    trans = YES if transposed else NO
    n = factor.shape[0]
    m = B.shape[0]
    routine = addresses[TRTRS, factor.itemsize // 8]
    _call(routine, (LOWER, trans, NO, n, m, factor, n, B, n, 0))  # type: ignore[call-arg]


@compiled
def inverse_diagonal_factorised(factor: np.ndarray, addresses: np.ndarray) -> np.ndarray:
    """Diagonal of the inverse: sums of squares in the inverse of the factor, which is lost."""
    n = factor.shape[0]
    routine = addresses[TRTRI, factor.itemsize // 8]
    _call(routine, (LOWER, NO, n, factor, n, 0))  # type: ignore[call-arg]
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
    np.copyto(A, A.T, where=np.tri(n, k=-1, dtype=np.bool_))
    return True


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
    factor = np.triu(A)
    return np.einsum("ij,ij->i", factor, factor, dtype=np.float64)


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


if config.DISABLE_JIT:  # type: ignore[attr-defined]

    def factorise(A: np.ndarray, addresses: np.ndarray) -> int:  # type: ignore[misc]
        """As above, through scipy: without compilation there are no pointers to call."""
        (potrf,) = get_lapack_funcs(("potrf",), (A,))
        factor, info = potrf(A.T, lower=1)
        A.T[:] = factor
        return info

    def add_products(  # type: ignore[misc]
        n: int,
        left: np.ndarray,
        right: np.ndarray,
        one: np.ndarray,
        out: np.ndarray,
        addresses: np.ndarray,
    ) -> None:
        """As above, through numpy."""
        out += left[:n].T @ right[:n]

    def solve_factorised(  # type: ignore[misc]
        factor: np.ndarray, B: np.ndarray, addresses: np.ndarray
    ) -> None:
        """As above, through scipy."""
        (potrs,) = get_lapack_funcs(("potrs",), (factor,))
        B.T[:] = potrs(factor.T, B.T, lower=1)[0]

    def solve_rows_triangular(  # type: ignore[misc]
        factor: np.ndarray, B: np.ndarray, transposed: bool, addresses: np.ndarray
    ) -> None:
        """As above, through scipy."""
        (trtrs,) = get_lapack_funcs(("trtrs",), (factor,))
        B.T[:] = trtrs(factor.T, B.T, lower=1, trans=int(transposed))[0]

    def inverse_diagonal_factorised(  # type: ignore[misc]
        factor: np.ndarray, addresses: np.ndarray
    ) -> np.ndarray:
        """As above, through scipy."""
        (trtri,) = get_lapack_funcs(("trtri",), (factor,))
        lower = np.tril(trtri(factor.T, lower=1)[0]).astype(np.float64)
        return np.einsum("ij,ij->j", lower, lower)
