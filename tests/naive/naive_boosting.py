"""Slow reference implementations of thresholded ensembles: loops over pairs and all cuts."""

from __future__ import annotations

from itertools import combinations_with_replacement, pairwise, product

import numpy as np


def margin_loss(H, theta, ranks, weight, left_right):
    """The losses (5) and (8), one sample and one threshold at a time."""
    total = 0.0
    for i, y in enumerate(ranks):
        for k, cut in enumerate(theta):
            if left_right and k not in (y - 1, y):
                continue
            rho = H[i] - cut if y > k else cut - H[i]
            total += weight[i] * np.exp(-rho)
    return total


def pair_loss(H, ranks, weight):
    """The loss (3), one pair at a time."""
    total = 0.0
    for i in range(H.size):
        for j in range(H.size):
            if ranks[i] > ranks[j]:
                total += weight[i] * weight[j] * np.exp(H[j] - H[i])
    return total


def ordered_thresholds(A, B):
    """Minimiser of (7), by trying every way to pool neighbours."""
    n = A.size
    best, chosen = np.inf, None
    for joined in product([False, True], repeat=n - 1):
        group = np.concatenate([[0], np.cumsum([not j for j in joined])]).astype(int)
        t = np.array([0.5 * np.log(B[group == g].sum() / A[group == g].sum()) for g in group])
        if (np.diff(t) >= 0).all():
            value = (A * np.exp(t) + B * np.exp(-t)).sum()
            if value < best:
                best, chosen = value, t
    return chosen


def least_cost(scores, ranks, n_ranks, weight, costs):
    """Least total cost over every placement of the thresholds between scores."""
    values = np.unique(scores)
    inside = [(a + b) / 2 for a, b in pairwise(values)]
    places = [values[0] - 1, *inside, values[-1] + 1]
    best = np.inf
    for cuts in combinations_with_replacement(places, n_ranks - 1):
        predicted = (scores[:, None] >= np.array(cuts)).sum(axis=1)
        best = min(best, float((weight * costs[ranks, predicted]).sum()))
    return best


def best_stump(X, g):
    """Smallest sum g h over every feature, cut and polarity."""
    best = min(g.sum(), -g.sum())
    for j in range(X.shape[1]):
        for cut in np.unique(X[:, j]):
            h = np.where(X[:, j] > cut, 1.0, -1.0)
            best = min(best, g @ h, -(g @ h))
    return best


def best_on_line(s, u, g):
    """Smallest sum g sign(s + a u) over a, between and beyond all crossings."""
    moving = u != 0
    crossings = np.unique(-s[moving] / u[moving])
    tries = [(a + b) / 2 for a, b in pairwise(crossings)]
    tries += [crossings[0] - 1, crossings[-1] + 1]
    return min(float(g @ np.where(s + a * u >= 0, 1.0, -1.0)) for a in tries)


def adaboost_with_constant(X, labels, rounds, weak):
    """AdaBoost with a constant member after every weak one, both by exact line search.

    Returns the score of the weak members and the coefficient of the constant -1.
    """
    H = np.zeros(labels.size)
    constant = 0.5 * np.log((labels < 0).sum() / (labels > 0).sum())
    for _ in range(rounds):
        D = np.exp(-labels * (H - constant))
        h = weak(X, -labels * D)
        H = H + 0.5 * np.log(D[h == labels].sum() / D[h != labels].sum()) * h
        D = np.exp(-labels * (H - constant))
        constant = constant + 0.5 * np.log(D[labels < 0].sum() / D[labels > 0].sum())
    return H, constant
