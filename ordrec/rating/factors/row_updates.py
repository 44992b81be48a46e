"""Compiled loops of `OrdinalFactors`: updates of rows, pulls on the drift, and probabilities.

Equation numbers are those of `ordrec.rating.factors.model`. Users and items are rows of the
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

Everything per rating is in single precision and in loops that the compiler makes vectors of: the
products of packed triangles, the steps of several ratings, and the inverse, are most of the work.
Tests hold the rows to a plain double-precision twin. The loops get the room that they need from
Python functions of the same names: memory of their own would take longer to compile, and so would
``min`` and ``max``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ordrec.rating.factors.vectors import REORDERED, falling_exponential, negative_inverse
from ordrec.runtime.compiling import called, kept

__all__ = [
    "add_rows",
    "drift_sites",
    "probabilities",
    "room_for_sums",
    "solve_rows",
    "update_rows",
]

UNIFORM = 1e-3  # share of the uniform distribution in every prediction
CHUNK = 16  # ratings whose steps are weighed together
ROWS = 256  # whose sums are held at a time

ONE, HALF, QUARTER = np.float32(1.0), np.float32(0.5), np.float32(0.25)
NEAR = np.float32(0.03)  # below, the bound (4) is its series: 1 - exp(-x) would lose digits
PI_8, BY_48 = np.float32(np.pi / 8.0), np.float32(1.0 / 48.0)
MEAN, VARIANCE, ONWARD, WEIGHT, PULL = range(5)  # rows of the room for steps

fast = kept(fastmath=REORDERED)
fast_inner = called(fastmath=REORDERED)


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
) -> None:
    """New posteriors of the rows ``first..stop-1`` with ``least..most`` ratings, (6).

    ``drift`` has the mean and variance of each rating's drift, or no rows where there is none;
    ``shares`` has how much each rating counts, or nothing where all count as one. The posterior
    covariances, times ``sureness``, are added to the lower triangle of ``covariances``.
    """
    n_steps = variances.shape[1]
    rank = mean.shape[1] - n_steps
    room = room_for_sums(min(ROWS, stop - first), rank, n_steps)
    for begin in range(first, stop, ROWS):
        part = slice(begin, min(begin + ROWS, stop))
        n_rows = part.stop - begin
        sums = [each[:n_rows] for each in room]
        for each in sums:
            each.fill(0.0)
        starts, rows = start[begin : part.stop + 1], (mean[part], moments[part], variances[part])
        add_rows(
            0, n_rows, least, most, starts, others, levels, shares, drift, their_mean,
            their_moments, their_variances, floor, *rows, *sums,
        )  # fmt: skip
        solve_rows(
            0, n_rows, least, most, np.diff(starts), *sums, pulls[part], sureness[part], P, *rows,
            covariances,
        )  # fmt: skip


def room_for_sums(n_rows: int, rank: int, n_steps: int) -> tuple[np.ndarray, ...]:
    """Arrays for the sums of `add_rows`: the right-hand sides and three parts of the matrices."""
    shapes = (rank + n_steps,), (n_steps,), (n_steps, rank), (rank * (rank + 1) // 2,)
    return tuple(np.empty((n_rows, *shape), np.float32) for shape in shapes)


def add_rows(*arguments: Any) -> None:
    """Add ratings to the sums of linear systems: `_add_rows`, but for its room."""
    n_steps, packed = arguments[-3].shape[1], arguments[-1].shape[1]
    room = np.empty(packed, np.float32), np.empty((5, CHUNK * n_steps), np.float32)
    _add_rows(*arguments, *room)


def solve_rows(*arguments: Any) -> None:
    """Solve linear systems: `_solve_rows`, but for its room."""
    width = arguments[-1].shape[0]
    room = np.empty((width, width), np.float32), np.empty(width, np.float32)
    _solve_rows(*arguments, *room)


def drift_sites(*arguments: Any) -> None:
    """What ratings say of the drift: `_drift_sites`, but for its room."""
    item_moments, item_variances = arguments[-4:-2]
    steps = np.empty((5, item_variances.shape[1]), np.float32)
    _drift_sites(*arguments, np.empty(item_moments.shape[1], np.float32), steps)


def probabilities(*arguments: Any) -> None:
    """Write P(rank) of pairs of rows: `_probabilities`, but for its room."""
    _probabilities(*arguments, np.empty(arguments[-3].shape[1], np.float32))


@fast
def _add_rows(
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
    floor: float,
    mean: np.ndarray,
    moments: np.ndarray,
    variances: np.ndarray,
    g: np.ndarray,
    stepped: np.ndarray,
    crossed: np.ndarray,
    gathered: np.ndarray,
    own: np.ndarray,
    steps: np.ndarray,
) -> None:
    """Add the ratings of rows with ``least..most`` of them to the sums of linear systems, (6).

    ``g`` is the right-hand side; the matrix has the diagonal of the steps, the block of steps and
    factors and, packed, that of the factors.
    """
    n_steps = variances.shape[1]
    rank = mean.shape[1] - n_steps
    for row in range(first, stop):
        if not least <= start[row + 1] - start[row] <= most:
            continue
        _doubled(moments[row], rank, own)
        for begin in range(start[row], start[row + 1], CHUNK):
            end = begin + CHUNK if begin + CHUNK < start[row + 1] else start[row + 1]
            n = 0
            for a in range(begin, end):
                other = others[a]
                f, spread = _score(mean[row], their_mean[other], own, their_moments[other], rank)
                known, spread = _drifted(drift, a, spread)
                n = _put_steps(
                    steps, n, levels[a], f + known, spread, mean[row], variances[row],
                    their_mean[other], their_variances[other],
                )  # fmt: skip
            _weigh_steps(steps, n, floor)
            n = 0
            for a in range(begin, end):
                other = others[a]
                known, _ = _drifted(drift, a, ONE)
                share = shares[a] if shares.size else ONE
                weights, pull = np.float32(0.0), np.float32(0.0)
                for k in range(levels[a] + 1 if levels[a] < n_steps else n_steps):
                    w = share * steps[WEIGHT, n]
                    h = share * steps[PULL, n] - w * (their_mean[other, rank + k] + known)
                    n += 1
                    weights += w
                    pull += h
                    g[row, rank + k] += h
                    stepped[row, k] += w
                    for x in range(rank):
                        crossed[row, k, x] += w * their_mean[other, x]
                for x in range(rank):
                    g[row, x] += pull * their_mean[other, x]
                for x in range(gathered.shape[1]):
                    gathered[row, x] += weights * their_moments[other, x]


@fast
def _solve_rows(
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
    A: np.ndarray,
    x_new: np.ndarray,
) -> None:
    """As `update_rows`, from sums over the ratings; ``counts`` are the rows' numbers of them."""
    n_steps = variances.shape[1]
    rank = mean.shape[1] - n_steps
    width = rank + n_steps
    for row in range(first, stop):
        if not least <= counts[row] <= most:
            continue
        for x in range(width):
            g[row, x] += pulls[row, x]
            for y in range(x + 1):
                A[x, y] = sureness[row] * P[x, y]
        at = 0
        for x in range(rank):
            for y in range(x + 1):
                A[x, y] += gathered[row, at + y]
            at += x + 1
        for k in range(n_steps):
            for x in range(rank):
                A[rank + k, x] += crossed[row, k, x]
            A[rank + k, rank + k] += stepped[row, k]
        negative_inverse(A, x_new)
        for x in range(width):  # the lower triangle of A is minus the covariance now
            total = A[x, x] * g[row, x]
            for y in range(x):
                total += A[x, y] * g[row, y]
                x_new[y] -= A[x, y] * g[row, x]
            x_new[x] = -total
            for y in range(x + 1):
                covariances[x, y] -= sureness[row] * A[x, y]
        at = 0
        for x in range(width):
            mean[row, x] = x_new[x]
        for x in range(rank):
            for y in range(x + 1):
                moments[row, at + y] = x_new[x] * x_new[y] - A[x, y]
            at += x + 1
        for k in range(n_steps):
            variances[row, k] = -A[rank + k, rank + k]


