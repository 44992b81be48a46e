"""Newton steps of the ordered probit: users' thresholds and scales, items' scales.

A user's parameters are ``eta = (b, g_1 .. g_{m-1}, p)``: the threshold at ``anchor``, the
logarithms of the gaps between neighbouring thresholds, and the logarithm of the scale. Any eta
gives thresholds in order, so the probabilities of all ranks always sum to 1.

Equations here, with ``z`` the ends of the interval of a rating in units of its scale:

(1) ``t_anchor = b``, ``t_k - t_{k-1} = exp(g_k)``
(2) with ``H`` minus the second derivatives of ``log p`` with respect to both ends (never negative,
    as log p is concave) and ``J`` the derivatives of the ends with respect to eta, the curvature is
    ``J' H J + P``
(3) posterior covariance of eta: the inverse of (2) at the mode (Laplace's method)

One compiled loop over ratings sums the terms of each *cell*, for example of all ratings of one rank
by one user; everything else is numpy, for all users at once.
"""

from __future__ import annotations

from math import erfc, exp, log, pi, sqrt
from typing import NamedTuple

import numpy as np

from ordrec.runtime.compiling import compiled, inner

__all__ = ["UserRatings", "curvatures", "interval_terms", "item_steps", "thresholds_from",
           "user_steps"]  # fmt: skip

NARROW = 1e-4  # narrower intervals (in z) are treated as having the density of their middle
LEAST_WIDTH = 1e-12
LONGEST_STEP = 2.0
SHORTEST_STEP = 1e-12  # where nobody's step is longer, further ones change nothing
LONGEST_ITEM_STEP = 0.5
HALVINGS = 6
LEAST_PIVOT = 1e-14  # of a curvature, which is positive but for rounding

# What is summed in a cell: log p, its slopes and curvatures by the thresholds below and above a
# rating, by both, by either and the logarithm of the scale, and by the latter.
LOG_P, LOW, HIGH, LOW_LOW, HIGH_HIGH, LOW_HIGH, LOW_SCALE, HIGH_SCALE, SCALE, SCALE_SCALE = range(
    10
)


_QUIET = np.errstate(all="ignore")  # steps too far are taken back, whatever they overflow


class UserRatings(NamedTuple):
    """Ratings: scores, levels, codes of users, and the part of the log-scale not the user's."""

    scores: np.ndarray
    levels: np.ndarray
    users: np.ndarray
    offset: np.ndarray


@compiled
def interval_terms(low, high):  # type: ignore[no-untyped-def]
    """Return ``log(Phi(high) - Phi(low))``, its slopes at both ends, and H of (2): ll, hh, lh.

    `ordrec.ordinal.gpor.likelihood.interval_cumulants` has the same logarithm to 4e-10, with
    more cumulants, in twice the time (117 ns against 52 ns per interval), and does not bound the
    slopes of intervals without width, which the Newton steps here need.
    """
    if high - low < NARROW:
        width = high - low if high - low > LEAST_WIDTH else LEAST_WIDTH
        middle = 0.5 * (low + high)
        logp = -0.5 * middle * middle - 0.5 * log(2.0 * pi) + log(width)
        steep = 1.0 / (width * width)
        by_low, by_high = -1.0 / width - 0.5 * middle, 1.0 / width - 0.5 * middle
        return logp, by_low, by_high, steep + 0.25, steep + 0.25, 0.25 - steep
    mirrored = low > 0.0
    a, b = (-high, -low) if mirrored else (low, high)  # now a < b and a <= 0
    # with a <= 0 the difference of the two lower tails does not cancel
    if b < -5.0:  # both far in the tail: scale by phi(b), Mills ratio R(x) = Q(x) / phi(x)
        ratio = exp(0.5 * (b * b - a * a)) if a > -np.inf else 0.0
        mass = _mills(-b) - (ratio * _mills(-a) if ratio > 0.0 else 0.0)
        logp = -0.5 * b * b - 0.5 * log(2.0 * pi) + log(mass)
        by_b, by_a = 1.0 / mass, -ratio / mass
    else:
        p = 0.5 * erfc(-b / sqrt(2.0)) - (0.5 * erfc(-a / sqrt(2.0)) if a > -np.inf else 0.0)
        logp = log(p)
        by_b = exp(-0.5 * b * b) / (sqrt(2.0 * pi) * p) if b < np.inf else 0.0
        by_a = -exp(-0.5 * a * a) / (sqrt(2.0 * pi) * p) if a > -np.inf else 0.0
    by_low, by_high = (-by_b, -by_a) if mirrored else (by_a, by_b)
    # with g = phi / p: d g_high / d high = -g_high (high + g_high), and so on
    ll = by_low * (by_low + low) if low > -np.inf else 0.0
    hh = by_high * (by_high + high) if high < np.inf else 0.0
    return logp, by_low, by_high, ll if ll > 0.0 else 0.0, hh if hh > 0.0 else 0.0, by_low * by_high


@inner
def _mills(x):  # type: ignore[no-untyped-def]
    """Upper tail over density for x >= 5, by the continued fraction."""
    value = x
    for k in range(12, 0, -1):
        value = x + k / value
    return 1.0 / value


