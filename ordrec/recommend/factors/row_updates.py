"""Compiled loops of `OrdinalFactors`: updates of users and items, and probabilities.

Equation numbers are those of `ordrec.recommend.factors.model`. Each row reads the other side
and writes itself alone, so the rows may be done in any order, by any number of threads, with the
same result to the last bit.

=========  =======================  ====================================================
here       paper notation           shape
=========  =======================  ====================================================
z, vz      E[p_u, theta_u], Var     (n_users, rank + n_ranks - 1)
e, ve      E[q_i, b_i], Var         (n_items, rank + 1)
prior      mean of the row's prior  as z or e
P          prior precision          square
=========  =======================  ====================================================
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ordrec.linalg.small import factorise_small, solve_small

__all__ = ["probabilities", "update_items", "update_users"]


@njit(cache=True, nogil=True)
def update_users(
    first: int,
    stop: int,
    start: np.ndarray,
    items: np.ndarray,
    levels: np.ndarray,
    e: np.ndarray,
    ve: np.ndarray,
    prior: np.ndarray,
    P: np.ndarray,
    z: np.ndarray,
    vz: np.ndarray,
) -> None:
    """New posteriors of the users ``first..stop-1``, (5), with the weights (4) of the old ones."""
    rank, width = e.shape[1] - 1, z.shape[1]
    A = np.empty((width, width))
    g = np.empty(width)
    for u in range(first, stop):
        _begin(A, g, P, prior[u])
        for a in range(start[u], start[u + 1]):
            q, vq = e[items[a]], ve[items[a]]
            f, variance = _latent(z[u], vz[u], q, vq, rank)
            weights, pull = 0.0, 0.0
            for k in range(width - rank):
                t = rank + k
                w, _, _ = _weight((f - z[u, t]) ** 2 + variance + vz[u, t])  # (4)
                half = 0.5 if levels[a] > k else -0.5
                weights += w
                pull += half
                g[t] += w * q[rank] - half
                A[t, t] += w
                for x in range(rank):
                    A[t, x] -= w * q[x]
            pull -= weights * q[rank]
            for x in range(rank):
                scaled = weights * q[x]
                g[x] += pull * q[x]
                for y in range(x + 1):
                    A[x, y] += scaled * q[y]
                A[x, x] += weights * vq[x]
        for x in range(width):
            vz[u, x] = 1.0 / A[x, x]
        factorise_small(A, -np.inf)
        solve_small(A, g, z[u])  # (5)


@njit(cache=True, nogil=True)
def update_items(
    first: int,
    stop: int,
    start: np.ndarray,
    users: np.ndarray,
    levels: np.ndarray,
    z: np.ndarray,
    vz: np.ndarray,
    prior: np.ndarray,
    P: np.ndarray,
    e: np.ndarray,
    ve: np.ndarray,
    loss: np.ndarray,
) -> None:
    """New posteriors of the items ``first..stop-1``, (6), and the bound (3) before the update."""
    rank, width = e.shape[1] - 1, z.shape[1]
    A = np.empty((rank + 1, rank + 1))
    g = np.empty(rank + 1)
    for i in range(first, stop):
        _begin(A, g, P, prior[i])
        total = 0.0
        for a in range(start[i], start[i + 1]):
            p, vp = z[users[a]], vz[users[a]]
            f, variance = _latent(p, vp, e[i], ve[i], rank)
            weights, pull = 0.0, 0.0
            for k in range(width - rank):
                t = rank + k
                w, xi, fall = _weight((f - p[t]) ** 2 + variance + vp[t])  # (4)
                half = 0.5 if levels[a] > k else -0.5
                weights += w
                pull += half + w * p[t]
                total += np.log1p(fall) + 0.5 * xi - half * (f - p[t])  # (3)
            for x in range(rank):
                scaled = weights * p[x]
                g[x] += pull * p[x]
                for y in range(x + 1):
                    A[x, y] += scaled * p[y]
                A[x, x] += weights * vp[x]
                A[rank, x] += scaled
            A[rank, rank] += weights
            g[rank] += pull
        loss[i] = total
        for x in range(rank + 1):
            ve[i, x] = 1.0 / A[x, x]
        factorise_small(A, -np.inf)
        solve_small(A, g, e[i])  # (6)


@njit(cache=True, nogil=True)
def probabilities(
    users: np.ndarray,
    items: np.ndarray,
    z: np.ndarray,
    vz: np.ndarray,
    e: np.ndarray,
    ve: np.ndarray,
) -> np.ndarray:
    """Return P(rank) of pairs of rows, (7); negative rows count from the end."""
    rank, width = e.shape[1] - 1, z.shape[1]
    n_ranks = width - rank + 1
    out = np.empty((users.size, n_ranks))
    for a in range(users.size):
        p, vp = z[users[a]], vz[users[a]]
        f, variance = _latent(p, vp, e[items[a]], ve[items[a]], rank)
        above = 1.0
        for k in range(n_ranks - 1):
            t = rank + k
            m = (f - p[t]) / np.sqrt(1.0 + np.pi / 8.0 * (variance + vp[t]))  # (7)
            # Posterior means of thresholds may cross where a user left ranks out.
            further = min(above, 1.0 / (1.0 + np.exp(-m)))
            out[a, k] = above - further
            above = further
        out[a, n_ranks - 1] = above
    return out


# ---- steps -----------------------------------------------------------------------------


@njit(cache=True, nogil=True, inline="always")
def _latent(
    p: np.ndarray, vp: np.ndarray, q: np.ndarray, vq: np.ndarray, rank: int
) -> tuple[float, float]:
    """Mean and variance of ``f = p.q + b``, (1)."""
    f, variance = q[rank], vq[rank]
    for x in range(rank):
        f += p[x] * q[x]
        variance += vp[x] * (q[x] * q[x] + vq[x]) + p[x] * p[x] * vq[x]
    return f, variance


@njit(cache=True, nogil=True, inline="always")
def _weight(square: float) -> tuple[float, float, float]:
    """``tanh(xi / 2) / (2 xi)``, (4), xi and ``exp(-xi)``, from the square of xi."""
    xi = np.sqrt(square)
    fall = np.exp(-xi)
    if square < 1e-8:
        return 0.25, xi, fall
    return 0.5 * (1.0 - fall) / ((1.0 + fall) * xi), xi, fall


@njit(cache=True, nogil=True)
def _begin(A: np.ndarray, g: np.ndarray, P: np.ndarray, mean: np.ndarray) -> None:
    """Start a row's linear system, (5) or (6), with the prior; only A's lower triangle is used."""
    for x in range(g.size):
        total = 0.0
        for y in range(g.size):
            A[x, y] = P[x, y]
            total += P[x, y] * mean[y]
        g[x] = total
