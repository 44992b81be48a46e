"""Compiled loops of `OrdinalFactors`: updates of rows, pulls on the drift, and probabilities.

Equation numbers are those of `ordrec.recommend.factors.model`. Users and items are rows of the
same kind, so that one function updates both. Each row reads the other side and writes itself
alone: the rows may be done in any order, by any number of threads, with the same result.

=========  =============================  ==================================================
here       notation of the equations      shape
=========  =============================  ==================================================
mean       E[x], factors then steps       (n_rows, rank + n_steps)
moments    E[p p'], lower triangle        (n_rows, rank (rank + 1) / 2), row by row
variances  variances of the steps         (n_rows, n_steps)
pulls      (1 - l) P times prior mean     as mean
sureness   1 - l of `row_priors`          (n_rows,)
P          prior precision                square
=========  =============================  ==================================================

Everything per rating is in single precision: the products of packed triangles are most of the
work and are done eight at a time. Tests hold the rows to a plain double-precision twin.
"""

from __future__ import annotations

import numpy as np

from ordrec.compiling import called, kept
from ordrec.linalg.lapack import factorise, invert_factorised

__all__ = ["add_rows", "drift_sites", "probabilities", "solve_rows", "update_rows"]

UNIFORM = 1e-3  # share of the uniform distribution in every prediction

# Sums may be reordered, so that they are done in vectors; there is no NaN or infinity to lose.
REORDERED = {"reassoc", "contract", "nsz"}
fast = kept(fastmath=REORDERED)
fast_inner = called(fastmath=REORDERED)


@fast
def update_rows(
    first: int,
    stop: int,
    least: int,
    most: int,
    start: np.ndarray,
    others: np.ndarray,
    levels: np.ndarray,
    shares: np.ndarray,
    drift: np.ndarray,
    their_mean: np.ndarray,
    their_moments: np.ndarray,
    their_variances: np.ndarray,
    pulls: np.ndarray,
    sureness: np.ndarray,
    P: np.ndarray,
    floor: float,
    mean: np.ndarray,
    moments: np.ndarray,
    variances: np.ndarray,
    covariances: np.ndarray,
    addresses: np.ndarray,
) -> None:
    """New posteriors of the rows ``first..stop-1`` with ``least..most`` ratings, (6).

    ``drift`` has the mean and variance of each rating's drift, or no rows where there is none;
    ``shares`` has how much each rating counts, or nothing where all count as one. The posterior
    covariances, times ``sureness``, are added to ``covariances``.
    """
    n_steps = variances.shape[1]
    rank = mean.shape[1] - n_steps
    width = rank + n_steps
    A = np.empty((width, width), np.float32)
    g = np.empty(width, np.float32)
    own = np.empty(moments.shape[1], np.float32)
    stepped = np.empty(n_steps, np.float32)
    crossed = np.empty((n_steps, rank), np.float32)
    gathered = np.empty(moments.shape[1], np.float32)
    for row in range(first, stop):
        if not least <= start[row + 1] - start[row] <= most:
            continue
        for t in range(width):
            g[t] = 0.0
        for k in range(n_steps):
            stepped[k] = 0.0
            for x in range(rank):
                crossed[k, x] = 0.0
        for x in range(gathered.size):
            gathered[x] = 0.0
        _gather(
            start[row], start[row + 1], others, levels, shares, drift, their_mean, their_moments,
            their_variances, floor, mean[row], moments[row], variances[row], own,
            g, stepped, crossed, gathered,
        )  # fmt: skip
        _solve(
            A, g, stepped, crossed, gathered, pulls[row], sureness[row], P, mean[row], moments[row],
            variances[row], covariances, addresses,
        )  # fmt: skip


@fast
def add_rows(
    first: int,
    stop: int,
    start: np.ndarray,
    others: np.ndarray,
    levels: np.ndarray,
    shares: np.ndarray,
    drift: np.ndarray,
    their_mean: np.ndarray,
    their_moments: np.ndarray,
    their_variances: np.ndarray,
    floor: float,
    mean: np.ndarray,
    moments: np.ndarray,
    variances: np.ndarray,
    g: np.ndarray,
    stepped: np.ndarray,
    crossed: np.ndarray,
    gathered: np.ndarray,
) -> None:
    """Add what these ratings say of the rows ``first..stop-1`` to their sums, for `solve_rows`."""
    own = np.empty(moments.shape[1], np.float32)
    for row in range(first, stop):
        if start[row] < start[row + 1]:
            _gather(
                start[row], start[row + 1], others, levels, shares, drift, their_mean,
                their_moments, their_variances, floor, mean[row], moments[row], variances[row], own,
                g[row], stepped[row], crossed[row], gathered[row],
            )  # fmt: skip


