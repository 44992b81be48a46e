"""Semismooth Newton steps from an interior point to exact zeros, exact caps and small (19).

The interior-point method ends with every multiplier strictly coarse its box. A proximal
term around these multipliers (an augmented Lagrangian of the primal) gives, for any f and b,

    u_p = centre_p + sigma_p (1 - sign_p (f_i - b_j)),   alpha_p = clip(u_p, 0, cap_p),

so that multipliers reach their bounds exactly. What must vanish is

    gap_i = sum_p sign_p alpha_p - beta_i,
    balance_j = sum_p sign_p alpha_p - mu_j + mu_{j+1},

the gradient of a convex, piecewise quadratic function of (beta, b). Its Newton system is
that of `interior` with g_p = sigma_p where 0 < u_p < cap_p and 0 elsewhere, hence only
samples with a free multiplier enter the matrix. Near the solution this is an active-set
method that may change the whole set in one step; the proximal term keeps it regular when
two thresholds share their free samples and alpha is not unique.
"""

from __future__ import annotations

import numpy as np

from ordrec.ordinal.svor.compiled import compiled
from ordrec.ordinal.svor.gram import (
    factorise_shifted,
    gram_times,
    largest_entry,
    room_for_factor,
    solve_shifted,
)
from ordrec.ordinal.svor.newton_system import add_sample, factorise_small, solve_small
from ordrec.ordinal.svor.objective import signed_sums
from ordrec.ordinal.svor.pairs import Pairs

__all__ = ["newton_steps"]

ROUNDING = 1e-13  # of the largest multiplier: a residual below this is none


@compiled
def newton_steps(
    K: np.ndarray,
    coarse: np.ndarray,
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
    centre, mu_centre = alpha.copy(), mu.copy()
    sigma_mu = sigma * np.max(pairs.cap)
    beta = signed_sums(pairs, alpha)
    n, T = f.size, b.size
    largest = largest_entry(K)
    share = np.empty_like(alpha)
    dbeta, df, db = np.empty(n), np.empty(n), np.empty(T)
    for step in range(max_steps + 1):
        _multipliers(pairs, centre, mu_centre, f, b, sigma, sigma_mu, ordered, alpha, mu)
        gap = signed_sums(pairs, alpha) - beta
        nothing = ROUNDING * np.max(alpha)
        for i in range(n):
            if abs(gap[i]) <= nothing:
                gap[i] = 0.0  # exact zeros make the products below cheaper
        balance = _balance(pairs, alpha, mu, T)
        gram_times(K, gap, df)  # what f would change by if beta were made to fit alpha
        error = max(np.max(np.abs(df)), largest * np.max(np.abs(balance)))
        if error <= max(accuracy, largest * nothing):
            return step
        if step == max_steps:
            break
        q = _free_weights(pairs, alpha, sigma, share)
        if not _direction(
            K,
            coarse,
            pairs,
            q,
            share,
            gap,
            balance,
            mu,
            sigma_mu,
            ordered,
            ridge,
            lapack,
            dbeta,
            db,
        ):
            break
        gram_times(K, dbeta, df)
        length = _line_search(
            pairs, centre, mu_centre, beta, f, b, dbeta, df, db, sigma, sigma_mu, ordered
        )
        beta += length * dbeta
        f += length * df
        b += length * db
    return -1


@compiled
def _multipliers(
    pairs: Pairs,
    centre: np.ndarray,
    mu_centre: np.ndarray,
    f: np.ndarray,
    b: np.ndarray,
    sigma: float,
    sigma_mu: float,
    ordered: bool,
    alpha: np.ndarray,
    mu: np.ndarray,
) -> None:
    """The multipliers that f and b imply, on their bounds where they belong there."""
    for i in range(f.size):
        for p in range(pairs.start[i], pairs.start[i + 1]):
            cap = pairs.cap[p]
            slack = 1.0 - pairs.sign[p] * (f[i] - b[pairs.threshold[p]])
            alpha[p] = min(max(centre[p] + sigma * cap * slack, 0.0), cap)
    if ordered:
        for j in range(1, b.size):
            mu[j] = max(0.0, mu_centre[j] + sigma_mu * (b[j - 1] - b[j]))


@compiled
def _balance(pairs: Pairs, alpha: np.ndarray, mu: np.ndarray, T: int) -> np.ndarray:
    balance = np.zeros(T)
    for p in range(alpha.size):
        balance[pairs.threshold[p]] += pairs.sign[p] * alpha[p]
    for j in range(1, T):
        balance[j] -= mu[j]
        balance[j - 1] += mu[j]
    return balance


@compiled
def _free_weights(pairs: Pairs, alpha: np.ndarray, sigma: float, share: np.ndarray) -> np.ndarray:
    """The sums q of g over the samples, and share = g / q."""
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
    K: np.ndarray,
    coarse: np.ndarray,
    pairs: Pairs,
    q: np.ndarray,
    share: np.ndarray,
    gap: np.ndarray,
    balance: np.ndarray,
    mu: np.ndarray,
    sigma_mu: float,
    ordered: bool,
    ridge: float,
    lapack: np.ndarray,
    dbeta: np.ndarray,
    db: np.ndarray,
) -> bool:
    """The Newton step of beta and b; only samples with a free multiplier need the matrix."""
    n, T = q.size, db.size
    free = np.flatnonzero(q > 0.0)
    size = free.size
    settled = np.where(q > 0.0, 0.0, gap)  # samples on their bounds move by their gap alone
    f_settled = np.zeros(n)
    gram_times(K, settled, f_settled)

    solved = np.zeros((T + 1, size), dtype=coarse.dtype)  # a row a threshold, then the rest
    for k in range(size):
        i = free[k]
        solved[T, k] = gap[i] / q[i] - f_settled[i]
        for p in range(pairs.start[i], pairs.start[i + 1]):
            solved[pairs.threshold[p], k] = share[p]
    if size > 0:
        shift, factor = 1.0 / q[free], room_for_factor(coarse, size)
        if not factorise_shifted(coarse, free, shift, ridge, factor, lapack):
            return False
        solve_shifted(coarse, free, shift, factor, solved, lapack)

    H, room = np.zeros((T, T)), np.empty(T)
    rhs = -balance
    for k in range(size):
        i = free[k]
        add_sample(pairs, i, q[i], share, solved, k, room, H)
        for p in range(pairs.start[i], pairs.start[i + 1]):
            rhs[pairs.threshold[p]] += share[p] * (gap[i] - solved[T, k])
    if ordered:
        for j in range(1, T):
            if mu[j] > 0.0:
                H[j, j] += sigma_mu
                H[j - 1, j - 1] += sigma_mu
                H[j, j - 1] -= sigma_mu
    lift = 1e-9 * max(1.0, np.max(np.diag(H)))  # a threshold without free pairs would not move
    for j in range(T):
        H[j, j] += lift
    if not factorise_small(H):
        return False
    solve_small(H, rhs, db)

    dbeta[:] = settled
    for k in range(size):
        step = float(solved[T, k])
        for j in range(T):
            step += solved[j, k] * db[j]
        dbeta[free[k]] = step
    return True


