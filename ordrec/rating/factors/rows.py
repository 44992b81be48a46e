"""Posteriors of many rows, while they are fitted and afterwards, and ratings grouped by row.

While a model is fitted, every row has a full covariance (`RowPosteriors`): replaced by its diagonal
in any coordinates, it cost .0009 of RMSE on MovieLens 100K, because the errors of one sweep enter
the next. A fitted model keeps variances along axes that all rows share (`CompactRows`), which
changed predictions by less than .0001. With A = P + n J about the precision of a row with n
ratings, P that of the prior and J the mean second moment of the rows on the other side, the axes
are those that make P and J diagonal at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from ordrec.data.groups import Groups, group_starts
from ordrec.errors import ModelFileError
from ordrec.storage.schema import Array

__all__ = [
    "BLOCK",
    "CompactRows",
    "GroupedRatings",
    "PriorArrays",
    "RatingArrays",
    "RowArrays",
    "RowPosteriors",
    "chosen_rows",
    "packed_outer",
    "row_pieces",
    "shared_axes",
    "unpacked",
    "usual_sizes",
]

SMALLER, LARGER = (32, 32), (64, 128)  # usual n_factors and pattern
MANY, TOO_MANY = 200_000, 5_000_000  # ratings between which the larger ones pay
BLOCK = 1024  # rows whose moments are in double precision at a time
LARGEST_HALF = float(np.finfo(np.float16).max)
PIECES = 64  # into which the rows are cut for the threads
PER_ROW_ENOUGH = 10  # ratings per user and item from which they pay
PER_ROW = 60  # cost of solving a row's linear system, in ratings


class RowArrays(NamedTuple):
    """The arrays of `RowPosteriors`, as the compiled loops take them."""

    mean: np.ndarray
    moments: np.ndarray
    variances: np.ndarray


@dataclass(frozen=True)
class RowPosteriors:
    """Gaussian posteriors of all users or of all items.

    Attributes
    ----------
    mean : ndarray of float32, shape (n_rows, n_factors + n_steps)
        Posterior means of the factors, then of the steps.
    moments : ndarray of float32, shape (n_rows, n_factors (n_factors + 1) / 2)
        Second moments E[p p'] of the factors: the lower triangle, row by row.
    variances : ndarray of float32, shape (n_rows, n_steps)
        Posterior variances of the steps.
    """

    mean: np.ndarray
    moments: np.ndarray
    variances: np.ndarray

    @classmethod
    def of(cls, mean: np.ndarray, moments: np.ndarray, variances: np.ndarray) -> RowPosteriors:
        """Convert the arrays to single precision."""
        parts = (np.ascontiguousarray(part, np.float32) for part in (mean, moments, variances))
        return cls(*parts)

    @property
    def arrays(self) -> RowArrays:
        """The three arrays, as the compiled loops take them."""
        return RowArrays(self.mean, self.moments, self.variances)

    @property
    def n_factors(self) -> int:
        """Number of factors."""
        return self.mean.shape[1] - self.variances.shape[1]

    def take(self, rows: np.ndarray) -> RowPosteriors:
        """Return copies of some rows."""
        return RowPosteriors(*(array[rows] for array in self.arrays))


@dataclass(frozen=True)
class CompactRows:
    """Gaussian posteriors of the rows of a fitted model, in half precision.

    The covariance of the factors of a row is ``axes diag(spreads) axes'``.

    Attributes
    ----------
    mean : ndarray of float16, shape (n_rows, n_factors + n_steps)
        Posterior means of the factors, then of the steps.
    spreads : ndarray of float16, shape (n_rows, n_factors)
        Variances of the factors along the axes.
    variances : ndarray of float16, shape (n_rows, n_steps)
        Posterior variances of the steps.
    axes : ndarray of float32, shape (n_factors, n_factors)
        The axes, in columns, see `shared_axes`.
    """

    stored: ClassVar = {
        "mean": Array("rows", "factors+thresholds", dtype=np.float16),
        "spreads": Array("rows", "factors", dtype=np.float16, low=0),
        "variances": Array("rows", "thresholds", dtype=np.float16, low=0),
        "axes": Array("factors", "factors", dtype=np.float32),
    }

    mean: np.ndarray
    spreads: np.ndarray
    variances: np.ndarray
    axes: np.ndarray

    def check_stored(self) -> None:
        """Check that rows can be put along the axes, as new ones are."""
        try:
            inverse = np.linalg.inv(self.axes.astype(np.float64))
        except np.linalg.LinAlgError:
            inverse = np.array(np.inf)
        if not np.isfinite(inverse).all():
            raise ModelFileError("the axes of the rows do not span all factors")

    @classmethod
    def of(cls, rows: RowPosteriors, axes: np.ndarray) -> CompactRows:
        """Return these rows without what their covariances have off the axes.

        Examples
        --------
        >>> rows = RowPosteriors.of(np.ones((1, 3)), [[1.5, 1.1, 1.25]], np.ones((1, 1)))
        >>> CompactRows.of(rows, np.eye(2)).spreads
        array([[0.5 , 0.25]], dtype=float16)
        """
        n_factors = rows.n_factors
        inverse = np.linalg.inv(axes.astype(np.float64))
        x, y = np.tril_indices(n_factors)
        products = np.where(x == y, 1.0, 2.0) * inverse[:, x] * inverse[:, y]
        spreads = np.empty((len(rows.mean), n_factors), np.float16)
        for a in range(0, len(spreads), BLOCK):
            own = slice(a, a + BLOCK)
            moments = rows.moments[own].astype(np.float64) @ products.T
            along = rows.mean[own, :n_factors].astype(np.float64) @ inverse.T
            spreads[own] = _in_half_precision(np.maximum(moments - along**2, 0.0))
        mean, variances = map(_in_half_precision, (rows.mean, rows.variances))
        return cls(mean, spreads, variances, axes.astype(np.float32))

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Means, spreads and variances."""
        return self.mean, self.spreads, self.variances

    @property
    def n_factors(self) -> int:
        """Number of factors."""
        return self.spreads.shape[1]

    @property
    def factors(self) -> np.ndarray:
        """Posterior means of the factors, in single precision."""
        return self.mean[:, : self.n_factors].astype(np.float32)

    def covariance(self, row: int) -> np.ndarray:
        """Return the covariance of the factors of a row."""
        axes = self.axes.astype(np.float64)
        return (axes * self.spreads[row].astype(np.float64)) @ axes.T

    def expanded(self, rows: np.ndarray) -> RowPosteriors:
        """Return some rows as a fit takes them."""
        axes, (x, y) = self.axes.astype(np.float64), np.tril_indices(self.n_factors)
        own = self.spreads[rows].astype(np.float64) @ (axes[x] * axes[y]).T
        mean = self.mean[rows].astype(np.float64)
        moments = own + packed_outer(mean[:, : self.n_factors])
        return RowPosteriors.of(mean, moments, self.variances[rows])

    def take(self, rows: np.ndarray) -> CompactRows:
        """Return copies of some rows."""
        return CompactRows(self.mean[rows], self.spreads[rows], self.variances[rows], self.axes)

    def with_unknown(self, unknown: CompactRows) -> CompactRows:
        """Append the row of the unknown."""
        return CompactRows(
            np.concatenate([self.mean, unknown.mean]),
            np.concatenate([self.spreads, unknown.spreads]),
            np.concatenate([self.variances, unknown.variances]),
            self.axes,
        )

    def with_rows(self, rows: np.ndarray, others: CompactRows) -> CompactRows:
        """Return a copy with some rows replaced or added; the row of the unknown stays the last."""
        n_known = len(self.mean) - 1
        n_rows = max(n_known, int(rows.max(initial=-1)) + 1)

        def joined(old: np.ndarray, new: np.ndarray) -> np.ndarray:
            array = np.empty((n_rows + 1, old.shape[1]), old.dtype)
            array[:n_known], array[n_rows] = old[:-1], old[-1]
            array[rows] = new
            return array

        return CompactRows(
            joined(self.mean, others.mean),
            joined(self.spreads, others.spreads),
            joined(self.variances, others.variances),
            self.axes,
        )


def shared_axes(S: np.ndarray, J: np.ndarray) -> np.ndarray:
    """Return axes T with ``T'S^-1 T`` and ``T'JT`` diagonal, in columns.

    Parameters
    ----------
    S : ndarray of shape (n_factors, n_factors)
        The prior covariance of the factors.
    J : ndarray of shape (n_factors, n_factors)
        The mean second moment of the factors on the other side.

    Examples
    --------
    >>> T = shared_axes(np.array([[2.0, 1.0], [1.0, 2.0]]), np.diag([1.0, 3.0]))
    >>> bool(abs((T.T @ np.diag([1.0, 3.0]) @ T)[0, 1]) < 1e-9)
    True
    """
    root = np.linalg.cholesky(S)
    return root @ np.linalg.eigh(root.T @ J @ root)[1]


def _in_half_precision(array: np.ndarray) -> np.ndarray:
    return np.clip(array, -LARGEST_HALF, LARGEST_HALF).astype(np.float16)


def unpacked(packed: np.ndarray) -> np.ndarray:
    """Return the symmetric matrix of a packed lower triangle.

    Examples
    --------
    >>> unpacked(np.array([1.0, 2.0, 3.0]))
    array([[1., 2.],
           [2., 3.]])
    """
    n = round((np.sqrt(8 * packed.size + 1) - 1) / 2)
    full = np.zeros((n, n))
    x, y = np.tril_indices(n)
    full[x, y] = full[y, x] = packed
    return full


def packed_outer(vectors: np.ndarray) -> np.ndarray:
    """Return the lower triangles of x x', row by row, for each row x of a matrix."""
    rows, columns = np.tril_indices(vectors.shape[1])
    return vectors[:, rows] * vectors[:, columns]


class PriorArrays(NamedTuple):
    """The prior of all rows, see `row_priors`.

    Attributes
    ----------
    pulls : ndarray of shape (n_rows, n_factors + n_steps)
        ``(1 - l) P`` times the prior means.
    weights : ndarray of shape (n_rows,)
        ``1 - l``, which the precision P is multiplied by.
    P : ndarray of shape (n_factors + n_steps, n_factors + n_steps)
        The precision.
    """

    pulls: np.ndarray
    weights: np.ndarray
    P: np.ndarray


class RatingArrays(NamedTuple):
    """The arrays of `GroupedRatings` that the compiled loops take."""

    start: np.ndarray
    others: np.ndarray
    levels: np.ndarray
    weights: np.ndarray


@dataclass(frozen=True)
class GroupedRatings:
    """Ratings grouped by user or by item.

    Attributes
    ----------
    start : ndarray of shape (n_rows + 1,)
        Where the ratings of each row begin.
    others, levels : ndarray of shape (n_ratings,)
        The item or user on the other side, and the zero-based rank.
    weights : ndarray of shape (n_ratings,) or (0,)
        How much each rating counts; empty where all count as 1.
    order : ndarray of shape (n_ratings,)
        Where each of these ratings stood before.
    """

    start: np.ndarray
    others: np.ndarray
    levels: np.ndarray
    weights: np.ndarray
    order: np.ndarray

    @classmethod
    def of(
        cls,
        rows: np.ndarray,
        others: np.ndarray,
        levels: np.ndarray,
        n_rows: int,
        weights: np.ndarray | None = None,
    ) -> GroupedRatings:
        """Group ratings by row, in their own order within each row."""
        return cls.of_groups(Groups.of(rows, n_rows), others, levels, weights)

    @classmethod
    def of_groups(
        cls, groups: Groups, others: np.ndarray, levels: np.ndarray, weights: np.ndarray | None
    ) -> GroupedRatings:
        """Sort columns by these groups."""
        order = groups.order.astype(np.int32 if groups.order.size < 2**31 else np.int64)
        weights = np.zeros(0) if weights is None else weights[order]
        return cls(
            groups.start,
            others[order].astype(np.int32),
            levels[order].astype(np.int16),
            weights.astype(np.float32),
            order,
        )

    @property
    def arrays(self) -> RatingArrays:
        """What the compiled loops take."""
        return RatingArrays(self.start, self.others, self.levels, self.weights)

    @property
    def seen(self) -> np.ndarray:
        """Rows that have ratings."""
        return self.counts > 0

    @property
    def counts(self) -> np.ndarray:
        """The rows' numbers of ratings."""
        return np.diff(self.start)

    def compacted(self) -> tuple[GroupedRatings, np.ndarray]:
        """Number the rows of the other side anew, without those that have no rating here.

        Returns the ratings, and which row of the other side each number stands for.
        """
        codes, others = np.unique(self.others, return_inverse=True)
        return replace(self, others=others.astype(self.others.dtype)), codes

    def reversed(self, n_steps: int) -> GroupedRatings:
        """Return the same ratings on the reversed scale."""
        return replace(self, levels=(n_steps - self.levels).astype(self.levels.dtype))


def row_pieces(counts: np.ndarray) -> list[tuple[int, int]]:
    """Cut rows with these numbers of ratings into pieces of about equal work: first row and end.

    Examples
    --------
    >>> len(row_pieces(np.full(1000, 20))), row_pieces(np.array([5, 9]))
    (64, [(0, 1), (1, 2)])
    """
    work = group_starts(counts) + PER_ROW * np.arange(counts.size + 1)
    cuts = np.unique(np.searchsorted(work, np.linspace(0, work[-1], PIECES + 1)))
    return list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))


