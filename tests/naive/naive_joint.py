"""Slow dense reference of the joint process, which recomputes everything for each left-out user."""

from __future__ import annotations

from itertools import product

import numpy as np

from ordrec.rating.process.kernel.components import SideWeights
from ordrec.rating.process.solve.covariance import JointData


def naive_components(
    rows: list[tuple[int, int, float]],
    owner: int,
    e: int,
    f: int,
    w: SideWeights,
    loadings: np.ndarray,
    side_features: list[np.ndarray],
    times: tuple[float, float],
    same: bool,
    known_times: list[float],
) -> np.ndarray:
    """Components between entries e and f from (owner, entry, x) rows, the owner's rows dropped.

    ``known_times`` are the times of the owner's ratings; an unknown time may be any of them.
    """
    n_ratings = {v: sum(1 for o, _, _ in rows if o == v) for v, _, _ in rows}
    rest = [(o, entry, x) for o, entry, x in rows if o != owner]
    of_e = {o: x for o, entry, x in rest if entry == e}
    of_f = {o: x for o, entry, x in rest if entry == f}
    both = [o for o in of_e if o in of_f]

    def mean(of: dict[int, float]) -> float:
        return sum(of.values()) / (len(of) + 1)

    def squares(of: dict[int, float]) -> float:
        return sum((x - mean(of)) ** 2 for x in of.values())

    def activity(owners: list[int]) -> float:
        return sum(1.0 / n_ratings[o] for o in owners)

    def popularity(of: dict[int, float]) -> float:
        return (np.log1p(len(of)) - w.popularity[0]) / w.popularity[1]

    s = w.smoothing
    residual = sum((of_e[o] - mean(of_e)) * (of_f[o] - mean(of_f)) for o in both)
    values = [
        residual / np.sqrt((squares(of_e) + s[0]) * (squares(of_f) + s[0])),
        len(both) / np.sqrt((len(of_e) + s[1]) * (len(of_f) + s[1])),
        len(both) ** 2 / ((len(of_e) + 5.0) * (len(of_f) + 5.0)),
        activity(both) / np.sqrt((activity(list(of_e)) + s[2]) * (activity(list(of_f)) + s[2])),
        1.0,
        mean(of_e) * mean(of_f),
        popularity(of_e) * popularity(of_f),
        float(loadings[e] @ loadings[f]),
        *(float(features[e] @ features[f]) for features in side_features),
    ]
    for scale in w.scales:
        possible = [[time] if time > 0 else known_times for time in times]
        kernel = [np.exp(-abs(one - other) / scale) for one, other in product(*possible)]
        own = 1.0 if same and not min(times) > 0 else 0.0
        values.append((float(np.mean(kernel)) if kernel else 0.0) + own)
    return np.array(values)


def naive_covariance(
    data: JointData,
    item_weights: SideWeights,
    user_weights: SideWeights,
    omega: np.ndarray,
    item_features: list[np.ndarray],
    user_features: list[np.ndarray],
) -> np.ndarray:
    """K over all training ratings, pair by pair."""
    n = data.y.size
    user_x = np.empty(n)
    user_x[data.by_item] = data.user_side.x
    item_rows = list(zip(data.users.tolist(), data.items.tolist(), data.item_side.x, strict=True))
    user_rows = list(zip(data.items.tolist(), data.users.tolist(), user_x, strict=True))
    times = data.item_side.time
    K = np.zeros((n, n))
    for a in range(n):
        for b in range(n):
            u, v, i, j = data.users[a], data.users[b], data.items[a], data.items[b]
            if u == v:
                loadings = data.item_side.loadings[data.item_side.fold[u]]
                part = naive_components(
                    item_rows, u, i, j, item_weights, loadings, item_features,
                    (times[a], times[b]), a == b, times[(data.users == u) & (times > 0)].tolist(),
                )  # fmt: skip
                K[a, b] += part @ item_weights.weights
            if i == j:
                loadings = data.user_side.loadings[data.user_side.fold[i]]
                part = naive_components(
                    user_rows,
                    i,
                    u,
                    v,
                    user_weights,
                    loadings,
                    user_features,
                    (0.0, 0.0),
                    a == b,
                    [],
                )
                K[a, b] += part @ user_weights.weights
            psi, phi = data.products.psi, data.products.phi
            K[a, b] += float((psi[u] * psi[v]) @ omega @ (phi[i] * phi[j]))
    return K


def naive_left_out(K: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Leave-one-out means by one refit per rating."""
    n = y.size
    scores = np.empty(n)
    for a in range(n):
        rest = np.delete(np.arange(n), a)
        coefficients = np.linalg.solve(K[np.ix_(rest, rest)] + np.eye(n - 1), y[rest])
        scores[a] = K[a, rest] @ coefficients
    return scores
