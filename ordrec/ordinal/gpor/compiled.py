"""Laplace's approximation of one small problem, compiled, without the interpreter lock.

The same search as `ordrec.ordinal.gpor.laplace`, which has the formulas and the constants, for
K = sum_j weight_j K_j, in one call that any number of threads may make at once. There are two
because neither serves both uses: in Python a problem of thirty samples takes five times as long and
holds the lock, and compiled for whole and induced covariances of any size, the first fit of `GPOR`
would wait for the compiler. The tests compare them to the last digits.
"""

from __future__ import annotations

import numpy as np

from ordrec.linalg.small import invert_lower, solve_small
from ordrec.ordinal.gpor.laplace import FLAT, HALVINGS, MAX_ITER, STALLED, TOLERANCE
from ordrec.ordinal.gpor.likelihood import interval_cumulants
from ordrec.ordinal.gram.posterior import FAINT, VISIBLE
from ordrec.runtime.compiling import compiled

__all__ = ["problem_evidence"]


@compiled
def problem_evidence(
    stack: np.ndarray,
    ranks: np.ndarray,
    weights: np.ndarray,
    noise: float,
    edges: np.ndarray,
    coef: np.ndarray,
    precision: np.ndarray,
    by_weights: np.ndarray,
    by_edges: np.ndarray,
) -> tuple[float, float, float, bool]:
    """Return the log-evidence of one problem; its gradient is added to two of the arguments.

    Parameters
    ----------
    stack : ndarray of shape (n_kernels, n, n)
    ranks : ndarray of int64, zero-based
    weights : ndarray of shape (n_kernels,)
    noise : float
    edges : ndarray of shape (n_ranks + 1,)
        The thresholds between minus and plus infinity.
    coef, precision : ndarray of shape (n,)
        The start of the search, overwritten by its result.
    by_weights : ndarray of shape (n_kernels,)
        The slopes with respect to the logarithms of the weights are added to it.
    by_edges : ndarray of shape (n_ranks + 1,)
        The slopes with respect to the edges are added to it (zero for the infinite ones).

    Returns
    -------
    log_evidence, by_log_noise, violation : float
    converged : bool
    """
    n = ranks.size
    K = np.zeros((n, n))
    for j in range(weights.size):
        K += weights[j] * stack[j]
    terms = np.empty((8, n))
    f = np.zeros(n)
    loss = _evaluate(f, ranks, edges, noise, terms)
    warm = K @ coef
    warm_energy = _evaluate(warm, ranks, edges, noise, terms) + 0.5 * np.dot(coef, warm)
    if warm_energy < loss:
        f, energy = warm, warm_energy
    else:
        energy = _evaluate(f, ranks, edges, noise, terms)
        coef[:] = 0.0
    energy, violation, converged, L = _newton(
        K, ranks, edges, noise, coef, f, terms, energy, precision
    )
    value = -energy
    for i in range(n):
        value -= np.log(L[i, i])
    by_log_noise = _slopes(
        K, stack, weights, ranks, noise, edges, coef, f, terms, L, by_weights, by_edges
    )
    return value, by_log_noise, violation, converged


@compiled
def _newton(K, ranks, edges, noise, coef, f, terms, energy, precision):  # type: ignore[no-untyped-def]
    n = ranks.size
    trial_terms = np.empty_like(terms)
    n_iter = 0
    while True:
        violation, scale = 0.0, 1.0
        for i in range(n):
            slope = -terms[1, i] / noise
            violation = max(violation, abs(slope + coef[i]))
            scale = max(scale, 1.0 + abs(slope))
            precision[i] = terms[2, i] / (noise * noise)
        root = np.sqrt(precision)
        B = K * root
        B *= root.reshape((n, 1))
        for i in range(n):
            B[i, i] += 1.0
        L = np.linalg.cholesky(B)
        converged = violation <= TOLERANCE * scale
        if converged or n_iter == MAX_ITER:
            return energy, violation, converged, L
        b = precision * f + terms[1] / noise
        step = _remainder(K, L, root, b) - coef
        shift = K @ step
        size, lower, accepted = 1.0, energy, False
        for _ in range(HALVINGS):
            moved_coef, moved_f = coef + size * step, f + size * shift
            lower = _evaluate(moved_f, ranks, edges, noise, trial_terms)
            lower += 0.5 * np.dot(moved_coef, moved_f)
            accepted = lower < energy
            if not accepted and lower <= energy + FLAT * (1.0 + abs(energy)):
                residual = np.abs(moved_coef - trial_terms[1] / noise).max()
                accepted = residual < 0.5 * violation
            if accepted:
                break
            size *= 0.5
        if not accepted:  # neither S nor the residual falls in floating point
            return energy, violation, violation <= STALLED * scale, L
        coef[:] = moved_coef
        f[:] = moved_f
        terms[:] = trial_terms
        energy = lower
        n_iter += 1


