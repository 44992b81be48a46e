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

from ordrec.compiling import compiled, inner
from ordrec.ordinal.svor.gram import Gram, factorise_shifted, room_for_factor, solve_shifted
from ordrec.ordinal.svor.pairs import Pairs
from ordrec.ordinal.svor.threshold_system import move_thresholds, set_shares, set_thresholds

__all__ = [
    "Point",
    "System",
    "Targets",
    "direction",
    "prepare",
    "room_for_system",
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

    @classmethod
    def within(cls, buffer: np.ndarray, n_thresholds: int) -> Point:
        """Views into a vector, so that all of a point is copied at once."""
        size = (buffer.size - 3 * n_thresholds) // 3
        of_pairs = buffer[: 3 * size].reshape(3, size)
        return cls(*of_pairs, *buffer[3 * size :].reshape(3, n_thresholds))


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
    h: np.ndarray  # (p,) (N3), of the last right-hand side
    force: np.ndarray  # (p,) sign g h
    pull: np.ndarray  # (n,) (N6)
    x0: np.ndarray  # (1, n) (N9)
    rhs: np.ndarray  # (T,) (N11)


def room_for_system(K: Gram, pairs: Pairs, n_thresholds: int) -> System:
    """An empty system of the right shapes, in the precision of K."""
    n, T, size = K.values.shape[0], n_thresholds, pairs.cap.size
    g, share, per_alpha, per_room, h, force = np.empty((6, size))
    shift, q, pull = np.empty((3, n))
    return System(
        factor=room_for_factor(K, n),
        rows=np.arange(n),
        shift=shift,
        X=np.empty((T, n), dtype=K.values.dtype),
        H=np.empty((T, T)),
        g=g,
        share=share,
        q=q,
        per_alpha=per_alpha,
        per_room=per_room,
        h=h,
        force=force,
        pull=pull,
        x0=np.empty((1, n), dtype=K.values.dtype),
        rhs=np.empty(T),
    )


@compiled
def prepare(
    values: np.ndarray,
    factored: bool | None,
    lapack: np.ndarray,
    ridge: float,
    start: np.ndarray,
    threshold: np.ndarray,
    sign: np.ndarray,
    cap: np.ndarray,
    alpha: np.ndarray,
    z: np.ndarray,
    w: np.ndarray,
    b: np.ndarray,
    mu: np.ndarray,
    v: np.ndarray,
    ordered: bool,
    factor: np.ndarray,
    rows: np.ndarray,
    shift: np.ndarray,
    X: np.ndarray,
    H: np.ndarray,
    g: np.ndarray,
    share: np.ndarray,
    q: np.ndarray,
    per_alpha: np.ndarray,
    per_room: np.ndarray,
    h: np.ndarray,
    force: np.ndarray,
    pull: np.ndarray,
    x0: np.ndarray,
    rhs: np.ndarray,
) -> bool:
    """Fill the system at this point; False if no ridge makes it positive definite."""
    _set_weights(start, alpha, z, w, cap, g, share, q, shift, per_alpha, per_room)
    if not factorise_shifted(values, factored, rows, shift, ridge, factor, lapack):
        return False
    set_shares(start, threshold, rows, share, X)
    solve_shifted(values, factored, rows, shift, factor, X, lapack)  # (N9)
    return set_thresholds(start, threshold, rows, q, share, X, mu, v, ordered, 0.0, rhs, H)


@inner
def _set_weights(
    start: np.ndarray,
    alpha: np.ndarray,
    z: np.ndarray,
    w: np.ndarray,
    cap: np.ndarray,
    g: np.ndarray,
    share: np.ndarray,
    q: np.ndarray,
    shift: np.ndarray,
    per_alpha: np.ndarray,
    per_room: np.ndarray,
) -> None:
    """g, q, share and 1/q at a point, (N1) and (N2)."""
    for p in range(cap.size):  # loops over all pairs at once become vector instructions
        per_alpha[p] = 1.0 / alpha[p]
        per_room[p] = 1.0 / (cap[p] - alpha[p])
        g[p] = 1.0 / (z[p] * per_alpha[p] + w[p] * per_room[p])  # (N1)
    for i in range(q.size):
        total = NO_PAIRS
        for p in range(start[i], start[i + 1]):
            total += g[p]
        q[i] = total
        shift[i] = 1.0 / total
        for p in range(start[i], start[i + 1]):
            share[p] = g[p] / total  # (N2)


@compiled
def direction(
    values: np.ndarray,
    factored: bool | None,
    lapack: np.ndarray,
    start: np.ndarray,
    threshold: np.ndarray,
    sign: np.ndarray,
    cap: np.ndarray,
    alpha: np.ndarray,
    z: np.ndarray,
    w: np.ndarray,
    b: np.ndarray,
    mu: np.ndarray,
    v: np.ndarray,
    residual: np.ndarray,
    balance: np.ndarray,
    target_z: np.ndarray,
    target_w: np.ndarray,
    target_v: np.ndarray,
    ordered: bool,
    factor: np.ndarray,
    rows: np.ndarray,
    shift: np.ndarray,
    X: np.ndarray,
    H: np.ndarray,
    g: np.ndarray,
    share: np.ndarray,
    q: np.ndarray,
    per_alpha: np.ndarray,
    per_room: np.ndarray,
    h: np.ndarray,
    force: np.ndarray,
    pull: np.ndarray,
    x0: np.ndarray,
    rhs: np.ndarray,
    step_alpha: np.ndarray,
    step_z: np.ndarray,
    step_w: np.ndarray,
    step_b: np.ndarray,
    step_mu: np.ndarray,
    step_v: np.ndarray,
) -> tuple[float, float]:
    """Solve the Newton system for one set of targets; the solution is written into the step.

    Returns the longest step, at most 1, that keeps everything non-negative, (I8), and the mean
    product (I4) after it.
    """
    for p in range(h.size):
        h[p] = target_z[p] * per_alpha[p] - target_w[p] * per_room[p] - residual[p]  # (N3)
        force[p] = sign[p] * g[p] * h[p]
    for i in range(q.size):
        total = 0.0
        for p in range(start[i], start[i + 1]):
            total += force[p]  # (N6)
        pull[i] = total
        x0[0, i] = total / q[i]
    solve_shifted(values, factored, rows, shift, factor, x0, lapack)  # (N9)
    for j in range(b.size):
        rhs[j] = -balance[j]
    if ordered:
        for j in range(1, b.size):  # (N13) with (N12), the part without db
            apart = b[j] - b[j - 1] - v[j]
            push = (target_v[j] - mu[j] * apart) / v[j]
            rhs[j] += push
            rhs[j - 1] -= push
    move_thresholds(start, threshold, rows, share, force, pull, x0, 0, H, rhs, step_b)
    return _substitute_back(
        start,
        threshold,
        sign,
        cap,
        alpha,
        z,
        w,
        b,
        mu,
        v,
        target_z,
        target_w,
        target_v,
        ordered,
        X,
        g,
        share,
        q,
        per_alpha,
        per_room,
        h,
        pull,
        x0,
        step_alpha,
        step_z,
        step_w,
        step_b,
        step_mu,
        step_v,
    )


@inner
def _substitute_back(
    start: np.ndarray,
    threshold: np.ndarray,
    sign: np.ndarray,
    cap: np.ndarray,
    alpha: np.ndarray,
    z: np.ndarray,
    w: np.ndarray,
    b: np.ndarray,
    mu: np.ndarray,
    v: np.ndarray,
    target_z: np.ndarray,
    target_w: np.ndarray,
    target_v: np.ndarray,
    ordered: bool,
    X: np.ndarray,
    g: np.ndarray,
    share: np.ndarray,
    q: np.ndarray,
    per_alpha: np.ndarray,
    per_room: np.ndarray,
    h: np.ndarray,
    pull: np.ndarray,
    x0: np.ndarray,
    step_alpha: np.ndarray,
    step_z: np.ndarray,
    step_w: np.ndarray,
    step_b: np.ndarray,
    step_mu: np.ndarray,
    step_v: np.ndarray,
) -> tuple[float, float]:
    """The eliminated parts of a step, given its db; its length and the mean product after it."""
    T = b.size
    for i in range(q.size):
        dbeta = float(x0[0, i])
        for j in range(T):
            dbeta += X[j, i] * step_b[j]  # (N9)
        # (N7) keeps sum(sign dalpha) = dbeta exact whatever the error of the solve
        df = (pull[i] - dbeta) / q[i]
        for p in range(start[i], start[i + 1]):
            df += share[p] * step_b[threshold[p]]
        for p in range(start[i], start[i + 1]):
            step_alpha[p] = g[p] * (h[p] + sign[p] * (step_b[threshold[p]] - df))  # (N4)
    for p in range(h.size):
        step_z[p] = (target_z[p] - z[p] * step_alpha[p]) * per_alpha[p]  # (N5)
        step_w[p] = (target_w[p] + w[p] * step_alpha[p]) * per_room[p]
    # one maximum for each kind of variable: a single one would be a chain of dependent steps
    low, high, least_z, least_w = 1.0, 1.0, 1.0, 1.0
    for p in range(h.size):
        low = max(low, -step_alpha[p] * per_alpha[p])
        high = max(high, step_alpha[p] * per_room[p])
        if -step_z[p] > least_z * z[p]:
            least_z = -step_z[p] / z[p]
        if -step_w[p] > least_w * w[p]:
            least_w = -step_w[p] / w[p]
    steepest = max(max(low, high), max(least_z, least_w))
    if ordered:
        for j in range(1, T):
            apart = b[j] - b[j - 1] - v[j]
            step_v[j] = step_b[j] - step_b[j - 1] + apart  # (N12)
            step_mu[j] = (target_v[j] - mu[j] * step_v[j]) / v[j]  # (N13)
            steepest = max(steepest, max(-step_mu[j] / mu[j], -step_v[j] / v[j]))
    length, total = 1.0 / steepest, 0.0  # (I8)
    for p in range(h.size):
        moved = alpha[p] + length * step_alpha[p]
        total += moved * (z[p] + length * step_z[p])
        total += (cap[p] - moved) * (w[p] + length * step_w[p])
    if ordered:
        for j in range(1, T):
            total += (mu[j] + length * step_mu[j]) * (v[j] + length * step_v[j])
    return length, total / (2 * h.size + (T - 1 if ordered else 0))
