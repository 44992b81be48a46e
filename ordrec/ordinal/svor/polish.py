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

from ordrec.linalg.small import solve_small
from ordrec.ordinal.gram.matrix import Gram
from ordrec.ordinal.gram.shifted import ShiftedGram
from ordrec.ordinal.svor.newton_system import factorise_thresholds
from ordrec.ordinal.svor.pairs import Pairs
from ordrec.runtime.compiling import compiled

__all__ = ["newton_steps"]

ROUNDING = 1e-13  # of the largest multiplier: a residual below this counts as zero
LIFT = 1e-9  # of the largest diagonal entry of H, added: a threshold without free pairs must move
ROUGH = 0.001  # error of (S6) above which the border of a nearly singular matrix is given up
SEARCHES = 41  # slopes of one line search


class _Proximal(NamedTuple):
    """The proximal term: its centre and its weights, (S1) and (S2)."""

    alpha: np.ndarray  # (p,) centre
    mu: np.ndarray  # (T,) centre
    sigma: np.ndarray  # (p,) in proportion to the caps
    sigma_mu: float  # zero without ordering constraints

    def ties(self, overlap: np.ndarray) -> np.ndarray:
        """(S2) of all thresholds but the first, given b_{j-1} - b_j."""
        return np.maximum(0.0, self.mu[1:] + self.sigma_mu * overlap)


class _State(NamedTuple):
    """What is known at some f and b."""

    alpha: np.ndarray  # (p,) (S1)
    mu: np.ndarray  # (T,) (S2)
    short: np.ndarray  # (p,) what each pair lacks to its margin
    gap: np.ndarray  # (n,) (S3)
    balance: np.ndarray  # (T,) (S4)


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
    proximal = _Proximal(alpha.copy(), mu.copy(), sigma * pairs.cap, sigma_mu)
    beta = pairs.sums(pairs.sign * alpha, f.size)
    M, largest = ShiftedGram(coarse, ridge), K.largest_entry()
    for step in range(max_steps + 1):
        state = _evaluate(pairs, proximal, beta, f, b)
        alpha[:], mu[:] = state.alpha, state.mu
        # K gap is what f would change by if beta were made to fit alpha
        negligible = ROUNDING * float(alpha.max())
        state.gap[np.abs(state.gap) <= negligible] = 0.0
        off = max(
            float(np.abs(K.times(state.gap)).max()),
            largest * float(np.abs(state.balance).max()),
        )
        if off <= max(accuracy, largest * negligible):
            return step
        if step == max_steps:
            break
        found = _newton_step(K, M, pairs, proximal, state)
        if found is None:
            break
        dbeta, df, db = found
        length = _line_search(pairs, proximal, state.short, beta, b, dbeta, df, db)
        beta += length * dbeta
        f += length * df
        b += length * db
    return -1


def _evaluate(
    pairs: Pairs, proximal: _Proximal, beta: np.ndarray, f: np.ndarray, b: np.ndarray
) -> _State:
    """The multipliers that f and b imply, exactly on their bounds where they reach them."""
    short, alpha = np.empty(pairs.cap.size), np.empty(pairs.cap.size)
    mu, gap, balance = proximal.mu.copy(), -beta, np.zeros(b.size)
    _set_multipliers(*pairs, proximal.alpha, proximal.sigma, f, b, short, alpha, gap, balance)
    if proximal.sigma_mu > 0.0:
        mu[1:] = proximal.ties(b[:-1] - b[1:])
    balance[1:] -= mu[1:]
    balance[:-1] += mu[1:]
    return _State(alpha, mu, short, gap, balance)