@compiled
def _sum_terms(scores, inverse, levels, users, t, cell, sums):  # type: ignore[no-untyped-def]
    """Add the terms of each rating to its cell; ``inverse`` are the inverse scales."""
    m = t.shape[1]
    for n in range(scores.size):
        k, u, s = levels[n], users[n], inverse[n]
        low = (t[u, k - 1] - scores[n]) * s if k > 0 else -np.inf
        high = (t[u, k] - scores[n]) * s if k < m else np.inf
        logp, by_low, by_high, ll, hh, lh = interval_terms(low, high)
        if k == 0:
            low = 0.0  # its derivatives are 0, but 0 times infinity would be NaN
        if k == m:
            high = 0.0
        to = sums[cell[n]]
        to[LOG_P] += logp
        to[LOW] += by_low * s
        to[HIGH] += by_high * s
        to[LOW_LOW] += ll * s * s
        to[HIGH_HIGH] += hh * s * s
        to[LOW_HIGH] += lh * s * s
        to[LOW_SCALE] -= (ll * low + lh * high) * s
        to[HIGH_SCALE] -= (lh * low + hh * high) * s
        to[SCALE] -= by_low * low + by_high * high
        to[SCALE_SCALE] += ll * low * low + 2.0 * lh * low * high + hh * high * high


def thresholds_from(eta: np.ndarray, anchor: int) -> np.ndarray:
    """The thresholds (1) of each row of eta."""
    t, gaps = np.empty((*eta.shape[:-1], eta.shape[-1] - 1)), np.exp(eta[..., 1:-1])
    t[..., anchor] = eta[..., 0]
    for k in range(anchor + 1, t.shape[-1]):
        t[..., k] = t[..., k - 1] + gaps[..., k - 1]
    for k in range(anchor - 1, -1, -1):
        t[..., k] = t[..., k + 1] - gaps[..., k]
    return t


def _cells(eta: np.ndarray, anchor: int, ratings: UserRatings) -> np.ndarray:
    """Sums of terms of each user and rank: (n_users, n_ranks, number of terms)."""
    n_users, n_ranks = eta.shape
    sums = np.zeros((n_users * n_ranks, SCALE_SCALE + 1))
    scores, levels, users, offset = ratings
    inverse = np.exp(-eta[users, -1] - offset)
    t, cell = thresholds_from(eta, anchor), users * n_ranks + levels
    _sum_terms(scores, inverse, levels, users, t, cell, sums)
    return sums.reshape(n_users, n_ranks, -1)


