"""Slow reference implementations of ordinal logistic regression: loops and generic solvers."""

from __future__ import annotations

import cvxpy as cp
import numpy as np


def reaches(rank: int, k: int, immediate: bool) -> bool:
    """Whether threshold k is in the loss of a sample of this rank."""
    return not immediate or k in (rank - 1, rank)


def objective(w, b, X, ranks, phi, immediate, alpha, weight):
    """The printed sums (2) and (6), one pair at a time; phi is a function of the margin."""
    total = 0.5 * alpha * float(w @ w)
    for i in range(X.shape[0]):
        for k in range(b.size):
            if reaches(ranks[i], k, immediate):
                side = 1 if ranks[i] > k else -1
                total += weight[i] * phi(side * (float(X[i] @ w) - b[k]))
    return total


def solve_with_cvxpy(
    X,
    ranks,
    n_ranks,
    *,
    loss,
    immediate,
    alpha,
    weight=None,
    ordered=False,
    sharpness=1.0,
    margin=0,
):
    """(w, b, objective) by an interior-point method on the exponential or quadratic cone."""
    w, b = cp.Variable(X.shape[1]), cp.Variable(n_ranks - 1)
    weight = np.ones(X.shape[0]) if weight is None else weight
    terms = []
    for i in range(X.shape[0]):
        for k in range(n_ranks - 1):
            if reaches(ranks[i], k, immediate):
                m = (1 if ranks[i] > k else -1) * (X[i] @ w - b[k])
                if loss == "hinge":
                    phi = cp.pos(1 - m)
                elif loss == "generalised":
                    phi = cp.logistic(sharpness * (1 - m)) / sharpness
                else:
                    phi = cp.logistic(margin - m)
                terms.append(weight[i] * phi)
    constraints = [b[k] <= b[k + 1] for k in range(n_ranks - 2)] if ordered else []
    problem = cp.Problem(cp.Minimize(cp.sum(terms) + alpha / 2 * cp.sum_squares(w)), constraints)
    problem.solve(solver=cp.CLARABEL)
    return w.value, b.value, problem.value
