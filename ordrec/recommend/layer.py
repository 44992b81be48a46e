"""Hierarchical ordered probit: thresholds and scales of each user around common ones.

Equations here, with ``f`` the score of user u for item i, ``t`` the common thresholds, ``d_u``
the user's shifts of them, ``n_u``, ``n_i`` counts of ratings:

(1) ``P(r <= k) = Phi((t_k + d_uk - f) / s_ui)``
(2) ``log s_ui = c_0 + c_1 log(1 + n_u) + c_2 log(1 + n_i) + p_u + q_i``
(3) ``d_u = L z_u``, ``z_u ~ N(0, I)``, ``L L' = sd^2 (0.4 + 0.6 exp(-|k - l|))``, with distances as
    on a 5-point scale whatever the number of ranks
(4) ``p_u ~ N(0, user_sd^2)``, ``q_i ~ N(0, item_sd^2)``

The posterior mode is found by L-BFGS over ``(t_1, log gaps of t, c, z, p / user_sd, q / item_sd)``.
Thresholds of one user can cross where he gave no rating; probabilities take the running maximum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import erfc, exp, log, pi, sqrt

import numpy as np
from numba import njit
from scipy.optimize import minimize

from ordrec.ordinal.thresholds.probabilities import log_interval

__all__ = ["Layer", "LayerPriors", "curvature", "fit_layer", "fit_person"]

GAP = 1e-3  # below this distance of two thresholds log p goes on as a straight line
COMMON_WEIGHT = 1e-3  # a faint pull of the common parameters, for ranks without ratings


@dataclass(frozen=True)
class LayerPriors:
    """Standard deviations of what is personal, in units of scores of 5-star ratings."""

    threshold_sd: float = 0.25
    shared: float = 0.4
    user_sd: float = 0.2
    item_sd: float = 0.15

    def factor(self, n_thresholds: int) -> np.ndarray:
        """L of (3)."""
        at = np.linspace(0.0, 3.0, n_thresholds) if n_thresholds > 1 else np.zeros(1)
        decay = np.exp(-np.abs(at[:, None] - at))
        cov = self.threshold_sd**2 * (self.shared + (1.0 - self.shared) * decay)
        return np.linalg.cholesky(cov)


@dataclass(frozen=True)
class Layer:
    """A fitted layer.

    Attributes
    ----------
    thresholds : (n_ranks - 1,)
        Common thresholds t.
    shifts : (n_users, n_ranks - 1)
        d_u; zeros for users without a rating.
    scale : (3,)
        c of (2).
    user_scale, item_scale : arrays
        p_u and q_i.
    user_counts, item_counts : arrays
        Ratings behind each user and item.
    n_iter : int
    value : float
        Negative log-posterior a rating.
    """

    thresholds: np.ndarray
    shifts: np.ndarray
    scale: np.ndarray
    user_scale: np.ndarray
    item_scale: np.ndarray
    user_counts: np.ndarray
    item_counts: np.ndarray
    n_iter: int
    value: float

    def thresholds_of(self, users: np.ndarray) -> np.ndarray:
        """Ordered thresholds of each user, -1 meaning the common ones."""
        shifts = np.vstack([self.shifts, np.zeros(self.thresholds.size)])
        return np.maximum.accumulate(self.thresholds + shifts[users], axis=1)

    def scale_of(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """(2) for pairs of codes, -1 for the unknown."""
        c = self.scale
        n_u = np.append(self.user_counts, 0.0)[users]
        n_i = np.append(self.item_counts, 0.0)[items]
        personal = np.append(self.user_scale, 0.0)[users] + np.append(self.item_scale, 0.0)[items]
        return np.exp(c[0] + c[1] * np.log1p(n_u) + c[2] * np.log1p(n_i) + personal)

    def probabilities(self, scores: np.ndarray, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """P(rank) for each pair, one column a rank."""
        t = self.thresholds_of(users)
        outer = np.full((scores.size, 1), np.inf)
        edges = np.hstack([-outer, t, outer])
        z = (edges - scores[:, None]) / self.scale_of(users, items)[:, None]
        p = np.exp(log_interval(z[:, :-1], np.maximum(z[:, 1:], z[:, :-1] + 1e-9)))
        return p / p.sum(axis=1, keepdims=True)

    def with_user(self, user: int, shifts: np.ndarray, scale: float, count: int) -> Layer:
        """The same layer with one user's parameters replaced, or added at the end."""
        n_users = max(self.shifts.shape[0], user + 1)
        grown = np.zeros((n_users, self.thresholds.size))
        grown[: self.shifts.shape[0]] = self.shifts
        scales, counts = np.zeros(n_users), np.zeros(n_users)
        scales[: self.user_scale.size] = self.user_scale
        counts[: self.user_counts.size] = self.user_counts
        grown[user], scales[user], counts[user] = shifts, scale, count
        return replace(self, shifts=grown, user_scale=scales, user_counts=counts)