def _derivatives(
    eta: np.ndarray, anchor: int, ratings: UserRatings
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Log-likelihood of each user's ratings; its slope and (2) without P, in terms of eta."""
    n_users, n_ranks = eta.shape
    m, cells = n_ranks - 1, _cells(eta, anchor, ratings)
    above, below, k = cells[:, 1:], cells[:, :-1], np.arange(m)  # of threshold k, in ratings
    slope, H = np.empty((n_users, m + 1)), np.zeros((n_users, m + 1, m + 1))
    slope[:, :m] = above[:, :, LOW] + below[:, :, HIGH]
    slope[:, m] = cells[:, :, SCALE].sum(axis=1)
    H[:, k, k] = above[:, :, LOW_LOW] + below[:, :, HIGH_HIGH]
    H[:, k[:-1], k[1:]] = H[:, k[1:], k[:-1]] = cells[:, 1:-1, LOW_HIGH]
    H[:, :m, m] = H[:, m, :m] = above[:, :, LOW_SCALE] + below[:, :, HIGH_SCALE]
    H[:, m, m] = cells[:, :, SCALE_SCALE].sum(axis=1)
    J = _by_eta(eta, anchor)
    log_p, of_eta = cells[:, :, LOG_P].sum(axis=1), np.einsum("uka,uk->ua", J, slope)
    return log_p, of_eta, J.swapaxes(1, 2) @ H @ J  # (2)


def _by_eta(eta: np.ndarray, anchor: int) -> np.ndarray:
    """``J`` of each user: derivatives of thresholds and log-scale (rows) by eta (columns)."""
    n_users, m = eta.shape[0], eta.shape[1] - 1
    k, gap = np.arange(m)[:, None], np.arange(1, m)
    signs = 1.0 * ((k >= gap) & (gap > anchor)) - 1.0 * ((k < gap) & (gap <= anchor))
    J = np.zeros((n_users, m + 1, m + 1))
    J[:, :m, 0] = J[:, m, m] = 1.0
    J[:, :m, 1:m] = signs * np.exp(eta[:, None, 1:m])
    return J


@_QUIET
def user_steps(
    eta: np.ndarray,
    covariance: np.ndarray,
    mean: np.ndarray,
    precision: np.ndarray,
    anchor: int,
    ratings: UserRatings,
    n_steps: int,
) -> float:
    """Newton steps for each user, and (3) after the last; returns the sum of log p.

    Users without ratings get their prior. All steps are taken in place, a user's only where it
    makes their ratings more likely.
    """
    idle = np.bincount(ratings.users, minlength=eta.shape[0]) == 0
    eta[idle] = mean[idle]
    for _ in range(n_steps):
        total, slope, H = _derivatives(eta, anchor, ratings)
        away = eta - mean
        pull = away @ precision
        now = 0.5 * np.einsum("ua,ua->u", away, pull) - total
        step = _solve(_factorise(H + precision), (slope - pull)[:, :, None])[:, :, 0]
        longest = np.abs(step).max(axis=1)
        step *= (LONGEST_STEP / np.maximum(longest, LONGEST_STEP))[:, None]
        _take(step, eta, now, mean, precision, anchor, ratings)
        if not longest.max(initial=0.0) > SHORTEST_STEP:
            break
    total, _, H = _derivatives(eta, anchor, ratings)
    unit = np.broadcast_to(np.eye(eta.shape[1]), H.shape)
    covariance[:] = _solve(_factorise(H + precision), unit)  # (3)
    return float(total.sum())


def _take(
    step: np.ndarray,
    eta: np.ndarray,
    now: np.ndarray,
    mean: np.ndarray,
    precision: np.ndarray,
    anchor: int,
    ratings: UserRatings,
) -> None:
    """Add each user's step to eta, halved until the negative log-posterior is at most ``now``."""
    left = np.arange(eta.shape[0])
    for halvings in range(HALVINGS):
        trial = eta[left] + 0.5**halvings * step[left]
        away = trial - mean[left]
        loss = 0.5 * np.einsum("ua,ab,ub->u", away, precision, away)
        loss -= _cells(trial, anchor, _of_users(ratings, left, eta.shape[0]))[..., LOG_P].sum(1)
        better = loss <= now[left]
        eta[left[better]] = trial[better]
        left = left[~better]
        if left.size == 0:
            break


def _of_users(ratings: UserRatings, users: np.ndarray, n_users: int) -> UserRatings:
    """The ratings of some users, whose codes become their places among these."""
    if users.size == n_users:
        return ratings
    place = np.full(n_users, -1)
    place[users] = np.arange(users.size)
    place = place[ratings.users]
    own = place >= 0
    return UserRatings(ratings.scores[own], ratings.levels[own], place[own], ratings.offset[own])


def _factorise(A: np.ndarray) -> np.ndarray:
    """Cholesky factors of many small matrices, squared pivots raised to the least one."""
    L = np.zeros_like(A)
    for k in range(A.shape[1]):
        rest = A[:, k:, k] - np.einsum("uij,uj->ui", L[:, k:, :k], L[:, k, :k])
        pivot = np.sqrt(np.maximum(rest[:, :1], LEAST_PIVOT))
        L[:, k:, k] = rest / pivot
        L[:, k, k] = pivot[:, 0]
    return L


def _solve(L: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solutions for the columns of ``right``, given Cholesky factors."""
    x = np.array(right)
    for k in range(L.shape[1]):
        x[:, k] -= np.einsum("uj,ujc->uc", L[:, k, :k], x[:, :k])
        x[:, k] /= L[:, k, k, None]
    for k in range(L.shape[1] - 1, -1, -1):
        x[:, k] -= np.einsum("uj,ujc->uc", L[:, k + 1 :, k], x[:, k + 1 :])
        x[:, k] /= L[:, k, k, None]
    return x


@_QUIET
def item_steps(
    q: np.ndarray,
    variance: np.ndarray,
    mean: np.ndarray,
    precision: float,
    eta: np.ndarray,
    anchor: int,
    ratings: UserRatings,
    items: np.ndarray,
) -> None:
    """One Newton step for the log-scale q of each item, and its posterior variance, in place."""
    scores, levels, users, offset = ratings
    sums = np.zeros((q.size, SCALE_SCALE + 1))
    inverse, t = np.exp(-eta[users, -1] - offset), thresholds_from(eta, anchor)
    _sum_terms(scores, inverse, levels, users, t, items, sums)
    slope, bend = precision * (mean - q) + sums[:, SCALE], precision + sums[:, SCALE_SCALE]
    q += np.clip(slope / bend, -LONGEST_ITEM_STEP, LONGEST_ITEM_STEP)
    variance[:] = 1.0 / bend


@_QUIET
def curvatures(
    scores: np.ndarray, t: np.ndarray, scale: np.ndarray, levels: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """First and negative second derivative of each rating's log p with respect to its score."""
    own, sums = np.arange(scores.size), np.zeros((scores.size, SCALE_SCALE + 1))
    _sum_terms(scores, 1.0 / scale, levels, own, t, own, sums)
    slope = -(sums[:, LOW] + sums[:, HIGH])
    bend = sums[:, LOW_LOW] + sums[:, HIGH_HIGH] + 2.0 * sums[:, LOW_HIGH]
    edges = np.pad(t, ((0, 0), (1, 1)), constant_values=((0, 0), (-np.inf, np.inf)))
    low, high = ((edges[own, levels + side] - scores) / scale for side in (0, 1))
    narrow = high - low < NARROW
    slope[narrow] = (0.5 * (low + high) / scale)[narrow]
    bend[narrow] = scale[narrow] ** -2.0
    return slope, bend