@fast
def _drift_sites(
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
    own: np.ndarray,
    steps: np.ndarray,
) -> None:
    """What each rating of the users ``first..stop-1`` says of the drift, (8): weight and pull."""
    n_steps = variances.shape[1]
    rank = mean.shape[1] - n_steps
    w, h = steps[WEIGHT], steps[PULL]
    for user in range(first, stop):
        _doubled(moments[user], rank, own)
        for a in range(start[user], start[user + 1]):
            item = items[a]
            f, spread = _score(mean[user], item_mean[item], own, item_moments[item], rank)
            known, spread = _drifted(drift, a, spread)
            n = _put_steps(
                steps, 0, levels[a], f + known, spread, mean[user], variances[user],
                item_mean[item], item_variances[item],
            )  # fmt: skip
            _weigh_steps(steps, n, 0.5)
            total, pull = np.float32(0.0), np.float32(0.0)
            for k in range(n):
                fixed = f + mean[user, rank + k] + item_mean[item, rank + k]
                total += w[k]
                pull += h[k] - w[k] * fixed
            share = shares[a] if shares.size else ONE
            weights[a], pulls[a] = share * total, share * pull


@fast
def _probabilities(
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
    own: np.ndarray,
) -> None:
    """Write P(rank) of pairs of rows, (9); pairs of one user should stand together."""
    n_steps = variances.shape[1]
    rank = mean.shape[1] - n_steps
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
    rest = square - f * f
    return f, rest if rest > 0 else np.float32(0.0)


