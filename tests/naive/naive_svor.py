"""SVOR by a generic convex solver, and its optimality conditions by plain loops."""

from __future__ import annotations

import cvxpy as cp
import numpy as np


def threshold_signs(ranks, n_ranks):
    """+1 where the sample is above the threshold, -1 where below."""
    return np.where(np.asarray(ranks)[:, None] > np.arange(n_ranks - 1), 1.0, -1.0)


def caps(ranks, n_ranks, C, reach, costs=None):
    """Weight of the hinge loss of each sample at each threshold, by a double loop."""
    C = np.broadcast_to(np.asarray(C, dtype=float), len(ranks))
    weight = np.zeros((len(ranks), n_ranks - 1))
    for i, rank in enumerate(ranks):
        for j in range(n_ranks - 1):
            if reach == "all":
                step = 1.0 if costs is None else abs(costs[rank][j + 1] - costs[rank][j])
                weight[i, j] = C[i] * step
            elif j in (rank - 1, rank):
                weight[i, j] = C[i]
    return weight


def factor_of(K):
    """F with F F' = K, for singular K too."""
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.clip(values, 0.0, None))


def oracle(K, ranks, n_ranks, C, *, reach, ordered, costs=None):
    """Objective, latent scores and thresholds from Clarabel on the primal problem."""
    signs, weight = threshold_signs(ranks, n_ranks), caps(ranks, n_ranks, C, reach, costs)
    F = factor_of(np.asarray(K, dtype=float))
    w, b = cp.Variable(F.shape[1]), cp.Variable(n_ranks - 1)
    scores = F @ w
    loss = 0
    for j in range(n_ranks - 1):
        loss += weight[:, j] @ cp.pos(1 - cp.multiply(signs[:, j], scores - b[j]))
    constraints = [b[j - 1] <= b[j] for j in range(1, n_ranks - 1)] if ordered else []
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + loss), constraints)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return problem.value, F @ w.value, b.value


def primal(K, ranks, n_ranks, C, beta, b, *, reach, costs=None):
    """The primal objective at given coefficients and thresholds."""
    f = K @ beta
    signs, weight = threshold_signs(ranks, n_ranks), caps(ranks, n_ranks, C, reach, costs)
    hinge = np.maximum(0.0, 1.0 - signs * (f[:, None] - b))
    return 0.5 * beta @ f + np.sum(weight * hinge)


def violation_by_loops(f, alpha, cap, sample, threshold, sign, mu):
    """The left side of (19), condition by condition.

    A threshold must not be below F of a pair that may still lower its multiplier's side, nor
    above one that may raise it; and b_k <= b_j for k < j, with equality across positive mu.
    So every lower bound at k must stay below every upper bound at j >= k, and also at j < k
    when all mu between them are positive. Without ordering constraints only k = j counts;
    callers pass an all-zero mu then.
    """
    worst = 0.0
    lows, ups = [], []
    for p in range(len(alpha)):
        F = f[sample[p]] - sign[p]
        if (sign[p] > 0 and alpha[p] > 0) or (sign[p] < 0 and alpha[p] < cap[p]):
            lows.append((threshold[p], F))
        if (sign[p] > 0 and alpha[p] < cap[p]) or (sign[p] < 0 and alpha[p] > 0):
            ups.append((threshold[p], F))
    for k, low in lows:
        for j, up in ups:
            tied = all(mu[m] > 0 for m in range(min(j, k) + 1, max(j, k) + 1))
            if j == k or (mu.any() and (j > k or tied)):
                worst = max(worst, low - up)
    return worst