@fast
def solve_rows(
    first: int,
    stop: int,
    least: int,
    most: int,
    counts: np.ndarray,
    g: np.ndarray,
    stepped: np.ndarray,
    crossed: np.ndarray,
    gathered: np.ndarray,
    pulls: np.ndarray,
    sureness: np.ndarray,
    P: np.ndarray,
    mean: np.ndarray,
    moments: np.ndarray,
    variances: np.ndarray,
    covariances: np.ndarray,
    addresses: np.ndarray,
) -> None:
    """As `update_rows`, from sums over the ratings; ``counts`` are the rows' numbers of them."""
    A = np.empty(P.shape, np.float32)
    for row in range(first, stop):
        if least <= counts[row] <= most:
            _solve(
                A, g[row], stepped[row], crossed[row], gathered[row], pulls[row], sureness[row], P,
                mean[row], moments[row], variances[row], covariances, addresses,
            )  # fmt: skip


@fast
def drift_sites(
    first: int,
    stop: int,
    start: np.ndarray,
    items: np.ndarray,
    levels: np.ndarray,
    shares: np.ndarray,
    drift: np.ndarray,
    mean: np.ndarray,
    moments: np.ndarray,
    variances: np.ndarray,
    item_mean: np.ndarray,
    item_moments: np.ndarray,
    item_variances: np.ndarray,
    weights: np.ndarray,
    pulls: np.ndarray,
) -> None:
    """What each rating of the users ``first..stop-1`` says of the drift, (8): weight and pull."""
    n_steps = variances.shape[1]
    rank = mean.shape[1] - n_steps
    own = np.empty(moments.shape[1], np.float32)
    for user in range(first, stop):
        _doubled(moments[user], rank, own)
        for a in range(start[user], start[user + 1]):
            item = items[a]
            f, spread = _score(mean[user], item_mean[item], own, item_moments[item], rank)
            known, spread = _drifted(drift, a, spread)
            total, pull = np.float32(0.0), np.float32(0.0)
            for k in range(min(levels[a] + 1, n_steps)):
                fixed = f + mean[user, rank + k] + item_mean[item, rank + k]
                w, h = _term(
                    fixed + known,
                    spread + variances[user, k] + item_variances[item, k],
                    levels[a] > k,
                    0.5,
                )
                total += w
                pull += h - w * fixed
            share = shares[a] if shares.size else np.float32(1.0)
            weights[a], pulls[a] = share * total, share * pull


