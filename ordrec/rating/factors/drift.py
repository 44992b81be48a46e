"""Drift of users' scores over time for `OrdinalFactors`: a Kalman smoother for every user.

What a user thinks of everything moves with the minute, the sitting, the day and the season. With
t in seconds, 1 a vector of ones and j numbering the processes:

(1) ``g_u(t) = sum_j x_uj(t)``, independent Ornstein-Uhlenbeck processes, so that
    ``Cov[g_u(s), g_u(t)] = sum_j v_j exp(-|s - t| / tau_j)``.
(2) A rating is a *site*, a Gaussian factor of ``g = g_u(t)`` at its time: ``ln site = h g - w g^2 /
    2``, with the weight ``w >= 0`` and the pull h. A site with w = h = 0 says nothing.

Forward, with m and P the mean and the covariance of x given the sites so far:

(3) over a gap d, ``a_j = exp(-d / tau_j)``: ``m_j <- a_j m_j``, ``P_ij <- a_i a_j P_ij``, and
    ``P_jj += v_j (1 - a_j^2)``;
(4) at a site, ``c = P 1``, ``s = 1'c``, ``f = 1'm``, ``r = w / (1 + w s)``, ``e = (h - w f) / (1 +
    w s)``: ``m <- m + c e``, ``P <- P - r c c'``; and now ``c <- c / (1 + w s)``, ``f <- f + s e``.

Backward, with b and B the gradient and the negative Hessian, in x, of the log-likelihood of the
later sites:

(5) over a gap: ``b_j <- a_j b_j``, ``B_ij <- a_i a_j B_ij``;
(6) at a site, with the last c and f of (4): g has the mean ``f + c'b`` and the variance
    ``1'c - c'Bc``, given all sites;
(7) then ``b <- b + (e - w c'b) 1`` and ``B <- C'BC + r 1 1'`` with ``C = I - w c 1'``.

Linear in the number of ratings, and no matrix is inverted. Rounding errors grow with the weights;
those of a rating are at most a few units, and up to a million the variances are right to 1e-10.

Smoothing by b and B: Bierman, "Fixed interval smoothing with discrete measurements" (1973).
Gaussian processes as Kalman smoothers: Hartikainen, Särkkä, "Kalman filtering and smoothing
solutions to temporal Gaussian process regression models" (2010).

A time is known if it is positive, as everywhere in ordrec: 0 and NaN mean unknown.
"""

from __future__ import annotations

import math
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from ordrec.data.groups import group_starts
from ordrec.rating.factors.row_updates import drift_sites
from ordrec.rating.factors.rows import GroupedRatings, RowPosteriors, row_pieces
from ordrec.runtime.compiling import compiled
from ordrec.storage.arrays import as_in_half
from ordrec.storage.schema import Array, Seconds, Starts

__all__ = ["STATIONARY_VARIANCE", "UserDrift", "at", "by_time", "smooth"]

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
TIME_SCALES = (20.0, 10 * MINUTE, 2 * HOUR, 30 * DAY)  # tau_j of (1)
VARIANCES = (0.2, 0.15, 0.3, 0.2)  # v_j of (1)
STATIONARY_VARIANCE = sum(VARIANCES)  # of g_u(t) before any rating is seen
N = len(TIME_SCALES)


