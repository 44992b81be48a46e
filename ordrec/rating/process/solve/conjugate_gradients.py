"""Linear systems with the covariance of all ratings, by conjugate gradients.

Equations here, with ``D`` the noise variances:

(1) ``(K + D) a = y``, by preconditioned conjugate gradients
(2) ``d = diag (K + D)^-1``, by random signs z: the mean of ``z * (K + D)^-1 z``
(3) ``1 / (K_nn + D_n) <= d_n <= 1 / D_n``, the bounds that any covariance obeys
(4) ``log d`` regressed on logarithms of the diagonals of the inverted blocks, of the variances and
    of the counts, and scaled to the mean of d, as the logarithm of a noisy number is too low; a
    little of what the probes say beyond that is kept
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ordrec.rating.process.solve.covariance import BlockInverse, Covariance
from ordrec.rating.process.solve.owner_blocks import diagonal, diagonal_of_inverses

__all__ = ["Solved", "inverse_diagonal", "smoothed_diagonal", "solve"]

TRUST_IN_PROBE = 0.0133  # in each


@dataclass(frozen=True)
class Solved:
    """The solution x of a linear system, with the number of steps and the relative residual."""

    x: np.ndarray
    n_iter: int
    residual: float
    converged: bool


def solve(
    K: Covariance,
    right: np.ndarray,
    noise: np.ndarray,
    *,
    tol: float,
    max_iter: int,
    start: np.ndarray | None = None,
    inverse: BlockInverse | None = None,
) -> Solved:
    """Solve (1) for one right-hand side or a batch of them.

    Vectors are single precision, their products double. Stops when every residual is below
    ``tol`` times its right-hand side. ``inverse`` is the preconditioner for this noise, if it
    has been computed already.
    """
    D = noise.astype(np.float32)[(slice(None),) + (None,) * (right.ndim - 1)]
    M = inverse or BlockInverse(K, noise)
    b = right.astype(np.float32)
    x = np.zeros_like(b) if start is None else start.astype(np.float32)
    r = b.copy() if start is None else b - (K @ x + D * x)
    size = np.sqrt(_dots(b, b)) + 1e-30
    z = M @ r
    p, rz = z.copy(), _dots(r, z)
    worst = float(np.max(np.sqrt(_dots(r, r)) / size))
    n_iter = 0
    while worst > tol and n_iter < max_iter:
        q = K @ p + D * p
        step = rz / np.maximum(_dots(p, q), 1e-30)
        x += step.astype(np.float32) * p
        r -= step.astype(np.float32) * q
        z = M @ r
        rz_new = _dots(r, z)
        p = z + (rz_new / np.maximum(rz, 1e-30)).astype(np.float32) * p
        rz, n_iter = rz_new, n_iter + 1
        worst = float(np.max(np.sqrt(_dots(r, r)) / size))
    return Solved(x, n_iter, worst, worst <= tol)


def inverse_diagonal(
    K: Covariance,
    noise: np.ndarray,
    rng: np.random.Generator,
    *,
    n_probes: int,
    n_steps: int,
    inverse: BlockInverse | None = None,
) -> np.ndarray:
    """Estimate (2) from ``n_probes`` vectors of signs, kept within the bounds (3)."""
    signs = rng.choice(np.array([-1.0, 1.0], dtype=np.float32), (noise.size, n_probes))
    solved = solve(K, signs, noise, tol=1e-6, max_iter=n_steps, inverse=inverse).x
    d = np.einsum("nb,nb->n", signs, solved, dtype=np.float64) / n_probes  # (2)
    return np.clip(d, 1.0 / (K.diagonal + noise), 1.0 / noise)  # (3)


def smoothed_diagonal(
    K: Covariance, noise: np.ndarray, probed: np.ndarray, n_probes: int, inverse: BlockInverse
) -> np.ndarray:
    """The diagonal by some probes, shrunk to its regression on the blocks and the counts, (4).

    Three probes are off by a sixth; the blocks' own inverses, the variances and the counts explain
    all but a twentieth.
    """
    data, j = K.data, K.data.by_item
    of_users = diagonal(K.user_blocks)
    rest = ((K.diagonal + noise)[j] - of_users).astype(np.float32)
    by_item = np.empty(noise.size)
    by_item[j] = diagonal_of_inverses(K.user_blocks, rest, K.n_jobs)
    counts = (np.bincount(codes)[codes] for codes in (data.users, data.items))
    columns = [inverse.diagonal, by_item, K.diagonal + noise, noise, *counts]
    X = np.column_stack([np.ones(noise.size), *(np.log(column) for column in columns)])
    target = np.log(probed)
    fit = X @ np.linalg.lstsq(X, target, rcond=None)[0]
    fit += np.log(np.mean(probed / np.exp(fit)))
    d = np.exp(fit + n_probes * TRUST_IN_PROBE * (target - fit))  # (4)
    return np.clip(d, 1.0 / (K.diagonal + noise), 1.0 / noise)  # (3)


def _dots(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """SharedFeatures of columns, summed in double precision."""
    return np.einsum("n...,n...->...", a, b, dtype=np.float64)
