"""Priors of the rows of `OrdinalFactors`, learnt from who rated what and from side data.

With ``F`` the features of the rows that the prior is learnt from, ``M`` the means of their
posteriors and ``C`` a sum of their covariances (4), the best parameters of the prior ``N(B' f, S)``
are

(1) ``B = (F'F + D)^-1 F'M``, where D is diagonal: 0 for the constant feature, and
(2) ``S = ((M - FB)'(M - FB) + C + B'DB + PRIOR_ROWS PRIOR_VARIANCE I) / (n + PRIOR_ROWS)``,

as if B had the prior ``N(0, S D^-1)`` and there were a few more rows, of a small variance.

A row u must not be drawn to where its own ratings have put B, or a prior with many features would
seem surer than it is. Integrating over B, given the other rows, the prior of u is

(3) ``N((B' f_u - l_u m_u) / (1 - l_u), S / (1 - l_u))`` with the leverage ``l_u = f_u' (F'F + D)^-1
    f_u``: the regression without u, and its uncertainty. In (2), likewise,
(4) ``C = sum_u (1 - l_u) Cov_u``.

The prior is not learnt from rows with very few ratings: their posteriors are close to the prior, so
learning from them would freeze it.

Rows without ratings do not have the features of the pattern: at zero ratings their coefficients
predict worse than nothing. `ColdPrior` is a regression on side columns alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import ClassVar

import numpy as np
from scipy import sparse

from ordrec.data import Ratings
from ordrec.rating.factors.randomized import leading_svd
from ordrec.rating.factors.rows import PriorArrays, RowPosteriors, packed_outer
from ordrec.runtime.parallel import one_blas_thread
from ordrec.storage.schema import Array, Numbers

__all__ = [
    "DAMPING",
    "FEW",
    "POWER_STEPS",
    "ColdPrior",
    "ColdSums",
    "LearntRows",
    "LearntSums",
    "RatingPattern",
    "RowPrior",
    "least_to_learn_from",
    "mean_and_scale",
    "pattern_features",
    "precision_of",
    "starting_covariance",
]

PATTERN_RIDGE = 20.0
SIDE_RIDGE = 10.0
PRIOR_ROWS = 10.0
FEW = 3  # ratings up to which a row is not learnt from, and takes part in every third sweep
MOST_LEVERAGE = 0.9  # without a single row the regression would know nothing
ENOUGH = 100  # rows with more that make those with few dispensable
PRIOR_VARIANCE = 0.1
START_VARIANCE = 10.0  # of factors: they shrink in a few sweeps, but would grow only slowly
START_STEPS = {"user": (0.7, 0.8), "item": (0.3, 0.05)}  # common and own variance of steps
DAMPING = 10.0  # ratings added to every row and column, so that rare ones do not dominate
POWER_STEPS = 5
BLOCK = 4096  # rows whose moments are in double precision at a time


@dataclass(frozen=True)
class LearntRows:
    """Rows that a prior is learnt from, in memory.

    Attributes
    ----------
    F, M : ndarray
        Their features and the means of their posteriors.
    """

    F: np.ndarray
    M: np.ndarray

    @property
    def FM(self) -> np.ndarray:
        """F'M."""
        return self.F.T @ self.M

    def residual_squares(self, B: np.ndarray) -> np.ndarray:
        """(M - FB)'(M - FB)."""
        rest = self.M - self.F @ B
        return rest.T @ rest

    def sums(self) -> LearntSums:
        """What remains of them when the rows are not in memory."""
        return LearntSums(self.F.T @ self.F, self.FM, self.M.T @ self.M)


@dataclass(frozen=True)
class LearntSums:
    """Rows that a prior is learnt from, of which only F'F, F'M and M'M are in memory."""

    FF: np.ndarray
    FM: np.ndarray
    MM: np.ndarray

    def residual_squares(self, B: np.ndarray) -> np.ndarray:
        """(M - FB)'(M - FB)."""
        return residual_squares(self.FF, self.FM, self.MM, B)

    def __add__(self, other: LearntSums) -> LearntSums:
        return LearntSums(self.FF + other.FF, self.FM + other.FM, self.MM + other.MM)