def fit_layer(
    scores: np.ndarray,
    levels: np.ndarray,
    users: np.ndarray,
    items: np.ndarray,
    n_ranks: int,
    n_users: int,
    n_items: int,
    priors: LayerPriors | None = None,
    *,
    max_iter: int = 150,
) -> Layer:
    """Fit to scores that were made without the rating they stand beside.

    Parameters
    ----------
    scores : ndarray
        Leave-one-out or held-out scores.
    levels : ndarray of int
        Zero-based ranks.
    users, items : ndarray of int
        Codes.
    """
    priors = priors or LayerPriors()
    L = priors.factor(n_ranks - 1)
    user_counts = np.bincount(users, minlength=n_users).astype(np.float64)
    item_counts = np.bincount(items, minlength=n_items).astype(np.float64)
    # a score that left its rating out rests on one rating less
    log_u, log_i = np.log(user_counts[users]), np.log(item_counts[items])
    centres = np.array([log_u.mean(), log_i.mean()])  # the three c then hardly interact
    log_u, log_i = log_u - centres[0], log_i - centres[1]
    arrays = (
        scores.astype(np.float64), levels.astype(np.int64), users.astype(np.int64),
        items.astype(np.int64), log_u, log_i, L, priors.user_sd, priors.item_sd,
    )  # fmt: skip
    start = np.zeros(n_ranks - 1 + 3 + n_users * (n_ranks - 1) + n_users + n_items)
    start[: n_ranks - 1] = _first_thresholds(scores, levels, n_ranks)
    start[n_ranks - 1] = np.log(max(scores.std(), 1e-3) if scores.size else 1.0) * 0.5 - 0.2

    # What is common bends the posterior more than what is personal: in these steps alike.
    steps = np.ones(start.size)
    steps[: n_ranks + 2] = np.sqrt(np.median(1.0 + 0.1 * user_counts) / max(scores.size, 1))

    def value_and_gradient(moved: np.ndarray) -> tuple[float, np.ndarray]:
        x = start + steps * moved
        value, slope = _objective(x, n_ranks, n_users, n_items, *arrays)
        drift = x[: n_ranks + 2] - start[: n_ranks + 2]
        slope[: n_ranks + 2] += COMMON_WEIGHT * drift
        value += 0.5 * COMMON_WEIGHT * float(drift @ drift)
        return value / scores.size, steps * slope / scores.size

    fit = minimize(
        value_and_gradient, np.zeros(start.size), jac=True, method="L-BFGS-B",
        options={"maxiter": max_iter, "maxcor": 20, "ftol": 1e-8, "gtol": 1e-8},
    )  # fmt: skip
    t, c, z, p, q = _unpack(start + steps * fit.x, n_ranks, n_users, n_items)
    scale = np.array([c[0] - c[1:] @ centres, c[1], c[2]])
    return Layer(
        t, z @ L.T, scale, p * priors.user_sd, q * priors.item_sd,
        user_counts, item_counts, int(fit.nit), float(fit.fun),
    )  # fmt: skip


