"""Semismooth Newton steps from an interior point to exact zeros, exact caps and small (19).

The interior-point method ends with every multiplier strictly inside its box. A proximal term
around these multipliers (an augmented Lagrangian of the primal) gives multipliers for any f and b,
(S1) and (S2), that reach their bounds exactly. What must vanish then is (S3) and (S4), the
gradient of a convex, piecewise quadratic function of (beta, b).

Equations here
--------------
For a pair p = (i, j), with sigma_p = sigma cap_p and sigma_mu = sigma max(cap):

    alpha_p = clip(centre_p + sigma_p (1 - sign_p (f_i - b_j)), 0, cap_p)           (S1)
    mu_j = max(0, mu_centre_j + sigma_mu (b_{j-1} - b_j))                           (S2)
    gap_i = sum_p sign_p alpha_p - beta_i                                           (S3)
    balance_j = sum_p sign_p alpha_p - mu_j + mu_{j+1}                              (S4)

The Newton system is that of `newton_system` with other weights, so that only the samples F with a
free multiplier enter the matrix; the others move by their gap alone:

    g_p = sigma_p where 0 < alpha_p < cap_p, else 0;  q_i = sum_p g_p               (S5)
    (K_FF + diag(1/q)) dbeta_F = gap_F / q_F - (K dbeta_rest)_F + share db          (S6)
    dbeta = x0 + X db on F, dbeta_rest = gap_rest                                   (S7)
    H db = -balance + sum_p share_p (gap_i - x0_i), H of (N10), sigma_mu where mu_j > 0   (S8)
    the slope of the function along a step of some length                           (S9)

Near the solution this is an active-set method that may change the whole set in one step; the
proximal term keeps it regular when two thresholds share their free samples and alpha is not unique.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ordrec.compiling import compiled, inner
from ordrec.linalg.lapack import ADDRESSES
from ordrec.ordinal.svor.gram import (
    Gram,
    factorise_shifted,
    gram_times,
    largest_entry,
    room_for_factor,
    solve_shifted,
)
from ordrec.ordinal.svor.objective import signed_sums
from ordrec.ordinal.svor.pairs import Pairs
from ordrec.ordinal.svor.threshold_system import move_thresholds, set_shares, set_thresholds

__all__ = ["newton_steps"]

ROUNDING = 1e-13  # of the largest multiplier: a residual below this counts as zero
LIFT = 1e-9  # of the largest diagonal entry of H, added: a threshold without free pairs must move


class _Proximal(NamedTuple):
    """The proximal term: its centre and its weights, (S1) and (S2)."""

    alpha: np.ndarray  # (p,) centre
    mu: np.ndarray  # (T,) centre
    sigma: float  # in units of the caps
    sigma_mu: float  # zero without ordering constraints


def newton_steps(
    K: Gram,
    coarse: Gram,
    pairs: Pairs,
    ordered: bool,
    sigma: float,
    accuracy: float,
    max_steps: int,
    ridge: float,
    alpha: np.ndarray,
    b: np.ndarray,
    mu: np.ndarray,
    f: np.ndarray,
) -> int:
    """Newton steps around the given multipliers, which are overwritten like b, mu and f.

    ``sigma`` is in units of the caps; ``accuracy`` is that of f. ``coarse`` is K in the precision
    of the factor, on which the steps depend and nothing else. Returns how many steps it
    took, or -1 if more than max_steps would be needed: then the multipliers belong to no
    solution, and a new centre there would lead away.
    """
    sigma_mu = sigma * float(pairs.cap.max()) if ordered else 0.0
    proximal = _Proximal(alpha.copy(), mu.copy(), sigma, sigma_mu)
    n, T, dtype = f.size, b.size, coarse.values.dtype
    beta, gap, q, dbeta, df = np.empty((5, n))
    balance, db, rhs, row = np.empty((4, T))
    H, share, force = np.empty((T, T)), np.empty_like(alpha), np.zeros_like(alpha)
    signed_sums(pairs.start, pairs.sign, alpha, beta)
    largest = largest_entry(K)
    here = *pairs, *proximal, beta, f, b
    to_look = *K.form, *here, alpha, mu, gap, balance, share, q, df
    to_solve = *here, mu, gap, balance, share, q, H, rhs, row, force, dbeta, df, db
    for step in range(max_steps + 1):
        negligible, of_f, of_balance = _look(*to_look)
        if max(of_f, largest * of_balance) <= max(accuracy, largest * negligible):
            return step
        if step == max_steps:
            break
        free = np.flatnonzero(q)
        solved = np.empty((T + 1, free.size), dtype=dtype)
        factor, shift = room_for_factor(coarse, free.size), 1.0 / q[free]
        room = free, shift, factor, solved, ridge, ADDRESSES
        if not _step(*K.form, coarse.values, *to_solve, *room):
            break
    return -1


@compiled
def _look(
    values: np.ndarray,
    factored: bool | None,
    start: np.ndarray,
    threshold: np.ndarray,
    sign: np.ndarray,
    cap: np.ndarray,
    centre: np.ndarray,
    mu_centre: np.ndarray,
    sigma: float,
    sigma_mu: float,
    beta: np.ndarray,
    f: np.ndarray,
    b: np.ndarray,
    alpha: np.ndarray,
    mu: np.ndarray,
    gap: np.ndarray,
    balance: np.ndarray,
    share: np.ndarray,
    q: np.ndarray,
    df: np.ndarray,
) -> tuple[float, float, float]:
    """The multipliers that f and b imply, exactly on their bounds where they reach them.

    Then what must vanish, (S3) and (S4), and the weights q of the samples with share = g / q,
    (S5). Returns the gap that counts as zero, and the largest entries of K gap, which is what f
    would change by if beta were made to fit alpha, and of the balance.
    """
    T, largest = b.size, 0.0
    for j in range(T):
        balance[j] = 0.0
    if sigma_mu > 0.0:
        for j in range(1, T):
            mu[j] = max(0.0, mu_centre[j] + sigma_mu * (b[j - 1] - b[j]))  # (S2)
    for j in range(1, T):
        balance[j] -= mu[j]
        balance[j - 1] += mu[j]
    for i in range(q.size):
        total, weight = 0.0, 0.0
        for p in range(start[i], start[i + 1]):
            slack = 1.0 - sign[p] * (f[i] - b[threshold[p]])
            alpha[p] = min(max(centre[p] + sigma * cap[p] * slack, 0.0), cap[p])  # (S1)
            largest = max(largest, alpha[p])
            total += sign[p] * alpha[p]
            balance[threshold[p]] += sign[p] * alpha[p]
            share[p] = sigma * cap[p] if 0.0 < alpha[p] < cap[p] else 0.0
            weight += share[p]
        for p in range(start[i], start[i + 1]):
            share[p] = share[p] / weight if weight > 0.0 else 0.0
        q[i] = weight
        gap[i] = total - beta[i]
    for i in range(q.size):
        if abs(gap[i]) <= ROUNDING * largest:
            gap[i] = 0.0  # exact zeros make the products with K cheaper
    gram_times(values, factored, gap, df)
    of_f, of_balance = 0.0, 0.0
    for i in range(q.size):
        of_f = max(of_f, abs(df[i]))
    for j in range(T):
        of_balance = max(of_balance, abs(balance[j]))
    return ROUNDING * largest, of_f, of_balance


@compiled
def _step(
    values: np.ndarray,
    factored: bool | None,
    coarse: np.ndarray,
    start: np.ndarray,
    threshold: np.ndarray,
    sign: np.ndarray,
    cap: np.ndarray,
    centre: np.ndarray,
    mu_centre: np.ndarray,
    sigma: float,
    sigma_mu: float,
    beta: np.ndarray,
    f: np.ndarray,
    b: np.ndarray,
    mu: np.ndarray,
    gap: np.ndarray,
    balance: np.ndarray,
    share: np.ndarray,
    q: np.ndarray,
    H: np.ndarray,
    rhs: np.ndarray,
    row: np.ndarray,
    force: np.ndarray,
    dbeta: np.ndarray,
    df: np.ndarray,
    db: np.ndarray,
    free: np.ndarray,
    shift: np.ndarray,
    factor: np.ndarray,
    solved: np.ndarray,
    ridge: float,
    lapack: np.ndarray,
) -> bool:
    """One Newton step of beta, f and b; False if its matrices have no factor."""
    T = db.size
    for i in range(q.size):
        dbeta[i] = 0.0 if q[i] > 0.0 else gap[i]  # on their bounds: they move by their gap alone
    gram_times(values, factored, dbeta, df)
    set_shares(start, threshold, free, share, solved)  # one row per threshold for X, then x0
    for k in range(free.size):
        i = free[k]
        solved[T, k] = gap[i] / q[i] - df[i]  # (S6)
    if free.size > 0:
        if not factorise_shifted(coarse, factored, free, shift, ridge, factor, lapack):
            return False
        solve_shifted(coarse, factored, free, shift, factor, solved, lapack)
    for j in range(T):
        db[j] = sigma_mu if mu[j] > 0.0 else 0.0  # the weights of ties
        rhs[j] = 1.0
    tied = sigma_mu > 0.0
    if not set_thresholds(start, threshold, free, q, share, solved, db, rhs, tied, LIFT, row, H):
        return False
    for j in range(T):
        rhs[j] = -balance[j]
    move_thresholds(start, threshold, free, share, force, gap, solved, T, H, rhs, db)  # (S8)
    for k in range(free.size):
        step = float(solved[T, k])
        for j in range(T):
            step += solved[j, k] * db[j]
        dbeta[free[k]] = step  # (S7)
    gram_times(values, factored, dbeta, df)
    length = _line_search(
        start,
        threshold,
        sign,
        cap,
        centre,
        mu_centre,
        sigma,
        sigma_mu,
        beta,
        f,
        b,
        dbeta,
        df,
        db,
    )
    for i in range(f.size):
        beta[i] += length * dbeta[i]
        f[i] += length * df[i]
    for j in range(T):
        b[j] += length * db[j]
    return True


@inner
def _line_search(
    start: np.ndarray,
    threshold: np.ndarray,
    sign: np.ndarray,
    cap: np.ndarray,
    centre: np.ndarray,
    mu_centre: np.ndarray,
    sigma: float,
    sigma_mu: float,
    beta: np.ndarray,
    f: np.ndarray,
    b: np.ndarray,
    dbeta: np.ndarray,
    df: np.ndarray,
    db: np.ndarray,
) -> float:
    """The length at which the slope (S9), which only grows, is a tenth of what it was or less."""
    at_zero, below, above, length = 0.0, 0.0, np.inf, 0.0
    for attempt in range(41):
        slope = 0.0
        for i in range(f.size):
            slope += df[i] * (beta[i] + length * dbeta[i])  # (S9), its quadratic term
            for p in range(start[i], start[i + 1]):
                j = threshold[p]
                rate = sign[p] * (df[i] - db[j])
                slack = 1.0 - sign[p] * (f[i] - b[j]) - length * rate
                slope -= min(max(centre[p] + sigma * cap[p] * slack, 0.0), cap[p]) * rate
        if sigma_mu > 0.0:
            for j in range(1, b.size):
                rate = db[j - 1] - db[j]
                apart = b[j - 1] - b[j] + length * rate
                slope += max(0.0, mu_centre[j] + sigma_mu * apart) * rate
        if attempt == 0:
            at_zero, length = slope, 1.0
            if slope >= 0.0:  # not a descent direction, by rounding: the solution is near
                return 1.0
            continue
        if abs(slope) <= 0.1 * abs(at_zero):
            break
        if slope < 0.0:
            below = length
        else:
            above = length
        length = 4.0 * length if above == np.inf else 0.5 * (below + above)
    return length