@dataclass(frozen=True)
class RowPrior:
    """The prior of all users or of all items, see (1) and (2).

    Attributes
    ----------
    B, S : ndarray
    ridge : ndarray
        The diagonal of D.
    inverse : ndarray
        Of ``F'F + D``.
    least : int
        The prior is learnt from rows with at least this number of ratings.
    n_rows : int
        Number of these rows.
    is_learnt : bool
        Whether B and S have been learnt.
    """

    B: np.ndarray
    S: np.ndarray
    ridge: np.ndarray
    inverse: np.ndarray
    least: int
    n_rows: int
    is_learnt: bool = False

    @classmethod
    def start(
        cls, FF: np.ndarray, n_side: int, counts: np.ndarray, mean: np.ndarray, S: np.ndarray
    ) -> RowPrior:
        """The prior before anything is learnt: this mean and this covariance for all rows.

        Parameters
        ----------
        FF : ndarray
            F'F of the rows that have at least ``least_to_learn_from(counts)`` ratings. The first
            feature is constant; the last ``n_side`` are side data.
        n_side : int
        counts : ndarray of int
            The rows' numbers of ratings.
        mean, S : ndarray
        """
        ridge, least = ridge_of(len(FF), n_side), least_to_learn_from(counts)
        B = np.zeros((len(FF), mean.size))
        B[0] = mean
        inverse = np.linalg.inv(FF + np.diag(ridge))
        return cls(B, S, ridge, inverse, least, int((counts >= least).sum()))

    def of_rows(self, features: np.ndarray, mean: np.ndarray, counts: np.ndarray) -> PriorArrays:
        """The prior of each row, (3), given the means of the rows' posteriors."""
        P = precision_of(self.S)
        if not self.is_learnt:
            pulls, weights = features @ (self.B @ P), np.ones(len(features), np.float32)
        else:
            leverage = np.einsum("nf,nf->n", features @ self.inverse, features)
            leverage = np.where(counts >= self.least, leverage, 0.0)
            leverage = np.minimum(leverage, MOST_LEVERAGE)
            pulls = (features @ self.B - leverage[:, None] * mean) @ P
            weights = (1.0 - leverage).astype(np.float32)
        return PriorArrays(pulls.astype(np.float32), weights, P.astype(np.float32))

    def rows_to_learn_from(
        self, features: np.ndarray, mean: np.ndarray, counts: np.ndarray
    ) -> LearntRows:
        """Those of these rows that have enough ratings."""
        enough = counts >= self.least
        return LearntRows(features[enough].astype(np.float64), mean[enough].astype(np.float64))

    def learnt(
        self,
        rows: LearntRows | LearntSums,
        covariances: Mapping[tuple[int, int], np.ndarray],
    ) -> RowPrior:
        """The prior with the best B and S, (1) and (2).

        Parameters
        ----------
        rows : LearntRows or LearntSums
        covariances : mapping
            Sums (4) of posterior covariances, by the span of the rows' numbers of ratings. Only
            lower triangles are read.
        """
        B = self.inverse @ rows.FM
        C = np.sum([own for span, own in covariances.items() if span[0] >= self.least], axis=0)
        S = best_covariance(rows.residual_squares(B), C, B, self.ridge, self.n_rows)
        return replace(self, B=B, S=S, is_learnt=True)


def least_to_learn_from(counts: np.ndarray) -> int:
    """Number of ratings from which on a row takes part in learning the prior.

    Examples
    --------
    >>> least_to_learn_from(np.full(1000, 5)), least_to_learn_from(np.full(1000, 2))
    (4, 1)
    """
    return FEW + 1 if (counts > FEW).sum() >= ENOUGH else 1


def ridge_of(n_features: int, n_side: int) -> np.ndarray:
    """The diagonal of D."""
    ridge = np.full(n_features, PATTERN_RIDGE)
    ridge[n_features - n_side :] = SIDE_RIDGE
    ridge[0] = 0.0
    return ridge


def best_covariance(
    rest: np.ndarray, C: np.ndarray, B: np.ndarray, ridge: np.ndarray, n_rows: int
) -> np.ndarray:
    """(2), given (M - FB)'(M - FB), and the lower triangle of C."""
    total = rest + np.tril(C) + np.tril(C, -1).T + B.T @ (ridge[:, None] * B)
    total[np.diag_indices_from(total)] += PRIOR_ROWS * PRIOR_VARIANCE
    return total / (n_rows + PRIOR_ROWS)


def precision_of(S: np.ndarray) -> np.ndarray:
    """The inverse of a covariance, exactly symmetric."""
    P = np.linalg.inv(S)
    return (P + P.T) / 2


def starting_covariance(rank: int, n_steps: int, side: str) -> np.ndarray:
    """The covariance before anything is learnt: wide for factors, correlated for steps."""
    common, own = START_STEPS[side]
    S = np.diag(np.full(rank + n_steps, START_VARIANCE))
    S[rank:, rank:] = common + own * np.eye(n_steps)
    return S


