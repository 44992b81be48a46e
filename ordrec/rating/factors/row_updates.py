"""Compiled loops of `OrdinalFactors`: updates of rows, sites of the drift, and probabilities.

Equation numbers are those of `ordrec.rating.factors.model`. Users and items are rows of the same
kind, so one function updates both. A row reads the other side and writes only itself: rows can be
processed in any order, by any number of threads, with the same result.

The compiled loops take their arrays in named tuples: `RowArrays`, `RatingArrays` and `PriorArrays`
of `rows`, `LinearSystems` and `Workspace`. Each loop unpacks them first, because the compiler
spends time on every access to a field.

Everything per rating is in single precision and in loops that the compiler vectorises: the
products of packed triangles, the steps of several ratings, and the inverse are most of the work.
Tests compare the rows with a plain double-precision twin. Python allocates the `Workspace`,
because array allocation inside the loops would compile more slowly; so would ``min`` and ``max``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ordrec.rating.factors.rows import (
    CompactRows,
    GroupedRatings,
    PriorArrays,
    RatingArrays,
    RowArrays,
    RowPosteriors,
)
from ordrec.runtime.compiling import compiled_with, inlined_with

__all__ = [
    "NO_DRIFT",
    "LinearSystems",
    "add_ratings",
    "compact_probabilities",
    "drift_sites",
    "probabilities",
    "solve_rows",
    "update_rows",
    "weight_floor",
]

NO_DRIFT = np.zeros((0, 2), np.float32)
BOUND_UPDATES = 3  # at the start, with the weights of the bound (4) in full
FLOOR = 0.5  # of the weights afterwards, in units of those of the bound
UNIFORM = 1e-3  # share of the uniform distribution in every prediction
CHUNK = 16  # ratings whose steps are weighted together
BATCH = 256  # rows whose linear systems are in memory together

ONE, HALF, THIRD, QUARTER, FIFTH, SIXTH = (np.float32(1.0 / n) for n in range(1, 7))
NEAR = np.float32(0.03)  # below, the bound (4) is its series: 1 - exp(-x) would lose digits
PI_8, BY_48 = np.float32(np.pi / 8.0), np.float32(1.0 / 48.0)
MEAN, VARIANCE, ONWARD, WEIGHT, PULL = range(5)  # rows of `Workspace.steps`

PER_LN2 = np.float32(1.44269504)
LN2_HIGH, LN2_LOW = np.float32(0.693359375), np.float32(-2.1219444e-4)  # ln(2) in two parts
FARTHEST = np.float32(80.0)  # beyond, exp(-x) is as good as 0, and 2^-n would be denormal

# Sums may be reordered so that they can be vectorised; no NaN or infinity occurs in them.
REORDERED = {"reassoc", "contract", "nsz"}
fast = compiled_with(fastmath=REORDERED)
fast_inner = inlined_with(fastmath=REORDERED)


class LinearSystems(NamedTuple):
    """Sums over ratings for the linear systems (6) of some rows, without their priors.

    Attributes
    ----------
    right : ndarray of shape (n_rows, n_factors + n_steps)
        The right-hand sides.
    steps : ndarray of shape (n_rows, n_steps)
        The diagonal of the steps.
    cross : ndarray of shape (n_rows, n_steps, n_factors)
        The block of steps and factors.
    factors : ndarray of shape (n_rows, n_factors (n_factors + 1) / 2)
        The lower triangle of the block of the factors, row by row.
    """

    right: np.ndarray
    steps: np.ndarray
    cross: np.ndarray
    factors: np.ndarray

    @classmethod
    def zeros(cls, n_rows: int, n_factors: int, n_steps: int) -> LinearSystems:
        """Return systems without ratings."""
        shapes = (
            (n_factors + n_steps,),
            (n_steps,),
            (n_steps, n_factors),
            (n_factors * (n_factors + 1) // 2,),
        )
        return cls(*(np.zeros((n_rows, *shape), np.float32) for shape in shapes))

    def part(self, rows: slice) -> LinearSystems:
        """Return the systems of some rows, as views of these."""
        return LinearSystems(*(array[rows] for array in self))

    def solve(
        self,
        chosen: np.ndarray,
        place: slice,
        prior: PriorArrays,
        rows: RowPosteriors,
        covariances: np.ndarray,
    ) -> None:
        """Solve the systems at this place, which are those of the chosen rows."""
        solve_rows(chosen, self.part(place), prior, rows, covariances)


class Workspace(NamedTuple):
    """Scratch memory of the compiled loops.

    Attributes
    ----------
    packed : ndarray of shape (n_factors (n_factors + 1) / 2,)
        Second moments of a row's factors, those off the diagonal doubled.
    steps : ndarray of shape (5, CHUNK * n_steps)
        Mean, variance, whether it was taken, weight and pull of each step of some ratings.
    A : ndarray of shape (n_factors + n_steps, n_factors + n_steps)
        The matrix of a row's linear system.
    column : ndarray of shape (n_factors + n_steps,)
    """

    packed: np.ndarray
    steps: np.ndarray
    A: np.ndarray
    column: np.ndarray

    @classmethod
    def of(cls, rows: RowArrays) -> Workspace:
        """Allocate scratch memory for rows of this shape."""
        width, n_steps = rows.mean.shape[1], rows.variances.shape[1]
        shapes = (rows.moments.shape[1],), (5, CHUNK * n_steps), (width, width), (width,)
        return cls(*(np.empty(shape, np.float32) for shape in shapes))


def weight_floor(n_updates: int) -> float:
    """Return c of (4) for rows that have been updated ``n_updates`` times.

    Examples
    --------
    >>> weight_floor(0), weight_floor(3)
    (1.0, 0.5)
    """
    return 1.0 if n_updates < BOUND_UPDATES else FLOOR


def update_rows(
    chosen: np.ndarray,
    ratings: GroupedRatings,
    drift: np.ndarray,
    others: RowPosteriors,
    prior: PriorArrays,
    floor: float,
    rows: RowPosteriors,
    covariances: np.ndarray,
) -> None:
    """Replace the posteriors of some rows by new ones, (6).

    Parameters
    ----------
    chosen : ndarray of int64
        Numbers of the rows.
    ratings : GroupedRatings
        The ratings of all rows.
    drift : ndarray of shape (n_ratings, 2) or (0, 2)
        Mean and variance of the drift at each rating; `NO_DRIFT` where there is none.
    others : RowPosteriors
        The other side.
    prior : PriorArrays
    floor : float
        c of (4).
    rows : RowPosteriors
        All rows; the chosen ones change.
    covariances : ndarray
        The posterior covariances, times the weights of the prior, are added to its lower triangle.
    """
    systems = LinearSystems.zeros(
        min(BATCH, chosen.size), others.n_factors, rows.variances.shape[1]
    )
    for begin in range(0, chosen.size, BATCH):
        batch = chosen[begin : begin + BATCH]
        own = systems.part(slice(batch.size))
        if begin:
            for array in own:
                array.fill(0.0)
        add_ratings(batch, ratings, drift, others, floor, rows, own)
        solve_rows(batch, own, prior, rows, covariances)


def add_ratings(
    chosen: np.ndarray,
    ratings: GroupedRatings,
    drift: np.ndarray,
    others: RowPosteriors,
    floor: float,
    rows: RowPosteriors,
    systems: LinearSystems,
) -> None:
    """Add the ratings of some rows to their linear systems; parameters as of `update_rows`.

    The systems stand in the order of ``chosen``.
    """
    arrays = rows.arrays
    _add_ratings(
        chosen, ratings.arrays, drift, others.arrays, floor, arrays, systems, Workspace.of(arrays)
    )


def solve_rows(
    chosen: np.ndarray,
    systems: LinearSystems,
    prior: PriorArrays,
    rows: RowPosteriors,
    covariances: np.ndarray,
) -> None:
    """Solve linear systems, which stand in the order of ``chosen``; see `update_rows`."""
    arrays = rows.arrays
    _solve_rows(chosen, systems, prior, arrays, covariances, Workspace.of(arrays))


def drift_sites(
    piece: tuple[int, int],
    ratings: GroupedRatings,
    drift: np.ndarray,
    users: RowPosteriors,
    items: RowPosteriors,
    weights: np.ndarray,
    pulls: np.ndarray,
) -> None:
    """Write what each rating of the users ``piece[0]..piece[1] - 1`` says of the drift, (8)."""
    arrays = users.arrays
    _drift_sites(
        *piece, ratings.arrays, drift, arrays, items.arrays, weights, pulls, Workspace.of(arrays)
    )


def probabilities(
    pairs: tuple[np.ndarray, np.ndarray],
    drift: np.ndarray,
    users: RowPosteriors,
    items: RowPosteriors,
) -> np.ndarray:
    """Return P(rank) of pairs of rows while they are fitted, (9).

    Parameters
    ----------
    pairs : (ndarray of int64, ndarray of int64)
        Rows of users and of items. It is faster if pairs of one user are adjacent.
    drift : ndarray of shape (n_pairs, 2) or (0, 2)
    users, items : RowPosteriors
    """
    arrays = users.arrays
    scores = np.empty((pairs[0].size, 2), np.float32)
    _full_scores(*pairs, arrays, items.arrays, scores, Workspace.of(arrays))
    return _of_scores(
        pairs, scores, drift, (users.mean, users.variances), (items.mean, items.variances)
    )


def compact_probabilities(
    pairs: tuple[np.ndarray, np.ndarray],
    drift: np.ndarray,
    users: CompactRows,
    items: CompactRows,
) -> np.ndarray:
    """Return P(rank) of pairs of rows of a fitted model, (9).

    With ``Cov[p] = T diag(d) T'`` and ``Cov[q] = U diag(e) U'``, the variance (5) is

        ``d . ((T'q)^2 + (T'U)^2 e) + e . (U'p)^2``,

    squares being those of the entries: two products of vectors for each pair. Rows are numbered
    from the end where negative; the other parameters are those of `probabilities`.
    """
    (user_rows, user_places), (item_rows, item_places) = (
        np.unique(rows, return_inverse=True) for rows in pairs
    )
    own, theirs = (
        tuple(
            np.ascontiguousarray(array[rows], np.float32)
            for array in (side.mean, side.spreads, side.variances)
        )
        for side, rows in ((users, user_rows), (items, item_rows))
    )
    mixing = (users.axes.T @ items.axes) ** 2
    reaches = np.empty_like(own[1]), np.empty_like(theirs[1])
    _reaches(own[0], own[1], items.axes, np.zeros_like(mixing), reaches[0])
    _reaches(theirs[0], theirs[1], users.axes, mixing, reaches[1])
    places = user_places.astype(np.int64), item_places.astype(np.int64)
    scores = np.empty((places[0].size, 2), np.float32)
    _compact_scores(
        *places, (own[0], own[1], reaches[0]), (theirs[0], theirs[1], reaches[1]), scores
    )
    return _of_scores(places, scores, drift, (own[0], own[2]), (theirs[0], theirs[2]))


def _of_scores(
    pairs: tuple[np.ndarray, np.ndarray],
    scores: np.ndarray,
    drift: np.ndarray,
    users: tuple[np.ndarray, np.ndarray],
    items: tuple[np.ndarray, np.ndarray],
) -> np.ndarray:
    """Return P(rank), given mean and variance of each p.q, and means and variances of the rows."""
    out = np.empty((pairs[0].size, users[1].shape[1] + 1))
    _probabilities(*pairs, scores, drift, users, items, out)
    return out


@fast
def _add_ratings(
    chosen: np.ndarray,
    ratings: RatingArrays,
    drift: np.ndarray,
    others: RowArrays,
    floor: float,
    rows: RowArrays,
    systems: LinearSystems,
    workspace: Workspace,
) -> None:
    start, other_rows, levels, shares = ratings
    their_mean, their_moments, their_variances = others
    mean, moments, variances = rows
    right, step_diagonal, cross, factors = systems
    own, steps = workspace.packed, workspace.steps
    n_steps = variances.shape[1]
    n_factors = mean.shape[1] - n_steps
    for place in range(chosen.size):
        row = chosen[place]
        _double_off_diagonal(moments[row], n_factors, own)
        for begin in range(start[row], start[row + 1], CHUNK):
            end = begin + CHUNK if begin + CHUNK < start[row + 1] else start[row + 1]
            n = 0
            for a in range(begin, end):
                other = other_rows[a]
                f, spread = _score(
                    mean[row], their_mean[other], own, their_moments[other], n_factors
                )
                known, spread = _with_drift(drift, a, spread)
                n = _put_steps(
                    steps, n, levels[a], f + known, spread, mean[row], variances[row],
                    their_mean[other], their_variances[other],
                )  # fmt: skip
            _weigh_steps(steps, n, floor)
            n = 0
            for a in range(begin, end):
                other = other_rows[a]
                known, _ = _with_drift(drift, a, ONE)
                share = shares[a] if shares.size else ONE
                weights, pull = np.float32(0.0), np.float32(0.0)
                for k in range(levels[a] + 1 if levels[a] < n_steps else n_steps):
                    w = share * steps[WEIGHT, n]
                    h = share * steps[PULL, n] - w * (their_mean[other, n_factors + k] + known)
                    n += 1
                    weights += w
                    pull += h
                    right[place, n_factors + k] += h
                    step_diagonal[place, k] += w
                    for x in range(n_factors):
                        cross[place, k, x] += w * their_mean[other, x]
                for x in range(n_factors):
                    right[place, x] += pull * their_mean[other, x]
                for x in range(factors.shape[1]):
                    factors[place, x] += weights * their_moments[other, x]


@fast
def _solve_rows(
    chosen: np.ndarray,
    systems: LinearSystems,
    prior: PriorArrays,
    rows: RowArrays,
    covariances: np.ndarray,
    workspace: Workspace,
) -> None:
    right, step_diagonal, cross, factors = systems
    pulls, prior_weights, P = prior
    mean, moments, variances = rows
    A, x_new = workspace.A, workspace.column
    n_steps = variances.shape[1]
    n_factors = mean.shape[1] - n_steps
    width = n_factors + n_steps
    for place in range(chosen.size):
        row = chosen[place]
        for x in range(width):
            right[place, x] += pulls[row, x]
            for y in range(x + 1):
                A[x, y] = prior_weights[row] * P[x, y]
        at = 0
        for x in range(n_factors):
            for y in range(x + 1):
                A[x, y] += factors[place, at + y]
            at += x + 1
        for k in range(n_steps):
            for x in range(n_factors):
                A[n_factors + k, x] += cross[place, k, x]
            A[n_factors + k, n_factors + k] += step_diagonal[place, k]
        invert_and_negate(A, x_new)
        for x in range(width):  # the lower triangle of A is minus the covariance now
            total = A[x, x] * right[place, x]
            for y in range(x):
                total += A[x, y] * right[place, y]
                x_new[y] -= A[x, y] * right[place, x]
            x_new[x] = -total
            for y in range(x + 1):
                covariances[x, y] -= prior_weights[row] * A[x, y]
        at = 0
        for x in range(width):
            mean[row, x] = x_new[x]
        for x in range(n_factors):
            for y in range(x + 1):
                moments[row, at + y] = x_new[x] * x_new[y] - A[x, y]
            at += x + 1
        for k in range(n_steps):
            variances[row, k] = -A[n_factors + k, n_factors + k]


@fast
def _drift_sites(
    first: int,
    stop: int,
    ratings: RatingArrays,
    drift: np.ndarray,
    users: RowArrays,
    items: RowArrays,
    weights: np.ndarray,
    pulls: np.ndarray,
    workspace: Workspace,
) -> None:
    start, rated, levels, shares = ratings
    mean, moments, variances = users
    item_mean, item_moments, item_variances = items
    own, steps = workspace.packed, workspace.steps
    n_steps = variances.shape[1]
    n_factors = mean.shape[1] - n_steps
    w, h = steps[WEIGHT], steps[PULL]
    for user in range(first, stop):
        _double_off_diagonal(moments[user], n_factors, own)
        for a in range(start[user], start[user + 1]):
            item = rated[a]
            f, spread = _score(mean[user], item_mean[item], own, item_moments[item], n_factors)
            known, spread = _with_drift(drift, a, spread)
            n = _put_steps(
                steps, 0, levels[a], f + known, spread, mean[user], variances[user],
                item_mean[item], item_variances[item],
            )  # fmt: skip
            _weigh_steps(steps, n, 0.5)
            total, pull = np.float32(0.0), np.float32(0.0)
            for k in range(n):
                fixed = f + mean[user, n_factors + k] + item_mean[item, n_factors + k]
                total += w[k]
                pull += h[k] - w[k] * fixed
            share = shares[a] if shares.size else ONE
            weights[a], pulls[a] = share * total, share * pull


@fast
def _full_scores(
    user_rows: np.ndarray,
    item_rows: np.ndarray,
    users: RowArrays,
    items: RowArrays,
    scores: np.ndarray,
    workspace: Workspace,
) -> None:
    mean, moments, variances = users
    item_mean, item_moments, _ = items
    own = workspace.packed
    n_factors = mean.shape[1] - variances.shape[1]
    for a in range(user_rows.size):
        user, item = user_rows[a], item_rows[a]
        if a == 0 or user != user_rows[a - 1]:
            _double_off_diagonal(moments[user], n_factors, own)
        f, spread = _score(mean[user], item_mean[item], own, item_moments[item], n_factors)
        scores[a, 0], scores[a, 1] = f, spread


@fast
def _reaches(
    mean: np.ndarray, spreads: np.ndarray, axes: np.ndarray, mixing: np.ndarray, out: np.ndarray
) -> None:
    """Write ``(axes' mean)^2 + mixing spreads`` of each row."""
    n_factors = spreads.shape[1]
    for row in range(len(mean)):
        for x in range(n_factors):
            out[row, x] = np.float32(0.0)
        for y in range(n_factors):
            for x in range(n_factors):
                out[row, x] += mean[row, y] * axes[y, x]
        for x in range(n_factors):
            total = out[row, x] * out[row, x]
            for y in range(n_factors):
                total += mixing[x, y] * spreads[row, y]
            out[row, x] = total


@fast
def _compact_scores(
    user_rows: np.ndarray,
    item_rows: np.ndarray,
    users: tuple[np.ndarray, np.ndarray, np.ndarray],
    items: tuple[np.ndarray, np.ndarray, np.ndarray],
    scores: np.ndarray,
) -> None:
    p, d, user_reach = users
    q, e, item_reach = items
    for a in range(user_rows.size):
        user, item = user_rows[a], item_rows[a]
        f, spread = np.float32(0.0), np.float32(0.0)
        for x in range(d.shape[1]):
            f += p[user, x] * q[item, x]
            spread += d[user, x] * item_reach[item, x] + e[item, x] * user_reach[user, x]
        scores[a, 0], scores[a, 1] = f, spread


@fast
def _probabilities(
    user_rows: np.ndarray,
    item_rows: np.ndarray,
    scores: np.ndarray,
    drift: np.ndarray,
    users: tuple[np.ndarray, np.ndarray],
    items: tuple[np.ndarray, np.ndarray],
    out: np.ndarray,
) -> None:
    mean, variances = users
    item_mean, item_variances = items
    n_steps = variances.shape[1]
    n_factors = mean.shape[1] - n_steps
    share = UNIFORM / (n_steps + 1)
    for a in range(user_rows.size):
        user, item = user_rows[a], item_rows[a]
        known, spread = _with_drift(drift, a, scores[a, 1])
        left = 1.0 - UNIFORM
        for k in range(n_steps):
            m = scores[a, 0] + known + mean[user, n_factors + k] + item_mean[item, n_factors + k]
            v = spread + variances[user, k] + item_variances[item, k]
            onward = 1.0 / (1.0 + np.exp(-m / np.sqrt(1.0 + np.pi / 8.0 * v)))
            out[a, k] = left * (1.0 - onward) + share
            left *= onward
        out[a, n_steps] = left + share


# ---- steps -----------------------------------------------------------------------------


@fast_inner
def _score(
    p: np.ndarray, q: np.ndarray, own: np.ndarray, theirs: np.ndarray, n_factors: int
) -> tuple[np.float32, np.float32]:
    """Return the mean of p.q and its variance ``tr(E[pp'] E[qq']) - (E[p].E[q])^2``, (5)."""
    f, square = np.float32(0.0), np.float32(0.0)
    for x in range(n_factors):
        f += p[x] * q[x]
    for x in range(own.size):
        square += own[x] * theirs[x]
    rest = square - f * f
    return f, rest if rest > 0 else np.float32(0.0)


@fast_inner
def _with_drift(drift: np.ndarray, a: int, spread: np.float32) -> tuple[np.float32, np.float32]:
    """Return the mean of a rating's drift, and the spread with the drift's variance."""
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
    n_factors = mean.size - n_steps
    for k in range(level + 1 if level < n_steps else n_steps):
        steps[MEAN, n] = f + mean[n_factors + k] + their_mean[n_factors + k]
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
        fall = exp_of_minus(kappa * abs(m))
        above = ONE / (ONE + fall)
        p = above if m > 0 else fall * above
        xi = np.sqrt(m * m + v)
        fall_xi = exp_of_minus(xi)
        bound = QUARTER - BY_48 * xi * xi
        if xi > NEAR:
            bound = HALF * (ONE - fall_xi) / ((ONE + fall_xi) * xi)
        w = kappa * fall * above * above
        w = w if w > least * bound else least * bound
        weight[e] = w
        pull[e] = onward[e] - p + w * m


@fast_inner
def _double_off_diagonal(packed: np.ndarray, n_factors: int, out: np.ndarray) -> None:
    """Double a packed triangle off its diagonal: a dot product with another one is a trace."""
    at = 0
    for x in range(n_factors):
        for _ in range(x):
            out[at] = np.float32(2.0) * packed[at]
            at += 1
        out[at] = packed[at]
        at += 1


# ---- single-precision mathematics --------------------------------------------------------


@fast_inner
def exp_of_minus(x: np.float32) -> np.float32:
    """Return exp(-x) for x >= 0, to six digits; the library's function would not be vectorised.

    ``exp(-x) = 2^-n exp(-r)`` with n whole and ``|r|`` at most ``ln(2) / 2``.
    """
    x = x if x < FARTHEST else FARTHEST
    n = np.int32(x * PER_LN2 + HALF)
    r = x - np.float32(n) * LN2_HIGH - np.float32(n) * LN2_LOW
    rest = ONE - r * FIFTH * (ONE - r * SIXTH)
    rest = ONE - r * (ONE - r * HALF * (ONE - r * THIRD * (ONE - r * QUARTER * rest)))
    power = np.int32((np.int32(127) - n) << np.int32(23)).view(np.float32)  # the bits of 2^-n
    return rest * power


@fast_inner
def invert_and_negate(A: np.ndarray, column: np.ndarray) -> None:
    """Overwrite the lower triangle of a positive definite matrix by that of minus its inverse.

    Rows and columns are swept out one after the other (Beaton 1964). The sweep has long inner
    loops and no square roots: it takes half of LAPACK's time at 40 rows. ``column`` is scratch
    memory.
    """
    n = A.shape[0]
    for k in range(n):
        inverse = ONE / A[k, k]
        for x in range(k):
            column[x] = A[k, x]
        for x in range(k + 1, n):
            column[x] = A[x, k]
        column[k] = np.float32(0.0)
        for x in range(n):
            by = column[x] * inverse
            for y in range(x + 1):
                A[x, y] -= by * column[y]
        for x in range(k):
            A[k, x] = column[x] * inverse
        for x in range(k + 1, n):
            A[x, k] = column[x] * inverse
        A[k, k] = -inverse
