"""Plain Python twins of what `ordrec.choice` makes of the order of histories.

A history is a list of (item, value, time).
"""

from __future__ import annotations

import math
from collections import defaultdict


def places(history):
    """Place of each entry from the newest, averaged over those of the same time."""
    found = []
    for _, _, time in history:
        newer = sum(other > time for _, _, other in history)
        same = sum(other == time for _, _, other in history)
        found.append(newer + (same - 1) / 2)
    return found


def pair_weight(lag, window, decay):
    """Weight of an earlier entry, ``lag`` places before; one half for one of the same time."""
    if lag < 0 or lag > window:
        return 0.0
    if lag == 0:
        return 0.5
    return math.exp(-(max(lag, 1) - 1) / decay)


def pairs(histories, window, decay):
    """Weights of ordered pairs of items, summed over histories."""
    T = defaultdict(float)
    for history in histories:
        pos = places(history)
        for a, (i, _, _) in enumerate(history):
            for b, (j, _, _) in enumerate(history):
                if a != b:
                    T[i, j] += pair_weight(pos[a] - pos[b], window, decay)
    return T


def cosines(histories, n_items, window=100, decay=30):
    """Directed cosines."""
    T = pairs(histories, window, decay)
    before = [sum(T[i, j] for j in range(n_items)) for i in range(n_items)]
    after = [sum(T[i, j] for i in range(n_items)) for j in range(n_items)]
    return [
        [T[i, j] / math.sqrt(before[i] * after[j]) if T[i, j] else 0.0 for j in range(n_items)]
        for i in range(n_items)
    ]


def lifts(histories, q, window=15, decay=3):
    """Logarithmic lifts after one step of EM."""
    n_items = len(q)

    def smoothed(counts):
        return [
            [
                (counts[i, j] + 20 * q[j]) / (sum(counts[i, k] for k in range(n_items)) + 20)
                for j in range(n_items)
            ]
            for i in range(n_items)
        ]

    Q = smoothed(pairs(histories, window, decay))
    N = defaultdict(float)
    for history in histories:
        pos = places(history)
        for b, (j, _, _) in enumerate(history):
            w = {
                a: pair_weight(pos[a] - pos[b], window, decay)
                for a in range(len(history))
                if a != b
            }
            total = sum(w.values())
            if not total:
                continue
            p = 0.1 * q[j] + 0.9 * sum(w[a] * Q[history[a][0]][j] for a in w) / total
            for a, weight in w.items():
                N[history[a][0], j] += 0.9 * weight * Q[history[a][0]][j] / total / p
    Q = smoothed(N)
    return [[math.log(Q[i][j] / q[j]) for j in range(n_items)] for i in range(n_items)]


def trend(histories, n_items, at, half_life):
    """Logarithmic popularity at a time; ``half_life`` in days."""
    D = [0.0] * n_items
    for history in histories:
        for item, _, time in history:
            if time < at:
                D[item] += 2.0 ** (-(at - time) / (half_life * 86400))
    return [math.log(d + 0.1) - math.log(sum(D) + 1) for d in D]


def log_shares(scores):
    """``log(s / mean + 0.01)`` of scores, those below 0 taken as 0."""
    scores = [max(s, 0.0) for s in scores]
    mean = sum(scores) / len(scores)
    return [math.log(s / mean + 0.01) if mean > 0 else math.log(0.01) for s in scores]