@compiled
def _slopes(K, stack, weights, ranks, noise, edges, coef, f, terms, L, by_weights, by_edges):  # type: ignore[no-untyped-def]
    """Add to by_weights and by_edges; return the slope with respect to ln(sigma)."""
    n = ranks.size
    precision = terms[2] / (noise * noise)
    root = np.sqrt(precision)
    inverse = invert_lower(L)
    rest = np.zeros(n)
    for i in range(n):
        for j in range(i + 1):
            rest[j] += inverse[i, j] * inverse[i, j]
    A = np.empty(n)
    for i in range(n):
        # where the curvature is too small to show in 1 - (B^-1)_ii, l''' is 0 too: any A will do
        A[i] = (1.0 - rest[i]) / precision[i] if 1.0 - rest[i] > VISIBLE else K[i, i]
    along = 0.5 * A * terms[4] / noise**3  # -1/2 A l'''
    u = _remainder(K, L, root, along)
    moved = K @ u
    left = 0.5 * coef + u
    if weights.size == 1:
        # tr(R K) = tr(B^-1 (B - I)): the diagonal is enough
        by_weights[0] += np.dot(left, K @ coef) - 0.5 * (n - rest.sum())
    else:
        R = inverse.T @ inverse
        R *= root
        R *= root.reshape((n, 1))
        for j in range(weights.size):
            trace = 0.0
            for i in range(n):
                for k in range(n):
                    trace += (left[i] * coef[k] - 0.5 * R[i, k]) * stack[j, i, k]
            by_weights[j] += weights[j] * trace
    by_log_noise = 0.0
    for i in range(n):
        mean, deficit, variance, third = terms[1, i], terms[2, i], terms[3, i], terms[4, i]
        first = deficit - mean * mean
        second = -(third - 2.0 * mean * deficit) / noise
        last = -(terms[5, i] + 2.0 * deficit**2 + 2.0 * mean * third) / noise**2
        by_log_noise -= first + moved[i] * second + 0.5 * A[i] * last
        for side in range(2):  # the lower and the upper edge of the sample's interval
            density = terms[6 + side, i] / noise * (1.0 - 2.0 * side)
            if density != 0.0:
                away = (edges[ranks[i] + side] - f[i]) / noise - mean
                share = 1.0 + moved[i] * away / noise
                share += 0.5 * A[i] * (away * away - variance) / noise**2
                by_edges[ranks[i] + side] -= density * share
    return by_log_noise


@compiled
def _evaluate(f, ranks, edges, noise, terms):  # type: ignore[no-untyped-def]
    """Fill in the cumulants of all samples; return the sum of l."""
    loss = 0.0
    for i in range(f.size):
        found = interval_cumulants(
            (edges[ranks[i]] - f[i]) / noise, (edges[ranks[i] + 1] - f[i]) / noise
        )
        for row in range(8):
            terms[row, i] = found[row]
        loss -= found[0]
    return loss


@compiled
def _remainder(K, L, root, v):  # type: ignore[no-untyped-def]
    """v - R K v, see `DenseFactor.remainder`."""
    scaled, faint = np.zeros(v.size), np.zeros(v.size)
    smallest, any_faint = FAINT * root.max(), False
    for i in range(v.size):
        if root[i] > smallest:
            scaled[i] = v[i] / root[i]
        else:
            faint[i] = v[i]
            any_faint = True
    rest = root * _solve(L, scaled)
    if any_faint:
        rest += faint - root * _solve(L, root * (K @ faint))
    return rest


@compiled
def _solve(L, x):  # type: ignore[no-untyped-def]
    """(L L')^-1 x."""
    y = np.empty_like(x)
    solve_small(L, x, y)
    return y
