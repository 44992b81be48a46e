"""Cholesky factors and triangular solves that let other threads run meanwhile.

The wrappers in `scipy.linalg` hold Python's lock during a call; the routines themselves, which
scipy exports for compiled code, are called here without it.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numba.extending import get_cython_function_address

__all__ = ["cholesky_in_place", "solve_cholesky", "solve_triangle"]

LETTER = {np.dtype(np.float32): "s", np.dtype(np.float64): "d"}


def _routine(name: str, n_arguments: int) -> Any:
    address = get_cython_function_address("scipy.linalg.cython_lapack", name)
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * n_arguments)(address)


POTRF = {dtype: _routine(f"{letter}potrf", 5) for dtype, letter in LETTER.items()}
POTRS = {dtype: _routine(f"{letter}potrs", 8) for dtype, letter in LETTER.items()}
TRTRS = {dtype: _routine(f"{letter}trtrs", 10) for dtype, letter in LETTER.items()}


def cholesky_in_place(A: np.ndarray) -> int:
    """Lower factor of a Fortran-ordered matrix, from its lower triangle; 0, or where it failed."""
    n, info = ctypes.c_int(len(A)), ctypes.c_int()
    _call(POTRF[A.dtype], b"L", n, A, n, info)
    return info.value


def solve_cholesky(factor: np.ndarray, B: np.ndarray) -> np.ndarray:
    """(L L')^{-1} B."""
    X = np.array(B, dtype=factor.dtype, order="F")
    n, columns, info = ctypes.c_int(len(X)), ctypes.c_int(X.shape[1]), ctypes.c_int()
    _call(POTRS[factor.dtype], b"L", n, columns, factor, n, X, n, info)
    return X


def solve_triangle(factor: np.ndarray, B: np.ndarray, *, transposed: bool = False) -> np.ndarray:
    """L^{-1} B, or L'^{-1} B."""
    X = np.array(B, dtype=factor.dtype, order="F")
    n, columns, info = ctypes.c_int(len(X)), ctypes.c_int(X.shape[1]), ctypes.c_int()
    kind = b"T" if transposed else b"N"
    _call(TRTRS[factor.dtype], b"L", kind, b"N", n, columns, factor, n, X, n, info)
    return X


def _call(routine: Any, *arguments: Any) -> None:
    """Call by reference, as Fortran does; arrays must be Fortran-ordered."""
    routine(*[_address(argument) for argument in arguments])


def _address(argument: Any) -> Any:
    if isinstance(argument, np.ndarray):
        assert argument.flags.f_contiguous
        return argument.ctypes.data
    return argument if isinstance(argument, bytes) else ctypes.addressof(argument)