def residual_squares(FF: np.ndarray, FM: np.ndarray, MM: np.ndarray, B: np.ndarray) -> np.ndarray:
    """(M - FB)'(M - FB), given F'F, F'M and M'M."""
    cross = B.T @ FM
    return MM - cross - cross.T + B.T @ FF @ B


@dataclass(frozen=True)
class ColdSums:
    """What `ColdPrior` needs of weighted rows, F being a constant and their side data.

    Attributes
    ----------
    FF, FM, MM : ndarray
        F'F, F'M and M'M, M being the means of the posteriors.
    moments, variances : ndarray
        Sums of those of the posteriors.
    """

    FF: np.ndarray
    FM: np.ndarray
    MM: np.ndarray
    moments: np.ndarray
    variances: np.ndarray

    @classmethod
    def of(cls, rows: RowPosteriors, side: np.ndarray, weights: np.ndarray) -> ColdSums:
        """The sums over these rows."""
        M = rows.mean.astype(np.float64)
        F = np.column_stack([np.ones(len(M)), side])
        return cls(
            F.T @ (weights[:, None] * F), F.T @ (weights[:, None] * M), _gram(M, weights),
            _weighted_sum(weights, rows.moments), _weighted_sum(weights, rows.variances),
        )  # fmt: skip

    def __add__(self, other: ColdSums) -> ColdSums:
        return ColdSums(*(getattr(self, each.name) + getattr(other, each.name)
                          for each in fields(self)))  # fmt: skip


@dataclass(frozen=True)
class ColdPrior:
    """Rows without ratings: a regression of the fitted rows on a constant and their side data.

    A row without side data is the average row.

    Attributes
    ----------
    B : ndarray of shape (1 + n_side, width)
        Coefficients with side data.
    average : ndarray of shape (width,)
    moments, variances : tuple of two ndarrays
        Second moments of the factors around the predicted mean, and variances of the steps: with
        side data, and without.
    """

    stored: ClassVar = {
        "B": Array("side+1", "factors+thresholds"),
        "average": Array("factors+thresholds"),
        "moments": Array(2, "moments"),
        "variances": Array(2, "thresholds", low=0),
    }

    B: np.ndarray
    average: np.ndarray
    moments: np.ndarray
    variances: np.ndarray

    @classmethod
    def of(cls, rows: RowPosteriors, side: np.ndarray, row_weights: np.ndarray) -> ColdPrior:
        """Fit to the rows of positive weight."""
        used = row_weights > 0
        weights = row_weights[used] / row_weights[used].mean()
        return cls.from_sums(ColdSums.of(rows.take(np.flatnonzero(used)), side[used], weights))

    @classmethod
    def from_sums(cls, sums: ColdSums) -> ColdPrior:
        """Fit to rows of which only sums are known."""
        ridge = np.append(0.0, np.full(len(sums.FF) - 1, SIDE_RIDGE))
        B, n = np.linalg.solve(sums.FF + np.diag(ridge), sums.FM), sums.FF[0, 0]
        average = sums.FM[0] / n
        rank = B.shape[1] - sums.variances.size
        lower = np.tril_indices(rank)
        own = sums.moments - sums.MM[:rank, :rank][lower]  # the sum of the rows' own covariances
        moments, variances = [], []
        for coefficients in (B, np.vstack([average, np.zeros_like(B[1:])])):
            rest = residual_squares(sums.FF, sums.FM, sums.MM, coefficients)
            moments.append((own + rest[:rank, :rank][lower]) / n)
            variances.append((sums.variances + np.diag(rest)[rank:]) / n)
        return cls(B, average, np.stack(moments), np.stack(variances))

    def rows(self, side: np.ndarray) -> RowPosteriors:
        """Posteriors of rows without ratings."""
        described = np.abs(side).sum(axis=1) > 0
        mean = np.where(described[:, None], self.B[0] + side @ self.B[1:], self.average)
        rank = mean.shape[1] - self.variances.shape[1]
        kind = np.where(described, 0, 1)
        moments = self.moments[kind] + packed_outer(mean[:, :rank])
        return RowPosteriors.of(mean, moments, self.variances[kind])


