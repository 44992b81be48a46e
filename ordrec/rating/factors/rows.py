"""Posteriors of many rows, and ratings grouped by row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from ordrec.data.groups import Groups, group_starts
from ordrec.errors import ModelFileError
from ordrec.storage.schema import Array

__all__ = [
    "GroupedRatings",
    "PriorArrays",
    "RatingArrays",
    "RowArrays",
    "RowPosteriors",
    "chosen_rows",
    "packed_outer",
    "row_pieces",
    "usual_sizes",
]

SMALLER, LARGER = (32, 32), (64, 128)  # usual n_factors and pattern
MANY, TOO_MANY = 200_000, 5_000_000  # ratings between which the larger ones pay
PIECES = 64  # into which the rows are cut for the threads
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

    stored: ClassVar = {
        "mean": Array("rows", "factors+thresholds", dtype=np.float32),
        "moments": Array("rows", "moments", dtype=np.float32),
        "variances": Array("rows", "thresholds", dtype=np.float32, low=0),
    }

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

    def covariance(self, row: int) -> np.ndarray:
        """Return the covariance of the factors of a row."""
        n_factors = self.n_factors
        lower = np.zeros((n_factors, n_factors))
        mean = self.mean[row, :n_factors].astype(np.float64)
        lower[np.tril_indices(n_factors)] = self.moments[row] - packed_outer(mean[None])[0]
        return lower + np.tril(lower, -1).T

    def copy(self) -> RowPosteriors:
        """Return a copy that shares no memory with these rows."""
        return RowPosteriors(*(array.copy() for array in self.arrays))

    def take(self, rows: np.ndarray) -> RowPosteriors:
        """Return copies of some rows."""
        return RowPosteriors(*(array[rows] for array in self.arrays))

    def with_rows(self, rows: np.ndarray, others: RowPosteriors) -> RowPosteriors:
        """Return a copy with some rows replaced or added; the row of the unknown stays the last."""
        n_known = len(self.mean) - 1
        n_rows = max(n_known, int(rows.max(initial=-1)) + 1)
        arrays = []
        for old, own in zip(self.arrays, others.arrays, strict=True):
            array = np.empty((n_rows + 1, old.shape[1]), np.float32)
            array[:n_known], array[n_rows] = old[:-1], old[-1]
            array[rows] = own
            arrays.append(array)
        return RowPosteriors(*arrays)

    def check_stored(self) -> None:
        """Check that the second moments are those of the factors."""
        if (
            self.moments.shape[1] != self.n_factors * (self.n_factors + 1) // 2
            or self.n_factors < 1
        ):
            raise ModelFileError(f"the moments of rows are not those of {self.n_factors} factors")


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
    n_ratings: int, n_factors: int | None = None, pattern: int | None = None
) -> tuple[int, int]:
    """Return the numbers of factors and of coordinates of the pattern, by default the usual ones.

    Examples
    --------
    >>> usual_sizes(100_000), usual_sizes(1_000_000), usual_sizes(1_000_000, n_factors=8)
    ((32, 32), (64, 128), (8, 128))
    """
    usual = LARGER if MANY <= n_ratings <= TOO_MANY else SMALLER
    return usual[0] if n_factors is None else n_factors, usual[1] if pattern is None else pattern