def fit_person(
    layer: Layer, scores: np.ndarray, levels: np.ndarray, items: np.ndarray, priors: LayerPriors
) -> tuple[np.ndarray, float]:
    """Threshold shifts and log-scale of one more user, all else held as it is."""
    m = layer.thresholds.size
    if scores.size == 0:
        return np.zeros(m), 0.0
    L, q = priors.factor(m), np.append(layer.item_scale, 0.0)[items]
    log_u, log_i = np.full(scores.size, np.log(scores.size)), np.append(layer.item_counts, 0)[items]
    nobody = np.zeros(scores.size, dtype=np.int64)

    def value_and_gradient(x: np.ndarray) -> tuple[float, np.ndarray]:
        to_user, to_items, to_common = np.zeros((1, m + 1)), np.zeros(scores.size), np.zeros(3)
        value = _likelihood(
            layer.thresholds + (L @ x[:m])[None], layer.scale, x[m:] * priors.user_sd, q, scores,
            levels, nobody, np.arange(scores.size), log_u, np.log1p(log_i),
            to_user, to_items, to_common,
        )  # fmt: skip
        slope = np.append(to_user[0, :m] @ L, to_user[0, m] * priors.user_sd) - x
        return 0.5 * float(x @ x) - value, -slope

    x = minimize(value_and_gradient, np.zeros(m + 1), jac=True, method="L-BFGS-B").x
    return L @ x[:m], float(x[m] * priors.user_sd)