def _newton_step(
    K: Gram, M: ShiftedGram, pairs: Pairs, proximal: _Proximal, state: _State
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """The steps of beta, f and b; None if the matrices have no factor."""
    n, T = state.gap.size, state.balance.size
    q, S = np.zeros(n), np.zeros((T, n))
    _set_shares(*pairs, state.alpha, proximal.sigma, q, S)
    free, shift = q > 0.0, 1.0 / q
    rest = np.where(free, 0.0, state.gap)  # on their bounds: they move by their gap alone
    rhs = np.where(free, state.gap * shift - K.times(rest), 0.0)
    ties = np.where(state.mu > 0.0, proximal.sigma_mu, 0.0)
    db = np.empty(T)
    for factorise in (M.refactorise, M.factorise):
        if not factorise(shift):
            return None
        X = M.solve(np.concatenate([S, rhs[None]]))  # (S6)
        H = factorise_thresholds(q, S, X[:T], ties, lift=LIFT)
        solve_small(H, S @ (state.gap - X[T]) - state.balance, db)  # (S8)
        if not np.isfinite(db).all():
            return None
        dbeta = rest + X[T] + db @ X[:T]  # (S7)
        df = K.times(dbeta)
        if not M.bordered:
            break
        error = np.where(free, (state.gap - dbeta) * shift - df + db @ S, 0.0)  # of (S6)
        if np.abs(error).max() <= ROUGH * np.abs(rhs).max():
            break
    return dbeta, df, db


def _line_search(
    pairs: Pairs,
    proximal: _Proximal,
    short: np.ndarray,
    beta: np.ndarray,
    b: np.ndarray,
    dbeta: np.ndarray,
    df: np.ndarray,
    db: np.ndarray,
) -> float:
    """The length at which the slope (S9), which only grows, is a tenth of what it was or less."""
    rate = pairs.sign * (df[pairs.sample] - db[pairs.threshold])
    straight, bent = float(df @ beta), float(df @ dbeta)
    apart, apart_rate = b[:-1] - b[1:], db[:-1] - db[1:]

    def slope(length: float) -> float:
        lost = _weigh_rates(pairs.cap, proximal.alpha, proximal.sigma, short, rate, length)
        total = straight + length * bent - lost  # (S9)
        if proximal.sigma_mu > 0.0:
            total += float(proximal.ties(apart + length * apart_rate) @ apart_rate)
        return total

    at_zero, below, above, length = slope(0.0), 0.0, np.inf, 1.0
    if at_zero >= 0.0:  # not a descent direction, by rounding: the solution is near
        return 1.0
    for _ in range(SEARCHES - 1):
        here = slope(length)
        if abs(here) <= 0.1 * abs(at_zero):
            break
        if here < 0.0:
            below = length
        else:
            above = length
        length = 4.0 * length if above == np.inf else 0.5 * (below + above)
    return length


@compiled
def _set_multipliers(
    sample: np.ndarray,
    threshold: np.ndarray,
    sign: np.ndarray,
    cap: np.ndarray,
    centre: np.ndarray,
    sigma: np.ndarray,
    f: np.ndarray,
    b: np.ndarray,
    short: np.ndarray,
    alpha: np.ndarray,
    gap: np.ndarray,
    balance: np.ndarray,
) -> None:
    """What each pair lacks to its margin, and (S1), whose sums are added to gap and balance."""
    for p in range(cap.size):
        short[p] = 1.0 - sign[p] * (f[sample[p]] - b[threshold[p]])
        alpha[p] = min(max(centre[p] + sigma[p] * short[p], 0.0), cap[p])
    for p in range(cap.size):
        gap[sample[p]] += sign[p] * alpha[p]
        balance[threshold[p]] += sign[p] * alpha[p]


@compiled
def _set_shares(
    sample: np.ndarray,
    threshold: np.ndarray,
    sign: np.ndarray,
    cap: np.ndarray,
    alpha: np.ndarray,
    sigma: np.ndarray,
    q: np.ndarray,
    S: np.ndarray,
) -> None:
    """q, (S5), and the shares of the free pairs in it; both must be zero before."""
    for p in range(cap.size):
        if 0.0 < alpha[p] < cap[p]:
            q[sample[p]] += sigma[p]
    for p in range(cap.size):
        if 0.0 < alpha[p] < cap[p]:
            S[threshold[p], sample[p]] = sigma[p] / q[sample[p]]


@compiled
def _weigh_rates(
    cap: np.ndarray,
    centre: np.ndarray,
    sigma: np.ndarray,
    short: np.ndarray,
    rate: np.ndarray,
    length: float,
) -> float:
    """The sum of (S1) times the rate, after a step of some length."""
    total = 0.0
    for p in range(cap.size):
        moved = centre[p] + sigma[p] * (short[p] - length * rate[p])
        total += min(max(moved, 0.0), cap[p]) * rate[p]
    return total
