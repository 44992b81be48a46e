"""Many small problems with shared kernel weights, noise and thresholds.

Each problem u has its own samples and one or more Gram matrices of them; the prior
covariance is K_u = sum_j weight_j K_uj. The summed Laplace evidence is maximised over

    theta = (ln weight_1, ..., ln weight_J, ln sigma, b_1, ln Delta_2, ..., ln Delta_{r-1})

so that a user with five ratings benefits from what all users have in common. Every problem
is one compiled call; the problems are divided among threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, solve_triangular

from ordrec.errors import ArgumentError, DataError
from ordrec.ordinal.gpor.compiled import problem_evidence
from ordrec.ordinal.gpor.evidence import LikelihoodBounds, maximise
from ordrec.ordinal.gpor.likelihood import threshold_edges
from ordrec.ordinal.gpor.parameters import GapPrior, chain, pack, paper_start, unpack
from ordrec.ordinal.thresholds.probabilities import rank_probabilities
from ordrec.runtime.parallel import loop_threads, worker_count

__all__ = ["PooledEvidence", "PooledFit", "fit_many"]

WEIGHT_BOUNDS = (1e-5, 1e5)
SHARES = 8  # of the problems, which the threads take one after the other


class PooledEvidence:
    """The summed log-evidence of many problems as a function of the shared parameters.

    Parameters
    ----------
    problems : iterable of (K_u, y_u)
        K_u is a Gram matrix (n_u, n_u) or a stack of them (n_kernels, n_u, n_u), float64 or
        float32; y_u are the zero-based ranks.
    n_ranks : int
        Number of ranks of the scale, whether or not all occur.
    n_jobs : int, optional
        Threads, see `ordrec.runtime.parallel`.
    """

    def __init__(
        self, problems: Iterable[tuple[Any, Any]], n_ranks: int, n_jobs: int | None = None
    ):
        self.stacks, self.ranks = [], []
        for number, (K, y) in enumerate(problems):
            stack, ranks = _checked(number, K, y, n_ranks)
            self.stacks.append(stack)
            self.ranks.append(ranks)
        if not self.stacks:
            raise ArgumentError("fit_many: there are no problems, give at least one (K, y)")
        self.n_kernels = self.stacks[0].shape[0]
        if any(stack.shape[0] != self.n_kernels for stack in self.stacks):
            raise DataError("fit_many: all problems must have the same number of Gram matrices")
        self.n_ranks, self.n_threads = n_ranks, worker_count(n_jobs)
        self.coefs = [np.zeros(y.size) for y in self.ranks]
        self.precisions = [np.zeros(y.size) for y in self.ranks]
        self.n_unconverged = 0
        self.violation = 0.0
        self._shares = _even_shares([y.size for y in self.ranks])

    @property
    def counts(self) -> np.ndarray:
        """Number of samples of each rank in all problems."""
        return np.bincount(np.concatenate(self.ranks), minlength=self.n_ranks)

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the summed log-evidence and its gradient; searches start from the last modes."""
        weights, rho = np.exp(theta[: self.n_kernels]), theta[self.n_kernels :]
        noise, thresholds = unpack(rho)
        edges = threshold_edges(thresholds)

        def work(share: np.ndarray) -> np.ndarray:
            by_weights, by_edges = np.zeros(weights.size), np.zeros(edges.size)
            total, by_noise, unconverged, worst = 0.0, 0.0, 0, 0.0
            for u in share:
                value, slope, violation, converged = problem_evidence(
                    self.stacks[u],
                    self.ranks[u],
                    weights,
                    noise,
                    edges,
                    self.coefs[u],
                    self.precisions[u],
                    by_weights,
                    by_edges,
                )
                total += value
                by_noise += slope
                unconverged += not converged
                worst = max(worst, 0.0 if converged else violation)
            return np.concatenate([[total, unconverged, by_noise], by_weights, by_edges, [worst]])

        with loop_threads(self.n_threads) as threads:
            parts = np.array(list(threads.map(work, self._shares)))
        sums = parts[:, :-1].sum(axis=0)
        self.n_unconverged, self.violation = int(sums[1]), float(parts[:, -1].max())
        by_weights = sums[3 : 3 + weights.size]
        by_thresholds = sums[3 + weights.size :][1:-1]
        return float(sums[0]), np.concatenate([by_weights, chain(rho, sums[2], by_thresholds)])


