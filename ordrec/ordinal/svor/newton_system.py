"""The Newton system of the interior-point method, reduced to one n x n and one T x T matrix.

A step (dalpha, dz, dw, db, dmu, dv) is asked to remove ``residual`` (I1) and ``balance`` (I2) of
`interior`, to restore (I3), and to change the products of (I4) by given targets t^z, t^w, t^v.

Equations here
--------------
For a pair p = (i, j), with room_p = cap_p - alpha_p; the sums run over the pairs of sample i:

    g_p = 1 / (z_p / alpha_p + w_p / room_p)                                        (N1)
    q_i = sum_p g_p,   share_p = g_p / q_i                                          (N2)
    h_p = t^z_p / alpha_p - t^w_p / room_p - residual_p                             (N3)
    dalpha_p = g_p (h_p + sign_p (db_j - df_i))                                     (N4)
    dz_p = (t^z_p - z_p dalpha_p) / alpha_p,  dw_p = (t^w_p + w_p dalpha_p) / room_p   (N5)

(N4) summed over the pairs of a sample, with df = K dbeta and S_ij = share_p, is a system for beta:

    pull_i = sum_p sign_p g_p h_p                                                   (N6)
    df_i = (pull_i - dbeta_i) / q_i + sum_p share_p db_j                            (N7)
    M dbeta = pull / q + S db,  M = K + diag(1 / q)                                 (N8)
    dbeta = x0 + X db,  x0 = M^-1 (pull / q),  X = M^-1 S                           (N9)

and summed over the pairs of a threshold a system for b, the lower triangle of H being enough:

    H = diag(sum_i g) - g' share + share' X                                         (N10)
    H db = -balance + sum_p (share_p (pull_i - x0_i) - sign_p g_p h_p)              (N11)

The ordering constraints of EXC touch nothing but H and its right-hand side:

    apart_j = b_j - b_{j-1} - v_j,  dv_j = db_j - db_{j-1} + apart_j                (N12)
    dmu_j = (t^v_j - mu_j dv_j) / v_j                                               (N13)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ordrec.linalg.small import factorise_small, solve_small
from ordrec.ordinal.svor.compiled import compiled
from ordrec.ordinal.svor.gram import Gram, factorise_shifted, room_for_factor, solve_shifted
from ordrec.ordinal.svor.pairs import Pairs

__all__ = [
    "Point",
    "System",
    "Targets",
    "add_sample",
    "direction",
    "least_pivot",
    "prepare",
    "room_for_system",
]

NO_PAIRS = 1e-30  # the q of a sample that pays nowhere: 1/q keeps its beta at zero
LEAST_PIVOT = 1e-14  # of the largest diagonal entry of H: smaller pivots are raised to it


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
    rows: np.ndarray  # (n,) the numbers of all rows
    shift: np.ndarray  # (n,) 1 / q
    X: np.ndarray  # (T, n) the X of (N9), one row per threshold
    H: np.ndarray  # (T, T) Cholesky factor of the H of (N10)
    g: np.ndarray  # (p,) (N1)
    share: np.ndarray  # (p,) (N2)
    q: np.ndarray  # (n,) (N2)
    per_alpha: np.ndarray  # (p,) 1 / alpha
    per_room: np.ndarray  # (p,) 1 / (cap - alpha)
    lapack: np.ndarray  # addresses of LAPACK's routines


@compiled
def room_for_system(K: Gram, pairs: Pairs, n_thresholds: int, lapack: np.ndarray) -> System:
    """An empty system of the right shapes, in the precision of K."""
    n, size = K.values.shape[0], pairs.cap.size
    return System(
        room_for_factor(K, n),
        np.arange(n),
        np.empty(n),
        np.empty((n_thresholds, n), dtype=K.values.dtype),
        np.empty((n_thresholds, n_thresholds)),
        np.empty(size),
        np.empty(size),
        np.empty(n),
        np.empty(size),
        np.empty(size),
        lapack,
    )


@compiled
def prepare(
    K: Gram, pairs: Pairs, point: Point, ordered: bool, ridge: float, system: System
) -> bool:
    """Fill the system at this point; False if no ridge makes it positive definite."""
    _set_weights(pairs, point, system)
    lapack = system.lapack
    if not factorise_shifted(K, system.rows, system.shift, ridge, system.factor, lapack):
        return False

    n = system.q.size
    system.X[:] = 0.0
    for i in range(n):
        for p in range(pairs.start[i], pairs.start[i + 1]):
            system.X[pairs.threshold[p], i] = system.share[p]
    solve_shifted(K, system.rows, system.shift, system.factor, system.X, lapack)  # (N9)

    H = system.H
    H[:] = 0.0
    row = np.empty(point.b.size)
    for i in range(n):
        add_sample(pairs, i, system.q[i], system.share, system.X, i, row, H)
    if ordered:
        for j in range(1, point.b.size):  # (N13) with (N12), the part in db
            weight = point.mu[j] / point.v[j]
            H[j, j] += weight
            H[j - 1, j - 1] += weight
            H[j, j - 1] -= weight
    return factorise_small(H, least_pivot(H))


@compiled
def _set_weights(pairs: Pairs, point: Point, system: System) -> None:
    """g, q, share and 1/q at a point, (N1) and (N2)."""
    for p in range(pairs.cap.size):  # loops over all pairs at once become vector instructions
        system.per_alpha[p] = 1.0 / point.alpha[p]
        system.per_room[p] = 1.0 / (pairs.cap[p] - point.alpha[p])
        curvature = point.z[p] * system.per_alpha[p] + point.w[p] * system.per_room[p]
        system.g[p] = 1.0 / curvature  # (N1)
    for i in range(system.q.size):
        q = NO_PAIRS
        for p in range(pairs.start[i], pairs.start[i + 1]):
            q += system.g[p]
        system.q[i] = q
        for p in range(pairs.start[i], pairs.start[i + 1]):
            system.share[p] = system.g[p] / q  # (N2)
        system.shift[i] = 1.0 / q


@compiled
def least_pivot(H: np.ndarray) -> float:
    """The value to which smaller squared pivots of H are raised."""
    return LEAST_PIVOT * max(np.max(np.diag(H)), 1e-300)


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
    """Add to H what sample i, a column of X, contributes to (N10).

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
    K: Gram,
    pairs: Pairs,
    point: Point,
    residual: np.ndarray,
    balance: np.ndarray,
    targets: Targets,
    system: System,
    ordered: bool,
    step: Point,
) -> None:
    """Solve the Newton system for one set of targets; the solution is written into ``step``."""
    n = system.q.size
    h, force = np.empty_like(residual), np.empty_like(residual)
    for p in range(h.size):
        h[p] = targets.z[p] * system.per_alpha[p] - targets.w[p] * system.per_room[p]
        h[p] -= residual[p]  # (N3)
        force[p] = pairs.sign[p] * system.g[p] * h[p]
    pull = np.zeros(n)
    x0 = np.empty((1, n), dtype=system.factor.dtype)
    for i in range(n):
        for p in range(pairs.start[i], pairs.start[i + 1]):
            pull[i] += force[p]  # (N6)
        x0[0, i] = pull[i] / system.q[i]
    solve_shifted(K, system.rows, system.shift, system.factor, x0, system.lapack)  # (N9)
    rhs = -balance
    for i in range(n):
        excess = pull[i] - x0[0, i]
        for p in range(pairs.start[i], pairs.start[i + 1]):
            rhs[pairs.threshold[p]] += system.share[p] * excess - force[p]  # (N11)
    if ordered:
        for j in range(1, point.b.size):  # (N13) with (N12), the part without db
            apart = point.b[j] - point.b[j - 1] - point.v[j]
            push = (targets.v[j] - point.mu[j] * apart) / point.v[j]
            rhs[j] += push
            rhs[j - 1] -= push
    solve_small(system.H, rhs, step.b)
    _substitute_back(pairs, point, targets, system, ordered, pull, x0[0], h, step)


