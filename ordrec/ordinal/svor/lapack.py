"""Cholesky factors inside compiled code, through the LAPACK that scipy ships.

scipy exports its LAPACK routines as C function pointers. Their addresses change with every
process, so they travel as an argument (``ADDRESSES``) instead of being compiled in, which
would forbid numba's cache on disk.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg.lapack
from llvmlite import ir
from numba import config, njit
from numba.core import cgutils, types
from numba.extending import get_cython_function_address, intrinsic

__all__ = ["ADDRESSES", "factorise", "solve_factorised"]

_ROUTINES = ("spotrf", "dpotrf", "spotrs", "dpotrs")
_LOWER = np.frombuffer(b"L", dtype=np.uint8)

ADDRESSES = np.array(
    [get_cython_function_address("scipy.linalg.cython_lapack", name) for name in _ROUTINES],
    dtype=np.int64,
)


@intrinsic
def _call(typingctx, address, arguments):  # type: ignore[no-untyped-def]
    """Call the C function at an address with a tuple of pointers, given as integers."""

    def codegen(context, builder, signature, values):  # type: ignore[no-untyped-def]
        target, pointers = values
        byte = cgutils.voidptr_t
        kind = ir.FunctionType(ir.VoidType(), [byte] * len(arguments))
        function = builder.inttoptr(target, kind.as_pointer())
        unpacked = cgutils.unpack_tuple(builder, pointers)
        builder.call(function, [builder.inttoptr(pointer, byte) for pointer in unpacked])
        return context.get_dummy_value()

    return types.void(address, arguments), codegen


@njit(cache=True, nogil=True)
def factorise(A: np.ndarray, addresses: np.ndarray) -> int:
    """Overwrite the upper triangle of a symmetric C-ordered matrix by its Cholesky factor.

    Returns 0, or the order of the first leading minor that is not positive.
    """
    # a C-ordered upper triangle is a Fortran-ordered lower one, hence uplo "L"
    n = np.full(1, A.shape[0], dtype=np.int32)
    info = np.zeros(1, dtype=np.int32)
    routine = addresses[0] if A.itemsize == 4 else addresses[1]
    lower = np.full(1, 76, dtype=np.uint8)
    _call(
        routine,
        (lower.ctypes.data, n.ctypes.data, A.ctypes.data, n.ctypes.data, info.ctypes.data),
    )
    return info[0]


@njit(cache=True, nogil=True)
def solve_factorised(factor: np.ndarray, B: np.ndarray, addresses: np.ndarray) -> None:
    """Overwrite each row of B, (m, n), by the solution for it, given the factor."""
    n = np.full(1, factor.shape[0], dtype=np.int32)
    m = np.full(1, B.shape[0], dtype=np.int32)
    info = np.zeros(1, dtype=np.int32)
    routine = addresses[2] if factor.itemsize == 4 else addresses[3]
    lower = np.full(1, 76, dtype=np.uint8)
    _call(
        routine,
        (
            lower.ctypes.data,
            n.ctypes.data,
            m.ctypes.data,
            factor.ctypes.data,
            n.ctypes.data,
            B.ctypes.data,
            n.ctypes.data,
            info.ctypes.data,
        ),
    )