@compiled
def _line_search(
    pairs: Pairs,
    centre: np.ndarray,
    mu_centre: np.ndarray,
    beta: np.ndarray,
    f: np.ndarray,
    b: np.ndarray,
    dbeta: np.ndarray,
    df: np.ndarray,
    db: np.ndarray,
    sigma: float,
    sigma_mu: float,
    ordered: bool,
) -> float:
    """Where the slope along the step, which only grows, is a tenth of what it was or less."""
    slope, curvature = np.dot(df, beta), np.dot(df, dbeta)
    at_zero = slope + _slope(pairs, centre, mu_centre, f, b, df, db, sigma, sigma_mu, ordered, 0.0)
    if at_zero >= 0.0:  # the step is not one of descent: rounding, near the solution
        return 1.0
    below, above, length = 0.0, np.inf, 1.0
    for _ in range(40):
        here = slope + length * curvature
        here += _slope(pairs, centre, mu_centre, f, b, df, db, sigma, sigma_mu, ordered, length)
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
    centre: np.ndarray,
    mu_centre: np.ndarray,
    f: np.ndarray,
    b: np.ndarray,
    df: np.ndarray,
    db: np.ndarray,
    sigma: float,
    sigma_mu: float,
    ordered: bool,
    length: float,
) -> float:
    """Derivative of the losses, without the quadratic term, at a length along the step."""
    slope = 0.0
    for i in range(f.size):
        for p in range(pairs.start[i], pairs.start[i + 1]):
            j, cap = pairs.threshold[p], pairs.cap[p]
            rate = pairs.sign[p] * (df[i] - db[j])
            slack = 1.0 - pairs.sign[p] * (f[i] - b[j]) - length * rate
            slope -= min(max(centre[p] + sigma * cap * slack, 0.0), cap) * rate
    if ordered:
        for j in range(1, b.size):
            rate = db[j - 1] - db[j]
            apart = b[j - 1] - b[j] + length * rate
            slope += max(0.0, mu_centre[j] + sigma_mu * apart) * rate
    return slope