@compiled
def _substitute_back(
    pairs: Pairs,
    point: Point,
    targets: Targets,
    system: System,
    ordered: bool,
    pull: np.ndarray,
    x0: np.ndarray,
    h: np.ndarray,
    step: Point,
) -> None:
    """The eliminated parts of a step, given its db."""
    T = point.b.size
    for i in range(system.q.size):
        dbeta = float(x0[i])
        for j in range(T):
            dbeta += system.X[j, i] * step.b[j]  # (N9)
        # (N7) keeps sum(sign dalpha) = dbeta exact whatever the error of the solve
        df = (pull[i] - dbeta) / system.q[i]
        for p in range(pairs.start[i], pairs.start[i + 1]):
            df += system.share[p] * step.b[pairs.threshold[p]]
        for p in range(pairs.start[i], pairs.start[i + 1]):
            margin = pairs.sign[p] * (step.b[pairs.threshold[p]] - df)
            step.alpha[p] = system.g[p] * (h[p] + margin)  # (N4)
    for p in range(h.size):
        step.z[p] = (targets.z[p] - point.z[p] * step.alpha[p]) * system.per_alpha[p]  # (N5)
        step.w[p] = (targets.w[p] + point.w[p] * step.alpha[p]) * system.per_room[p]
    if ordered:
        for j in range(1, T):
            apart = point.b[j] - point.b[j - 1] - point.v[j]
            step.v[j] = step.b[j] - step.b[j - 1] + apart  # (N12)
            step.mu[j] = (targets.v[j] - point.mu[j] * step.v[j]) / point.v[j]  # (N13)
