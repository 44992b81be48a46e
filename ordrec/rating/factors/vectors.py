"""Loops in single precision that the compiler makes vectors of, for compiled code to call."""

from __future__ import annotations

import numpy as np

from ordrec.runtime.compiling import called

__all__ = ["REORDERED", "falling_exponential", "negative_inverse"]

# Sums may be reordered, so that they are done in vectors; there is no NaN or infinity to lose.
REORDERED = {"reassoc", "contract", "nsz"}
fast_inner = called(fastmath=REORDERED)

ONE, HALF, THIRD, QUARTER, FIFTH, SIXTH = (np.float32(1.0 / n) for n in range(1, 7))
PER_LN2 = np.float32(1.44269504)
LN2_HIGH, LN2_LOW = np.float32(0.693359375), np.float32(-2.1219444e-4)  # ln(2) in two parts
FARTHEST = np.float32(80.0)  # beyond, exp(-x) is as good as 0, and 2^-n would be denormal


@fast_inner
def falling_exponential(x: np.float32) -> np.float32:
    """exp(-x) for x from 0 on, to six digits; a call of the library's would be no vector operation.

    ``exp(-x) = 2^-n exp(-r)`` with n whole and ``|r|`` at most ``ln(2) / 2``.
    """
    x = x if x < FARTHEST else FARTHEST
    n = np.int32(x * PER_LN2 + HALF)
    r = x - np.float32(n) * LN2_HIGH - np.float32(n) * LN2_LOW
    rest = ONE - r * FIFTH * (ONE - r * SIXTH)
    rest = ONE - r * (ONE - r * HALF * (ONE - r * THIRD * (ONE - r * QUARTER * rest)))
    power = np.int32((np.int32(127) - n) << np.int32(23)).view(np.float32)  # the bits of 2^-n
    return rest * power


@fast_inner
def negative_inverse(A: np.ndarray, column: np.ndarray) -> None:
    """Overwrite the lower triangle of a positive definite matrix by that of minus its inverse.

    By sweeping out one row and column after the other (Beaton 1964), which has long inner loops
    and no square roots: half of LAPACK's time at 40 rows. ``column`` is room for one.
    """
    n = A.shape[0]
    for k in range(n):
        inverse = ONE / A[k, k]
        for x in range(k):
            column[x] = A[k, x]
        for x in range(k + 1, n):
            column[x] = A[x, k]
        column[k] = np.float32(0.0)
        for x in range(n):
            by = column[x] * inverse
            for y in range(x + 1):
                A[x, y] -= by * column[y]
        for x in range(k):
            A[k, x] = column[x] * inverse
        for x in range(k + 1, n):
            A[x, k] = column[x] * inverse
        A[k, k] = -inverse