@dataclass(frozen=True)
class UserDrift:
    """The drift of all users: sites and posteriors at their ratings, grouped by user.

    Attributes
    ----------
    start : ndarray
        Where the ratings of each user begin.
    times : ndarray of float64
    weights, pulls : ndarray of float32
        Sites of `drift`, (2).
    smoothed : ndarray of float32, shape (n_ratings, 2)
        Posterior mean and variance of the drift at each rating, which only a fit needs: a model
        from a file has none.
    """

    stored: ClassVar = {
        "start": Starts("users", "drifting_ratings"),
        "times": Seconds("drifting_ratings"),
        "weights": Array(
            "drifting_ratings", dtype=np.float32, low=0, high=1e6, stored_as=np.float16
        ),
        "pulls": Array("drifting_ratings", dtype=np.float32, stored_as=np.float16),
    }

    start: np.ndarray
    times: np.ndarray
    weights: np.ndarray
    pulls: np.ndarray
    smoothed: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), np.float32))

    @classmethod
    def of(cls, start: np.ndarray, times: np.ndarray) -> UserDrift:
        """Start without drift."""
        nothing = np.zeros(times.size, np.float32)
        smoothed = np.zeros((times.size, 2), np.float32)
        return cls(start, times.astype(np.float64), nothing, nothing, smoothed)

    @cached_property
    def _order(self) -> np.ndarray:
        """The ratings of each user in the order of their times."""
        return by_time(self.users, self.times, self.start.size - 1)[1]

    @property
    def users(self) -> np.ndarray:
        """The user of each rating."""
        return np.repeat(np.arange(self.start.size - 1), np.diff(self.start))

    def updated(
        self,
        ratings: GroupedRatings,
        users: RowPosteriors,
        items: RowPosteriors,
        threads: Executor | None = None,
    ) -> UserDrift:
        """Return the drift given the rows of users and items, (8) of `model`."""
        weights, pulls = np.empty((2, self.times.size), np.float32)
        means, variances = np.empty((2, self.times.size), np.float32)
        start, order = self.start, self._order

        def update(piece: tuple[int, int]) -> None:
            drift_sites(piece, ratings, self.smoothed, users, items, weights, pulls)
            smooth(*piece, start, order, self.times, weights, pulls, means, variances)

        list((threads.map if threads else map)(update, row_pieces(ratings.counts)))
        smoothed = np.column_stack([means, variances])
        return replace(self, weights=weights, pulls=pulls, smoothed=smoothed)

    def at(self, users: np.ndarray, times: np.ndarray) -> np.ndarray:
        """Return the posterior mean and variance of the drift of any users at any times."""
        sites = self.times, self.weights, self.pulls
        return np.column_stack(at(users, times, self.start, self._order, *sites))

    def extended(self, n_users: int) -> UserDrift:
        """Return the drift with further users without ratings, ``n_users`` in all."""
        n_new = n_users - (self.start.size - 1)
        return replace(self, start=np.pad(self.start, (0, n_new), mode="edge"))

    def rounded(self) -> UserDrift:
        """Return the drift with sites in half precision, as files have them."""
        return replace(self, weights=as_in_half(self.weights), pulls=as_in_half(self.pulls))

    def with_users(self, codes: np.ndarray, other: UserDrift) -> UserDrift:
        """Return a copy in which some users are those of another drift."""
        unchanged, other = ~np.isin(self.users, codes), other.rounded()
        rows = [(self, np.flatnonzero(unchanged)), (other, np.arange(other.times.size))]
        users = np.concatenate([self.users[unchanged], codes[other.users]])
        order = np.argsort(users, kind="stable")

        def joined(name: str) -> np.ndarray:
            return np.concatenate([getattr(part, name)[own] for part, own in rows])[order]

        start = group_starts(np.bincount(users, minlength=self.start.size - 1))
        names = "times", "weights", "pulls"
        return UserDrift(start, *(joined(name) for name in names))


def by_time(users: np.ndarray, times: np.ndarray, n_users: int) -> tuple[np.ndarray, np.ndarray]:
    """Sort the ratings of each user by time, as `smooth` needs them.

    Returns
    -------
    start : ndarray of shape (n_users + 1,)
    order : ndarray
        ``order[start[u]:start[u + 1]]`` are the rows of user u, unknown times last.

    Examples
    --------
    >>> start, order = by_time(np.array([1, 0, 1, 1]), np.array([0.0, 7.0, 9.0, 8.0]), 2)
    >>> start.tolist(), order.tolist()
    ([0, 1, 4], [1, 3, 2, 0])
    """
    start = group_starts(np.bincount(users, minlength=n_users))
    return start, np.lexsort((np.where(times > 0, times, np.inf), users))


