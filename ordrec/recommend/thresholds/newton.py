"""Compiled Newton steps of the ordered probit: users' thresholds and scales, items' scales.

A user's parameters are ``eta = (b, g_1 .. g_{m-1}, p)``: the threshold at ``anchor``, the
logarithms of the gaps between neighbouring thresholds, and the logarithm of the scale. Any eta
gives thresholds in order, so the probabilities of all ranks always sum to 1.

Equations here, with ``z`` the ends of the interval of a rating in units of its scale:

(1) ``t_anchor = b``, ``t_k - t_{k-1} = exp(g_k)``
(2) with ``H`` minus the second derivatives of ``log p`` with respect to both ends (never negative,
    as log p is concave) and ``J`` the derivatives of the ends with respect to eta, the curvature is
    ``J' H J + P``
(3) posterior covariance of eta: the inverse of (2) at the mode (Laplace's method)
"""

from __future__ import annotations

from math import erfc, exp, log, pi, sqrt

import numpy as np
from numba import njit

__all__ = ["curvatures", "interval_terms", "item_steps", "thresholds_from", "user_steps"]

NARROW = 1e-4  # narrower intervals (in z) are treated as having the density of their middle
LEAST_WIDTH = 1e-12
LONGEST_STEP = 2.0
LONGEST_ITEM_STEP = 0.5
HALVINGS = 6


@njit(cache=True, nogil=True)
def interval_terms(low, high):  # type: ignore[no-untyped-def]
    """Return ``log(Phi(high) - Phi(low))``, its slopes at both ends, and H of (2): ll, hh, lh.

    `ordrec.ordinal.gpor.likelihood.interval_cumulants` has the same logarithm to 4e-10, with
    more cumulants, in twice the time (117 ns against 52 ns per interval), and does not bound the
    slopes of intervals without width, which the Newton steps here need.
    """
    if high - low < NARROW:
        width, middle = max(high - low, LEAST_WIDTH), 0.5 * (low + high)
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
    ll = max(by_low * (by_low + low), 0.0) if low > -np.inf else 0.0
    hh = max(by_high * (by_high + high), 0.0) if high < np.inf else 0.0
    return logp, by_low, by_high, ll, hh, by_low * by_high


@njit(cache=True, nogil=True)
def _mills(x):  # type: ignore[no-untyped-def]
    """Upper tail over density for x >= 5, by the continued fraction."""
    value = x
    for k in range(12, 0, -1):
        value = x + k / value
    return 1.0 / value


@njit(cache=True, nogil=True)
def thresholds_from(eta, anchor, t):  # type: ignore[no-untyped-def]
    """Write the thresholds (1) into t."""
    t[anchor] = eta[0]
    for k in range(anchor + 1, t.size):
        t[k] = t[k - 1] + exp(eta[k])
    for k in range(anchor - 1, -1, -1):
        t[k] = t[k + 1] - exp(eta[k + 1])


@njit(cache=True, nogil=True)
def _ends(t, f, inverse, k):  # type: ignore[no-untyped-def]
    low = (t[k - 1] - f) * inverse if k > 0 else -np.inf
    high = (t[k] - f) * inverse if k < t.size else np.inf
    return low, high


@njit(cache=True, nogil=True)
def _loss(eta, mean, precision, anchor, scores, levels, offset, t):  # type: ignore[no-untyped-def]
    """Negative log-posterior of one user's parameters."""
    thresholds_from(eta, anchor, t)
    away = eta - mean
    total = 0.5 * np.dot(away, np.dot(precision, away))
    for n in range(scores.size):
        low, high = _ends(t, scores[n], exp(-eta[t.size] - offset[n]), levels[n])
        total -= interval_terms(low, high)[0]
    return total