@fast_inner
def _drifted(drift: np.ndarray, a: int, spread: np.float32) -> tuple[np.float32, np.float32]:
    """The mean of a rating's drift, and the spread with the drift's variance."""
    if drift.shape[0] == 0:
        return np.float32(0.0), spread
    return drift[a, 0], spread + drift[a, 1]


@fast_inner
def _put_steps(
    steps: np.ndarray,
    n: int,
    level: int,
    f: np.float32,
    spread: np.float32,
    mean: np.ndarray,
    variances: np.ndarray,
    their_mean: np.ndarray,
    their_variances: np.ndarray,
) -> int:
    """Write what `_weigh_steps` needs of the steps of one rating, the first to place n.

    Returns the place after the last.
    """
    n_steps = variances.size
    rank = mean.size - n_steps
    for k in range(level + 1 if level < n_steps else n_steps):
        steps[MEAN, n] = f + mean[rank + k] + their_mean[rank + k]
        steps[VARIANCE, n] = spread + variances[k] + their_variances[k]
        steps[ONWARD, n] = level > k
        n += 1
    return n


@fast_inner
def _weigh_steps(steps: np.ndarray, n: int, floor: float) -> None:
    """Write weights and linear coefficients of the quadratics for n steps, (3) and (4)."""
    mean, variance, onward, weight, pull = steps[0], steps[1], steps[2], steps[3], steps[4]
    least = np.float32(floor)
    for e in range(n):
        m, v = mean[e], variance[e]
        kappa = ONE / np.sqrt(ONE + PI_8 * v)
        fall = falling_exponential(kappa * abs(m))
        above = ONE / (ONE + fall)
        p = above if m > 0 else fall * above
        xi = np.sqrt(m * m + v)
        fall_xi = falling_exponential(xi)
        bound = QUARTER - BY_48 * xi * xi
        if xi > NEAR:
            bound = HALF * (ONE - fall_xi) / ((ONE + fall_xi) * xi)
        w = kappa * fall * above * above
        w = w if w > least * bound else least * bound
        weight[e] = w
        pull[e] = onward[e] - p + w * m


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
