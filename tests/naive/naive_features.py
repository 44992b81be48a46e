"""Biases and weighted low-rank EM by their definitions, dense and slow."""

from __future__ import annotations

import numpy as np


def alternating_means(dense, user_damping, item_damping, rounds=20_000):  # type: ignore[no-untyped-def]
    """Damped biases of a dense item-by-user array (NaN: missing) by plain alternation."""
    mean = np.nanmean(dense)
    user, item = np.zeros(dense.shape[1]), np.zeros(dense.shape[0])
    for _ in range(rounds):
        old = user.copy()
        for i, row in enumerate(dense):
            seen = ~np.isnan(row)
            if seen.any():
                item[i] = np.sum(row[seen] - mean - user[seen]) / (seen.sum() + item_damping)
        for u, column in enumerate(dense.T):
            seen = ~np.isnan(column)
            if seen.any():
                user[u] = np.sum(column[seen] - mean - item[seen]) / (seen.sum() + user_damping)
        if np.abs(user - old).max() < 1e-13:
            break
    return mean, user, item


def em_step(A: np.ndarray, W: np.ndarray, X: np.ndarray, n_factors: int) -> np.ndarray:
    """``SVD_k(W*A + (1-W)*X)`` with a dense SVD; A may hold NaN where W is 0."""
    filled = np.where(W > 0, W * np.nan_to_num(A), 0.0) + (1 - W) * X
    U, s, Vt = np.linalg.svd(filled, full_matrices=False)
    return (U[:, :n_factors] * s[:n_factors]) @ Vt[:n_factors]


def weighted_error(A: np.ndarray, W: np.ndarray, X: np.ndarray) -> float:
    return float(np.sum(np.where(W > 0, W * (np.nan_to_num(A) - X) ** 2, 0.0)))


def low_rank(A, W, X, n_factors, steps=20_000, tol=1e-15):  # type: ignore[no-untyped-def]
    """The fixed point of EM, started from X."""
    for _ in range(steps):
        new = em_step(A, W, X, n_factors)
        if np.abs(new - X).max() < tol:
            break
        X = new
    return X


def em_on_row(a: np.ndarray, w: np.ndarray, V: np.ndarray, start: np.ndarray, steps: int):  # type: ignore[no-untyped-def]
    """EM steps on one row with the subspace (columns of V) held fixed, from a full row."""
    x = V @ (V.T @ start)
    for _ in range(steps):
        filled = w * np.nan_to_num(a) + (1 - w) * x
        x = V @ (V.T @ filled)
    return x