@njit(cache=True, nogil=True)
def _derivatives(eta, anchor, scores, levels, offset, t):  # type: ignore[no-untyped-def]
    """Log-likelihood of one user's ratings; its slope and (2) without P, in terms of eta."""
    m = t.size
    thresholds_from(eta, anchor, t)
    total, slope, H = 0.0, np.zeros(m + 1), np.zeros((m + 1, m + 1))  # first in terms of t and p
    for n in range(scores.size):
        k = levels[n]
        inverse = exp(-eta[m] - offset[n])
        low, high = _ends(t, scores[n], inverse, k)
        logp, by_low, by_high, ll, hh, lh = interval_terms(low, high)
        total += logp
        if k == 0:
            low = 0.0  # its derivatives are 0, but 0 times infinity would be NaN
        if k == m:
            high = 0.0
        slope[m] -= by_low * low + by_high * high
        H[m, m] += ll * low * low + 2.0 * lh * low * high + hh * high * high
        if k > 0:
            slope[k - 1] += by_low * inverse
            H[k - 1, k - 1] += ll * inverse * inverse
            H[k - 1, m] -= (ll * low + lh * high) * inverse
        if k < m:
            slope[k] += by_high * inverse
            H[k, k] += hh * inverse * inverse
            H[k, m] -= (lh * low + hh * high) * inverse
        if 0 < k < m:
            H[k - 1, k] += lh * inverse * inverse
    for a in range(m + 1):
        for b in range(a):
            H[a, b] = H[b, a]
    J = np.zeros((m + 1, m + 1))
    J[m, m] = 1.0
    J[:m, 0] = 1.0
    for j in range(1, m):
        if j > anchor:
            J[j:m, j] = exp(eta[j])
        else:
            J[:j, j] = -exp(eta[j])
    return total, np.dot(J.T, slope), np.dot(J.T, np.dot(H, J))  # (2)


@njit(cache=True, nogil=True)
def user_steps(eta, covariance, mean, precision, anchor, scores, levels, offset, start, n_steps):  # type: ignore[no-untyped-def]
    """Newton steps for each user, and (3) after the last; returns the sum of log p.

    ``offset`` is the part of each rating's log-scale that is not the user's; ``start`` is where
    the ratings of each user begin. Users without ratings get their prior.
    """
    t, sum_of_logs = np.empty(eta.shape[1] - 1), 0.0
    for u in range(start.size - 1):
        own = slice(start[u], start[u + 1])
        f, k, more = scores[own], levels[own], offset[own]
        if f.size == 0:
            eta[u] = mean[u]
            covariance[u] = np.linalg.inv(precision)
            continue
        for _ in range(n_steps):
            total, slope, H = _derivatives(eta[u], anchor, f, k, more, t)
            away = eta[u] - mean[u]
            pull = np.dot(precision, away)
            step = np.linalg.solve(H + precision, slope - pull)
            step *= min(1.0, LONGEST_STEP / max(np.abs(step).max(), LONGEST_STEP))
            now = 0.5 * np.dot(away, pull) - total
            for _ in range(HALVINGS):
                if _loss(eta[u] + step, mean[u], precision, anchor, f, k, more, t) <= now:
                    eta[u] += step
                    break
                step *= 0.5
        total, _, H = _derivatives(eta[u], anchor, f, k, more, t)
        covariance[u] = np.linalg.inv(H + precision)  # (3)
        sum_of_logs += total
    return sum_of_logs


@njit(cache=True, nogil=True)
def item_steps(q, variance, mean, precision, eta, anchor, scores, levels, users, order, start):  # type: ignore[no-untyped-def]
    """One Newton step for the log-scale q of each item, and its posterior variance.

    ``order`` lists the ratings item after item, ``start`` is where those of each item begin.
    """
    m = eta.shape[1] - 1
    t = np.empty((eta.shape[0], m))
    for u in range(eta.shape[0]):
        thresholds_from(eta[u], anchor, t[u])
    for i in range(start.size - 1):
        slope, bend = precision * (mean[i] - q[i]), precision
        for n in order[start[i] : start[i + 1]]:
            u, k = users[n], levels[n]
            low, high = _ends(t[u], scores[n], exp(-eta[u, m] - q[i]), k)
            _, by_low, by_high, ll, hh, lh = interval_terms(low, high)
            if k == 0:
                low = 0.0
            if k == m:
                high = 0.0
            slope -= by_low * low + by_high * high
            bend += ll * low * low + 2.0 * lh * low * high + hh * high * high
        q[i] += min(max(slope / bend, -LONGEST_ITEM_STEP), LONGEST_ITEM_STEP)
        variance[i] = 1.0 / bend


@njit(cache=True, nogil=True)
def curvatures(scores, t, scale, levels, slope, bend):  # type: ignore[no-untyped-def]
    """First and negative second derivative of each rating's log p with respect to its score."""
    for n in range(scores.size):
        s = scale[n]
        low, high = _ends(t[n], scores[n], 1.0 / s, levels[n])
        if high - low < NARROW:
            slope[n], bend[n] = 0.5 * (low + high) / s, 1.0 / (s * s)
            continue
        _, by_low, by_high, ll, hh, lh = interval_terms(low, high)
        slope[n], bend[n] = -(by_low + by_high) / s, (ll + hh + 2.0 * lh) / (s * s)