def curvature(
    scores: np.ndarray, thresholds: np.ndarray, scale: np.ndarray, levels: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """First derivative of ``log p`` (1) by the score, and minus the second."""
    slope, bend = np.empty(scores.size), np.empty(scores.size)
    _curvature(scores, thresholds, scale, levels.astype(np.int64), slope, bend)
    return slope, bend


def _first_thresholds(scores: np.ndarray, levels: np.ndarray, n_ranks: int) -> np.ndarray:
    """First threshold and log gaps, from normal quantiles of the shares of ratings."""
    from scipy.special import ndtri

    share = np.cumsum(np.bincount(levels, minlength=n_ranks) + 0.5)
    t = ndtri(share[:-1] / share[-1]) * np.sqrt(scores.var() + 0.6) + scores.mean()
    return np.concatenate([t[:1], np.log(np.maximum(np.diff(t), 0.05))])


def _unpack(x: np.ndarray, n_ranks: int, n_users: int, n_items: int) -> tuple[np.ndarray, ...]:
    m = n_ranks - 1
    t = np.concatenate([x[:1], x[0] + np.cumsum(np.exp(x[1:m]))])
    z_end = m + 3 + n_users * m
    z = x[m + 3 : z_end].reshape(n_users, m)
    return t, x[m : m + 3], z, x[z_end : z_end + n_users], x[z_end + n_users :]


def _objective(  # type: ignore[no-untyped-def]
    x, n_ranks, n_users, n_items, scores, levels, users, items, log_u, log_i, L, user_sd, item_sd
) -> tuple[float, np.ndarray]:
    """Negative log-posterior and its gradient by all parameters."""
    m = n_ranks - 1
    t, c, z, p, q = _unpack(x, n_ranks, n_users, n_items)
    by_user = t + z @ L.T
    to_user, to_item = np.zeros((n_users, m + 1)), np.zeros(n_items)
    to_common = np.zeros(3)
    value = _likelihood(
        by_user, c, p * user_sd, q * item_sd, scores, levels, users, items, log_u, log_i,
        to_user, to_item, to_common,
    )  # fmt: skip
    personal = x[m + 3 :]
    value -= 0.5 * float(personal @ personal)
    by_t = to_user[:, :m].sum(axis=0)
    tail = np.cumsum(by_t[::-1])[::-1]
    slope = np.concatenate(
        [
            tail[:1], tail[1:] * np.exp(x[1:m]), to_common,
            (to_user[:, :m] @ L).ravel(), to_user[:, m] * user_sd, to_item * item_sd,
        ]
    )  # fmt: skip
    slope[m + 3 :] -= personal
    return -value, -slope


@njit(cache=True, nogil=True)
def _likelihood(t, c, p, q, f, levels, users, items, log_u, log_i, to_user, to_item, to_common):  # type: ignore[no-untyped-def]
    """Sum of log p (1), and its derivatives by t + d, by log s of users and items, and by c."""
    m = t.shape[1]
    total = 0.0
    for n in range(f.size):
        u, i, k = users[n], items[n], levels[n]
        log_s = c[0] + c[1] * log_u[n] + c[2] * log_i[n] + p[u] + q[i]
        inverse = exp(-log_s)
        low = (t[u, k - 1] - f[n]) * inverse if k > 0 else -np.inf
        high = (t[u, k] - f[n]) * inverse if k < m else np.inf
        logp, by_low, by_high = interval_slopes(low, high)
        total += logp
        by_scale = 0.0
        if k > 0:
            to_user[u, k - 1] += by_low * inverse
            by_scale -= by_low * low
        if k < m:
            to_user[u, k] += by_high * inverse
            by_scale -= by_high * high
        to_user[u, m] += by_scale
        to_item[i] += by_scale
        to_common[0] += by_scale
        to_common[1] += by_scale * log_u[n]
        to_common[2] += by_scale * log_i[n]
    return total


@njit(cache=True, nogil=True)
def interval_slopes(low, high):  # type: ignore[no-untyped-def]
    """``log(Phi(high) - Phi(low))`` and its two derivatives, safe in both tails.

    Ends closer than GAP, or crossed, continue the logarithm of the gap as a straight line, so
    that an optimiser is led back instead of meeting minus infinity.
    """
    if high - low < GAP:
        middle = 0.5 * (low + high)
        logp = -0.5 * middle * middle - 0.5 * log(2.0 * pi) + log(GAP) + (high - low) / GAP - 1.0
        return logp, -1.0 / GAP - 0.5 * middle, 1.0 / GAP - 0.5 * middle
    mirrored = low > 0.0
    a, b = (-high, -low) if mirrored else (low, high)  # now a < b and a <= 0
    # with a <= 0 the difference of the two lower tails does not cancel
    if b < -5.0:  # both far in the tail: scale by phi(b), Mills ratio R(x) = Q(x) / phi(x)
        r_b = _mills(-b)
        ratio = exp(0.5 * (b * b - a * a)) if a > -np.inf else 0.0
        mass = r_b - (ratio * _mills(-a) if ratio > 0.0 else 0.0)
        logp = -0.5 * b * b - 0.5 * log(2.0 * pi) + log(mass)
        by_b, by_a = 1.0 / mass, -ratio / mass
    else:
        p = 0.5 * erfc(-b / sqrt(2.0)) - (0.5 * erfc(-a / sqrt(2.0)) if a > -np.inf else 0.0)
        logp = log(p)
        by_b = exp(-0.5 * b * b) / (sqrt(2.0 * pi) * p) if b < np.inf else 0.0
        by_a = -exp(-0.5 * a * a) / (sqrt(2.0 * pi) * p) if a > -np.inf else 0.0
    if mirrored:
        return logp, -by_b, -by_a
    return logp, by_a, by_b


@njit(cache=True, nogil=True)
def _mills(x):  # type: ignore[no-untyped-def]
    """Upper tail over density for x >= 5, by the continued fraction."""
    value = x
    for k in range(12, 0, -1):
        value = x + k / value
    return 1.0 / value


@njit(cache=True, nogil=True)
def _curvature(f, t, scale, levels, slope, bend):  # type: ignore[no-untyped-def]
    m = t.shape[1]
    for n in range(f.size):
        k, s = levels[n], scale[n]
        low = (t[n, k - 1] - f[n]) / s if k > 0 else -np.inf
        high = (t[n, k] - f[n]) / s if k < m else np.inf
        if high - low < GAP:  # crossed or nearly so: the limit of a narrow interval
            slope[n], bend[n] = 0.5 * (low + high) / s, 1.0 / (s * s)
            continue
        _, by_low, by_high = interval_slopes(low, high)
        first = -(by_low + by_high) / s
        # with g = phi / p: d g_high / d high = -g_high (high + g_high), and so on
        second = -((by_low + by_high) ** 2)
        if k > 0:
            second -= by_low * low
        if k < m:
            second -= by_high * high
        slope[n], bend[n] = first, -second / (s * s)
