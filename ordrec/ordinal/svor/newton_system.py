"""The Newton system of the interior-point method: a factor for M, one of T x T.

With

    g_p = 1 / (z_p / alpha_p + w_p / (cap_p - alpha_p)),  q_i = sum of g_p over i,
    share_p = g_p / q_i

eliminating the pairs from the linearised conditions (see `interior`) leaves
``M = K + diag(1/q)`` for beta and, after one solve for each threshold, ``H db = rhs`` for b;
the ordering constraints of EXC touch H only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ordrec.ordinal.svor.compiled import compiled
from ordrec.ordinal.svor.gram import factorise_shifted, room_for_factor, solve_shifted
from ordrec.ordinal.svor.pairs import Pairs

__all__ = [
    "Point",
    "System",
    "Targets",
    "add_sample",
    "direction",
    "factorise_small",
    "prepare",
    "room_for_system",
    "solve_small",
]

NO_PAIRS = 1e-30  # the q of a sample that pays nowhere: 1/q keeps its beta at zero


class Point(NamedTuple):
    """The variables, or a step of all of them."""

    alpha: np.ndarray
    z: np.ndarray
    w: np.ndarray
    b: np.ndarray
    mu: np.ndarray
    v: np.ndarray


class Targets(NamedTuple):
    """What the linearised products alpha z, (cap - alpha) w and mu v must change by."""

    z: np.ndarray
    w: np.ndarray
    v: np.ndarray


class System(NamedTuple):
    """What one factorisation provides to all right-hand sides of an iteration."""

    factor: np.ndarray  # Cholesky factor for solves with M
    rows: np.ndarray  # (n,) all of them
    shift: np.ndarray  # (n,) 1 / q
    X: np.ndarray  # (T, n) M^-1 share, a row for each threshold
    H: np.ndarray  # (T, T) Cholesky factor of the system for b
    g: np.ndarray  # (p,)
    share: np.ndarray  # (p,)
    q: np.ndarray  # (n,)
    per_alpha: np.ndarray  # (p,) 1 / alpha
    per_room: np.ndarray  # (p,) 1 / (cap - alpha)


@compiled
def room_for_system(K: np.ndarray, pairs: Pairs, n_thresholds: int) -> System:
    """An empty system of the right shapes, in the precision of K."""
    n, size = K.shape[0], pairs.cap.size
    return System(
        room_for_factor(K, n),
        np.arange(n),
        np.empty(n),
        np.empty((n_thresholds, n), dtype=K.dtype),
        np.empty((n_thresholds, n_thresholds)),
        np.empty(size),
        np.empty(size),
        np.empty(n),
        np.empty(size),
        np.empty(size),
    )


@compiled
def prepare(
    K: np.ndarray,
    pairs: Pairs,
    point: Point,
    ordered: bool,
    ridge: float,
    system: System,
    lapack: np.ndarray,
) -> bool:
    """Fill the system at this point; False if no ridge makes it positive definite."""
    n = K.shape[0]
    for p in range(pairs.cap.size):  # loops over all pairs at once become vector instructions
        system.per_alpha[p] = 1.0 / point.alpha[p]
        system.per_room[p] = 1.0 / (pairs.cap[p] - point.alpha[p])
        curvature = point.z[p] * system.per_alpha[p] + point.w[p] * system.per_room[p]
        system.g[p] = 1.0 / curvature
    for i in range(n):
        q = NO_PAIRS
        for p in range(pairs.start[i], pairs.start[i + 1]):
            q += system.g[p]
        system.q[i] = q
        for p in range(pairs.start[i], pairs.start[i + 1]):
            system.share[p] = system.g[p] / q
        system.shift[i] = 1.0 / q
    if not factorise_shifted(K, system.rows, system.shift, ridge, system.factor, lapack):
        return False

    system.X[:] = 0.0
    for i in range(n):
        for p in range(pairs.start[i], pairs.start[i + 1]):
            system.X[pairs.threshold[p], i] = system.share[p]
    solve_shifted(K, system.rows, system.shift, system.factor, system.X, lapack)

    H = system.H
    H[:] = 0.0
    row = np.empty(point.b.size)
    for i in range(n):
        add_sample(pairs, i, system.q[i], system.share, system.X, i, row, H)
    if ordered:
        for j in range(1, point.b.size):
            weight = point.mu[j] / point.v[j]
            H[j, j] += weight
            H[j - 1, j - 1] += weight
            H[j, j - 1] -= weight
    return factorise_small(H)


@compiled
def add_sample(
    pairs: Pairs,
    i: int,
    q: float,
    share: np.ndarray,
    X: np.ndarray,
    column: int,
    row: np.ndarray,
    H: np.ndarray,
) -> None:
    """Add what sample i, a column of X, contributes to H = diag(sum_i g) - g' share + share' X.

    With g = q share this is q diag(share) + share (X - q share)'; the lower triangle is enough.
    """
    first, end = pairs.start[i], pairs.start[i + 1]
    for k in range(row.size):
        row[k] = X[k, column]
    for p in range(first, end):
        row[pairs.threshold[p]] -= q * share[p]
    for p in range(first, end):
        j = pairs.threshold[p]
        for k in range(j + 1):
            H[j, k] += share[p] * row[k]
        H[j, j] += q * share[p]


@compiled
def direction(
    K: np.ndarray,
    pairs: Pairs,
    point: Point,
    residual: np.ndarray,
    balance: np.ndarray,
    targets: Targets,
    system: System,
    ordered: bool,
    step: Point,
    lapack: np.ndarray,
) -> None:
    """Solve the Newton system for one set of targets."""
    n, T = system.q.size, point.b.size
    h, force = np.empty_like(residual), np.empty_like(residual)
    for p in range(h.size):
        h[p] = targets.z[p] * system.per_alpha[p] - targets.w[p] * system.per_room[p]
        h[p] -= residual[p]
        force[p] = pairs.sign[p] * system.g[p] * h[p]
    pull = np.zeros(n)
    x0 = np.empty((1, n), dtype=system.factor.dtype)
    for i in range(n):
        for p in range(pairs.start[i], pairs.start[i + 1]):
            pull[i] += force[p]
        x0[0, i] = pull[i] / system.q[i]
    solve_shifted(K, system.rows, system.shift, system.factor, x0, lapack)
    rhs = -balance
    for i in range(n):
        excess = pull[i] - x0[0, i]
        for p in range(pairs.start[i], pairs.start[i + 1]):
            rhs[pairs.threshold[p]] += system.share[p] * excess - force[p]
    if ordered:
        for j in range(1, T):
            apart = point.b[j] - point.b[j - 1] - point.v[j]
            push = (targets.v[j] - point.mu[j] * apart) / point.v[j]
            rhs[j] += push
            rhs[j - 1] -= push
    solve_small(system.H, rhs, step.b)

    for i in range(n):
        dbeta = float(x0[0, i])
        for j in range(T):
            dbeta += system.X[j, i] * step.b[j]
        # this form of df keeps sum(sign dalpha) = dbeta exact whatever the error of the solve
        df = (pull[i] - dbeta) / system.q[i]
        for p in range(pairs.start[i], pairs.start[i + 1]):
            df += system.share[p] * step.b[pairs.threshold[p]]
        for p in range(pairs.start[i], pairs.start[i + 1]):
            margin = pairs.sign[p] * (step.b[pairs.threshold[p]] - df)
            step.alpha[p] = system.g[p] * (h[p] + margin)
    for p in range(h.size):
        step.z[p] = (targets.z[p] - point.z[p] * step.alpha[p]) * system.per_alpha[p]
        step.w[p] = (targets.w[p] + point.w[p] * step.alpha[p]) * system.per_room[p]
    if ordered:
        for j in range(1, T):
            apart = point.b[j] - point.b[j - 1] - point.v[j]
            step.v[j] = step.b[j] - step.b[j - 1] + apart
            step.mu[j] = (targets.v[j] - point.mu[j] * step.v[j]) / point.v[j]


@compiled
def factorise_small(A: np.ndarray) -> bool:
    """Cholesky factor in the lower triangle of a T x T matrix; tiny pivots are lifted."""
    n = A.shape[0]
    floor = 1e-14 * max(np.max(np.diag(A)), 1e-300)
    for k in range(n):
        for j in range(k):
            A[k, k] -= A[k, j] * A[k, j]
        if not np.isfinite(A[k, k]):
            return False
        A[k, k] = np.sqrt(max(A[k, k], floor))
        for i in range(k + 1, n):
            for j in range(k):
                A[i, k] -= A[i, j] * A[k, j]
            A[i, k] /= A[k, k]
    return True


@compiled
def solve_small(L: np.ndarray, rhs: np.ndarray, x: np.ndarray) -> None:
    """Solve with the lower factor, then with its transpose."""
    n = L.shape[0]
    for i in range(n):
        x[i] = rhs[i]
        for j in range(i):
            x[i] -= L[i, j] * x[j]
        x[i] /= L[i, i]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            x[i] -= L[j, i] * x[j]
        x[i] /= L[i, i]
