"""Slow reference implementations of nonparallel SVOR: a generic convex solver, ADMM by loops."""

from __future__ import annotations

import cvxpy as cp
import numpy as np


def primal_by_qp(
    K: np.ndarray, y: np.ndarray, k: int, C1: np.ndarray, C2: np.ndarray, epsilon: float
) -> tuple[float, np.ndarray]:
    """Optimum of (4) for rank k, and f_k + b_k on the samples; K = A A'."""
    values, vectors = np.linalg.eigh(K)
    A = vectors * np.sqrt(np.maximum(values, 0.0))
    w, b = cp.Variable(K.shape[0]), cp.Variable()
    t = A @ w + b
    on, below, above = y == k, y < k, y > k
    loss = cp.sum(cp.multiply(C1[on], cp.pos(cp.abs(t[on]) - epsilon))) if on.any() else 0
    if below.any():
        loss += cp.sum(cp.multiply(C2[below], cp.pos(1 + t[below])))
    if above.any():
        loss += cp.sum(cp.multiply(C2[above], cp.pos(1 - t[above])))
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + loss))
    problem.solve(solver=cp.CLARABEL)
    return float(problem.objective.value), np.asarray(t.value)  # no lower than the optimum


def admm_by_loops(
    K: np.ndarray,
    y: np.ndarray,
    k: int,
    C1: float,
    C2: float,
    epsilon: float,
    eta: float,
    n: int,
    relaxation: float = 1.6,
) -> tuple[np.ndarray, np.ndarray]:
    """n iterations of Algorithm 2 for one rank, entry by entry: (z, u)."""
    m = len(y)
    inverse = np.linalg.inv(K + eta * np.eye(m))
    e = np.ones(m)
    z, u = np.zeros(m), np.zeros(m)
    for _ in range(n):
        v = eta * (e @ inverse @ (z - u)) / (e @ inverse @ e)
        rho = inverse @ (eta * (z - u) - v * e)
        new = np.zeros(m)
        for i in range(m):
            h = relaxation * rho[i] + (1 - relaxation) * z[i]
            if y[i] == k:
                a = h + u[i]
                shrunk = max(abs(a) - epsilon / eta, 0.0) * (1 if a > 0 else -1)
                new[i] = sorted([-C1, shrunk, C1])[1]
            else:
                side = -1 if y[i] < k else 1
                new[i] = sorted([0.0, h + u[i] + side / eta, side * C2])[1]
            u[i] += h - new[i]
        z = new
    return z, u


def kkt_by_loops(
    K: np.ndarray,
    y: np.ndarray,
    k: int,
    rho: np.ndarray,
    b: float,
    C1: np.ndarray,
    C2: np.ndarray,
    epsilon: float,
) -> float:
    """Largest violation of the conditions after (9), of the box or of e'rho = 0."""
    worst = abs(rho.sum())
    for i in range(len(y)):
        f = sum(K[i, j] * rho[j] for j in range(len(y))) + b
        if y[i] == k:
            worst = max(worst, abs(rho[i]) - C1[i])
            if rho[i] == 0:
                worst = max(worst, abs(f) - epsilon)
            elif abs(rho[i]) < C1[i]:
                worst = max(worst, abs(f + epsilon * np.sign(rho[i])))
            else:  # at a bound the sample lies outside the band, on the other side
                worst = max(worst, epsilon + f * np.sign(rho[i]))
        else:
            side = -1 if y[i] < k else 1
            alpha = side * rho[i]
            worst = max(worst, -alpha, alpha - C2[i])
            if alpha == 0:
                worst = max(worst, 1 - side * f)
            elif alpha < C2[i]:
                worst = max(worst, abs(side * f - 1))
            else:
                worst = max(worst, side * f - 1)
    return float(worst)