@dataclass(frozen=True)
class RatingPattern:
    """Coordinates of users and items, computed from who rated what.

    The singular vectors of the matrix ``x_ui / sqrt((n_u + DAMPING) (n_i + DAMPING))``, ``x_ui``
    being 1 where there is a rating, each multiplied by its singular value relative to the first,
    so that a ridge shrinks the coefficients of the lesser ones more: further coordinates do
    little harm.

    Attributes
    ----------
    of_items, of_users : ndarray of shape (n_items or n_users, n_coordinates)
        What a rating of the item adds to its user's coordinates, and vice versa.
    user_counts, item_counts : (float, float)
        Mean and standard deviation of ``log(1 + n)`` over the rows with ratings.
    """

    stored: ClassVar = {
        "of_items": Array("items", "coordinates", dtype=np.float32),
        "of_users": Array("users", "coordinates", dtype=np.float32),
        "user_counts": Numbers(2, low=0),
        "item_counts": Numbers(2, low=0),
    }

    of_items: np.ndarray
    of_users: np.ndarray
    user_counts: tuple[float, float]
    item_counts: tuple[float, float]

    @classmethod
    def of(cls, ratings: Ratings, size: int) -> RatingPattern:
        """Find the coordinates of these ratings."""
        counts = ratings.user_counts, ratings.item_counts
        size = min(size, min(ratings.n_users, ratings.n_items) - 1)
        scales = [mean_and_scale(np.log1p(n[n > 0])) for n in counts]
        if size < 1:
            nothing = [np.zeros((n, 0), np.float32) for n in (ratings.n_items, ratings.n_users)]
            return cls(nothing[0], nothing[1], scales[0], scales[1])
        of_user, of_item = (1.0 / np.sqrt(n + DAMPING) for n in counts)
        entries = of_user[ratings.users] * of_item[ratings.items]
        table = sparse.csr_array(
            (entries, (ratings.users, ratings.items)), shape=(ratings.n_users, ratings.n_items)
        )
        with one_blas_thread():  # the same digits on every machine
            left, values, right = leading_svd(table, size, POWER_STEPS)
        kept = values > 1e-9 * values[0]
        n_users, n_items = ((n > 0).sum() for n in counts)
        by_items = of_item[:, None] * right[kept].T * np.sqrt(n_users) / values[0]
        by_users = of_user[:, None] * left[:, kept] * np.sqrt(n_items) / values[0]
        return cls(by_items.astype(np.float32), by_users.astype(np.float32), scales[0], scales[1])

    def user_features(self, users: np.ndarray, items: np.ndarray, n_users: int) -> np.ndarray:
        """Features of users who rated these items: a constant, their number, the coordinates."""
        return _features(users, items, n_users, self.of_items, self.user_counts)

    def item_features(self, items: np.ndarray, users: np.ndarray, n_items: int) -> np.ndarray:
        """Features of items that these users rated."""
        return _features(items, users, n_items, self.of_users, self.item_counts)

    def extended(self, n_users: int, n_items: int) -> RatingPattern:
        """The pattern with further users and items, who add nothing to anybody's coordinates."""
        of_items, of_users = (
            np.vstack([basis, np.zeros((n_new, basis.shape[1]), np.float32)])
            for basis, n_new in ((self.of_items, n_items), (self.of_users, n_users))
        )
        return replace(self, of_items=of_items, of_users=of_users)

    @property
    def n_features(self) -> int:
        """Number of features: the constant, the number of ratings and the coordinates."""
        return 2 + self.of_items.shape[1]


def _features(
    rows: np.ndarray,
    others: np.ndarray,
    n_rows: int,
    basis: np.ndarray,
    scale: tuple[float, float],
) -> np.ndarray:
    counts = np.bincount(rows, minlength=n_rows)
    ones = sparse.csr_array(
        (np.ones(rows.size, np.float32), (rows, others)), shape=(n_rows, len(basis))
    )
    return pattern_features(ones @ basis, counts, scale)


def pattern_features(
    coordinates: np.ndarray, counts: np.ndarray, scale: tuple[float, float]
) -> np.ndarray:
    """A constant, the number of ratings, and summed coordinates, for rows of so many ratings."""
    mean, spread = scale
    size = (np.log1p(counts) - mean) / spread if spread > 0 else np.zeros(counts.size)
    damped = coordinates / np.sqrt(counts + DAMPING)[:, None]
    return np.column_stack([np.ones(counts.size), size, damped])


def _weighted_sum(weights: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """``weights @ rows`` in double precision, by blocks of rows."""
    total = np.zeros(rows.shape[1])
    for a in range(0, len(rows), BLOCK):
        total += weights[a : a + BLOCK] @ rows[a : a + BLOCK].astype(np.float64)
    return total


def _gram(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return rows.T @ (weights[:, None] * rows)


def mean_and_scale(values: np.ndarray) -> tuple[float, float]:
    """Mean and standard deviation, as numbers for a model file."""
    return float(values.mean()), float(values.std())
