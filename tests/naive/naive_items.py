"""Item kernels by their definitions, one entry at a time, on ratings without one user."""

from __future__ import annotations

import numpy as np


def ratings_without(dense: np.ndarray, user: int | None) -> np.ndarray:
    """The dense ratings (NaN: missing) with a user's column deleted."""
    return dense if user is None else np.delete(dense, user, axis=1)


def z_scores(dense: np.ndarray) -> np.ndarray:
    out = np.zeros_like(dense)
    for i, row in enumerate(dense):
        seen = ~np.isnan(row)
        if seen.any() and np.ptp(row[seen]) > 0:
            out[i, seen] = (row[seen] - row[seen].mean()) / row[seen].std()
    return out


def pearson(dense: np.ndarray) -> np.ndarray:
    z = z_scores(dense)
    return np.array([[np.sum(a * b) for b in z] for a in z])


def residual(dense: np.ndarray, centre: float, user_damping: float, damping: float) -> np.ndarray:
    x = np.zeros_like(dense)
    for u in range(dense.shape[1]):
        seen = ~np.isnan(dense[:, u])
        level = centre + np.sum(dense[seen, u] - centre) / (seen.sum() + user_damping)
        x[seen, u] = dense[seen, u] - level
    for i in range(len(x)):
        seen = ~np.isnan(dense[i])
        if seen.sum() + damping > 0:
            x[i, seen] -= x[i, seen].sum() / (seen.sum() + damping)
    return np.array([[np.sum(a * b) for b in x] for a in x])


def corating(dense: np.ndarray) -> np.ndarray:
    seen = ~np.isnan(dense)
    return np.array([[np.sum(a & b) for b in seen] for a in seen], dtype=float)


def normalised(K: np.ndarray, smooth: float) -> np.ndarray:
    out = np.zeros_like(K)
    for i in range(len(K)):
        for j in range(len(K)):
            norm = (K[i, i] + smooth) * (K[j, j] + smooth)
            out[i, j] = K[i, j] / np.sqrt(norm) if norm > 0 else 0.0
    return out