@fast
def probabilities(
    users: np.ndarray,
    items: np.ndarray,
    drift: np.ndarray,
    mean: np.ndarray,
    moments: np.ndarray,
    variances: np.ndarray,
    item_mean: np.ndarray,
    item_moments: np.ndarray,
    item_variances: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write P(rank) of pairs of rows, (9); pairs of one user should stand together."""
    n_steps = variances.shape[1]
    rank = mean.shape[1] - n_steps
    own = np.empty(moments.shape[1], np.float32)
    share = UNIFORM / (n_steps + 1)
    for a in range(users.size):
        user, item = users[a], items[a]
        if a == 0 or user != users[a - 1]:
            _doubled(moments[user], rank, own)
        f, spread = _score(mean[user], item_mean[item], own, item_moments[item], rank)
        known, spread = _drifted(drift, a, spread)
        left = 1.0 - UNIFORM
        for k in range(n_steps):
            m = f + known + mean[user, rank + k] + item_mean[item, rank + k]
            v = spread + variances[user, k] + item_variances[item, k]
            onward = 1.0 / (1.0 + np.exp(-m / np.sqrt(1.0 + np.pi / 8.0 * v)))
            out[a, k] = left * (1.0 - onward) + share
            left *= onward
        out[a, n_steps] = left + share


# ---- steps -----------------------------------------------------------------------------


@fast_inner
def _score(
    p: np.ndarray, q: np.ndarray, own: np.ndarray, theirs: np.ndarray, rank: int
) -> tuple[np.float32, np.float32]:
    """Mean of p.q, and its variance ``tr(E[pp'] E[qq']) - (E[p].E[q])^2``, (5)."""
    f, square = np.float32(0.0), np.float32(0.0)
    for x in range(rank):
        f += p[x] * q[x]
    for x in range(own.size):
        square += own[x] * theirs[x]
    return f, max(square - f * f, np.float32(0.0))


@fast_inner
def _drifted(drift: np.ndarray, a: int, spread: np.float32) -> tuple[np.float32, np.float32]:
    """The mean of a rating's drift, and the spread with the drift's variance."""
    if drift.shape[0] == 0:
        return np.float32(0.0), spread
    return drift[a, 0], spread + drift[a, 1]


@fast_inner
def _term(
    m: np.float32, v: np.float32, onward: bool, floor: float
) -> tuple[np.float32, np.float32]:
    """Weight and linear coefficient of the quadratic for one step, (3) and (4)."""
    kappa = np.float32(1.0) / np.sqrt(np.float32(1.0) + np.float32(np.pi / 8.0) * v)
    p = np.float32(1.0) / (np.float32(1.0) + np.exp(-kappa * m))
    xi = np.sqrt(m * m + v)
    fall = np.exp(-xi)
    bound = np.float32(0.25)
    if xi > np.float32(1e-3):
        bound = np.float32(0.5) * (np.float32(1.0) - fall) / ((np.float32(1.0) + fall) * xi)
    w = max(kappa * p * (np.float32(1.0) - p), np.float32(floor) * bound)
    return w, (np.float32(1.0) if onward else np.float32(0.0)) - p + w * m


@fast_inner
def _doubled(packed: np.ndarray, rank: int, out: np.ndarray) -> None:
    """A packed triangle with its entries off the diagonal doubled: a dot product is a trace."""
    at = 0
    for x in range(rank):
        for _ in range(x):
            out[at] = np.float32(2.0) * packed[at]
            at += 1
        out[at] = packed[at]
        at += 1


@fast_inner
def _gather(
    begin: int,
    end: int,
    others: np.ndarray,
    levels: np.ndarray,
    shares: np.ndarray,
    drift: np.ndarray,
    their_mean: np.ndarray,
    their_moments: np.ndarray,
    their_variances: np.ndarray,
    floor: float,
    mean: np.ndarray,
    moments: np.ndarray,
    variances: np.ndarray,
    own: np.ndarray,
    g: np.ndarray,
    stepped: np.ndarray,
    crossed: np.ndarray,
    gathered: np.ndarray,
) -> None:
    """Add one row's ratings ``begin..end-1`` to the sums of its linear system, (6).

    ``g`` is the right-hand side; the matrix has the diagonal of the steps, the block of steps and
    factors and, packed, that of the factors. ``own`` is room for a packed triangle.
    """
    n_steps = variances.size
    rank = mean.size - n_steps
    _doubled(moments, rank, own)
    for a in range(begin, end):
        other = others[a]
        q = their_mean[other]
        f, spread = _score(mean, q, own, their_moments[other], rank)
        known, spread = _drifted(drift, a, spread)
        weights, pull = np.float32(0.0), np.float32(0.0)
        for k in range(min(levels[a] + 1, n_steps)):
            t = rank + k
            fixed = q[t] + known
            w, h = _term(
                f + fixed + mean[t],
                spread + variances[k] + their_variances[other, k],
                levels[a] > k,
                floor,
            )
            if shares.size:
                w, h = shares[a] * w, shares[a] * h
            h -= w * fixed
            weights += w
            pull += h
            g[t] += h
            stepped[k] += w
            for x in range(rank):
                crossed[k, x] += w * q[x]
        for x in range(rank):
            g[x] += pull * q[x]
        for x in range(gathered.size):
            gathered[x] += weights * their_moments[other, x]


@fast_inner
def _solve(
    A: np.ndarray,
    g: np.ndarray,
    stepped: np.ndarray,
    crossed: np.ndarray,
    gathered: np.ndarray,
    pull: np.ndarray,
    sureness: np.float32,
    P: np.ndarray,
    mean: np.ndarray,
    moments: np.ndarray,
    variances: np.ndarray,
    covariances: np.ndarray,
    addresses: np.ndarray,
) -> None:
    """A row's new posterior from its sums and its prior, (6); ``A`` is room, ``g`` is lost."""
    rank = mean.size - variances.size
    for x in range(g.size):
        g[x] += pull[x]
        for y in range(g.size):
            A[x, y] = sureness * P[x, y]
    at = 0
    for x in range(rank):
        for k in range(stepped.size):
            A[x, rank + k] += crossed[k, x]
        for y in range(x + 1):
            A[y, x] += gathered[at]
            at += 1
    for k in range(stepped.size):
        A[rank + k, rank + k] += stepped[k]
    factorise(A, addresses)
    invert_factorised(A, addresses)
    for x in range(g.size):  # A is the covariance now
        total = np.float32(0.0)
        for y in range(g.size):
            total += A[x, y] * g[y]
            covariances[x, y] += sureness * A[x, y]
        mean[x] = total
    at = 0
    for x in range(rank):
        for y in range(x + 1):
            moments[at] = A[x, y] + mean[x] * mean[y]
            at += 1
    for k in range(variances.size):
        variances[k] = A[rank + k, rank + k]
