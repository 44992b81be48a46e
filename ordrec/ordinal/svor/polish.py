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

from ordrec.linalg.small import factorise_small, solve_small
from ordrec.ordinal.svor.compiled import compiled
from ordrec.ordinal.svor.gram import (
    Gram,
    factorise_shifted,
    gram_times,
    largest_entry,
    room_for_factor,
    solve_shifted,
)
from ordrec.ordinal.svor.newton_system import add_sample, least_pivot
from ordrec.ordinal.svor.objective import signed_sums
from ordrec.ordinal.svor.pairs import Pairs

__all__ = ["newton_steps"]

ROUNDING = 1e-13  # of the largest multiplier: a residual below this counts as zero
LIFT = 1e-9  # of the largest diagonal entry of H, added: a threshold without free pairs must move


class _Proximal(NamedTuple):
    """The proximal term: its centre and its weights, (S1) and (S2)."""

    alpha: np.ndarray  # (p,) centre
    mu: np.ndarray  # (T,) centre
    sigma: float  # in units of the caps
    sigma_mu: float
    ordered: bool


@compiled
def newton_steps(
    K: Gram,
    coarse: Gram,
    pairs: Pairs,
    ordered: bool,
    sigma: float,
    accuracy: float,
    max_steps: int,
    ridge: float,
    lapack: np.ndarray,
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
    proximal = _Proximal(alpha.copy(), mu.copy(), sigma, sigma * np.max(pairs.cap), ordered)
    beta = signed_sums(pairs, alpha)
    n, T = f.size, b.size
    largest = largest_entry(K)
    share = np.empty_like(alpha)
    dbeta, df, db = np.empty(n), np.empty(n), np.empty(T)
    for step in range(max_steps + 1):
        _multipliers(pairs, proximal, f, b, alpha, mu)
        gap = signed_sums(pairs, alpha) - beta  # (S3)
        negligible = ROUNDING * np.max(alpha)
        for i in range(n):
            if abs(gap[i]) <= negligible:
                gap[i] = 0.0  # exact zeros make the products below cheaper
        balance = _balance(pairs, alpha, mu, T)
        gram_times(K, gap, df)  # what f would change by if beta were made to fit alpha
        error = max(np.max(np.abs(df)), largest * np.max(np.abs(balance)))
        if error <= max(accuracy, largest * negligible):
            return step
        if step == max_steps:
            break
        q = _free_weights(pairs, alpha, sigma, share)
        if not _direction(
            K, coarse, pairs, proximal, q, share, gap, balance, mu, ridge, lapack, dbeta, db
        ):
            break
        gram_times(K, dbeta, df)
        length = _line_search(pairs, proximal, beta, f, b, dbeta, df, db)
        beta += length * dbeta
        f += length * df
        b += length * db
    return -1


@compiled
def _multipliers(
    pairs: Pairs,
    proximal: _Proximal,
    f: np.ndarray,
    b: np.ndarray,
    alpha: np.ndarray,
    mu: np.ndarray,
) -> None:
    """The multipliers that f and b imply, exactly on their bounds where they reach them."""
    for i in range(f.size):
        for p in range(pairs.start[i], pairs.start[i + 1]):
            cap = pairs.cap[p]
            slack = 1.0 - pairs.sign[p] * (f[i] - b[pairs.threshold[p]])
            alpha[p] = min(max(proximal.alpha[p] + proximal.sigma * cap * slack, 0.0), cap)  # (S1)
    if proximal.ordered:
        for j in range(1, b.size):
            mu[j] = max(0.0, proximal.mu[j] + proximal.sigma_mu * (b[j - 1] - b[j]))  # (S2)


@compiled
def _balance(pairs: Pairs, alpha: np.ndarray, mu: np.ndarray, T: int) -> np.ndarray:
    """How far the multipliers are from the equality of each threshold, (S4)."""
    balance = np.zeros(T)
    for p in range(alpha.size):
        balance[pairs.threshold[p]] += pairs.sign[p] * alpha[p]
    for j in range(1, T):
        balance[j] -= mu[j]
        balance[j - 1] += mu[j]
    return balance


@compiled
def _free_weights(pairs: Pairs, alpha: np.ndarray, sigma: float, share: np.ndarray) -> np.ndarray:
    """The sums q of g over the samples, (S5), and share = g / q."""
    q = np.zeros(pairs.start.size - 1)
    for i in range(q.size):
        for p in range(pairs.start[i], pairs.start[i + 1]):
            share[p] = sigma * pairs.cap[p] if 0.0 < alpha[p] < pairs.cap[p] else 0.0
            q[i] += share[p]
        for p in range(pairs.start[i], pairs.start[i + 1]):
            share[p] = share[p] / q[i] if q[i] > 0.0 else 0.0
    return q


@compiled
def _direction(
    K: Gram,
    coarse: Gram,
    pairs: Pairs,
    proximal: _Proximal,
    q: np.ndarray,
    share: np.ndarray,
    gap: np.ndarray,
    balance: np.ndarray,
    mu: np.ndarray,
    ridge: float,
    lapack: np.ndarray,
    dbeta: np.ndarray,
    db: np.ndarray,
) -> bool:
    """The Newton step of beta and b; False if its matrices have no factor."""
    n, T = q.size, db.size
    free = np.flatnonzero(q > 0.0)
    settled = np.where(q > 0.0, 0.0, gap)  # samples on their bounds move by their gap alone
    f_settled = np.zeros(n)
    gram_times(K, settled, f_settled)

    # one row per threshold for X, then x0, of (S7)
    solved = np.zeros((T + 1, free.size), dtype=coarse.values.dtype)
    for k in range(free.size):
        i = free[k]
        solved[T, k] = gap[i] / q[i] - f_settled[i]  # (S6)
        for p in range(pairs.start[i], pairs.start[i + 1]):
            solved[pairs.threshold[p], k] = share[p]
    if free.size > 0:
        shift, factor = 1.0 / q[free], room_for_factor(coarse, free.size)
        if not factorise_shifted(coarse, free, shift, ridge, factor, lapack):
            return False
        solve_shifted(coarse, free, shift, factor, solved, lapack)
    if not _threshold_step(pairs, proximal, free, q, share, gap, balance, mu, solved, db):
        return False

    dbeta[:] = settled
    for k in range(free.size):
        step = float(solved[T, k])
        for j in range(T):
            step += solved[j, k] * db[j]
        dbeta[free[k]] = step  # (S7)
    return True


@compiled
def _threshold_step(
    pairs: Pairs,
    proximal: _Proximal,
    free: np.ndarray,
    q: np.ndarray,
    share: np.ndarray,
    gap: np.ndarray,
    balance: np.ndarray,
    mu: np.ndarray,
    solved: np.ndarray,
    db: np.ndarray,
) -> bool:
    """The Newton step of b, (S8); False if H has no factor."""
    T = db.size
    H, row = np.zeros((T, T)), np.empty(T)
    rhs = -balance
    for k in range(free.size):
        i = free[k]
        add_sample(pairs, i, q[i], share, solved, k, row, H)  # (N10)
        for p in range(pairs.start[i], pairs.start[i + 1]):
            rhs[pairs.threshold[p]] += share[p] * (gap[i] - solved[T, k])  # (S8)
    if proximal.ordered:
        for j in range(1, T):
            if mu[j] > 0.0:
                H[j, j] += proximal.sigma_mu
                H[j - 1, j - 1] += proximal.sigma_mu
                H[j, j - 1] -= proximal.sigma_mu
    lift = LIFT * max(1.0, np.max(np.diag(H)))
    for j in range(T):
        H[j, j] += lift
    if not factorise_small(H, least_pivot(H)):
        return False
    solve_small(H, rhs, db)
    return True


@compiled
def _line_search(
    pairs: Pairs,
    proximal: _Proximal,
    beta: np.ndarray,
    f: np.ndarray,
    b: np.ndarray,
    dbeta: np.ndarray,
    df: np.ndarray,
    db: np.ndarray,
) -> float:
    """The length at which the slope (S9), which only grows, is a tenth of what it was or less."""
    slope, curvature = np.dot(df, beta), np.dot(df, dbeta)
    at_zero = slope + _slope(pairs, proximal, f, b, df, db, 0.0)
    if at_zero >= 0.0:  # not a descent direction, by rounding: the solution is near
        return 1.0
    below, above, length = 0.0, np.inf, 1.0
    for _ in range(40):
        here = slope + length * curvature
        here += _slope(pairs, proximal, f, b, df, db, length)
        if abs(here) <= 0.1 * abs(at_zero):
            break
        if here < 0.0:
            below = length
        else:
            above = length
        length = 4.0 * length if above == np.inf else 0.5 * (below + above)
    return length


@compiled
def _slope(
    pairs: Pairs,
    proximal: _Proximal,
    f: np.ndarray,
    b: np.ndarray,
    df: np.ndarray,
    db: np.ndarray,
    length: float,
) -> float:
    """Derivative of the losses, without the quadratic term, at a length along the step, (S9)."""
    slope, sigma = 0.0, proximal.sigma
    for i in range(f.size):
        for p in range(pairs.start[i], pairs.start[i + 1]):
            j, cap = pairs.threshold[p], pairs.cap[p]
            rate = pairs.sign[p] * (df[i] - db[j])
            slack = 1.0 - pairs.sign[p] * (f[i] - b[j]) - length * rate
            slope -= min(max(proximal.alpha[p] + sigma * cap * slack, 0.0), cap) * rate
    if proximal.ordered:
        for j in range(1, b.size):
            rate = db[j - 1] - db[j]
            apart = b[j - 1] - b[j] + length * rate
            slope += max(0.0, proximal.mu[j] + proximal.sigma_mu * apart) * rate
    return slope