@dataclass(frozen=True)
class PooledFit:
    """The shared parameters of many problems, and the posterior of each problem.

    Attributes
    ----------
    weights : ndarray of shape (n_kernels,)
    noise : float
    thresholds : ndarray of shape (n_ranks - 1,)
    theta : ndarray
        The three as one vector.
    log_evidence : float
        Summed over the problems.
    coefs : list of ndarray
        For each problem the coefficients c: the latent mean at a new sample is k'c.
    precisions : list of ndarray
        For each problem the precision of each sample's Gaussian factor.
    n_iter : int
    converged : bool
        Whether the optimiser, and every inference at its end, reached its tolerance.
    message : str
    """

    weights: np.ndarray
    noise: float
    thresholds: np.ndarray
    theta: np.ndarray
    log_evidence: float
    coefs: list[np.ndarray]
    precisions: list[np.ndarray]
    n_iter: int
    converged: bool
    message: str

    def predict_latent(
        self, problem: int, K: Any, cross: Any, diag: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the latent mean and standard deviation at new samples of one problem.

        Parameters
        ----------
        problem : int
        K : ndarray of shape (n, n) or (n_kernels, n, n)
            The problem's training Gram matrices, as given to `fit_many`.
        cross : ndarray of shape (m, n) or (n_kernels, m, n)
            Kernels of the new samples with the training samples.
        diag : ndarray of shape (m,) or (n_kernels, m)
            Kernels of the new samples with themselves.
        """
        gram, rows, own = (self._mix(part, ndim) for part, ndim in ((K, 2), (cross, 2), (diag, 1)))
        root = np.sqrt(self.precisions[problem])
        B = root[:, None] * gram * root
        B[np.diag_indices_from(B)] += 1.0
        half = solve_triangular(cho_factor(B, lower=True)[0], (rows * root).T, lower=True)
        variance = own - np.einsum("ij,ij->j", half, half)
        return rows @ self.coefs[problem], np.sqrt(np.maximum(variance, 0.0))

    def predict_proba(self, problem: int, K: Any, cross: Any, diag: Any) -> np.ndarray:
        """Return rank probabilities at new samples of one problem, shape (m, n_ranks)."""
        mean, std = self.predict_latent(problem, K, cross, diag)
        return rank_probabilities(mean, self.thresholds, np.hypot(self.noise, std))

    def _mix(self, part: Any, ndim: int) -> np.ndarray:
        part = np.asarray(part, dtype=np.float64)
        stack = part[None] if part.ndim == ndim else part
        return np.tensordot(self.weights, stack, axes=1)


def fit_many(
    problems: Iterable[tuple[Any, Any]],
    n_ranks: int | None = None,
    *,
    weights: Any = None,
    noise: float = 1.0,
    thresholds: Any = None,
    weight_bounds: Any = WEIGHT_BOUNDS,
    bounds: LikelihoodBounds | None = None,
    optimizer: str | None = "l-bfgs-b",
    tol: float = 1e-7,
    max_iter: int = 100,
    n_jobs: int | None = None,
) -> PooledFit:
    """Maximise the summed Laplace evidence of problems that share their parameters.

    Parameters
    ----------
    problems : sequence of (K_u, y_u)
        K_u is a Gram matrix (n_u, n_u) or a stack of them (n_kernels, n_u, n_u), float64 or
        float32; y_u are zero-based ranks. A problem may lack any of the ranks.
    n_ranks : int, optional
        Number of ranks of the scale; the largest rank plus one if not given. A rank may occur
        in no problem, see `GapPrior`.
    weights, noise, thresholds : optional
        The start: ones, one, and the paper's thresholds.
    weight_bounds : (low, high) or "fixed"
    bounds : LikelihoodBounds, optional
    optimizer : "l-bfgs-b" or None
        None keeps the parameters at their start.
    tol : float
        Relative change of the evidence at which the optimiser stops.
    max_iter : int
    n_jobs : int, optional
        Threads, see `ordrec.runtime.parallel`; BLAS is held to one thread in each.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> problems = []
    >>> for _ in range(20):
    ...     x = rng.normal(size=(15, 1))
    ...     f = 2.0 * x[:, 0] * rng.normal()
    ...     problems.append((x @ x.T, np.digitize(f + rng.normal(size=15), [-1.0, 1.0])))
    >>> fit = fit_many(problems, 3)
    >>> fit.converged, bool(1.0 < fit.weights[0] / fit.noise**2 < 10.0)
    (True, True)
    """
    given: Sequence[tuple[Any, Any]] = list(problems)
    if n_ranks is None:
        n_ranks = 1 + max((int(np.max(y)) for _, y in given if np.size(y)), default=0)
    if n_ranks < 2:
        raise ArgumentError(f"fit_many: the scale needs at least two ranks, got {n_ranks}")
    if optimizer not in ("l-bfgs-b", None):
        raise ArgumentError(f'optimizer must be "l-bfgs-b" or None, got {optimizer!r}')
    evidence = PooledEvidence(given, n_ranks, n_jobs)
    rho = paper_start(n_ranks)
    rho = pack(noise, unpack(rho)[1] if thresholds is None else thresholds)
    if rho.size != n_ranks:
        raise ArgumentError(f"fit_many: {n_ranks} ranks need {n_ranks - 1} thresholds")
    start = np.concatenate([_log_weights(weights, evidence.n_kernels), rho])
    limits, free = _limits(start, evidence.n_kernels, weight_bounds, bounds or LikelihoodBounds())
    theta, n_iter, stopped, message = start, 0, True, "not optimised"
    if optimizer is not None and free.any():
        found = _maximised(evidence, start, free, limits, tol, max_iter)
        theta = start.copy()
        theta[free] = found.theta
        n_iter, stopped, message = found.n_iter, found.converged, found.message
    value, _ = evidence(theta)
    if evidence.n_unconverged:
        message += (
            f"; {evidence.n_unconverged} of {len(given)} problems did not reach their mode "
            f"(largest residual {evidence.violation:.3g})"
        )
    final_noise, final_thresholds = unpack(theta[evidence.n_kernels :])
    return PooledFit(
        weights=np.exp(theta[: evidence.n_kernels]),
        noise=final_noise,
        thresholds=final_thresholds,
        theta=theta,
        log_evidence=value,
        coefs=evidence.coefs,
        precisions=evidence.precisions,
        n_iter=n_iter,
        converged=stopped and not evidence.n_unconverged,
        message=message,
    )


def _maximised(
    evidence: PooledEvidence,
    start: np.ndarray,
    free: np.ndarray,
    limits: np.ndarray,
    tol: float,
    max_iter: int,
) -> Any:
    """Maximise evidence plus gap prior over the free entries of theta; see `maximise`."""
    prior = GapPrior(evidence.counts, start[evidence.n_kernels :])

    def objective(moving: np.ndarray) -> tuple[float, np.ndarray]:
        at = start.copy()
        at[free] = moving
        value, gradient = evidence(at)
        extra, slope = prior(at[evidence.n_kernels :])
        gradient[evidence.n_kernels :] += slope
        return value + extra, gradient[free]

    return maximise(objective, start[free], limits[free], tol=tol, max_iter=max_iter)


def _checked(number: int, K: Any, y: Any, n_ranks: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a problem's Gram matrices and ranks as contiguous arrays, checked."""
    K = np.asarray(K)
    K = np.ascontiguousarray(K, dtype=np.float32 if K.dtype == np.float32 else np.float64)
    stack = K[None] if K.ndim == 2 else K
    ranks = np.asarray(y)
    if stack.ndim != 3 or stack.shape[1:] != (ranks.size, ranks.size) or not ranks.size:
        raise DataError(
            f"fit_many, problem {number}: K has shape {K.shape} and y {ranks.shape}; K must be "
            "(n, n) or (n_kernels, n, n) for n >= 1 ranks"
        )
    if not np.isfinite(stack).all():
        raise DataError(f"fit_many, problem {number}: K contains values that are not finite")
    if not np.array_equal(ranks, ranks.astype(np.int64)) or ranks.min() < 0:
        raise DataError(f"fit_many, problem {number}: ranks must be integers from 0")
    if ranks.max() >= n_ranks:
        raise DataError(
            f"fit_many, problem {number}: rank {ranks.max()} on a scale of {n_ranks} ranks"
        )
    return stack, np.ascontiguousarray(ranks, dtype=np.int64)


def _log_weights(weights: Any, n_kernels: int) -> np.ndarray:
    weights = np.ones(n_kernels) if weights is None else np.atleast_1d(np.asarray(weights, float))
    if weights.shape != (n_kernels,) or not (np.isfinite(weights) & (weights > 0)).all():
        raise ArgumentError(
            f"fit_many: weights must be {n_kernels} positive numbers, got {weights}"
        )
    return np.log(weights)


def _limits(
    start: np.ndarray, n_kernels: int, weight_bounds: Any, bounds: LikelihoodBounds
) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of all of theta, and which entries may move."""
    free_rho, limits_rho = bounds.free_and_bounds(start[n_kernels:])
    fixed = isinstance(weight_bounds, str)
    if fixed and weight_bounds != "fixed":
        raise ArgumentError(f'weight_bounds must be "fixed" or two numbers, got {weight_bounds!r}')
    rows = (
        np.column_stack([start[:n_kernels]] * 2) if fixed else [np.log(weight_bounds)] * n_kernels
    )
    free = np.concatenate([np.full(n_kernels, not fixed), free_rho])
    return np.vstack([rows, limits_rho]), free


def _even_shares(sizes: list[int]) -> list[np.ndarray]:
    """Problem numbers of shares of about equal cost: the most expensive problems first.

    There are as many shares for any number of threads, so that the sums have the same digits.
    """
    shares: list[list[int]] = [[] for _ in range(min(SHARES, len(sizes)))]
    load = np.zeros(len(shares))
    for u in np.argsort(sizes)[::-1]:
        lightest = int(load.argmin())
        shares[lightest].append(int(u))
        load[lightest] += float(sizes[u]) ** 3 + 1e4
    return [np.array(share) for share in shares]