def at(
    users: np.ndarray,
    times: np.ndarray,
    start: np.ndarray,
    order: np.ndarray,
    rated_at: np.ndarray,
    weights: np.ndarray,
    pulls: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the posterior mean and variance of ``g_u(t)`` for any users and times.

    The pairs join the user's ratings as sites that say nothing, so that all of a user's pairs
    take one pass, and the answer for a pair is the same to the last digit whatever else is asked.
    Where the user or the time is unknown, it is that of the prior: mean 0, stationary variance.

    Parameters
    ----------
    users : ndarray of int
        Codes of the users; negative for unknown ones.
    times : ndarray of float64
    start, order : ndarray
        From `by_time`, of the ratings.
    rated_at, weights, pulls : ndarray
        Times and sites, (2), of the ratings.

    Returns
    -------
    means, variances : ndarray of float32

    Examples
    --------
    >>> rated_at, one = np.array([1.0]), np.ones(1)
    >>> start, order = by_time(np.array([0]), rated_at, 1)
    >>> pairs = np.array([0, 0]), np.array([61.0, 1e9])
    >>> means, variances = at(*pairs, start, order, rated_at, one, one)
    >>> means.round(3), variances.round(3)
    (array([0.348, 0.   ], dtype=float32), array([0.626, 0.85 ], dtype=float32))
    """
    asked, own = np.unique(np.maximum(users, -1), return_inverse=True)
    counts = np.where(asked < 0, 0, start[asked + 1] - start[asked])
    before = np.cumsum(counts) - counts
    rows = order[np.repeat(start[asked] - before, counts) + np.arange(counts.sum())]
    all_users = np.concatenate([np.repeat(np.arange(asked.size), counts), own])
    all_times = np.concatenate([rated_at[rows], times])
    w = np.concatenate([weights[rows], np.zeros(users.size, dtype=weights.dtype)])
    h = np.concatenate([pulls[rows], np.zeros(users.size, dtype=pulls.dtype)])
    means, variances = np.empty((2, all_times.size), dtype=np.float32)
    all_start, all_order = by_time(all_users, all_times, asked.size)
    smooth(0, asked.size, all_start, all_order, all_times, w, h, means, variances)
    means, variances = means[rows.size :], variances[rows.size :]
    unknown = ~(times > 0)
    means[unknown], variances[unknown] = 0.0, STATIONARY_VARIANCE
    return means, variances


@compiled
def smooth(
    first: int,
    stop: int,
    start: np.ndarray,
    order: np.ndarray,
    times: np.ndarray,
    weights: np.ndarray,
    pulls: np.ndarray,
    means: np.ndarray,
    variances: np.ndarray,
) -> None:
    """Write the posterior means and variances of ``g_u`` at the ratings of users first..stop-1.

    A rating of unknown time does not take part: it has the mean of the user's other ratings (0
    if there is none) and the stationary variance. Users do not touch each other, so that any
    division into pieces gives the same digits.

    Parameters
    ----------
    first, stop : int
    start, order : ndarray
        From `by_time`.
    times : ndarray of float64
    weights, pulls : ndarray
        Of the ratings, (2).
    means, variances : ndarray of float32
        Results, one for each rating.
    """
    longest = 0
    for u in range(first, stop):
        longest = max(longest, start[u + 1] - start[u])
    filtered = np.empty((longest, N + 3))
    for u in range(first, stop):
        begin, end, mean = start[u], start[u], 0.0
        while end < start[u + 1] and times[order[end]] > 0.0:
            end += 1
        if end > begin:
            _forward(begin, end, order, times, weights, pulls, filtered)
            mean = _backward(begin, end, order, times, weights, pulls, filtered, means, variances)
        for k in range(end, start[u + 1]):
            means[order[k]] = mean
            variances[order[k]] = STATIONARY_VARIANCE


@compiled
def _forward(
    begin: int,
    end: int,
    order: np.ndarray,
    times: np.ndarray,
    weights: np.ndarray,
    pulls: np.ndarray,
    filtered: np.ndarray,
) -> None:
    """Filter the sites ``order[begin:end]``, (3) and (4), and keep the last c, f, e, r of each."""
    m, c, a, q = np.zeros(N), np.empty(N), np.empty(N), np.empty(N)
    P = np.zeros((N, N))
    for i in range(N):
        P[i, i] = VARIANCES[i]
    last = 0.0  # a gap of any length leaves the state before the first site as it is
    for k in range(end - begin):
        row = order[begin + k]
        t, w, h = times[row], weights[row], pulls[row]
        _decays(t - last, a, q)  # (3)
        s, f = 0.0, 0.0
        for i in range(N):
            c[i] = q[i]
            for j in range(N):
                c[i] += a[i] * a[j] * P[i, j]
            s += c[i]
            f += a[i] * m[i]
        shrink = 1.0 / (1.0 + w * s)
        e, r = (h - w * f) * shrink, w * shrink  # (4)
        for i in range(N):
            filtered[k, i] = c[i] * shrink
        filtered[k, N], filtered[k, N + 1], filtered[k, N + 2] = f + s * e, e, r
        if w != 0.0 or h != 0.0:  # one that says nothing must not leave a rounding error either
            last = t
            for i in range(N):
                m[i] = a[i] * m[i] + c[i] * e
                for j in range(N):
                    P[i, j] = a[i] * a[j] * P[i, j] - r * c[i] * c[j]
                P[i, i] += q[i]


@compiled
def _backward(
    begin: int,
    end: int,
    order: np.ndarray,
    times: np.ndarray,
    weights: np.ndarray,
    pulls: np.ndarray,
    filtered: np.ndarray,
    means: np.ndarray,
    variances: np.ndarray,
) -> float:
    """Write the posteriors at the sites, (5) to (7), and return the average of the means."""
    b, d, a, q = np.zeros(N), np.empty(N), np.empty(N), np.empty(N)
    B = np.zeros((N, N))
    total, following = 0.0, times[order[end - 1]]
    for k in range(end - begin - 1, -1, -1):
        row = order[begin + k]
        t, w, h = times[row], weights[row], pulls[row]
        _decays(following - t, a, q)  # (5)
        c, e, r = filtered[k], filtered[k, N + 1], filtered[k, N + 2]
        s, cb, cBc = 0.0, 0.0, 0.0
        for i in range(N):
            d[i] = 0.0
            for j in range(N):
                d[i] += a[i] * a[j] * B[i, j] * c[j]
            s += c[i]
            cb += c[i] * a[i] * b[i]
            cBc += c[i] * d[i]
        mean = filtered[k, N] + cb  # (6)
        total += mean
        means[row] = mean
        variances[row] = max(s - cBc, 0.0)  # it rounds below 0 for weights beyond 1e9
        if w != 0.0 or h != 0.0:
            following = t
            for i in range(N):
                b[i] = a[i] * b[i] + e - w * cb  # (7)
                for j in range(N):
                    B[i, j] = a[i] * a[j] * B[i, j] - w * (d[i] + d[j] - w * cBc) + r
    return total / (end - begin)


@compiled
def _decays(gap: float, a: np.ndarray, q: np.ndarray) -> None:
    """Set ``a_j`` and ``q_j = v_j (1 - a_j^2)`` of (3), exact for gaps far shorter than tau."""
    for j in range(N):
        fall = math.expm1(-gap / TIME_SCALES[j])
        a[j] = 1.0 + fall
        q[j] = -VARIANCES[j] * fall * (2.0 + fall)