def chosen_rows(counts: np.ndarray, span: tuple[int, int]) -> list[np.ndarray]:
    """Return, for each piece, the rows with ``span[0]`` to ``span[1]`` ratings.

    Examples
    --------
    >>> chosen_rows(np.array([5, 9, 2]), (5, 9))
    [array([0]), array([1]), array([], dtype=int64)]
    """
    least, most = span
    return [
        first + np.flatnonzero((counts[first:stop] >= least) & (counts[first:stop] <= most))
        for first, stop in row_pieces(counts)
    ]


def usual_sizes(
    n_ratings: int, n_rows: int, n_factors: int | None = None, pattern: int | None = None
) -> tuple[int, int]:
    """Return the numbers of factors and of coordinates of the pattern, by default the usual ones.

    The larger numbers pay only where users and items have enough ratings to tell so many factors
    apart; ``n_rows`` is the number of users and items.

    Examples
    --------
    >>> usual_sizes(100_000, 3_000), usual_sizes(1_000_000, 10_000), usual_sizes(226_000, 98_000)
    ((32, 32), (64, 128), (32, 32))
    """
    many = MANY <= n_ratings <= TOO_MANY and n_ratings >= PER_ROW_ENOUGH * n_rows
    usual = LARGER if many else SMALLER
    return usual[0] if n_factors is None else n_factors, usual[1] if pattern is None else pattern
